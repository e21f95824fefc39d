"""The graded answer about clusters: its parts by their formulas, and what it says of planted studies and bad input. How
often it is right: `python -m tests.benchmarks clusters`."""

import json
from importlib.resources import files
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import adjusted_rand_score

from stream_engine.clustering import clearness, graded, position_fits
from stream_engine.clustering import replication as replications
from stream_engine.clustering.graded import CandidateGroups, ClusterAnswer, Subgroup, grade_clusters
from stream_engine.clustering.position_errors import design_effect, position_errors
from stream_engine.clustering.replication import replication
from stream_engine.clustering.sentence import CANNOT_TELL, CLEARLY_SEPARATED, GRADES, NOT_SEPARABLE, SEPARATED
from stream_engine.data.answers import Answers
from stream_engine.embedding.questions import Questions, of_answers
from stream_engine.refits import clusters
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine
from tests.benchmarks import cluster_calibration
from tests.support import cluster_scenarios as scenarios

RIDGE = 0.1


def planted(gap: float = 10.0, n: int = 36, k: int = 3, count: int = 3000, seed: int = 0, d: int = 2):
    rng = np.random.default_rng(seed)
    points, labels = scenarios.groups(rng, n, k, d, gap)
    return scenarios.answers_about(rng, points, count, "ste", 0.9), labels


def asked(n: int = 7, d: int = 2, q: int = 60):
    """Random positions, questions with counts by two workers, and lapse rates; pairs may share objects."""
    rng = np.random.default_rng(3)
    rows = np.array([[*rng.permutation(n)[:2], *rng.permutation(n)[:2]] for _ in range(q)], np.int32)
    questions = Questions(
        rows, rng.integers(3, size=q) + 0.0, rng.integers(3, size=q) + 1.0, rng.integers(2, size=q), n, 2
    )
    return rng.normal(size=(n, d)), questions, np.array([0.05, 0.3])


def by_formula(points, rows, lapse):
    """(q, n, d) slopes of Delta by differences, P(yes), and its slope in Delta."""

    def delta(x):
        i, j, k, l = rows.T
        return ((x[k] - x[l]) ** 2).sum(axis=1) - ((x[i] - x[j]) ** 2).sum(axis=1)

    slopes = np.zeros((len(rows), *points.shape))
    for at in np.ndindex(points.shape):
        step = np.zeros(points.shape)
        step[at] = 1e-5
        slopes[(slice(None), *at)] = (delta(points + step) - delta(points - step)) / 2e-5
    share = expit(delta(points))
    return delta(points), slopes, lapse / 2 + (1 - lapse) * share, (1 - lapse) * share * (1 - share)


# --- the parts -------------------------------------------------------------------------------------------------------


def test_variances_and_held_out_losses_are_the_formulas():
    points, questions, lapse = asked()
    found = position_errors(points, questions, lapse, RIDGE)
    rate = lapse[questions.worker]
    delta, slopes, p, u = by_formula(points, questions.rows, rate)
    weight = u**2 / (p * (1 - p))
    times = questions.near + questions.far
    blocks = np.einsum("q,qia,qib->iab", times * weight, slopes, slopes) + 2 * RIDGE * np.eye(2)
    assert found.variance == pytest.approx(np.linalg.inv(blocks), rel=1e-5)
    leverage = np.einsum("qia,iab,qib->q", slopes, found.variance, slopes)
    step = leverage / (1 - np.minimum(weight * leverage, 0.9))
    near = rate / 2 + (1 - rate) * expit(delta - u / p * step)
    far = rate / 2 + (1 - rate) * expit(delta + u / (1 - p) * step)
    assert found.near == pytest.approx(-np.log(near), rel=1e-5)
    assert found.far == pytest.approx(-np.log(1 - far), rel=1e-5)


def test_held_out_losses_are_those_of_fits_without_the_answer():
    answers, _ = planted(4.0, n=12, k=2, count=700)
    fits = position_fits.fits_of_answers(of_answers(answers))
    best, d = fits.best, fits.best.points.shape[1]
    inside, by_step, without = [], [], []
    for t in range(0, len(answers.rows), 14):
        rest = of_answers(answers.of(np.arange(len(answers.rows)) != t))
        other = position_fits.fit(rest, d, position_fits.RIDGE, start=best.points, tolerance=1e-9)
        one = of_answers(answers.of(np.arange(len(answers.rows)) == t))
        near = one.near[0] > 0
        at = np.flatnonzero((fits.questions.rows == one.rows[0]).all(axis=1))[0]
        by_step.append((best.errors.near if near else best.errors.far)[at])
        for points, lapse, into in ((best.points, best.lapse, inside), (other.points, other.lapse, without)):
            delta, _, p, _ = by_formula(points, one.rows, lapse[0])
            into.append(-np.log(p if near else 1 - p)[0])
    assert np.mean(inside) < np.mean(by_step)
    assert abs(np.mean(by_step) - np.mean(without)) < 0.5 * (np.mean(without) - np.mean(inside))


def test_the_design_effect_compares_sums_over_responses_with_answers():
    points, questions, lapse = asked()
    rng = np.random.default_rng(1)
    m = len(questions.rows)
    unit = np.append(np.repeat(np.arange(m // 3), 3), [])[:m].astype(np.int64)
    answers = Answers(questions.rows, np.ones(m), questions.worker.astype(np.int32) - 1, unit, 7, ("a",))
    variance = position_errors(points, questions, lapse, RIDGE).variance
    _, slopes, p, u = by_formula(points, questions.rows, lapse[questions.worker])
    scores = (u / p)[:, None, None] * slopes
    sums = np.stack([scores[unit == each].sum(axis=0) for each in np.unique(unit)])
    together, alone = (np.einsum("qia,iab,qib->", each, variance, each) for each in (sums, scores))
    order = rng.permutation(m)
    assert design_effect(points, answers.of(order), lapse, variance) == pytest.approx(
        max(1, together / alone), rel=1e-4
    )
    twice = answers._replace(response=np.arange(m), times=np.full(m, 2.0))
    assert design_effect(points, twice, lapse, variance) == 1.0


def test_replicates_agree_less_where_errors_are_larger():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(10, 2)), np.array([6, 0]) + rng.normal(size=(10, 2))])
    labels = np.repeat([0, 1], 10).astype(np.int32)
    small, large = (replication(points, np.tile(size * np.eye(2), (20, 1, 1)), labels) for size in (0.01, 6.0))
    assert small.ari == 1.0
    assert (small.stability == 1).all()
    assert (small.second == -1).all()
    assert large.low <= large.ari <= large.high < 1 and large.stability.mean() < 1
    assert set(large.second[large.stability < 1]) <= {0, 1}


def test_the_interval_of_a_replication_holds_95_of_100_agreements(monkeypatch):
    agreements = iter(np.random.default_rng(0).permutation(np.linspace(0, 1, replications.REPLICATES)))
    monkeypatch.setattr(replications, "agreement", lambda one, other: next(agreements))
    points = np.array([[0.0], [0.1], [5.0], [5.1]])
    found = replication(points, np.full((4, 1, 1), 1e-4), np.array([0, 0, 1, 1], np.int32))
    assert (found.ari, found.low, found.high) == pytest.approx((0.5, 0.025, 0.975))


def test_gains_are_standardised_by_the_table():
    points = np.random.default_rng(1).normal(size=(20, 2))
    continua, one = clearness.surface(clearness.FITS), clearness.candidates(points, 0.9)
    terms = clearness.terms_of_groups(one.k, 20, 2, 0.9)
    by_hand = [
        sum(
            (terms[t] @ continua.mean[f] - one.features[t, f]) / np.exp(terms[t] @ continua.deviation[f])
            for f in range(2)
        )
        for t in range(len(one.k))
    ]
    assert clearness.gains((one,), continua) == pytest.approx(by_hand)
    assert clearness.gains((one, one), continua) == pytest.approx(by_hand)
    of_study = clearness.terms_of_study((one,))
    shares = [clearness.clearer_than(z, of_study, continua) for z in (-50, 0, 1, 2, 50)]
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert shares[-1] == continua.levels[-1]


def test_the_kept_table_is_of_the_present_code():
    table = json.loads(files("stream_engine.clustering").joinpath(clearness.TABLE).read_text())
    assert table["code"] == cluster_calibration.rests_on(), (
        "clearness.json is of other code; next: python -m tests.benchmarks cluster_calibration --out FOLDER"
    )
    for of in (clearness.FITS, clearness.POSITIONS):
        continua = clearness.surface(of)
        assert (np.diff(continua.quantiles) >= 0).all() and continua.power[0] > 0
        one = clearness.candidates(np.random.default_rng(0).normal(size=(40, 2)), 0.9)
        few, many = (
            clearness.detection_limit(clearness.terms_of_power([one], answers), continua) for answers in (800, 8000)
        )
        assert 1 < many < few < 60 or of == clearness.POSITIONS


# --- the answer ------------------------------------------------------------------------------------------------------


def test_planted_groups_are_separated_and_everything_is_of_them():
    answers, truth = planted()
    found = grade_clusters(answers)
    assert found.grade in (SEPARATED, CLEARLY_SEPARATED)
    assert found.k == 3
    assert found.reason == ""
    assert adjusted_rand_score(truth, found.labels) == 1.0
    assert found.labels[0] == 0 and found.clearer_than > 0.95
    assert 0.9 < found.replication_low <= found.replication <= found.replication_high
    assert found.stability.min() > 0.5 and found.answers == len(answers.rows)
    assert found.tested.k[found.tested.clearness.argmax()] == 3 and found.tested.k[-1] == 12
    assert 0.5 < found.precision < 1 and found.detection_limit > 1


def test_neither_order_nor_names_change_the_answer():
    answers, _ = planted(6.0)
    rng = np.random.default_rng(0)
    names, order = rng.permutation(36), rng.permutation(len(answers.rows))
    moved = answers.of(order)._replace(rows=names[answers.rows[order]].astype(np.int32))
    one, other = grade_clusters(answers), grade_clusters(moved)
    assert (one.grade, one.k) == (other.grade, other.k)
    assert adjusted_rand_score(one.labels, other.labels[names]) == 1.0
    for name in ("clearer_than", "replication", "gain", "precision"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=0.02), name
    assert grade_clusters(answers).clearer_than == one.clearer_than


def test_positions_within_groups_count_where_they_carry_information():
    places = 5.0 * np.array([[0, 0], [1, 0], [0.4, 0.9]])[np.arange(36) % 3]
    tight = scenarios.answers_about(np.random.default_rng(0), places, 3000, "ste", 0.9)
    line = scenarios.answers_about(np.random.default_rng(0), np.linspace(0, 1, 36)[:, None], 3000, "ste", 0.9)
    within, along = grade_clusters(tight), grade_clusters(line)
    assert within.gain < 3 * within.gain_se
    assert along.gain > 3 * along.gain_se > 0


def test_groups_within_groups():
    rng = np.random.default_rng(2)
    points = np.concatenate([rng.normal(size=(14, 2)) * 0.3 + c for c in ([0, 0], [8, 0], [40, 0], [44, 7])])
    found = grade_clusters(scenarios.answers_about(rng, points, 9000, "probit", 0.9))
    assert found.k == 2 or found.k == 4
    if found.k == 2:
        assert {each.group for each in found.subgroups} == {0, 1}
    for each in found.subgroups:
        inside = found.labels == each.group
        assert (each.labels[~inside] == -1).all() and set(each.labels[inside]) == set(range(each.k))
        assert each.grade in GRADES


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_a_group_on_a_line_does_not_split_because_fitted_positions_clump(seed):
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.normal(size=(15, 1)), 8 + rng.normal(size=(15, 1))])
    found = grade_clusters(scenarios.answers_about(rng, points, 1500, "probit", 0.95, 0.0))
    assert found.k == 2 and len(found.subgroups) == 2
    assert {subgroup.grade for subgroup in found.subgroups} <= {NOT_SEPARABLE, CANNOT_TELL}


@pytest.mark.parametrize("d", [1, 2])
def test_clear_groups_within_groups_are_separated(d):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, d))
    points[:, -1] += np.repeat([0, 12, 0, 12], 10)
    points[20:, 0] += 100
    fits = position_fits.fits_of_answers(of_answers(scenarios.answers_about(rng, points, 8000, "probit", 0.98, 0.0)))
    subgroups = graded._subgroups(fits, np.repeat([0, 1], 20).astype(np.int32), np.arange(40), 40)
    assert [subgroup.k for subgroup in subgroups] == [2, 2]
    assert {subgroup.grade for subgroup in subgroups} <= {SEPARATED, CLEARLY_SEPARATED}


def test_many_answers_are_graded_on_given_positions(monkeypatch):
    monkeypatch.setattr(graded, "MAX_EMBEDDED_QUESTIONS", 100)
    monkeypatch.setattr(position_fits, "fits_of_answers", lambda answers: pytest.fail("fitted anew"))
    rng = np.random.default_rng(0)
    points, truth = scenarios.groups(rng, 60, 4, 2, 14.0)
    answers = scenarios.answers_about(rng, points, 6000, "ste", 0.9)
    found = grade_clusters(answers, points - points.mean(axis=0))
    assert found.dimensions == 2
    assert found.k == 4
    assert adjusted_rand_score(truth, found.labels) == 1.0
    tied = grade_clusters(answers, points - points.mean(axis=0), tied_dimensions=1)
    assert GRADES.index(tied.grade) <= GRADES.index(found.grade)
    assert (tied.dimension_tied == 1) == (tied.dimensions == 1)


# --- bad input -------------------------------------------------------------------------------------------------------


def test_few_objects():
    answers, _ = planted(n=7, k=2, count=300)
    assert (grade_clusters(answers).grade, grade_clusters(answers).reason) == (CANNOT_TELL, "few objects")


@pytest.mark.parametrize("seed", range(3))
def test_answers_at_chance(seed):
    rng = np.random.default_rng(seed)
    answers = scenarios.answers_about(rng, rng.normal(size=(24, 2)), 1500, "ste", 0.9, lapse=1.0)
    found = grade_clusters(answers)
    assert (found.grade, found.reason, found.k) == (CANNOT_TELL, "uncertain positions", None)
    assert (found.labels == -1).all()


def test_objects_that_are_all_alike():
    rows = np.array([[a, b, a, c] for a in range(10) for b in range(10) for c in range(10) if len({a, b, c}) == 3])
    both = np.concatenate([rows, rows[:, [2, 3, 0, 1]]]).astype(np.int32)
    answers = Answers(both, np.ones(len(both)), np.full(len(both), -1, np.int32), np.arange(len(both)), 10)
    found = grade_clusters(answers)
    assert found.grade == CANNOT_TELL
    assert found.reason in ("no positions", "uncertain positions")
    assert found.k is None


def test_one_dimension_is_said():
    line = scenarios.answers_about(np.random.default_rng(1), np.linspace(0, 1, 30)[:, None], 3000, "ste", 0.9)
    found = grade_clusters(line)
    assert found.dimensions == 1 and found.grade in (NOT_SEPARABLE, CANNOT_TELL)
    assert found.reason == ("one dimension" if found.grade == NOT_SEPARABLE else "few answers")


def test_two_unconnected_sets_and_objects_without_answers():
    one, _ = planted(n=12, k=2, count=800)
    other = one._replace(rows=one.rows + 14)
    rows = np.concatenate([one.rows, other.rows])
    both = Answers(rows, np.ones(len(rows)), np.full(len(rows), -1, np.int32), np.arange(len(rows)), 26)
    found = grade_clusters(both)
    assert found.grade in GRADES
    assert (found.labels[12:14] == -1).all()
    assert (found.stability[12:14] == 0).all()


def test_groups_that_split_again_are_counted_as_others_are():
    """The largest first, whatever numbers they had in the artifact before."""
    n, ids = 31, np.arange(1, 31)  # nothing is known of the first
    labels = np.repeat([0, 1, 2], [4, 14, 12]).astype(np.int32)
    inner = [np.where(labels == group, np.arange(30) % 2, -1).astype(np.int32) for group in (1, 2)]
    subgroups = Subgroup(1, 2, "separated", inner[0]), Subgroup(2, 2, "not separable", inner[1])
    made = ClusterAnswer(
        "separated", "", 3, labels, 0.99, 3.0, 0.9, 0.8, 0.95, 0.01, 0.02, 2, None, 0.9,
        CandidateGroups(np.array([3]), np.array([2.0])), subgroups, np.repeat([0.5, 0.95], [7, 23]),
        np.full(30, -1, np.int32), 900,
    )  # fmt: skip
    snapshot = Engine().snapshot()._replace(objects=[f"o{i}" for i in range(n)])
    before = Artifact("clusters", "", 1, {}, 0, {"labels": np.append(-1, np.array([3, 5, 9])[labels])}, {})
    needed = Artifact("embedding", "", 2, {}, 0, {}, {})
    found = clusters._artifact(snapshot, clusters.Params(), 0, before, ids, made, needed)
    assert found.arrays["labels"].tolist() == before.arrays["labels"].tolist()
    assert [each["group"] for each in found.report["subgroups"]] == [1, 2]  # of 14 and of 12
    assert found.report["sizes"] == [14, 12, 4]
    assert (found.report["objects"], found.report["between"]) == (30, 7)  # and not the first
    assert np.flatnonzero(found.arrays["subgroup"] >= 0).tolist() == ids[labels == 1].tolist()
    by_itself = made._replace(labels=np.append(labels[:-1], np.int32(3)))
    found = clusters._artifact(snapshot, clusters.Params(), 0, None, ids, by_itself, needed)
    assert found.report["alone"] == ["o30"], "the number that it has among all objects"


def test_groups_within_several_groups_are_graded_more_strictly(monkeypatch):
    """Clearer than 97 % of continua is enough for one group that is examined, and not for one of two."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(40, 2)) + 9 * np.repeat([[0, 0], [1, 0]], 20, axis=0)
    fits = position_fits.fits_of_answers(of_answers(scenarios.answers_about(rng, points, 1500, "probit", 0.95, 0.0)))
    monkeypatch.setattr(clearness, "clearer_than", lambda *given: 0.97)
    one, two = np.repeat([0, 1, 2], [20, 10, 10]).astype(np.int32), np.repeat([0, 1], 20).astype(np.int32)
    grades = [[each.grade for each in graded._subgroups(fits, labels, np.arange(40), 40)] for labels in (one, two)]
    assert grades[0] == [SEPARATED] and len(grades[1]) == 2 and {*grades[1]} <= {NOT_SEPARABLE, CANNOT_TELL}


def test_a_mean_over_answers_has_the_error_of_all_of_them():
    """Each answer by itself, either way."""
    near, far = np.array([3, 0, 2, 5]), np.array([1, 4, 2, 0])
    of_near, of_far = np.array([0.3, -2.0, 0.1, 0.6]), np.array([1.4, -0.2, 0.9, 8.0])
    every = np.concatenate([np.repeat(of_near, near), np.repeat(of_far, far)])
    mean, error = graded._mean(of_near, of_far, SimpleNamespace(near=near, far=far, answers=len(every)))
    assert (mean, error) == pytest.approx((every.mean(), every.std() / np.sqrt(len(every))))
