"""How sure of each place: the formula, the gauge, the design effect, and that the ellipses cover what was planted."""

import numpy as np
import pytest

from stream_engine.data.answers import Answers
from stream_engine.embedding import ellipses
from stream_engine.embedding.ellipses import covariances, gauge_of, radius
from stream_engine.embedding.fit import Setting, fit, with_setting
from stream_engine.embedding.lapse_prior import PRIOR, guesses
from stream_engine.embedding.questions import of_answers
from tests.support import embedding_reference as reference
from tests.support.embedding_worlds import by_the_model, covered


def slow(found, answers, fixed):
    """H of all coordinates and lapses by differences of p at each answer, inverted; then the gauge taken out."""
    n, d = found.points.shape
    size = n * d

    def p_of(x, lapse):
        return reference.likelihood(x.reshape(n, d), answers.rows, lapse[answers.participant + 1], found.alpha)

    x, lapse, h = found.points.ravel(), found.lapse, 1e-5
    p, slopes = p_of(x, lapse), []
    for at in range(size + (0 if fixed else len(lapse))):
        step = np.zeros(size + len(lapse))
        step[at] = h
        up, down = p_of(x + step[:size], lapse + step[size:]), p_of(x - step[:size], lapse - step[size:])
        slopes.append((up - down) / (2 * h))
    slopes = np.stack(slopes, axis=1)
    full = slopes.T @ (slopes * (answers.times / (p * (1 - p)))[:, None])
    full[:size, :size] += 2 * found.ridge * np.eye(size)
    if not fixed:
        who = guesses(lapse, found.guessers)
        a, b = (one + who * (other - one) for one, other in (PRIOR, PRIOR[::-1]))
        full[size:, size:] += np.diag((a / lapse + b / (1 - lapse)) / (lapse * (1 - lapse)))
    gauge = gauge_of(found.points)
    away = np.eye(size) - gauge @ gauge.T
    inverse = away @ np.linalg.inv(full)[:size, :size] @ away
    slope = slopes[:, :size] / p[:, None]
    units = np.unique(answers.response, return_inverse=True)[1]
    sums = np.zeros((units.max() + 1, size))
    np.add.at(sums, units, slope * answers.times[:, None])
    alone = np.trace(inverse @ (slope.T @ (slope * answers.times[:, None])))
    inverse *= max(1.0, np.trace(inverse @ sums.T @ sums) / alone)
    return np.stack([inverse[i * d : i * d + d, i * d : i * d + d] for i in range(n)])


@pytest.mark.parametrize("kernel", ["ste", "t-ste"])
@pytest.mark.parametrize("fixed", [False, True])
def test_the_covariance_is_the_formula(kernel, fixed):
    rows, times, worker = reference.world(0, n=7, m=200)
    unit = np.random.default_rng(0).integers(0, 15, 200)
    answers = Answers(rows, times, worker, unit, 7, tuple("abc"))
    found = fit(of_answers(answers), 2, 0.7, kernel=kernel, fixed_lapse=fixed)
    made = covariances(found, answers, fixed)
    np.testing.assert_allclose(made, slow(found, answers, fixed), rtol=1e-4, atol=1e-9)
    assert fixed or np.array_equal(made, covariances(found, answers))


def test_answers_that_are_copies_of_each_other_count_once():
    """Nine copies of each answer in one unit say as much as one; taken for nine they seem to say far more."""
    _, answers = by_the_model(0, 10, 2, 600, copies=9)
    found = with_setting(of_answers(answers), Setting("ste", 2, 0.5))
    together = covariances(found, answers)
    apart = covariances(found, answers._replace(response=np.arange(len(answers.rows))))
    np.testing.assert_allclose(together, 9 * apart, rtol=1e-6)


@pytest.mark.parametrize("d", [1, 2])
def test_ellipses_cover_what_was_planted(d):
    hits = []
    for seed in range(12):
        points, answers = by_the_model(seed, 15, d, 1500)
        found = with_setting(of_answers(answers), Setting("ste", d, 0.5))
        hits.append(covered(points, found.points, covariances(found, answers), radius(d)))
    assert 0.9 <= np.mean(hits) <= 0.99


def test_what_is_not_asked_about_has_the_prior_and_what_is_large_nothing(monkeypatch):
    rows, times, worker = reference.world(1, n=6, m=90)
    answers = Answers(rows, times, worker, np.arange(90), 8, tuple("abc"))
    found = fit(of_answers(answers), 2, 0.5)
    made = covariances(found, answers)
    np.testing.assert_allclose(made[6:], np.tile(np.eye(2), (2, 1, 1)))
    assert (np.linalg.eigvalsh(made[:6]) > 0).all() and np.trace(made[:6].mean(axis=0)) < 2
    monkeypatch.setattr(ellipses, "MAX_COORDINATES", 15)
    assert covariances(found, answers) is None


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_along_the_gauge_no_distance_changes(d):
    """Translations and turns, all of them: d + d (d - 1) / 2 directions, of which none changes a distance at first."""
    points = np.random.default_rng(d).normal(size=(9, d))
    found = gauge_of(points)
    assert found.shape == (9 * d, d + d * (d - 1) // 2)
    np.testing.assert_allclose(found.T @ found, np.eye(found.shape[1]), atol=1e-12)
    apart = points[:, None] - points[None]
    for direction in found.T.reshape(-1, 9, d):
        change = 2 * (apart * (direction[:, None] - direction[None])).sum(axis=2)
        np.testing.assert_allclose(change, 0, atol=1e-12)
