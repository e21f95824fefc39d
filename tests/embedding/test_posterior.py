"""Draws from the posterior: the likelihood and the distribution are those of the definition, and with few answers their
average predicts better than one fit."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit

from stream_engine.embedding import posterior as room
from stream_engine.embedding.fit import fit
from stream_engine.embedding.posterior import DRAWS, LAPSE, SPREAD, WIDTH, posterior
from stream_engine.embedding.questions import of_rows
from stream_engine.evaluation.answer_probabilities import margins, probability
from stream_engine.evaluation.learned import of_draws
from tests.support import embedding_reference as reference
from tests.support.generators import planted_triplets


def likelihood(questions, state):
    """The log likelihood of a state, its lapse, its points and its slope."""
    answers = room._by_pair(questions)
    points, slope = np.empty((questions.n_objects, len(SPREAD))), np.empty(len(state))
    work = np.empty((3, len(answers.pairs)))
    value, lapse = room._log_likelihood(*answers, np.log(SPREAD), WIDTH, *LAPSE, state, points, work, slope)
    return value, lapse, points, slope


def test_exponentials_are_those_of_numpy():
    x = np.concatenate([[0.0, 1e-12, room.FARTHEST], np.random.default_rng(0).uniform(0.0, room.FARTHEST, 997)])
    found = x.copy()
    room._exponentials(found, np.empty_like(x))
    np.testing.assert_allclose(found, np.exp(x), rtol=2e-13)


def test_the_likelihood_is_the_formula():
    rows, times, _ = reference.world(3, n=6, m=40)
    questions = of_rows(rows, 6, times)
    state = np.random.default_rng(0).normal(size=6 * 5 + 6)
    found, lapse, points, _ = likelihood(questions, state)
    assert lapse == pytest.approx(expit(LAPSE[0] + LAPSE[1] * state[-1]))
    np.testing.assert_allclose(points, state[:30].reshape(6, 5) * np.array(SPREAD) * np.exp(WIDTH * state[30:35]))
    assert found == pytest.approx(-reference.loss(points, questions, np.array([lapse]), 0.0))


def test_the_slope_is_that_of_the_likelihood():
    rows, times, _ = reference.world(3, n=6, m=40)
    questions = of_rows(rows, 6, times)
    state = np.random.default_rng(0).normal(size=6 * 5 + 6)
    steps = 1e-5 * np.eye(len(state))
    finite = [(likelihood(questions, state + by)[0] - likelihood(questions, state - by)[0]) / 2e-5 for by in steps]
    np.testing.assert_allclose(likelihood(questions, state)[3], finite, atol=1e-7)
    assert np.abs(finite).min() > 1e-3


def test_a_state_that_is_far_away_has_a_finite_likelihood_and_slope():
    rows, times, _ = reference.world(3, n=6, m=40)
    value, lapse, points, slope = likelihood(of_rows(rows, 6, times), 50.0 * np.random.default_rng(0).normal(size=36))
    assert np.isfinite(value) and np.isfinite(slope).all() and np.isfinite(points).all()


def test_draws_are_from_the_posterior(monkeypatch):
    """Of four objects and six answers, its mean probabilities are those of draws from the prior, weighted by their
    likelihood."""
    monkeypatch.setattr(room, "DRAWS", 20_000)
    monkeypatch.setattr(room, "MOST", 300_000)
    monkeypatch.setattr(room, "WORK", 1e9)
    rows = np.array([[0, 1, 0, 2], [0, 1, 0, 3], [1, 0, 1, 2], [2, 3, 2, 0], [2, 3, 2, 1], [0, 2, 0, 1]], np.int32)
    asked = np.concatenate([rows[:4], [[3, 2, 3, 0], [1, 3, 1, 2], [0, 1, 2, 3]]]).astype(np.int32)
    rng, many = np.random.default_rng(1), 200_000
    scale = np.exp(np.log(SPREAD) + WIDTH * rng.normal(size=(many, 1, 5)))
    points, lapse = scale * rng.normal(size=(many, 4, 5)), expit(LAPSE[0] + LAPSE[1] * rng.normal(size=(many, 1)))

    def p(of):
        squared = [((points[:, of[:, a]] - points[:, of[:, b]]) ** 2).sum(axis=2) for a, b in ((0, 1), (2, 3))]
        return probability(squared[1] - squared[0], lapse)

    likelihood = p(rows).prod(axis=1)
    expected = likelihood @ p(asked) / likelihood.sum()
    made = posterior(of_rows(rows, 4), fit(of_rows(rows, 4), 2, 0.5).points, 0)
    found = of_draws(made.points, np.ones(4, bool), made.lapse)(asked)
    np.testing.assert_allclose(found, expected, atol=0.015)
    assert np.mean(made.lapse) == pytest.approx(likelihood @ lapse[:, 0] / likelihood.sum(), abs=0.01)


def test_the_same_seed_gives_the_same_draws():
    questions = of_rows(planted_triplets(np.random.default_rng(0), np.eye(6)[:, :2], 30)[:, [0, 1, 0, 2]], 6)
    begin = fit(questions, 2, 0.5).points
    one, same, other = (posterior(questions, begin, seed, evaluations=500) for seed in (0, 0, 1))
    assert np.array_equal(one.points, same.points) and np.array_equal(one.lapse, same.lapse)
    assert one.points.shape == (DRAWS, 6, 5) and not np.array_equal(one.points, other.points)


def test_the_average_predicts_few_answers_better_than_one_fit():
    """Log loss below that of a coin; one fit, with the ridge that a larger study would choose, is far above."""
    gains = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        points = rng.normal(size=(30, 2))
        rows, test = (planted_triplets(rng, points, m, 0.1)[:, [0, 1, 0, 2]] for m in (150, 2000))
        questions = of_rows(rows, 30)
        one = fit(questions, 2, 0.3)
        made = posterior(questions, one.points, seed)
        p = of_draws(made.points, np.ones(30, bool), made.lapse)(test)
        alone = probability(margins(one.points, test, one.alpha), one.lapse[0])
        losses = [-np.log(np.maximum(each, 1e-12)).mean() for each in (p, alone)]
        assert losses[0] < np.log(2)
        gains.append(losses[1] - losses[0])
    assert np.mean(gains) > 0.1


def test_calibrated_margins_have_the_least_log_loss():
    rng = np.random.default_rng(4)
    drawn = room.Posterior(rng.normal(size=(5, 9, 2)).astype(np.float32), rng.uniform(0.02, 0.3, 5))
    rows = planted_triplets(rng, drawn.points.mean(axis=0), 400)[:, [0, 1, 0, 2]].astype(np.int32)
    times = rng.integers(1, 4, len(rows)).astype(float)

    def loss(scale):
        scaled = of_draws(drawn.points * np.sqrt(scale), np.ones(9, bool), drawn.lapse)(rows)
        return room.PRIOR_ANSWERS / 4 * np.log(scale) ** 2 - times @ np.log(scaled)

    found = room.calibrated_scale([(drawn, rows[:150], times[:150]), (drawn, rows[150:], times[150:])])
    best = minimize_scalar(loss, bracket=(0.2, 1.0, 3.0), tol=1e-10).x
    assert found == pytest.approx(best, rel=1e-3)
    np.testing.assert_allclose(drawn.scaled(found).points, drawn.points * np.sqrt(best), rtol=1e-3)
    np.testing.assert_array_equal(drawn.scaled(found).lapse, drawn.lapse)
    assert abs(np.log(best)) > 0.1


def test_draws_that_contradict_all_other_answers_keep_a_little_of_their_margins():
    drawn = room.Posterior(np.array([[[0.0], [1.0], [3.0]]], np.float32), np.array([0.1]))
    against = np.tile(np.array([[0, 2, 0, 1]], np.int32), (5000, 1))
    assert room.calibrated_scale([(drawn, against, np.ones(5000))]) == room.SMALLEST_SCALE
