"""The compiled likelihood against the formula, its gradient against finite differences, and counting against a loop."""

from collections import Counter

import numpy as np
import pytest

from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.embedding import gradient
from stream_engine.embedding.gradient import Loss
from stream_engine.embedding.questions import asked_about, of_columns, of_rows
from stream_engine.evaluation.answer_probabilities import margins, probability
from tests.support import embedding_reference as reference
from tests.support.generators import planted_triplets

LAPSES = {"none": np.zeros(4), "some": np.array([0.1, 0.9, 0.02, 0.3])}


@pytest.mark.parametrize("alpha", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("lapses", LAPSES)
@pytest.mark.parametrize("d", [1, 3])
def test_the_likelihood_is_the_formula(d, lapses, alpha):
    asked, points = reference.questions(d), np.random.default_rng(d).normal(size=(7, d))
    value, _, _ = Loss(asked, alpha)(points, LAPSES[lapses])
    assert value == pytest.approx(reference.loss(points, asked, LAPSES[lapses], alpha), rel=1e-10)
    p = probability(margins(points, asked.rows, alpha), LAPSES[lapses][asked.worker])
    np.testing.assert_allclose(p, reference.likelihood(points, asked.rows, LAPSES[lapses][asked.worker], alpha))


def test_two_threads_are_one(monkeypatch):
    """Two halves, however they run, add to what a single pass gives, and always to the same bits."""
    asked, points = reference.questions(3, m=3000, n=40), np.random.default_rng(3).normal(size=(40, 2))
    whole = Loss(asked)(points, LAPSES["some"])
    monkeypatch.setattr(gradient, "ALONE", 100)
    halves = [Loss(asked)(points, LAPSES["some"]) for _ in range(5)]
    for one, other in zip(whole, halves[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
    for again in halves[1:]:
        assert all(np.array_equal(one, other) for one, other in zip(halves[0], again, strict=True))


def test_far_apart_is_finite():
    """No overflow where a distance is huge, whichever side was said."""
    points = np.array([[0.0], [1.0], [1e4]])
    for rows in ([[0, 1, 0, 2]], [[0, 2, 0, 1]]):
        for lapse in (0.0, 0.1):
            value, slope, lapse_slope = Loss(of_rows(np.array(rows), 3))(points, np.full(1, lapse))
            assert np.isfinite(value)
            assert np.isfinite(slope).all()
            assert np.isfinite(lapse_slope).all()


@pytest.mark.parametrize("seed", range(4))
def test_counting_keeps_every_answer(seed):
    """The same comparison, however its pairs are written, is one question a worker, with both sides' counts."""
    rows, times, worker = reference.world(seed, n=5, m=200)
    asked = of_rows(rows, 5, times, worker)
    wanted: Counter = Counter()
    for (i, j, k, l), count, who in zip(rows.tolist(), times, worker.tolist(), strict=True):
        wanted[frozenset((i, j)), frozenset((k, l)), who + 1] += count
    got: Counter = Counter()
    for (i, j, k, l), near, far, who in zip(asked.rows.tolist(), asked.near, asked.far, asked.worker.tolist()):
        one, other = frozenset((i, j)), frozenset((k, l))
        assert (one, other, who) not in got
        got[one, other, who] += near
        got[other, one, who] += far
        if one & other:
            assert i == k and j < l
    assert {key: count for key, count in got.items() if count} == dict(wanted)
    assert asked.answers == times.sum()
    assert np.flatnonzero(asked_about(asked)).tolist() == sorted(set(rows.ravel().tolist()))


def test_columns_are_counted_like_rows():
    triplets = planted_triplets(np.random.default_rng(0), np.random.default_rng(1).normal(size=(9, 2)), 500, 0.3)
    one, other = of_columns(columns_from_triplets(triplets, 9)), of_rows(triplets[:, [0, 1, 0, 2]], 9)
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a, b)
