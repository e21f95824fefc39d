"""Figure 1 of Kleindessner & von Luxburg 2017: the similarity scores it states for k1 and for k2.

The figure's points are drawn, not listed. POINTS is one configuration in the plane with everything that the caption
says (found by search): both rankings, all three Kendall's tau and all three counts for k2. The figure compares complete
rankings, in which an object also ranks itself; collections of triplets have three distinct objects, so the last tests
say exactly what is left when those comparisons are taken away.
"""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from stream_engine.counts import kernels
from stream_engine.data.triplet_columns import Columns, columns_from_rows, columns_from_triplets

POINTS = np.array(
    [(5.48, 1.66), (1.24, 3.44), (1.36, 0.4), (3.44, -2.94), (-1.94, 0.04), (-2.23, 2.74), (-4.34, -2.87)]
)
D = np.linalg.norm(POINTS[:, None] - POINTS, axis=2)
TAU = {(0, 1): Fraction(1, 3), (0, 6): Fraction(-5, 7), (1, 6): Fraction(-3, 7)}
SAME_BALLS = {(0, 1): Fraction(15, 49), (0, 6): Fraction(3, 49), (1, 6): Fraction(1, 49)}


def all_triplets() -> Columns:
    return columns_from_triplets(
        np.array(
            [
                (a, *sorted((b, c), key=lambda x: D[a, x]))
                for a in range(7)
                for b, c in combinations(set(range(7)) - {a}, 2)
            ]
        ),
        7,
    )


def test_the_configuration_is_the_caption_s():
    assert (D[0].argsort() + 1).tolist() == [1, 3, 2, 4, 5, 6, 7]
    assert (D[1].argsort() + 1).tolist() == [2, 3, 6, 1, 5, 4, 7]


@pytest.mark.parametrize("a,b", TAU)
def test_k1_of_complete_rankings_is_kendalls_tau(a, b):
    keys = [(x, i, j) for x in range(7) for i, j in combinations(range(7), 2)]
    nearer = [int(D[x, i] < D[x, j]) for x, i, j in keys]
    anchor, lo, hi = zip(*keys)
    complete = columns_from_rows(anchor, lo, hi, nearer, [1 - n for n in nearer], 7)
    assert kernels.k1(complete)[a, b] == pytest.approx(float(TAU[a, b]), abs=1e-15)


@pytest.mark.parametrize("a,b", TAU)
def test_k1_of_triplets_compares_the_pairs_that_both_can_rank(a, b):
    others = sorted(set(range(7)) - {a, b})
    agree = sum(1 if (D[a, i] < D[a, j]) == (D[b, i] < D[b, j]) else -1 for i, j in combinations(others, 2))
    # Each anchor has C(6, 2) = 15 triplets; the C(5, 2) = 10 pairs without a and b are common.
    assert kernels.k1(all_triplets())[a, b] == pytest.approx(agree / 15, abs=1e-15)
    if (a, b) == (0, 1):  # by hand from the two rankings: 7 of the 10 pairs agree
        assert agree == 4


def same_answers(a: int, b: int, pairs) -> int:
    return sum(1 if (D[i, a] < D[i, j]) == (D[i, b] < D[i, j]) else -1 for i, j in pairs)


@pytest.mark.parametrize("a,b", SAME_BALLS)
def test_k2_is_the_caption_s_count_over_three_distinct_objects(a, b):
    pairs = [(i, j) for i in range(7) for j in range(7)]
    assert Fraction(same_answers(a, b, pairs), 49) == SAME_BALLS[a, b]
    proper = [(i, j) for i, j in pairs if i != j and not {i, j} & {a, b}]
    # An object is near or far in 6 * 5 = 30 triplets, hence features of length sqrt(30).
    assert kernels.k2(all_triplets())[a, b] == pytest.approx(same_answers(a, b, proper) / 30, abs=1e-15)
