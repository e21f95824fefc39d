"""What counts alone tell of held-out judgements: against counting by hand, on the judgements that refits report on."""

from collections import Counter

import numpy as np
import pytest

from stream_engine.commands.refit import note_counts
from stream_engine.evaluation import predictor
from stream_engine.evaluation.count_models import CountModels, count_figures, similarity_of
from stream_engine.evaluation.counts_without import without
from stream_engine.evaluation.similarities import dense_adds
from stream_engine.exports.models import COUNTS_TOLD, fits, table
from stream_engine.refits import embedding, kernel_learning, kernel_refits
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from stream_engine.state.store import Store
from tests.support.learned import snapshot_of

N = 9


def lines_of(seed=0, m=700, quadruplets=0.3):
    rng = np.random.default_rng(seed)
    points, out = rng.normal(size=(N, 2)), []
    apart = lambda a, b: ((points[a] - points[b]) ** 2).sum() + rng.normal(0, 0.5)  # noqa: E731
    for at in range(m):
        i, j, k, l = rng.permutation(N)[:4].tolist()
        who = {"worker": f"w{at % 12}"}
        if rng.random() < quadruplets:
            near, far = ((i, j), (k, l)) if apart(i, j) < apart(k, l) else ((k, l), (i, j))
            out.append({"type": "quadruplet", "near": [f"o{x}" for x in near], "far": [f"o{x}" for x in far], **who})
        else:
            near, far = (j, k) if apart(i, j) < apart(i, k) else (k, j)
            out.append({"anchor": f"o{i}", "near": f"o{near}", "far": f"o{far}", **who})
    return out


@pytest.fixture(scope="module")
def whole():
    return snapshot_of(lines_of())


@pytest.mark.parametrize("name", ["adds3", "k1", "k2", "repeats"])
def test_counts_predict_from_the_first_triplet_on(name):
    none, one = (Published(snapshot_of(lines), {}) for lines in ([], [{"anchor": "a", "near": "b", "far": "c"}]))
    assert predictor(name, none) is None and not np.isnan(predictor(name, one).margins(np.array([[0, 1, 0, 2]])))


@pytest.mark.parametrize("name", ["adds3", "adds4"])
def test_adds_of_counts_is_that_of_the_accumulators(whole, name):
    rows = np.array([np.random.default_rng(i).permutation(N)[:4] for i in range(200)], np.int32)
    rows = rows[:, [0, 1, 0, 2]] if name == "adds3" else rows
    w = dense_adds(whole, name)
    i, j, k, l = rows.T
    np.testing.assert_array_equal(similarity_of(whole, name).margins(rows), w[i, j] - w[k, l])
    turned = rows[:, [1, 0, 3, 2]] if name == "adds3" else rows[:, [0, 1, 0, 2]]
    assert np.isnan(similarity_of(whole, name).margins(turned)).all()  # not of its kind


@pytest.mark.parametrize("name", ["adds3", "adds4"])
def test_sums_without_held_out_answers_are_those_of_a_stream_without_them(whole, name):
    """Every line is a judgement of its own: an engine that hears those that are not reported alone."""
    counts = CountModels(whole, 2)
    held = counts.plan.responses[0].folds[0]
    out, rest = counts.responses.answers.of_responses(held), counts.responses.answers.without(held)
    lines = [
        {"type": "quadruplet", "near": [f"o{i}", f"o{j}"], "far": [f"o{k}", f"o{l}"]}
        for (i, j, k, l), times in zip(rest.rows.tolist(), rest.times.tolist())
        for _ in range(int(times))
    ]
    place = np.array([int(each[1:]) for each in snapshot_of(lines).objects])  # names are ids of `whole`
    w = dense_adds(snapshot_of(lines), name)
    rows = (out.triplets() if name == "adds3" else out.quadruplets()).rows
    i, j, k, l = np.argsort(place)[rows].T
    np.testing.assert_array_equal(similarity_of(without(whole, out), name, out).margins(rows), w[i, j] - w[k, l])


def test_the_majority_is_of_the_answers_that_were_not_held_out(whole):
    """Each answer held out is foretold by who says the same among the rest; a coin where nobody was asked."""
    got = count_figures(whole, 3)["majority"]
    counts, right, margins = CountModels(whole, 3), 0.0, []
    every = counts.responses.answers.triplets()
    for held in (each for group in counts.plan.responses for each in group.folds):
        out, votes = every.of_responses(held), Counter()
        for part, sign in ((every, 1), (out, -1)):
            for (a, b, _, c), times in zip(part.rows.tolist(), part.times.tolist()):
                votes[a, b, c] += sign * times
        margin = np.array([votes[a, b, c] - votes[a, c, b] for a, b, _, c in out.rows.tolist()])
        right += out.times @ ((margin > 0) + 0.5 * (margin == 0))
        margins += margin.tolist()
    assert got.judgement.comparisons == every.times.sum()
    assert got.judgement.accuracy == pytest.approx(right / every.times.sum()) and 0.5 < got.judgement.accuracy < 1
    assert 0 in margins and max(margins) > 0


def test_the_table_has_them_on_the_judgements_that_refits_report_on():
    whole = snapshot_of(lines_of(quadruplets=0.0))
    quick = embedding.Params(dimensions=2, kernel="ste", ridge=0.3, participants="alike")
    made = embedding.refit(whole, quick, 8)
    rows = {row["model"]: row for row in table(Published(whole, {"embedding": made}))}
    assert set(rows) == {"embedding", "adds3", "k1", "k2", "majority", "chance"}
    counts = count_figures(whole, 8)["adds3"]
    assert counts.judgement.comparisons == made.report["held_out_comparisons"]
    assert rows["adds3"]["accuracy"] == counts.judgement.accuracy > 0.6
    assert rows["embedding"]["ceiling"] == rows["adds3"]["ceiling"] and rows["adds3"]["seconds"] is None
    assert next(iter(rows)) == "embedding" and rows["chance"]["accuracy"] == 0.5


def test_counts_without_one_participant_are_not_those_without_another(tmp_path):
    """Two participants with as many answers, of whom one says the opposite of all others."""
    lines = [line for line in lines_of(quadruplets=0.0) if line["worker"] in ("w0", "w1", "w2", "w3", "w4")]
    for line in lines:
        if line["worker"] == "w0":
            line["near"], line["far"] = line["far"], line["near"]
    store = Store(tmp_path)
    store.publish(snapshot_of(lines))
    some = Artifact("embedding", "", store.published().snapshot.sequence, {}, 0, {}, {"held_out": "judgements"})

    def accuracies(excluded):
        store.exclude([excluded], {"w0", "w1"} - {excluded})
        published = store.published()._replace(artifacts={"embedding": some})
        note_counts(store, published.snapshot, 0)
        assert fits(published, store.noted(COUNTS_TOLD))  # so that nobody who only looks makes them again
        told = [table(published, noted) for noted in (store.noted(COUNTS_TOLD), {})]
        assert told[0] == told[1]
        return {row["model"]: row["accuracy"] for row in told[0]}

    assert accuracies("w0")["adds3"] > accuracies("w1")["adds3"] + 0.1


def test_the_ceiling_is_that_of_the_answers_that_were_predicted():
    """Nobody is named. People agree about triplets without the last object, and about nothing else."""
    rng, lines = np.random.default_rng(0), []
    for _ in range(1500):
        i, j, k, l = sorted(rng.permutation(6)[:4].tolist())
        pairs = [[f"o{i}", f"o{j}"], [f"o{k}", f"o{l}"]][:: int(rng.choice([-1, 1]))]
        lines.append({"type": "quadruplet", "near": pairs[0], "far": pairs[1]})
        near, far = (j, k) if k < 5 or rng.random() < 0.5 else (k, j)
        lines.append({"anchor": f"o{i}", "near": f"o{near}", "far": f"o{far}"})
    for last in (6, 5):
        for _ in range(300):
            i, j, k = sorted(rng.permutation(last)[:3].tolist())
            near, far = (j, k) if last == 5 or rng.random() < 0.5 else (k, j)
            lines.append({"anchor": f"o{i}", "near": f"o{near}", "far": f"o{far}"})
    snapshot = snapshot_of(lines)
    counts = CountModels(snapshot, 0)
    four, three = (counts.evaluate((name,))[name].ceiling for name in ("adds4", "adds3"))
    assert four.answers <= 1500 < three.answers and four.others < 0.6 < three.others - 0.1
    params = kernel_learning.Params(objects=("o0", "o1", "o2", "o3", "o4"))
    task = kernel_refits.task("kernel_learning", snapshot, params, 0, None)
    ceiling = kernel_refits.KernelEvaluation(task, 0.2).report(None, None, np.eye(5))["ceiling"]
    assert three.others < ceiling["others"] and ceiling["answers"] < three.answers
