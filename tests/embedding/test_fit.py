"""Planted worlds are recovered; starts do not matter; ridge, lapse, choice and figures do what they say."""

import numpy as np
import pytest

from stream_engine.data.answers import Answers
from stream_engine.embedding import choice, lapse_prior, minibatch, starts
from stream_engine.embedding import fit as fits
from stream_engine.embedding.fit import Setting, fit, fit_carefully, with_setting
from stream_engine.embedding.gradient import Loss
from stream_engine.embedding.held_out import known_lapses, population_lapse
from stream_engine.embedding.principal_axes import on_principal_axes
from stream_engine.embedding.questions import of_answers, of_rows
from stream_engine.evaluation.answer_probabilities import log_odds, margins, probabilities
from tests.support import embedding_reference as reference
from tests.support.generators import planted_triplets


def world(seed=0, n=30, d=2, m=4000, flip=0.0):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d))
    return points, planted_triplets(rng, points, m, flip)[:, [0, 1, 0, 2]]


def share_right(found, rows):
    return float((margins(found.points, rows, found.alpha) > 0).mean())


@pytest.mark.parametrize("kernel", ["ste", "t-ste"])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_planted_points_are_recovered(d, kernel):
    points, rows = world(d, d=d, m=6000)
    found, _ = fit_carefully(of_rows(rows[:5000], 30), d, 0.03, kernel=kernel)
    assert share_right(found, rows[5000:]) > {1: 0.96, 2: 0.92, 5: 0.9}[d]


def test_what_is_minimised_is_the_formula():
    rows, times, worker = reference.world(0, n=7, m=200)
    asked = of_rows(rows, 7, times, worker)
    found = fit(asked, 2, 0.7, kernel="t-ste", tolerance=1e-10)
    objective = reference.loss(found.points, asked, found.lapse, 1.0) + 0.7 * (found.points**2).sum()
    objective += lapse_prior.cost(found.lapse, found.guessers)[0]
    assert found.objective == pytest.approx(objective, rel=1e-6)
    assert found.converged and found.slope < 1e-3


def test_warm_and_cold_starts_end_equally_well():
    _, rows = world(2, m=3000, flip=0.1)
    asked = of_rows(rows, 30)
    cold = with_setting(asked, Setting("ste", 2, 0.3))
    for begin in (cold.points, starts.at_random(30, 2, 1), np.zeros((30, 2)), np.zeros((30, 0))):
        warm = with_setting(asked, Setting("ste", 2, 0.3), [begin])
        assert warm.objective <= cold.objective * 1.001
    assert fit(asked, 2, 0.3, start=cold.points, lapse=cold.lapse).iterations < cold.iterations


def test_nothing_is_learned_above_the_largest_ridge():
    _, rows = world(3)
    asked = of_rows(rows, 30)
    largest = starts.directions(asked, 2).largest_ridge
    for ridge, learned in ((1.02 * largest, False), (0.9 * largest, True)):
        found = fit(asked, 2, ridge, start=starts.at_random(30, 2, 0), fixed_lapse=True, tolerance=1e-13)
        assert (np.abs(found.points).max() > 0.03) == learned


def test_iterated_directions_are_the_dense_ones(monkeypatch):
    _, rows = world(4, n=60)
    asked = of_rows(rows, 60)
    dense = starts.directions(asked, 2).points
    monkeypatch.setattr(starts, "DENSE", 10)
    iterated = starts.directions(asked, 2).points
    cosines = np.abs((dense * iterated).sum(axis=0)) / np.linalg.norm(dense, axis=0) / np.linalg.norm(iterated, axis=0)
    assert (cosines > 0.99).all()


def test_principal_axes_keep_distances():
    rng, asked = np.random.default_rng(0), of_rows(np.array([[0, 1, 0, 2], [3, 4, 3, 0]]), 6)
    points = rng.normal(size=(6, 3)) + 5
    turned = on_principal_axes(points, asked)
    for a in range(5):
        for b in range(5):
            assert np.linalg.norm(turned[a] - turned[b]) == pytest.approx(np.linalg.norm(points[a] - points[b]))
    covariance = turned[:5].T @ turned[:5]
    assert np.allclose(covariance, np.diag(np.sort(np.diag(covariance))[::-1]))
    assert (turned[5] == 0).all() and np.allclose(turned[:5].mean(axis=0), 0)
    mirrored = on_principal_axes(points * [1, -1, 1], asked)
    np.testing.assert_allclose(mirrored, turned)


def answers_of(rows, n, unit=None, times=None):
    m = len(rows)
    unit = np.arange(m) if unit is None else unit
    return Answers(rows, np.ones(m) if times is None else times, np.full(m, -1, np.int32), unit, n)


@pytest.mark.parametrize("d, tried", [(1, {1, 2, 3, 4, 5}), (5, {4, 5, 8})])
def test_the_planted_dimension_is_chosen(d, tried):
    """Smaller numbers are tried down to the first that is too small."""
    _, rows = world(d + 10, n=25, d=d, m=5000, flip=0.1)
    answers, part = answers_of(rows, 25), np.random.default_rng(0).random(len(rows))
    chosen = choice.choose(of_answers(answers.of(part >= 0.2)), answers.of(part < 0.2), ridge=0.3)
    assert chosen.setting.d == d and chosen.basis == "held-out log loss"
    assert {each["d"] for each in chosen.trials} - {8} == tried - {8}
    assert chosen.interval[0] <= chosen.setting.d <= chosen.interval[1]
    again = choice.choose(of_answers(answers.of(part >= 0.2)), answers.of(part < 0.2), ridge=0.3)
    assert again.trials == chosen.trials


def test_further_splits_decide_where_one_validation_set_misleads():
    """The answers of the first one are about one axis alone; losses are pooled over all."""
    rng = np.random.default_rng(2)
    points, rows = world(2, n=15, m=900, flip=0.1)
    unit = np.arange(len(rows)) // 3
    answers = Answers(rows, np.ones(len(rows)), np.full(len(rows), -1, np.int32), unit, 15)
    misleading = planted_triplets(rng, points[:, :1], 60)[:, [0, 1, 0, 2]]
    first = Answers(misleading, np.ones(60), np.full(60, -1, np.int32), np.arange(60) // 3, 15)
    training, parts = of_answers(answers.of(unit >= 100)), (unit % 3 == 0, unit % 3 == 1)
    further = [choice.Split(of_answers(answers.of(~out)), answers.of(out)) for out in parts]
    options = {"kernel": "ste", "ridge": 0.3}
    assert choice.choose(training, first, **options).setting.d != 2
    chosen = choice.choose(training, first, **options, further=further)
    assert chosen.setting.d == 2
    d = [each["d"] for each in chosen.trials]
    assert d.count(2) == 1


def test_what_is_given_is_not_chosen():
    _, rows = world(1, n=12, m=600)
    answers = answers_of(rows, 12)
    train, held = of_answers(answers.of(np.arange(600) > 200)), answers.of(np.arange(600) <= 200)
    assert choice.choose(train, held, "ste", 2, 0.5).setting == Setting("ste", 2, 0.5)
    for given in ({"kernel": "ste"}, {"d": 3}, {"ridge": 0.2}):
        found = choice.choose(train, held, **given)
        assert all(each[key] == value for each in found.trials for key, value in given.items())
        best = min(each["log_loss"] for each in found.trials)
        assert best <= next(e["log_loss"] for e in found.trials if e["ridge"] == found.setting.ridge)
    few = choice.choose(train, held.of(np.arange(201) < 9))
    assert few.setting == choice.DEFAULT_SETTING and few.basis.startswith("too few")


def test_unknown_workers_lapse_like_the_population():
    rows = np.array([[0, 1, 0, 2]] * 4, np.int32)
    asked = of_rows(rows, 3, np.array([1.0, 2.0, 1.0, 1.0]), np.array([-1, 0, 0, 2]))
    lapse = np.array([0.1, 0.4, 0.9, 0.2])
    mean = (0.1 + 3 * 0.4 + 0.2) / 5
    assert population_lapse(lapse, asked) == pytest.approx(mean)
    np.testing.assert_allclose(known_lapses(lapse, asked), [0.1, 0.4, mean, 0.2])
    points = np.array([[0.0], [1.0], [2.0]])
    p = probabilities(points, rows[:2], lapse, 0.0, np.array([-1, 1], np.int32))
    np.testing.assert_allclose(p, reference.likelihood(points, rows[:2], [0.1, 0.9], 0.0))
    np.testing.assert_allclose(1 / (1 + np.exp(-log_odds(p))), p)


def test_stochastic_passes_come_near_the_optimum(monkeypatch):
    """And are what a fit of many questions begins at; the same passes give the same points."""
    _, rows = world(5, n=80, m=12_000, flip=0.1)
    asked, lapse = of_rows(rows, 80), np.full(1, 0.05)
    for kernel, alpha in (("ste", 0.0), ("t-ste", 1.0)):
        best = fit(asked, 2, 0.3, kernel=kernel)
        points = minibatch.descend(asked, starts.at_random(80, 2, 0) * 3, lapse, 0.3, alpha)
        assert np.array_equal(points, minibatch.descend(asked, starts.at_random(80, 2, 0) * 3, lapse, 0.3, alpha))
        near = Loss(asked, alpha)(points, lapse)[0] + 0.3 * (points**2).sum()
        assert near < 1.25 * best.objective
        with monkeypatch.context() as patched:
            patched.setattr(fits, "LARGE", 10)
            assert fit(asked, 2, 0.3, kernel=kernel).objective < 1.02 * best.objective


def test_a_stochastic_step_goes_down_the_gradient():
    """One question, one pass, a tiny rate: each coordinate moves against the sign of its slope."""
    points, asked = np.random.default_rng(0).normal(size=(4, 2)), of_rows(np.array([[0, 1, 2, 3]]), 4)
    for alpha in (0.0, 2.0):
        slope = Loss(asked, alpha)(points, np.full(1, 0.1))[1] + 2 * 0.5 * points
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(minibatch, "RATE", 1e-7)
            moved = minibatch.descend(asked, points, np.full(1, 0.1), 0.5, alpha) - points
        assert np.array_equal(np.sign(moved), -np.sign(slope))
