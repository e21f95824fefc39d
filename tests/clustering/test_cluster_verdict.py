"""Clusters, how many, a continuum, or cannot tell: the statistic, the null models, and what is said of planted
worlds. How often it is right: docs/measurements.md, "Cluster verdicts"."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from stream_engine import Engine, Triplet
from stream_engine.clustering import borders, drawn_answers
from stream_engine.clustering.drawn_answers import LOOSE, answer_set, by_coins, by_positions, halved
from stream_engine.exports import contents
from stream_engine.exports.object_places import numbers
from stream_engine.refits import cluster_verdict
from stream_engine.refits.cluster_verdict import CANNOT_TELL, CONTINUUM, clearer, p_value, verdict
from stream_engine.refits.sdp_clustering import Params, refit
from stream_engine.state.published import Published


def snapshot_of(rows, n: int, accumulators=("adds3", "triplet_counts")):
    engine = Engine(list(accumulators))
    engine.objects.ids([f"o{i}" for i in range(n)])
    engine.learn_many([Triplet(*(f"o{i}" for i in row)) for row in np.asarray(rows).tolist()])
    return engine.snapshot()


def answered(rng, points, count: int, right: float | None = None) -> np.ndarray:
    """(about `count`, 3) answers: by the STE model with a scale of 3 and a lapse of .05, or so many of them right."""
    n = len(points)
    anchor = rng.integers(n, size=count)
    one, other = ((anchor + rng.integers(1, n, size=count)) % n for _ in range(2))
    anchor, one, other = (column[one != other] for column in (anchor, one, other))
    delta = ((points[anchor] - points[other]) ** 2).sum(axis=1) - ((points[anchor] - points[one]) ** 2).sum(axis=1)
    delta /= np.abs(delta).mean()
    p = 0.025 + 0.95 * expit(3 * delta) if right is None else np.where(delta > 0, right, 1 - right)
    yes = rng.random(len(p)) < p
    return np.stack([anchor, np.where(yes, one, other), np.where(yes, other, one)], axis=1)


def world(kind: str, n: int = 36, count: int = 3000, seed: int = 0):
    """Answers about three groups 8 deviations apart, or about points on a line; STE."""
    rng = np.random.default_rng(seed)
    points = rng.random((n, 1)) if kind == "line" else rng.normal(size=(n, 2)) + GROUPS[np.arange(n) % 3]
    return answered(rng, points, count)


GROUPS = 8 * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])

# --- borders ---------------------------------------------------------------------------------------------------------


def by_loops(points, labels) -> tuple[float, float]:
    """Crowding and share within by the formulas of the module, one object and one border at a time."""
    numbers = sorted(set(labels.tolist()))
    centres = {a: points[labels == a].mean(axis=0) for a in numbers}
    density, inside = borders.ADDED, 0
    for a in numbers:
        for b in numbers[: numbers.index(a)]:
            apart = ((centres[a] - centres[b]) ** 2).sum()
            third = [((centres[c] - centres[a]) ** 2).sum() + ((centres[c] - centres[b]) ** 2).sum() for c in numbers]
            if any(way < apart * (1 - 1e-9) for c, way in zip(numbers, third) if c not in (a, b)):
                continue
            inside += min((labels == a).sum(), (labels == b).sum())
            for x in points[(labels == a) | (labels == b)]:
                t = (((x - centres[a]) ** 2).sum() - ((x - centres[b]) ** 2).sum()) / (2 * apart)
                density += np.exp(-((t / borders.WIDTH) ** 2)) / (borders.WIDTH * np.sqrt(np.pi))
    whole = sum(((x - points.mean(axis=0)) ** 2).sum() for x in points)
    return density / inside, sum(((x - centres[a]) ** 2).sum() for x, a in zip(points, labels.tolist())) / whole


@pytest.mark.parametrize("seed", range(4))
def test_crowding_and_the_share_within_are_the_formulas(seed):
    points, ks = np.random.default_rng(seed).normal(size=(25, 1 + seed % 3)), (2, 3, 5)
    for k, cut in zip(ks, borders.cuts(points, ks), strict=True):
        assert sorted(set(cut.labels.tolist())) == list(range(k))
        assert (cut.crowding, cut.within) == pytest.approx(by_loops(points, cut.labels))
        centres = np.stack([points[cut.labels == a].mean(axis=0) for a in range(k)])
        nearest = ((points[:, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
        assert (nearest == cut.labels).all()  # k-means is settled


def test_crowding_knows_no_scale_place_or_turn_and_equal_points_do_no_harm():
    rng = np.random.default_rng(5)
    points, turn = rng.normal(size=(40, 2)), np.linalg.qr(rng.normal(size=(2, 2)))[0]
    for one, other in zip(borders.cuts(points, (2, 4)), borders.cuts(7 * points @ turn + 3, (2, 4))):
        assert (one.crowding, one.within) == pytest.approx((other.crowding, other.within))
    for points in (np.repeat(np.eye(2), 5, axis=0), np.zeros((10, 2))):
        assert np.isfinite(borders.looseness(borders.cuts(points, (2, 3, 4)))).all()


def test_looseness_is_crowding_and_the_share_within_with_its_elbow():
    made = borders.cuts(np.random.default_rng(2).normal(size=(30, 2)), (2, 3, 4, 5))
    w = [1.0, *(cut.within for cut in made)]
    by_hand = [made[k - 2].crowding * (w[k - 1] / np.sqrt(w[k - 2] * w[k])) ** borders.ELBOW for k in (2, 3, 4)]
    assert np.exp(borders.looseness(made)) == pytest.approx(by_hand, rel=1e-3)


# --- the null models -------------------------------------------------------------------------------------------------


def test_a_continuum_keeps_spread_and_bends_and_loses_its_gaps():
    ks = (2, 3, 4, 5)
    for kind in ("ring", "groups"):
        filled, holes = [], []
        for seed in range(6):
            rng = np.random.default_rng(seed)
            turn = 2 * np.pi * rng.random(60)
            points = np.stack([np.cos(turn), np.sin(turn)], axis=1)
            if kind == "groups":
                points = rng.normal(size=(60, 2)) + GROUPS[np.arange(60) % 3]
                assert borders.cuts(points, (3,))[0].crowding < 0.3
            points -= points.mean(axis=0)
            drawn = borders.draw(rng, 4000, points, borders.neighbours(rng, points, ks))
            assert drawn.std(axis=0) == pytest.approx(points.std(axis=0), rel=0.05)
            filled.append(min(cut.crowding for cut in borders.cuts(drawn, ks)))
            holes.append((np.linalg.norm(drawn, axis=1) < 0.4 * np.linalg.norm(points, axis=1).mean()).mean())
        assert min(filled) > 0.55 and (kind == "groups" or np.mean(filled) > 0.65)
        assert kind == "groups" or np.mean(holes) < 0.03  # a disc has 0.16


@pytest.mark.parametrize("model", drawn_answers.MODELS)
def test_the_noise_of_a_model_is_found_again(model):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(30, 2))
    rows = np.array([rng.permutation(30)[[0, 1, 0, 2]] for _ in range(20_000)])
    delta = drawn_answers.differences(model, points, rows)
    yes = (rng.random(len(rows)) < drawn_answers.probability(model, 1.7 * delta, 0.2)).astype(float)
    assert drawn_answers.scale(model, delta, yes, 1 - yes, np.full(len(rows), 0.2)) == pytest.approx(1.7, rel=0.1)
    power = 1 if model == "city block" else 2
    near = (np.abs(points[rows[:, 0]] - points[rows[:, 1]]) ** power).sum(axis=1)
    far = (np.abs(points[rows[:, 0]] - points[rows[:, 3]]) ** power).sum(axis=1)
    assert ((delta > 0) == (far > near)).all()


# --- answers drawn ---------------------------------------------------------------------------------------------------


def judged() -> drawn_answers.AnswerSet:
    """Two rankings of four from the nearest on (of objects 1 to 4, seen from 0), and loose answers."""
    ranking = np.array([[0, a, 0, b] for a in range(1, 5) for b in range(a + 1, 5)])
    rows = np.concatenate([ranking, ranking, [[0, 1, 0, 2], [0, 2, 0, 1], [3, 4, 3, 2]]])
    unit = np.repeat([7, 9, 20, 21, 22], [6, 6, 1, 1, 1])
    return answer_set(rows, np.where(unit == 20, 5.0, 1.0), np.where(unit == 9, 0, -1), unit, 5)


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


@pytest.mark.parametrize("model", ["ste", "probit"])
def test_answers_by_positions_have_the_models_probabilities_and_judgements_are_rankings(model):
    known, rng = judged(), np.random.default_rng(1)
    place = np.array([0.0, 0.5, 1.0, 1.3, 1.6])
    i, j, k, l = known.rows.T
    delta = (place[k] - place[l]) ** 2 - (place[i] - place[j]) ** 2
    lapse = np.where(known.worker < 0, 0.1, 0.4)
    sure = 1 / (1 + np.exp(-delta)) if model == "ste" else norm.cdf(delta)
    p = (lapse / 2 + (1 - lapse) * sure)[known.question]
    draws = np.array([by_positions(rng, known, delta, lapse, model) for _ in range(6000)])
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


def test_halves_are_of_whole_responses_and_of_participants_where_enough_are_named():
    known, rng = judged(), np.random.default_rng(3)
    for _ in range(20):
        one, other = halved(rng, known)
        assert (one.times + other.times == known.times).all() and (one.near + other.near == known.near).all()
        for number in (0, 1):
            assert len(set(one.times[known.judgement == number])) == 1  # all or nothing
    people = np.repeat(np.arange(10), 6)
    rows = np.array([rng.permutation(12)[[0, 1, 0, 2]] for _ in people])
    known = answer_set(rows, np.ones(60), people, np.arange(60), 12)
    one, _ = halved(rng, known)
    taken = [set(one.times[known.worker[known.question] == person]) for person in range(10)]
    assert all(len(each) == 1 for each in taken) and sum(each == {1.0} for each in taken) == 5


# --- verdicts --------------------------------------------------------------------------------------------------------


def test_planted_groups_are_clusters_and_a_line_is_a_continuum():
    groups = verdict(snapshot_of(world("three"), 36), np.arange(36), 39, 3, 0)
    assert groups.said == "3 clusters" and groups.k == 3 and groups.p_coins == 0.025 and groups.p_continuum <= 0.05
    assert groups.crowding < 0.4 and len(set(zip(groups.labels, np.arange(36) % 3))) == 3
    assert groups.tested.k.tolist() == list(range(2, 8)) and groups.tested.p[1] == groups.p_continuum
    assert len(groups.k_replicates) == 6 and groups.replicates.agreement.mean() > 0.9
    few = [verdict(snapshot_of(world("three"), 36), np.arange(36), 19, 0, 0) for _ in range(2)]
    assert few[0].report() == few[1].report() and (few[0].labels == few[1].labels).all()
    line = verdict(snapshot_of(world("line"), 36), np.arange(36), 39, 3, 0)
    assert line.said == CONTINUUM and line.p_coins == 0.025 and line.p_continuum > 0.05 and line.labels is None
    assert line.drawn < 39  # what is not significant ends early


@pytest.mark.parametrize("k", [6, 9])
def test_the_number_that_is_said_is_the_number_of_tight_groups(k):
    """A grid: SPUR says two or three of these."""
    rng = np.random.default_rng(k)
    centres = np.stack(np.divmod(np.arange(k), 3), axis=1)[np.arange(8 * k) % k]
    rows = answered(rng, centres + 0.08 * rng.normal(size=(8 * k, 2)), 100 * 8 * k, 0.9)
    found = verdict(snapshot_of(rows, 8 * k), np.arange(8 * k), 19, 0, 0)
    assert found.said == f"{k} clusters" and len(set(zip(found.labels, np.arange(8 * k) % k))) == k


def test_p_is_uniform_where_the_null_model_holds_and_corrected_for_the_choice():
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(3, 3))
    least = []
    for _ in range(3000):
        _, above = clearer(rng.normal(size=(9, 3)) @ mix, rng.normal(size=3) @ mix)
        least.append(above.min())
    assert np.bincount(least, minlength=10) / 3000 == pytest.approx(np.full(10, 0.1), abs=0.02)


def test_p_is_exact_though_drawing_ends_early_where_no_draw_is_as_clear():
    """The rank of what was observed is even; it is seen after FIRST draws and at the end."""
    rng, first, most, found = np.random.default_rng(0), cluster_verdict.FIRST, 99, []
    for _ in range(4000):
        above = rng.random(most) < rng.random()
        ended = first if not above[:first].any() else most
        found.append(p_value(above[:ended].sum()[None], ended)[0])
    for level in (0.025, 0.05, 0.2, 0.6):
        assert level - 0.03 < np.mean(np.array(found) <= level) < level + 0.012


def test_too_few_answers_or_objects_tell_nothing():
    few = verdict(snapshot_of(world("three", count=40), 36), np.arange(36), 39, 0, 0)
    assert few.said == CANNOT_TELL and few.p_coins > 0.05 and np.isnan(few.p_continuum)
    assert verdict(snapshot_of(world("three"), 36), np.arange(11), 39, 0, 0).said == CANNOT_TELL
    lost = verdict(snapshot_of(world("three"), 36, ("adds3",)), np.arange(36), 39, 0, 0)
    assert lost.said not in (CANNOT_TELL, "") and "triplets" in lost.said


def test_answers_that_would_not_show_clear_clusters_are_no_evidence_of_a_continuum(monkeypatch):
    monkeypatch.setattr(cluster_verdict, "TIGHTER", 1.0)  # clear clusters that are no clearer than what was seen
    line = verdict(snapshot_of(world("line"), 36), np.arange(36), 19, 0, 0)
    assert line.said == CANNOT_TELL and line.p_continuum > 0.05


# --- the refit -------------------------------------------------------------------------------------------------------


def test_the_artifact_and_the_tables_say_it_and_who_lies_between():
    rng = np.random.default_rng(4)
    points = rng.normal(size=(40, 2)) + GROUPS[np.arange(40) % 3]
    points[39] = (GROUPS[0] + GROUPS[1]) / 2
    snapshot = snapshot_of(answered(rng, points, 5000), 40)
    made = refit(snapshot, Params(), 0)
    arrays, report = made.arrays, made.report
    assert report["verdict"] == "3 clusters" and report["k"] == 3 and report["k_by"] == "test"
    assert arrays["p_continuum"] <= 0.05 and f"{float(arrays['p_continuum']):.2g}"[1:] in report["note"]
    assert arrays["tested_p"][arrays["tested_k"] == 3] == arrays["p_continuum"]
    assert arrays["stability"].argmin() == 39 and arrays["stability"][39] < 0.9
    assert arrays["second"][39] not in (-1, arrays["labels"][39])
    assert report["stability"]["between"] == (arrays["stability"] < 0.9).sum() and "between clusters" in report["note"]
    tables = contents("clusters", Published(snapshot, {"sdp_clustering": made}))["clusters"].tables
    assert tables["cluster_verdict"]["verdict"] == ["3 clusters"]
    assert tables["cluster_numbers"]["k"].tolist() == arrays["tested_k"].tolist()
    assert tables["clusters"]["second"][39] == numbers(arrays["labels"], arrays["second"])[39]
    assert tables["clusters"]["between"].tolist() == (arrays["stability"] < 0.9).tolist()
    given = refit(snapshot, Params(k=2), 0)
    assert given.report["k"] == 2 and given.report["verdict"] == "3 clusters" and " 2" in given.report["note"]
    spur = refit(snapshot, Params(k_by="spur", stability=0), 0)
    assert spur.report["k_by"] == "spur" and spur.report["k"] == report["spur_k"]


def test_noise_has_no_clusters_and_nothing_that_reads_like_proof_of_them():
    rng = np.random.default_rng(0)
    noise = np.array([rng.permutation(60)[:3] for _ in range(20_000)])
    report = refit(snapshot_of(noise, 60), Params(stability=0), 0).report
    assert report["verdict"] == CANNOT_TELL and report["solved"] == "no program was solved"
    forced = refit(snapshot_of(noise, 60), Params(k=3, stability=0), 0).report
    assert forced["verdict"] == CANNOT_TELL
