"""Reliability: equal to EM written down slowly, planted workers recovered, weights that help and do not hurt; nothing
about workers where nobody asked."""

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from stream_engine import exports
from stream_engine.commands.export import export
from stream_engine.evaluation import weighted_counts, worker_reliability
from stream_engine.formats.options import EventOptions
from stream_engine.refits import reliability, spectral
from stream_engine.state.snapshot import encode
from stream_engine.state.store import Store
from tests.support.generators import planted_triplets
from tests.support.learned import snapshot_of
from tests.support.served import served

VOTED = ("adds3", "triplet_counts", "worker_votes")


def study(seed=0, n=20, workers=40, each=80, spammers=0.4, questions=None):
    """(triplets, worker names, accuracy by name, points): some workers guess, the others err one time in ten. With
    `questions`, only so many different ones are asked."""
    rng = np.random.default_rng(seed)
    points = rng.normal(0, 0.3, (n, 2)) + np.where(np.arange(n)[:, None] % 2, 1.5, -1.5) * [1, 0]
    who = np.repeat(np.arange(workers), each)
    right = planted_triplets(rng, points, len(who))
    if questions:
        right = right[rng.integers(questions, size=len(who))]
    guesses = np.arange(workers) < spammers * workers
    wrong = rng.random(len(who)) < np.where(guesses[who], 0.5, 0.1)
    said = np.where(wrong[:, None], right[:, [0, 2, 1]], right)
    order = rng.permutation(len(who))
    accuracy = {f"w{i}": 1 - wrong[who == i].mean() for i in range(workers)}
    return said[order], [f"w{i}" for i in who[order]], accuracy, points


def learned(triplets, workers, n=20):
    names = [f"o{i}" for i in range(n)]
    events = [
        {"anchor": names[a], "near": names[b], "far": names[c], "worker": worker}
        for (a, b, c), worker in zip(triplets.tolist(), workers)
    ]
    return snapshot_of(events, VOTED, False, names)


def slow_em(triplets, workers, prior, iterations):
    """The one-coin model, question by question and vote by vote."""
    r = dict.fromkeys(set(workers), prior[0] / sum(prior))
    said = [((a, min(b, c), max(b, c)), b < c, w) for (a, b, c), w in zip(triplets.tolist(), workers)]
    for _ in range(iterations):
        odds = {}
        for key, lower, w in said:
            odds[key] = odds.get(key, 0.0) + (1 if lower else -1) * math.log(r[w] / (1 - r[w]))
        right, total = dict.fromkeys(r, prior[0]), dict.fromkeys(r, sum(prior))
        for key, lower, w in said:
            q = 1 / (1 + math.exp(-odds[key]))
            right[w] += q if lower else 1 - q
            total[w] += 1
        r = {w: min(max(right[w] / total[w], 0.01), 0.99) for w in r}
    return r


def test_em_is_em():
    triplets, workers, _, _ = study(n=6, workers=9, each=40, questions=50)
    votes = worker_reliability.votes_of(learned(triplets, workers, 6))
    for steps in (1, 3, 60):
        found = worker_reliability.estimate(votes, (3.0, 2.0), rank=0, max_iterations=steps, tol=1e-12)
        slow = slow_em(triplets, workers, (3.0, 2.0), min(steps, found.iterations))
        np.testing.assert_allclose(found.accuracy, [slow[name] for name in votes.names], rtol=1e-9)


@pytest.mark.parametrize("questions", [120, None], ids=["repeated questions", "hardly any repeated"])
def test_who_guesses_is_found(questions):
    triplets, workers, accuracy, _ = study(questions=questions, n=20 if questions else 60)
    votes = worker_reliability.votes_of(learned(triplets, workers, 20 if questions else 60))
    found = worker_reliability.estimate(votes)
    truth = np.array([accuracy[name] for name in votes.names])
    assert spearmanr(found.accuracy, truth).statistic > 0.75
    guesses = np.array([int(name[1:]) < 16 for name in votes.names])
    assert found.accuracy[guesses].max() < found.accuracy[~guesses].min()
    if questions is None:  # votes alone cannot know
        alone = worker_reliability.estimate(votes, rank=0)
        assert abs(alone.accuracy[guesses].mean() - alone.accuracy[~guesses].mean()) < 0.5 * (
            found.accuracy[~guesses].mean() - found.accuracy[guesses].mean()
        )


def test_nobody_is_judged_by_what_they_said_themselves():
    """The margins of a worker's votes do not change with the worker's votes."""
    triplets, workers, _, _ = study()
    votes = worker_reliability.votes_of(learned(triplets, workers))
    fold = np.arange(len(votes.names)) % 5
    mine = votes.worker == 3
    turned = votes._replace(n_lo=np.where(mine, votes.n_hi, votes.n_lo), n_hi=np.where(mine, votes.n_lo, votes.n_hi))
    one, two = (worker_reliability._margins(v, fold, np.full(len(v.names), 0.9), (2,))[2] for v in (votes, turned))
    np.testing.assert_array_equal(one[mine], two[mine])
    assert not np.array_equal(one[~mine], two[~mine])


def test_of_few_workers_or_without_a_predictor_nothing_is_told_of_it():
    triplets, workers, _, _ = study(spammers=0.0)
    assert (
        worker_reliability.figures_of_unseen_workers(worker_reliability.votes_of(learned(triplets, workers)), 3, rank=0)
        is None
    )
    few = worker_reliability.votes_of(learned(triplets[:40], [f"w{i % 4}" for i in range(40)]))
    assert worker_reliability.figures_of_unseen_workers(few) is None


def held_out(snapshot, how, points):
    """How often W[anchor, near] > W[anchor, far] on fresh triplets without error, ties one half."""
    n = len(points)
    found = weighted_counts.adds3(snapshot, how) if how else None
    i, j, w = found[:3] if found else (snapshot.section("adds3")[key] for key in "ijw")
    W = np.zeros((n, n))
    W[i, j] = W[j, i] = w
    a, b, c = planted_triplets(np.random.default_rng(9), points, 4000).T
    margin = W[a, b] - W[a, c]
    return float((margin > 0).mean() + 0.5 * (margin == 0).mean())


def test_weighting_helps_against_spam_and_does_not_hurt_without():
    for spammers, gain in ((0.4, 0.01), (0.0, -0.01)):
        triplets, workers, _, points = study(seed=3, n=30, spammers=spammers)
        snapshot = learned(triplets, workers, 30)
        assert held_out(snapshot, "trusted", points) > held_out(snapshot, None, points) + gain
    labels = spectral.refit(snapshot, spectral.Params("adds3_trusted", k=2), 0).arrays["labels"]
    assert len(set(labels[::2])) == len(set(labels[1::2])) == 1 and labels[0] != labels[1]


def test_a_refit_goes_on_from_the_one_before():
    triplets, workers, _, _ = study()
    early = reliability.refit(learned(triplets[:1500], workers[:1500]), reliability.Params(), 0)
    snapshot = learned(triplets, workers)
    fresh, warm = (reliability.refit(snapshot, reliability.Params(), 0, previous) for previous in (None, early))
    np.testing.assert_allclose(warm.arrays["accuracy"], fresh.arrays["accuracy"], atol=0.02)
    assert 8 <= fresh.report["guessing"] <= 16 and fresh.report["workers"] == 40


def test_catch_trials_reach_the_record_and_nothing_else():
    lines = [{"anchor": "a", "near": "b", "far": "c", "worker": "u"}] * 3
    lines += [
        {"anchor": "a", "near": "c", "far": "b", "worker": w, "passed": p}
        for w, p in (("u", True), ("v", False), ("v", True), ("v", True))
    ]
    options = EventOptions(columns={"catch": ("passed",)}, provenance=True)
    snapshot = snapshot_of(lines, VOTED, options=options)
    assert (snapshot.counters["triplets"], snapshot.counters["filtered"]) == (3, 4)
    arrays = reliability.refit(snapshot, reliability.Params(), 0).arrays
    assert [arrays[key].tolist() for key in ("events", "passed", "failed", "comparisons")] == [
        [3, 0],
        [1, 2],
        [0, 1],
        [3, 0],
    ]


def test_an_export_that_is_not_there_does_not_keep_the_others_back(tmp_path):
    triplets, workers, _, _ = study()
    Store(tmp_path / "s").publish(learned(triplets, [f"person-{w}" for w in workers]))
    with pytest.raises(exports.NothingToExport, match="workers: .* refit .* reliability"):
        export(str(tmp_path / "s"), str(tmp_path / "out"), "latest", "csv", ("workers", "objects"))
    assert (tmp_path / "out" / "objects.csv").is_file()


def test_worker_names_go_nowhere_unasked(tmp_path):
    triplets, workers, _, _ = study()
    snapshot = learned(triplets, [f"person-{w}" for w in workers])
    store = Store(tmp_path / "s")
    snapshot, _ = store.publish(snapshot)
    store.publish_artifact(reliability.refit(snapshot, reliability.Params(), 0))
    everything = export(str(tmp_path / "s"), str(tmp_path / "all"), "latest", "csv", ())
    assert not [path for path in everything if b"person-" in path.read_bytes() or "worker" in path.name]
    assert not [path for path in everything if path.name.startswith(("questions", "confidence"))]
    (table,) = export(str(tmp_path / "s"), str(tmp_path / "named"), "latest", "npz", ("workers",))[:1]
    assert b"person-w0" in table.read_bytes()
    published = store.published()
    with served(tmp_path / "s") as world:
        client, world.published = world.http, published
        for name in ("workers.csv", "workers.npz"):
            assert client.get(f"/export/{name}").status_code == 404
        assert client.get("/export/adds3_trusted.npz").status_code == 200
        assert "person-" not in client.get("/metrics").text + client.get("/snapshot").text
    assert not any("person-" in str(value) for value in published.artifacts["reliability"].report.values())
    assert set(exports.EXPORTS) >= exports.ON_REQUEST and encode(snapshot)
