"""AddS-3 of triplets that stand in arrays, each with its weight: sums by pair of objects.

    W_ij = sum over triplets of weight ([{anchor, near} = {i, j}] - [{anchor, far} = {i, j}])     (Perrot et al. 2020,
    sec. 4)

For what the accumulators do not hold summed already: a window, votes weighted by their workers, the answers to all
other questions. O(m log m); whole weights give whole sums.
"""

from typing import NamedTuple

import numpy as np


class PairSums(NamedTuple):
    """The pairs {i, j} that the triplets name, as codes i n + j with i < j in increasing order, and the sum of each."""

    pair: np.ndarray  # (p,) int64
    w: np.ndarray  # (p,) int64 of whole weights, else float64
    near: np.ndarray  # (m,) int64: the entry of each triplet's near pair
    far: np.ndarray  # (m,) int64: of its far pair


def pair_sums(anchor: np.ndarray, near: np.ndarray, far: np.ndarray, weight: np.ndarray, n_objects: int) -> PairSums:
    """The sums, nonzero or not. O(m log m), or O(m) where there are n^2 triplets or more."""
    ends = np.concatenate([anchor, anchor]).astype(np.int64), np.concatenate([near, far]).astype(np.int64)
    code = np.minimum(*ends) * n_objects + np.maximum(*ends)
    pair, entry = _numbered(code, n_objects * n_objects)
    w = np.bincount(entry, np.concatenate([weight, -weight]), len(pair))
    if np.issubdtype(weight.dtype, np.integer):
        w = np.rint(w).astype(np.int64)
    return PairSums(pair, w, entry[: len(anchor)], entry[len(anchor) :])


def _numbered(code: np.ndarray, codes: int) -> tuple[np.ndarray, np.ndarray]:
    """`np.unique(code, return_inverse=True)` of codes below `codes`; by a table where there are at least as many."""
    if codes > len(code):
        return np.unique(code, return_inverse=True)
    there = np.zeros(codes, bool)
    there[code] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[code]


def adds3(
    anchor: np.ndarray, near: np.ndarray, far: np.ndarray, weight: np.ndarray, n_objects: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """i, j (int32, i < j, in order) and w: the nonzero entries.

    >>> [column.tolist() for column in adds3(*np.array([[0, 1, 2], [1, 0, 2]]).T, np.array([1, 1]), 3)]
    [[0, 0, 1], [1, 2, 2], [2, -1, -1]]
    """
    sums = pair_sums(anchor, near, far, weight, n_objects)
    keep, n = sums.w != 0, max(n_objects, 1)
    return (sums.pair[keep] // n).astype(np.int32), (sums.pair[keep] % n).astype(np.int32), sums.w[keep]
