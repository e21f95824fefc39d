"""Eq. (2) in every round: label sums against Fractions of powers of two, however small."""

from fractions import Fraction

import numpy as np
import pytest

from stream_engine.boosting import rounds as boosting
from stream_engine.boosting.codes import codes_from_columns
from stream_engine.boosting.labels import group, label_sets
from stream_engine.data.triplet_columns import columns_from_triplets
from tests.support import generators

LEVELS = (0, -1, -2, -60, -499, -500, -501, -510, -520, -799, -800, -801, -1000, -3000)


def world(seed: int, n: int, n_labels: int):
    """A state whose weights are powers of two far apart and often equal, its columns, and the powers."""
    rng = np.random.default_rng(seed)
    columns = columns_from_triplets(generators.dense_batch(rng, n, 400, quadruplets=0.0).triplets, n)
    groups = group(label_sets(np.append(np.arange(n_labels), rng.integers(n_labels, size=n - n_labels)), n), range(n))
    codes = codes_from_columns(columns, groups, groups.example)
    state = boosting.start(groups, 0)
    few = rng.choice(LEVELS, 4)
    power = rng.choice(few, state.v.shape)
    power[rng.integers(n)] = 0
    state.lag[:] = power
    boosting._refresh(state)
    return state, codes, power, rng


def exactly(state, codes, power, j: int, k: int):
    """Eq. (2) for both sides and the alpha of eq. (3), in Fractions; side 0 is the smaller example number."""
    n, labels = power.shape
    w = [[Fraction(2) ** int(p) for p in row] for row in power]
    column = boosting.find(codes, min(j, k), max(j, k))
    code = codes.code[codes.start[column] : codes.start[column + 1]].tolist() if column >= 0 else []
    d = [[Fraction(0)] * labels for _ in (0, 1)]
    touched = Fraction(0)
    for each in code:
        for y in range(labels):
            d[each & 1][y] += w[each >> 1][y] * (1 if state.positive[each >> 1, y] else -1)
            touched += w[each >> 1][y]
    total, edge = sum(map(sum, w)), sum(abs(value) for row in d for value in row)
    ratio = edge / total / ((touched - edge) / 2 / total + Fraction(1, n))
    tied = any(value == 0 for row in d for value in row) and bool(code)
    return [[value > 0 for value in row] for row in d], 0.5 * np.log1p(float(ratio)), tied


def test_label_sums_are_eq_2s_however_small():
    """Worlds of weights from 1 to 2^-3000: each sum is compared with its own terms, and equal weights tie."""
    reached, deep = set(), 0
    for seed in range(60):
        state, codes, power, rng = world(seed, 8, 2 + seed % 2)
        for _ in range(12):
            j, k = rng.choice(8, 2, replace=False)
            if state.group[j] == state.group[k]:
                continue
            sets, alpha, tied = exactly(state, codes, power, j, k)
            copy = boosting.State(*(array.copy() for array in state))
            held = boosting.advance(copy, codes, 0, np.array([[j, k]]))
            reached.add((alpha > 0, tied))
            deep += 0 < alpha < 1e-140
            if alpha < 1e-290:
                continue  # beyond a float's reach, or none
            assert len(held.alpha) == 1 and held.alpha[0] == pytest.approx(alpha, rel=1e-12)
            ours = [np.unpackbits(o[0], count=power.shape[1], bitorder="little") for o in (held.o_j, held.o_k)]
            assert [row.astype(bool).tolist() for row in (ours if j < k else ours[::-1])] == sets
    assert {(True, True), (True, False)} <= reached and deep > 5


def test_many_strong_rounds_stay_within_the_drift():
    """Rounds of large alpha refresh before a weight can leave its band, whatever their number."""
    groups = group(label_sets([0, 1] * 3, 6), np.arange(6))
    triplets = [[x, a, b] for x in range(6) for a in range(6) for b in range(6) if len({x, a, b}) == 3]
    triplets = [t for t in triplets if t[0] % 2 == t[1] % 2 and t[1] % 2 != t[2] % 2]
    codes = codes_from_columns(columns_from_triplets(triplets, 6), groups, groups.example)
    state, rng, used = boosting.start(groups, 0), np.random.default_rng(0), 0.0
    for _ in range(100):
        pairs = np.stack([rng.integers(3, size=50), rng.integers(3, 6, size=50)], axis=1)
        held = boosting.advance(state, codes, 0, pairs)
        used += held.alpha.sum()
        weights = np.abs(state.v)[state.lag == 0]
        assert len(held.alpha) == 50 and weights.min() > 2.0 ** (boosting.MIN_LOG_WEIGHT - boosting.DRIFT)
        assert state.total[2] <= boosting.DRIFT * np.log(2.0)
    assert used > 5 * boosting.DRIFT and boosting.log_bound(state) < -500


def test_a_lead_of_rounding_errors_is_a_tie_and_a_tie_is_an_error():
    positive = np.array([[True, False, False]] * 5)
    lead = np.array(
        [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0 + 1e-12, 1.0, 0.0], [1.0 + 1e-6, 1.0, 0.0]]
    )
    assert [boosting.errors(lead[i : i + 1], positive[i : i + 1]) for i in range(5)] == [0.0, 1.0, 1.0, 1.0, 0.0]
    assert boosting.errors(lead, positive) == 0.6 and boosting.errors(lead[:0], positive[:0]) == 0.0
    assert boosting.errors(lead, np.ones((5, 3), bool)) == 0.0
