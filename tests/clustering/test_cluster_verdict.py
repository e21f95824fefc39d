"""Clusters, a continuum, or cannot tell: the drawn answers, the cloud, the borders, and what is said of planted worlds.

How often it is right is measured by `python -m tests.benchmarks.cluster_verdicts`.
"""

import csv
import gzip

import numpy as np
import pytest

from stream_engine import Engine, Triplet
from stream_engine.clustering import borders, continuum, drawn_answers
from stream_engine.clustering.continuum import Cloud, shape_of
from stream_engine.clustering.drawn_answers import LOOSE, asked, by_coins, by_positions
from stream_engine.clustering.levels import peaks
from stream_engine.commands.inspect_text import as_text
from stream_engine.exports import contents
from stream_engine.refits import cluster_verdict
from stream_engine.refits.cluster_verdict import CANNOT_TELL, CONTINUUM, verdict
from stream_engine.refits.sdp_clustering import Params, refit
from stream_engine.state.published import Published
from tests.benchmarks.cluster_verdicts import LAPSE, SCALE, positions, triplets


def snapshot_of(rows, n: int, accumulators=("adds3", "triplet_counts")):
    engine = Engine(list(accumulators))
    engine.objects.ids([f"o{i}" for i in range(n)])
    engine.learn_many([Triplet(*(f"o{i}" for i in row)) for row in np.asarray(rows).tolist()])
    return engine.snapshot()


def world(kind: str, n: int = 36, count: int = 3000, seed: int = 0, lapse: float = LAPSE):
    rng = np.random.default_rng(seed)
    return triplets(rng, SCALE * positions(rng, kind, n), count, lapse)


# --- borders ---------------------------------------------------------------------------------------------------------


def crowding_by_loops(points, labels) -> float:
    """The formula of the module, one object and one border at a time."""
    centres = {a: points[labels == a].mean(axis=0) for a in set(labels.tolist())}
    total = 0.0
    for x, a in zip(points, labels.tolist()):
        ways = []
        for b, centre in centres.items():
            if b != a:
                apart = ((centres[a] - centre) ** 2).sum()
                ways.append((((x - centre) ** 2).sum() - ((x - centres[a]) ** 2).sum()) / (2 * apart))
        total += np.exp(-((min(ways) / borders.WIDTH) ** 2))
    return total / len(points)


@pytest.mark.parametrize("seed", range(4))
def test_crowding_is_the_formula(seed):
    points, ks = np.random.default_rng(seed).normal(size=(25, 1 + seed % 3)), (2, 3, 5)
    found, cut = borders.crowding(points, ks), borders.partitions(points, ks)
    for k, value, labels in zip(ks, found, cut):
        assert sorted(set(labels.tolist())) == list(range(k))
        assert value == pytest.approx(crowding_by_loops(points, labels))
        centres = np.stack([points[labels == a].mean(axis=0) for a in range(k)])
        nearest = ((points[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
        assert (nearest == labels).all()  # k-means is settled


@pytest.mark.parametrize("seed", range(4))
def test_looseness_is_the_formula(seed):
    points, ks = np.random.default_rng(seed).normal(size=(25, 1 + seed % 3)), (2, 3, 5)
    for value, labels in zip(borders.looseness(points, ks), borders.partitions(points, ks), strict=True):
        whole = sum(((x - points.mean(axis=0)) ** 2).sum() for x in points)
        within = sum(((x - points[labels == a].mean(axis=0)) ** 2).sum() for x, a in zip(points, labels))
        assert value == pytest.approx(np.log((crowding_by_loops(points, labels) + 1e-3) * (within / whole + 1e-6)))


def test_looseness_knows_no_scale_no_place_and_no_turn():
    rng = np.random.default_rng(5)
    points, turn = rng.normal(size=(40, 2)), np.linalg.qr(rng.normal(size=(2, 2)))[0]
    assert borders.looseness(7 * points @ turn + 3, (2, 4)) == pytest.approx(borders.looseness(points, (2, 4)))


def test_gaps_empty_the_borders_and_equal_points_do_no_harm():
    rng = np.random.default_rng(0)
    even, groups = rng.normal(size=(60, 2)), rng.normal(size=(60, 2)) + 8 * np.eye(3)[np.arange(60) % 3][:, :2]
    assert borders.crowding(groups, (3,))[0] < 0.3 * borders.crowding(even, (3,))[0]
    assert (borders.looseness(groups, (2, 3)) < borders.looseness(even, (2, 3)) - 1).all()
    for points in (np.repeat(np.eye(2), 5, axis=0), np.zeros((10, 2))):
        assert np.isfinite(borders.crowding(points, (2, 3))).all()
        assert np.isfinite(borders.looseness(points, (2, 3))).all()


# --- the cloud -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("q, kurtosis", [(1, 1.8), (1, 3.0), (2, 1.0), (2, 4 / 3), (2, 1.7), (2, 2.0), (3, 1.4)])
def test_a_cloud_has_the_spread_and_the_kurtosis_asked_for(q, kurtosis):
    spread = np.array([2.0, 1.6, 1.2, 0.1])[: q + 1]
    spread[q] = 0.1
    points = continuum.draw(np.random.default_rng(0), 200_000, Cloud(spread, kurtosis, np.zeros(q)))
    assert points.std(axis=0) == pytest.approx(spread, rel=0.02)
    found = shape_of(points)
    assert found.main == q and found.kurtosis == pytest.approx(kurtosis, abs=0.03)
    assert found.skewness == pytest.approx(np.zeros(q), abs=0.03)
    squares = ((points[:, :q] / spread[:q]) ** 2).sum(axis=1)
    if kurtosis == 1.0:
        assert squares == pytest.approx(np.full(len(points), q))  # a ring, a shell
    if (q, kurtosis) == (2, 4 / 3):  # a disc: even over its surface
        assert np.quantile(squares, [0.25, 0.5, 0.75]) == pytest.approx([1.0, 2.0, 3.0], rel=0.02)


def test_a_bent_axis_is_lopsided_and_as_wide():
    points = continuum.draw(np.random.default_rng(1), 100_000, Cloud(np.array([2.0]), 3.0, np.array([0.4])))
    assert points.std() == pytest.approx(2.0) and shape_of(points).skewness[0] == pytest.approx(1.32, abs=0.1)


def test_the_cloud_is_matched_through_what_a_fit_does_to_it():
    """A fit that draws together by a third is made up for."""
    rng = np.random.default_rng(2)
    found = rng.normal(size=(400, 2)) * [1.5, 0.9]
    made = continuum.matched(np.random.default_rng(3), found, lambda positions: positions / 1.5)
    assert made.spread == pytest.approx(1.5 * shape_of(found).spread, rel=0.1)
    assert made.kurtosis == pytest.approx(2.0, abs=0.15) and (made.bend < 0.1).all()


# --- answers drawn ---------------------------------------------------------------------------------------------------


def judged() -> drawn_answers.Asked:
    """Two rankings of four from the nearest on (of objects 1 to 4, seen from 0), and loose answers."""
    ranking = np.array([[0, a, 0, b] for a in range(1, 5) for b in range(a + 1, 5)])
    rows = np.concatenate([ranking, ranking, [[0, 1, 0, 2], [0, 2, 0, 1], [3, 4, 3, 2]]])
    unit = np.repeat([7, 9, 20, 21, 22], [6, 6, 1, 1, 1])
    return asked(rows, np.where(unit == 20, 5.0, 1.0), np.where(unit == 9, 0, -1), unit, 5)


def test_answers_are_counted_by_question_and_worker():
    known = judged()
    assert len(known.rows) == 6 + 6 + 1 and known.times.sum() == 19
    yes, no = known.counted(known.near)
    at = next(i for i, row in enumerate(known.rows.tolist()) if row == [0, 1, 0, 2] and known.worker[i] < 0)
    assert (yes[at], no[at]) == (6.0, 1.0) and (yes + no).sum() == 19
    assert sorted(np.unique(known.judgement, return_counts=True)[1].tolist()) == [3, 6, 6]
    assert (known.judgement == LOOSE).sum() == 3


def test_coins_turn_a_judgement_as_a_whole_and_loose_answers_alone():
    known, rng, turned, loose = judged(), np.random.default_rng(0), [], []
    for _ in range(400):
        near = by_coins(rng, known)
        assert ((near >= 0) & (near <= known.times)).all()
        for number in (0, 1):
            own = known.judgement == number
            flips = set((near[own] != known.near[own]).tolist())
            assert len(flips) == 1
            turned.append(flips.pop())
        loose.append(near[known.judgement == LOOSE])
    assert 0.44 < np.mean(turned) < 0.56
    assert np.mean(loose, axis=0) == pytest.approx(known.times[known.judgement == LOOSE] / 2, abs=0.25)


def test_answers_by_positions_have_the_likelihoods_probabilities_and_judgements_are_rankings():
    known, rng = judged(), np.random.default_rng(1)
    place = np.array([0.0, 0.5, 1.0, 1.3, 1.6])
    i, j, k, l = known.rows.T
    delta = (place[k] - place[l]) ** 2 - (place[i] - place[j]) ** 2
    lapse = np.where(known.worker < 0, 0.1, 0.4)
    p = (lapse / 2 + (1 - lapse) / (1 + np.exp(-delta)))[known.question]
    draws = np.array([by_positions(rng, known, delta, lapse) for _ in range(6000)])
    error = np.sqrt(p * (1 - p) / known.times / len(draws))
    assert (np.abs(draws.mean(axis=0) / known.times - p) < 4.5 * error).all()
    for number in (0, 1):
        own = np.flatnonzero(known.judgement == number)
        wins = np.zeros((len(draws), 5), int)
        for at in own:
            _, one, _, other = known.rows[known.question[at]]
            yes = draws[:, at] > 0
            wins[np.arange(len(draws)), np.where(yes, one, other)] += 1
        assert (np.sort(wins[:, 1:], axis=1) == [0, 1, 2, 3]).all()  # no circles


# --- verdicts --------------------------------------------------------------------------------------------------------


def test_planted_groups_are_clusters_and_a_line_is_a_continuum():
    groups = verdict(snapshot_of(world("three"), 36), np.arange(36), 3, 39, 0)
    assert groups.said == "3 clusters" and groups.p_coins == groups.p_continuum == 0.025
    assert (
        groups.drawn == 39
        and groups.clearest >= 2
        and groups.crowding < 0.7
        and "no continuum leaves such gaps" in groups.note
    )
    few = [verdict(snapshot_of(world("three"), 36), np.arange(36), 3, 5, 0) for _ in range(2)]
    assert few[0] == few[1] and few[0].drawn == 5
    line = verdict(snapshot_of(world("line"), 36), np.arange(36), 3, 39, 0)
    assert line.said == CONTINUUM and line.p_coins == 0.025 and line.p_continuum > 0.05 and line.dimensions == 1
    assert line.drawn < 39  # what is not significant ends early
    one = verdict(snapshot_of(world("three"), 36), np.arange(36), 1, 39, 0)
    assert one.said == CANNOT_TELL and "one cluster was found" in one.note


def test_what_is_like_the_draws_is_as_clear_as_any_of_them():
    """p = (1 + #) / (B + 1) is uniform on its steps: what was observed has a part in mean and deviation as draws do."""
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(3, 3))
    found = [cluster_verdict._as_clear(rng.normal(size=(9, 3)) @ mix, rng.normal(size=3) @ mix) for _ in range(3000)]
    assert np.bincount(found, minlength=10) / 3000 == pytest.approx(np.full(10, 0.1), abs=0.02)
    drawn = rng.normal(size=(50, 2)) * [1.0, 10.0]
    assert cluster_verdict._as_clear(drawn, np.array([-5.0, 0.0])) == 0  # in deviations, not in their units
    assert cluster_verdict._as_clear(drawn, np.array([5.0, 60.0])) == 50


def test_too_few_answers_or_objects_tell_nothing():
    few = verdict(snapshot_of(world("three", count=40), 36), np.arange(36), 3, 99, 0)
    assert (
        few.said == CANNOT_TELL and few.p_coins > 0.05 and np.isnan(few.p_continuum) and "answers at random" in few.note
    )
    assert verdict(snapshot_of(world("three"), 36), np.arange(11), 3, 99, 0).said == CANNOT_TELL
    lost = verdict(snapshot_of(world("three"), 36, ("adds3",)), np.arange(36), 3, 99, 0)
    assert lost.said == "not tested: the counts of triplets or judgements are not kept"


def test_answers_that_would_not_show_clear_clusters_are_no_evidence_of_a_continuum(monkeypatch):
    monkeypatch.setattr(cluster_verdict, "TIGHTER", 1.0)  # clear clusters that are no clearer than what was seen
    line = verdict(snapshot_of(world("line"), 36), np.arange(36), 3, 19, 0)
    assert line.said == CANNOT_TELL and "would not show even clear clusters" in line.note


def test_coins_are_told_by_their_leading_eigenvalue_at_the_level():
    """Of 40 worlds of coins some 2 look like something; p is never below 1 / (B + 1)."""
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        known = cluster_verdict._asked(snapshot_of(world("line", 20, 400, seed, lapse=1.0), 20), np.arange(20), 0, rng)
        found.append(cluster_verdict.p_coins(rng, known, 39))
    assert min(found) >= 1 / 40 and sum(p <= 0.05 for p in found) <= 6 and 0.3 < np.mean(found) < 0.7


def test_the_sample_takes_whole_judgements(monkeypatch):
    monkeypatch.setattr(cluster_verdict, "MOST", 500)
    known = cluster_verdict._asked(snapshot_of(world("line"), 36), np.arange(36), 0, np.random.default_rng(0))
    assert 480 <= known.times.sum() <= 500


# --- the refit -------------------------------------------------------------------------------------------------------


def test_the_artifact_the_page_and_the_tables_say_it():
    rng = np.random.default_rng(4)
    corners = np.array([[0.0, 0.0], [1.6, 0.0], [7.0, 0.0], [8.6, 0.0]])[np.arange(40) % 4]
    snapshot = snapshot_of(triplets(rng, 0.6 * (corners + 0.12 * rng.normal(size=(40, 2))), 12_000, LAPSE), 40)
    made = refit(snapshot, Params(bootstrap=2, stability=0), 0)
    k = made.report["k"]
    assert made.report["verdict"] == f"{k} clusters" and made.arrays["p_coins"] == made.arrays["p_continuum"] == 0.01
    assert made.arrays["level_k"].tolist() == list(range(2, 2 + len(made.arrays["level_k"]))) and k == 2
    assert made.arrays["level_peak"][2] and made.report["levels"]["4"]["ari"] > 0.7  # four, within the two
    assert "finer levels: 4 groups (criterion" in made.report["note"]
    page = as_text(
        {"state": "", "snapshots": [1], "summary": {}, "artifacts": {"c": {"snapshot": 1, "report": made.report}}}
    )
    assert "does not say that the clusters are real" in page and "certified" not in page
    assert page.index("note") < page.index("verdict")
    published = Published(snapshot, {"sdp_clustering": made})
    tables = contents("clusters", published)["clusters"].tables
    assert tables["cluster_verdict"]["verdict"] == ["2 clusters"] and tables["cluster_verdict"]["p_coins"] == [0.01]
    assert list(tables["cluster_levels"]["k"]) == made.arrays["level_k"].tolist()
    assert contents("summary", published)["summary"].value["clusters"] == {"verdict": "2 clusters", "k": 2}


def test_noise_has_no_clusters_and_nothing_that_reads_like_proof_of_them():
    rng = np.random.default_rng(0)
    noise = np.array([rng.permutation(60)[:3] for _ in range(20_000)])
    report = refit(snapshot_of(noise, 60), Params(stability=0), 0).report
    assert (
        report["verdict"] == CANNOT_TELL and report["bootstrap"] is None and report["solved"] == "no program was solved"
    )
    forced = refit(snapshot_of(noise, 60), Params(k=3, stability=0), 0).report
    assert forced["verdict"] == CANNOT_TELL and "answers at random" in forced["note"]


@pytest.mark.parametrize(
    "params, why",
    [
        (Params(k=3, test=0, stability=0), "it was not asked for"),
        (Params(k=3, test_up_to=35, stability=0), "36 objects"),
        (Params(k=3, similarity="adds3_window", stability=0), "not all answers count alike"),
    ],
)
def test_what_is_not_tested_says_why(params, why):
    report = refit(snapshot_of(world("three"), 36, ("adds3", "triplet_counts", "window")), params, 0).report
    assert report["verdict"] == f"not tested: {why}" and report["verdict_test"]["p_coins"] is None


def test_peaks_are_higher_than_their_neighbours():
    ks = np.arange(2, 7)
    assert peaks(ks, np.array([0.7, 0.9, 0.8, 0.95, 0.99])).tolist() == [False, True, False, False, False]
    assert peaks(np.array([3]), np.array([0.5])).tolist() == [True] and not peaks(np.array([1]), np.ones(1)).any()


@pytest.mark.data
def test_eggs_on_a_scale_are_a_continuum_and_cars_are_not(judgements):
    found = {}
    for name, file in (("eggs", "alien_eggs300/triplets.csv.gz"), ("cars", "car60/triplets_T_ALL.csv")):
        with (gzip.open if file.endswith("gz") else open)(judgements / file, "rt") as lines:
            rows = [(r["anchor"], r["near"], r["far"]) for r in csv.DictReader(lines)]
        engine = Engine(["adds3", "triplet_counts"])
        engine.learn_many([Triplet(*row) for row in rows])
        snapshot = engine.snapshot()
        found[name] = verdict(snapshot, np.arange(len(snapshot.objects)), 2, 39, 0).said
    assert found["eggs"] == CONTINUUM and found["cars"] != CONTINUUM
