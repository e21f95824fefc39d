"""The model that asks is the delivered one, and what its ensemble says of questions is what the formulas say."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from stream_engine import asking
from stream_engine.asking import ensemble, information_gain, model, uncertainty
from stream_engine.asking.knowledge import codes, unanswered, with_objects
from stream_engine.data.answers import Answers
from stream_engine.embedding import ellipses
from stream_engine.embedding.fit import Embedding
from stream_engine.evaluation.answer_probabilities import margins, probabilities
from tests.asking.worlds import artifact, taught, world

ALPHAS = (0.0, 1.0, 3.0)  # STE, and t-STE with tails of several widths


def delivered(n: int, d: int, alpha: float = 0.0, seed: int = 0, **report):
    points, known = world(n, 60, seed, d)
    return model.model_of(artifact(points, seed, alpha=alpha, **report), known.columns)


def four(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows)[:, [0, 1, 0, 2]].astype(np.int32)


def bits(p):
    return -p * np.log2(p) - (1 - p) * np.log2(1 - p)


# ---- the model


@pytest.mark.parametrize("alpha", ALPHAS)
def test_it_foretells_what_the_delivered_embedding_foretells(alpha):
    made = delivered(9, 2, alpha, scale=1.7)
    sure = made._replace(covariance=np.zeros_like(made.covariance))
    rows = unanswered(world(9, 0)[1], 60, np.random.default_rng(1))
    found = ensemble.expected(ensemble.ensemble(sure, np.arange(9), np.random.default_rng(0)), rows)
    assert np.allclose(found, probabilities(made.points, four(rows), 0.1, alpha, scale=1.7), atol=1e-4)


def test_objects_that_came_since_lie_in_the_middle_as_unsure_as_the_prior():
    points, known = world(5, 30)
    made = model.model_of(artifact(points, ridge=0.25), with_objects(known, ["new"]).columns)
    assert made.points[5].tolist() == [0, 0] and np.allclose(made.covariance[5], 2 * np.eye(2))
    assert np.array_equal(made.points[:5], points)
    vague = model.model_of(artifact(points, ridge=1e-9), with_objects(known, ["new"]).columns)
    assert np.allclose(vague.covariance[5], model.MAX_VARIANCE * np.eye(2))  # however weak the prior


def test_an_embedding_that_says_nothing_is_no_model():
    points, known = world(5, 30)
    assert model.model_of(artifact(np.zeros((5, 2))), known.columns) is None
    assert model.model_share(None) == 0.0
    assert model.model_share(model.model_of(artifact(points, accuracy=None), known.columns)) == 0.0
    least = model.model_of(artifact(points, accuracy=0.72, standard_error=0.02), known.columns)
    assert model.model_share(least) == pytest.approx(0.5)  # a standard error below what it got right


@pytest.mark.parametrize("alpha", ALPHAS)
def test_without_covariances_each_object_has_its_own_block_of_the_information(alpha):
    points, known = world(6, 40, dimensions=2)
    made = model.model_of(artifact(points, covariance=False, alpha=alpha, ridge=0.3), known.columns)
    columns = known.columns
    pair = np.repeat(np.arange(len(columns.lo)), np.diff(columns.start))
    rows = np.stack([columns.anchor, columns.lo[pair], columns.anchor, columns.hi[pair]], axis=1).astype(np.int32)
    times = (columns.n_lo + columns.n_hi).astype(float)
    nobody = Answers(rows, times, np.full(len(rows), -1, np.int32), np.arange(len(rows)), 6)
    found = Embedding(points, np.array([0.1]), 0.3, alpha, 0.0, 0.0, 0, 0, True, 0.0)
    gaps, f, u, _ = ellipses._parts(found, nobody.rows, times, np.full(len(rows), 0.1))
    whole = ellipses._weighted_sum(rows, *gaps, f * u**2, 6) + 0.6 * np.eye(12)
    for i in range(6):
        assert np.allclose(np.linalg.inv(made.covariance[i]), whole[2 * i : 2 * i + 2, 2 * i : 2 * i + 2])


@pytest.mark.parametrize("covariance", [True, False])
def test_an_artifact_with_absurd_numbers_harms_nothing(covariance):
    points, known = world(9, 60)
    made = artifact(points * 1e200, covariance=covariance, ridge=-3.0, scale=-2.0)
    rows = asking.questions(known._replace(embedding=made), 40, "information-gain").rows
    assert len(np.unique(codes(rows, 9))) == 40


@pytest.mark.parametrize("alpha", ALPHAS)
def test_slopes_of_a_question(alpha):
    points = np.random.default_rng(3).normal(size=(3, 2))
    found = np.empty((3, 2))
    value = model.slopes_at(points, (0, 1, 2), alpha, found)
    row = np.array([[0, 1, 0, 2]], np.int32)
    assert value == pytest.approx(margins(points, row, alpha)[0])
    slow = approx_fprime(points.ravel(), lambda at: margins(at.reshape(3, 2), row, alpha)[0])
    assert np.allclose(found.ravel(), slow, atol=1e-5)


# ---- the ensemble


def test_samples_have_the_mean_and_the_covariance_of_the_places():
    made = delivered(4, 3)
    found = ensemble.ensemble(made, np.array([2, 0]), np.random.default_rng(0), samples=40_000)
    assert np.allclose(found.deviations.mean(axis=1), 0, atol=1e-9), "the mean is the delivered point"
    assert np.array_equal(found.points, made.points[[2, 0]])
    for at, i in enumerate((2, 0)):
        assert np.allclose(np.cov(found.deviations[at].T), made.covariance[i], atol=0.02)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_expected_answer_gain_and_information_are_means_over_the_samples(alpha):
    made = ensemble.ensemble(delivered(7, 2, alpha, scale=1.3), np.arange(7), np.random.default_rng(2))
    rows = unanswered(world(7, 0)[1], 50, np.random.default_rng(1))
    every = np.stack([made.points + made.deviations[:, s] for s in range(made.deviations.shape[1])])
    p = np.stack([probabilities(x, four(rows), 0.1, alpha, scale=1.3) for x in every])
    assert np.allclose(ensemble.expected(made, rows), p.mean(0))
    assert np.allclose(ensemble.gains(made, rows), bits(p.mean(0)) - bits(p).mean(0))
    share = (p - 0.05) / 0.9
    u = 0.9 * 1.3 * share * (1 - share)
    found = [ensemble.score(made.points, made.deviations, *made[3:], *row)[2] for row in rows.tolist()]
    assert np.allclose(found, (u**2 / (p * (1 - p))).mean(0))


def test_a_question_that_is_merely_close_gains_nothing():
    points = np.array([[0.0], [1.0], [-1.0], [4.0]])
    sure = model.Model(points, np.full((4, 1, 1), 1e-9), 0.0, 0.1, 1.0, 0.9)
    doubtful = sure._replace(covariance=np.array([1e-9, 1e-9, 1e-9, 9.0]).reshape(4, 1, 1))
    rows = np.array([[0, 1, 2], [1, 0, 3]])
    gains = ensemble.gains(ensemble.ensemble(doubtful, np.arange(4), np.random.default_rng(0)), rows)
    assert gains[0] < 1e-6 and gains[1] > 0.05
    assert uncertainty.best(doubtful, rows, 1, np.random.default_rng(0)).tolist() == [0]
    assert information_gain.best(doubtful, rows, 1, np.random.default_rng(0)).tolist() == [1]


@pytest.mark.parametrize("alpha", ALPHAS)
def test_an_answer_narrows_what_it_is_about_as_a_kalman_filter_would(alpha):
    made = ensemble.ensemble(delivered(5, 2, alpha), np.arange(5), np.random.default_rng(0))
    spread, away = made.covariance.copy(), made.deviations.copy()
    information = ensemble.score(made.points, made.deviations, *made[3:], 3, 0, 4)[2]
    room = np.empty((3, 2)), np.empty((3, 2))
    ensemble.narrow(made.points, made.covariance, made.deviations, *made[3:], 3, 0, 4, *room)
    g = np.zeros((5, 2))
    g[[3, 0, 4]] = room[0]
    g, joint = g.ravel(), np.zeros((10, 10))
    for i in range(5):
        joint[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = spread[i]
    after = np.linalg.inv(np.linalg.inv(joint) + information * np.outer(g, g))
    for i in range(5):
        assert np.allclose(made.covariance[i], after[2 * i : 2 * i + 2, 2 * i : 2 * i + 2])
    total = g @ joint @ g
    gain = joint @ g * (1 - 1 / np.sqrt(1 + information * total)) / total
    flat = away.transpose(1, 0, 2).reshape(-1, 10)
    assert np.allclose(made.deviations.transpose(1, 0, 2).reshape(-1, 10), flat - np.outer(flat @ g, gain))


# ---- questions of a batch


def slowly(made, rows: np.ndarray, n: int, quota: int, anew: bool) -> tuple[list[int], float]:
    """Questions taken one by one and the sum of their gains: all scored `anew` before each, or a score looked at again
    only when it is the largest. An anchor at its quota waits until all are."""
    left, found, times, total = list(range(len(rows))), [], np.zeros(len(made.points)), 0.0
    scores, room = ensemble.gains(made, rows), (np.empty((3, 2)), np.empty((3, 2)))
    while len(found) < n:
        free = np.array([t for t in left if times[rows[t, 0]] < quota], int)
        if not len(free):
            quota += 1
            continue
        if anew:
            scores[free] = ensemble.gains(made, rows[free])
        best = free[int(np.argmax(scores[free]))]
        scores[best] = ensemble.gains(made, rows[[best]])[0]
        if scores[best] < scores[free].max() - 1e-12:
            continue
        found.append(int(best))
        left.remove(best)
        times[rows[best, 0]] += 1
        total += scores[best]
        ensemble.narrow(made.points, made.covariance, made.deviations, *made[3:], *rows[best].tolist(), *room)
    return found, total


def copy(made):
    return made._replace(covariance=made.covariance.copy(), deviations=made.deviations.copy())


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("n, few", [(24, 0), (28, 20)])  # 20 of 21 questions of an anchor have been asked before
def test_each_question_taken_is_the_best_one_that_the_quota_allows(seed, n, few):
    made = ensemble.ensemble(delivered(8, 2, seed=seed), np.arange(8), np.random.default_rng(seed))
    rows = unanswered(world(8, 0)[1], 168, np.random.default_rng(seed)).astype(np.int32)
    rows = np.concatenate([rows[rows[:, 0] != 0], rows[rows[:, 0] == 0][few:]])
    quota = -(-n // 8)
    slow, gained = slowly(copy(made), rows, n, quota, anew=False)
    _, most = slowly(copy(made), rows, n, quota, anew=True)
    found = information_gain.greedily(copy(made), rows, n).tolist()
    assert found == slow and len(set(found)) == n
    assert gained > 0.95 * most, "scores that rose are seen late, at little cost"
    times = np.bincount(rows[found, 0], minlength=8)
    assert times.max() <= quota and (few == 0 or times[0] <= 1)


def test_all_questions_are_taken_in_the_end_whoever_is_their_anchor():
    made = ensemble.ensemble(delivered(5, 2), np.arange(5), np.random.default_rng(0))
    rows = unanswered(world(5, 0)[1], 30, np.random.default_rng(0)).astype(np.int32)
    rows = rows[(rows[:, 0] < 2) | (np.arange(30) < 8)]
    assert sorted(information_gain.greedily(made, rows, len(rows)).tolist()) == list(range(len(rows)))


def test_a_batch_does_not_ask_one_thing_a_hundred_times():
    known = taught(30, 300)
    known = known._replace(model=model.model_of(known.embedding, known.columns))
    rows = information_gain.ask(known, 60, np.random.default_rng(0))
    assert np.bincount(rows[:, 0], minlength=30).max() == 2 and len(np.unique(rows)) == 30
