"""Interpretable dimensions: responses are found again in the counts, the gradient is that of finite differences,
planted dimensions come back, and the figures are those of their definitions."""

import numpy as np
import pytest

from stream_engine.data.triplet_columns import columns_from_rows
from stream_engine.embedding import sparse_fit
from stream_engine.embedding.odd_one_out import Responses, responses_of
from tests.support.odd_one_out_worlds import odd_one_out, planted


def counted(triplets, n):
    """Columns of (m, 3) triplets anchor, near, far."""
    counts = {}
    for anchor, near, far in np.asarray(triplets).tolist():
        key = anchor, min(near, far), max(near, far)
        counts.setdefault(key, [0, 0])[int(near > far)] += 1
    keys, values = np.array(list(counts)).T, np.array(list(counts.values())).T
    return columns_from_rows(*keys, *values, n)


def hashes(n):
    return np.random.default_rng(9).integers(1 << 63, size=n).astype(np.uint64)


def as_triplets(rows):
    """Both triplets of each odd-one-out response a, b, c: c is odd."""
    return np.concatenate([rows, rows[:, [1, 0, 2]]])


def told(made):
    return {
        (*(sorted(row[:2]) if three else row[:2]), row[2], three): times
        for row, three, times in zip(made.rows.tolist(), made.three.tolist(), made.times.tolist(), strict=True)
    }


def test_odd_one_out_responses_are_found_in_their_triplets():
    rows = np.argsort(np.random.default_rng(0).random((400, 7)), axis=1)[:, :3]
    expected: dict = {}
    for a, b, c in rows.tolist():
        key = (min(a, b), max(a, b), c, True)
        expected[key] = expected.get(key, 0) + 1
    made = responses_of(counted(as_triplets(rows), 7), hashes(7))
    assert told(made) == expected and made.times.sum() == 400
    of = {}
    for row, draw in zip(made.rows.tolist(), made.draw.tolist(), strict=True):
        assert of.setdefault(frozenset(row), draw) == draw and 0 <= draw < 1
    assert len(set(of.values())) == len(of) == 35


def test_triplets_stay_triplets_and_what_is_left_over_is_one():
    rng = np.random.default_rng(1)
    triplets = np.argsort(rng.random((300, 8)), axis=1)[:, :3]
    made = responses_of(counted(triplets, 8), hashes(8))
    assert not made.three.any() and made.times.sum() == 300
    expected: dict = {}
    for row in triplets.tolist():
        expected[(*row, False)] = expected.get((*row, False), 0) + 1
    assert told(made) == expected
    mixed = np.concatenate([as_triplets(triplets), [[0, 1, 2]]])
    both = responses_of(counted(mixed, 8), hashes(8))
    assert both.times[~both.three].sum() == 1 and both.times[both.three].sum() == 300


def world(seed=0, n=9, d=3, m=60):
    rng = np.random.default_rng(seed)
    rows = np.argsort(rng.random((m, n)), axis=1)[:, :3].astype(np.int32)
    times = rng.integers(1, 4, m).astype(np.float32)
    return Responses(rows, rng.random(m) < 0.6, times, rng.random(m), n), rng.random((n, d)).astype(np.float32)


def by_definition(responses, weights):
    """(t, 3) probabilities of the pairs ab, ac, bc."""
    a, b, c = (weights[column] for column in responses.rows.T)
    s = np.stack([(a * b).sum(axis=1), (a * c).sum(axis=1), (b * c).sum(axis=1)], axis=1)
    e = np.exp(s) * np.stack([np.ones(len(s)), np.ones(len(s)), responses.three], axis=1)
    return e / e.sum(axis=1, keepdims=True)


def test_losses_and_the_likeliest_are_the_softmax():
    responses, weights = world()
    p = by_definition(responses, weights.astype(np.float64))
    np.testing.assert_allclose(sparse_fit.losses(responses, weights), -np.log(p[:, 0]), rtol=1e-5)
    np.testing.assert_array_equal(sparse_fit.hits(responses, weights), p.argmax(axis=1) == 0)
    even = sparse_fit.hits(responses, np.zeros((9, 2), np.float32))
    np.testing.assert_allclose(even, np.where(responses.three, 1 / 3, 1 / 2))


def test_the_gradient_is_that_of_finite_differences():
    responses, weights = world()
    found = sparse_fit.gradient(responses, weights)

    def loss(at):
        return -float(responses.times @ np.log(by_definition(responses, at)[:, 0]))

    for place in np.ndindex(weights.shape):
        moved = [weights.astype(np.float64) for _ in range(2)]
        moved[0][place] += 1e-6
        moved[1][place] -= 1e-6
        assert found[place] == pytest.approx((loss(moved[0]) - loss(moved[1])) / 2e-6, rel=1e-3, abs=1e-3)


def test_standard_errors_are_of_the_fisher_information():
    responses, weights = world()
    p, information = by_definition(responses, weights.astype(np.float64)), np.zeros(weights.shape)
    for (a, b, c), shares, times in zip(responses.rows, p, responses.times, strict=True):
        for k in range(weights.shape[1]):
            scores = {a: (weights[b, k], weights[c, k], 0), b: (weights[a, k], 0, weights[c, k])}
            scores[c] = (0, weights[a, k], weights[b, k])
            for who, of in scores.items():
                mean = shares @ np.array(of)
                information[who, k] += times * (shares @ (np.array(of) - mean) ** 2)
    found = sparse_fit.standard_errors(responses, weights, 2.0)
    np.testing.assert_allclose(found, 1 / np.sqrt(information + 4.0), rtol=1e-5)


def test_the_same_fit_twice_is_the_same():
    rows = odd_one_out(np.random.default_rng(1), planted(0, n=12, d=3), 1000)
    three = np.arange(len(rows)) % 3 > 0
    responses = Responses(rows, three, np.ones(len(rows), np.float32), np.zeros(len(rows)), 12)
    made, again, other = (sparse_fit.fit(responses, 5, 1.0, seed) for seed in (0, 0, 1))
    assert np.array_equal(made.weights, again.weights) and not np.array_equal(made.weights, other.weights)


def test_planted_dimensions_come_back_and_empty_ones_are_dropped():
    true = planted(0, n=60, d=5)
    rows = odd_one_out(np.random.default_rng(1), true, 40_000)
    responses = Responses(rows, np.ones(len(rows), bool), np.ones(len(rows), np.float32), np.zeros(len(rows)), 60)
    made = sparse_fit.fit(responses, 20, 10.0, 0)
    assert (made.weights >= 0).all()
    r = np.corrcoef(true.T, made.weights.T)[:5, 5:].max(axis=1)
    assert made.weights.shape[1] <= 7 and (r > 0.9).all()
    objective = float(sparse_fit.losses(responses, made.weights).sum()) + 10.0 * float(made.weights.sum())
    assert made.objective == pytest.approx(objective, rel=1e-5)
    best = float(sparse_fit.losses(responses, true).sum())
    assert objective < best + 10.0 * float(true.sum())
