"""Triplets as the boosting paper draws them: every (x, {j, k}) is there with one probability, wrong with another."""

import numpy as np
from numba import njit

from stream_engine.boosting.codes import Codes, code_dtype, first_partner
from stream_engine.boosting.labels import Groups
from stream_engine.data.triplet_columns import Columns


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


def sampled_codes(
    distances: np.ndarray, groups: Groups, share: float, noise: float = 0.0, seed: int = 0, own: bool = False
) -> Codes:
    """The same, laid out for boosting at once: two bytes a triplet where counts would take ten.

    distances (n, m): from the examples, in the order of `groups`, to the anchors; `own`: the anchors are the examples.
    Triplets whose references are of one group are no triplet classifier's, and are not drawn. O(triplets + pairs).

    >>> from stream_engine.boosting.labels import group, label_sets
    >>> c = sampled_codes(np.array([[0., 1.], [1., 0.]]), group(label_sets([0, 1], 2), np.arange(2)), 1.0)
    >>> c.partner.tolist(), c.start.tolist(), c.code.tolist()
    ([1], [0, 2], [0, 3])
    """
    n, m = distances.shape
    first = first_partner(groups)
    row = np.append(0, np.cumsum(n - first))
    dtype = code_dtype(max(n, m))
    partner = np.concatenate([np.arange(a, n, dtype=dtype) for a in first])
    code = np.empty(int(share * m * row[-1] * 1.01) + 10 * m + 1000, dtype)
    start = np.zeros(row[-1] + 1, np.int64)
    size = _coded(np.ascontiguousarray(distances), first, share, noise, seed, own, start, code)
    return Codes(first, row, partner, start.astype(np.uint32 if size < 2**32 else np.int64), code[:size])


@njit(cache=True)
def _coded(distances, first, share, noise, seed, own, start, code):
    np.random.seed(seed)
    n, m = distances.shape
    p = size = 0
    for a in range(n):
        for b in range(first[a], n):
            x = -1
            while True:
                x += 1 if share >= 1 else 1 + int(np.log(1.0 - np.random.random()) / np.log1p(-share))
                if x >= m:
                    break
                if not (own and x in (a, b)):
                    far = (distances[a, x] >= distances[b, x]) != (noise > 0 and np.random.random() < noise)
                    code[size] = x << 1 | far
                    size += 1
            start[p + 1] = size
            p += 1
    return size
