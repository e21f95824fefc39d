"""k2 of a landmark design: a few landmarks as anchors, every object compared with landmarks (`kernels` has k1's).

The design asks d(j, i) < d(j, k) with j, k landmarks and i any object (Kleindessner & von Luxburg 2017, sec. 2.3). Phi
is the paper's adapted map, n by |L|^2: column (j, k) says how i compares with landmark k, seen from j.
"""

from typing import TYPE_CHECKING

import numpy as np

from stream_engine.counts import gram_matrices, kernels
from stream_engine.counts.kernels import LANDMARK_SHARE
from stream_engine.data.compiled import njit, read_only
from stream_engine.data.triplet_columns import Columns

if TYPE_CHECKING:
    import scipy.sparse as sp

MIN_ASKED_SHARE = 0.75  # of all pairs (anchor, landmark), at least so many were asked about


# Of two objects that are not landmarks it gives k2 itself; what landmarks say of each other through an ordinary object
# is excluded (columns (j, i), a few entries each, up to |L| n of them).
def landmarks2(columns: Columns) -> np.ndarray:
    """The landmark objects (int32, increasing) of a landmark design for k2, or none when it is not one.

    All anchors are landmarks, at most a quarter of all objects; every question is about a landmark; and of the |L| (|L|
    - 1) pairs (anchor, landmark) at most a quarter is missing. O(keys).

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> rows = [[1, x, 2] for x in (0, 3, 4, 5)] + [[2, x, 1] for x in (0, 6, 7)]
    >>> landmarks2(columns_from_triplets(np.array(rows), 8)).tolist()
    [1, 2]
    """
    nobody = np.empty(0, np.int32)
    anchors = np.unique(columns.anchor).astype(np.int32)
    if not 2 <= len(anchors) <= LANDMARK_SHARE * columns.n_objects:
        return nobody
    rank = _ranks(anchors, columns.n_objects)
    if ((rank[columns.lo] < 0) & (rank[columns.hi] < 0)).any():
        return nobody
    start, anchor, lo, hi = _read(columns)
    size = _sizes(start, anchor, lo, hi, rank, len(anchors))
    return anchors if np.count_nonzero(size) >= MIN_ASKED_SHARE * len(anchors) * (len(anchors) - 1) else nobody


def features2(columns: Columns, marks: np.ndarray) -> "sp.csc_array":
    """The adapted Phi of k2, (n, columns (anchor, landmark) seen), rows of length 1 or 0, over the landmarks `marks`
    (increasing; all anchors must be among them). O(keys), 12 bytes an entry.

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> columns = columns_from_triplets(np.array([[0, 2, 1], [0, 1, 3], [1, 2, 0]]), 4)
    >>> features2(columns, np.array([0, 1])).toarray().round(3).tolist()
    [[0.0, 0.0], [0.0, 0.0], [0.707, 0.707], [-1.0, 0.0]]
    """
    rank = _ranks(marks, columns.n_objects)
    if len(columns.anchor) and rank[columns.anchor].min() < 0:
        raise ValueError(
            f"features2 - landmarks - got an anchor that is none of the {len(marks)} - expected a landmark design for "
            "k2 - use kernels.features2"
        )
    at, anchor, lo, hi = _read(columns)
    size = _sizes(at, anchor, lo, hi, rank, len(marks))
    start = np.append(0, np.cumsum(size))
    objects, value = np.empty(start[-1], np.int32), np.empty(start[-1])
    _fill(at, anchor, lo, hi, kernels.votes(columns), rank, len(marks), start[:-1].copy(), objects, value)
    there = np.flatnonzero(size)
    begins = np.append(start[there], start[-1])
    return kernels.factor(gram_matrices.features(begins, objects, value, columns.n_objects))


def _ranks(marks: np.ndarray, n: int) -> np.ndarray:
    rank = np.full(n, -1, np.int32)
    rank[marks] = np.arange(len(marks), dtype=np.int32)
    return rank


def _read(columns: Columns) -> tuple[np.ndarray, ...]:
    start, anchor = read_only(columns.start, np.int64), read_only(columns.anchor, np.int32)
    return start, anchor, read_only(columns.lo, np.int32), read_only(columns.hi, np.int32)


@njit(cache=True, nogil=True)
def _sizes(start, anchor, lo, hi, rank, marks):
    """(marks^2,) how many objects the column (anchor, landmark) lists."""
    size = np.zeros(marks * marks, np.int64)
    for p in range(len(lo)):
        for e in range(start[p], start[p + 1]):
            if rank[hi[p]] >= 0:
                size[rank[anchor[e]] * marks + rank[hi[p]]] += 1
            if rank[lo[p]] >= 0:
                size[rank[anchor[e]] * marks + rank[lo[p]]] += 1
    return size


@njit(cache=True, nogil=True)
def _fill(start, anchor, lo, hi, votes, rank, marks, place, object, value):
    """Pairs come by (lo, hi): of a column (j, k) first the objects below k, rising, as `lo`, then those above as
    `hi`."""
    for p in range(len(lo)):
        for e in range(start[p], start[p + 1]):
            if rank[hi[p]] >= 0:
                column = rank[anchor[e]] * marks + rank[hi[p]]
                object[place[column]], value[place[column]] = lo[p], votes[e]
                place[column] += 1
            if rank[lo[p]] >= 0:
                column = rank[anchor[e]] * marks + rank[lo[p]]
                object[place[column]], value[place[column]] = hi[p], -votes[e]
                place[column] += 1
