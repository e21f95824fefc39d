"""Triplets as the boosting paper draws them: every (x, {j, k}) is there with one probability, wrong with another."""

import numpy as np
from numba import njit

from stream_engine.columns import Columns


def sampled_columns(distances: np.ndarray, share: float, noise: float = 0.0, seed: int = 0) -> Columns:
    """Columns over m objects of which the first n are references, from an (m, n) distance matrix.

    Each of the possible triplets (anchor x, references j < k, both different from x) is there with probability `share`
    and turned round with probability `noise` (Perrot & von Luxburg 2019, sec. 4). O(triplets + pairs).

    >>> c = sampled_columns(np.abs(np.arange(4)[:, None] - np.arange(3)), 1.0)
    >>> c.lo.tolist(), c.hi.tolist(), c.anchor.tolist(), c.n_lo.tolist()
    ([0, 0, 1], [1, 2, 2], [2, 3, 1, 3, 0, 3], [0, 0, 0, 0, 1, 0])
    """
    m, n = distances.shape
    room = int(share * m * n * (n - 1) / 2 * 1.02) + 10 * m + 1000
    lo, hi, start, anchor, near_lo, size = _sampled(np.asarray(distances), share, noise, seed, room)
    near_lo = near_lo[:size]
    return Columns(lo, hi, start, anchor[:size], near_lo, 1 - near_lo, m)


@njit(cache=True)
def _sampled(distances, share, noise, seed, room):
    np.random.seed(seed)
    m, n = distances.shape
    pairs = n * (n - 1) // 2
    lo, hi, start = np.empty(pairs, np.int32), np.empty(pairs, np.int32), np.zeros(pairs + 1, np.int64)
    anchor, near_lo = np.empty(room, np.int32), np.empty(room, np.uint8)
    p = size = 0
    for j in range(n):
        for k in range(j + 1, n):
            x = -1
            while True:
                # the gap to the next triplet that is there is geometric
                x += 1 if share >= 1 else 1 + int(np.log(1.0 - np.random.random()) / np.log1p(-share))
                if x >= m:
                    break
                if x != j and x != k:
                    anchor[size] = x
                    near_lo[size] = (distances[x, j] < distances[x, k]) != (np.random.random() < noise)
                    size += 1
            lo[p], hi[p], start[p + 1] = j, k, size
            p += 1
    return lo, hi, start, anchor, near_lo, size
