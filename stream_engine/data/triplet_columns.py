"""Triplet counts as columns of sign features: the common layout of kernels, boosting and the canonical order.

A *column* belongs to an unordered pair {lo, hi}, lo < hi; its entries are the anchors of questions about that pair, in
increasing order, with how often lo was nearer and how often hi was. It is at once McFee & Lanckriet's signed edge
counts, a column of k1's feature map (Kleindessner & von Luxburg 2017, eq. for Phi_k1) and a triplet classifier (Perrot
& von Luxburg 2019, sec. 2.1).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

COUNT_LIMIT = 1 << 30  # counts are int32 below it, so that the sum and difference of two fit; int64 from there on


class Columns(NamedTuple):
    """Column p is the pair (lo[p], hi[p]); its entries are the slice start[p]:start[p + 1] of the last three arrays.

    Pairs are sorted by (lo, hi), anchors increase within a column, and n_lo + n_hi > 0 everywhere.
    """

    lo: np.ndarray  # (P,) int32
    hi: np.ndarray  # (P,) int32
    start: np.ndarray  # (P + 1,) int64
    anchor: np.ndarray  # (K,) int32
    n_lo: np.ndarray  # (K,) int32, or int64 once a count reaches 2**30: times lo was nearer to the anchor than hi
    n_hi: np.ndarray  # (K,) the same dtype: times hi was
    n_objects: int


def canonical_counts(n_lo: np.ndarray, n_hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both counts in the one dtype that they are kept in: int32 if all are below 2**30, else int64. No copy if right.

    >>> [a.dtype.name for a in canonical_counts(np.array([1, 2]), np.array([0, COUNT_LIMIT]))]
    ['int64', 'int64']
    """
    largest = max(int(np.max(n_lo, initial=0)), int(np.max(n_hi, initial=0)))
    dtype = np.int32 if largest < COUNT_LIMIT else np.int64
    return n_lo.astype(dtype, copy=False), n_hi.astype(dtype, copy=False)


def handed_over(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Arrays that were made just now and that nobody else holds, read-only from here on: a snapshot need not copy them.

    Never for an array that something live still writes to; `snapshot.frozen` copies whatever is writable or a view.
    """
    for array in arrays.values():
        array.setflags(write=False)
    return arrays


def columns_from_rows(
    anchor: ArrayLike, lo: ArrayLike, hi: ArrayLike, n_lo: ArrayLike, n_hi: ArrayLike, n_objects: int
) -> Columns:
    """Columns from one row a key in any order (keys must be unique). O(K log K).

    >>> c = columns_from_rows([2, 0], [0, 1], [1, 2], [3, 1], [0, 1], 3)
    >>> c.lo.tolist(), c.hi.tolist(), c.start.tolist(), c.anchor.tolist(), c.n_lo.tolist()
    ([0, 1], [1, 2], [0, 1, 2], [2, 0], [3, 1])
    """
    lo, hi, anchor = (np.asarray(ids, np.int32) for ids in (lo, hi, anchor))
    order = np.lexsort((anchor, hi, lo))
    counts = canonical_counts(np.asarray(n_lo)[order], np.asarray(n_hi)[order])
    return columns_from_keys(lo[order], hi[order], anchor[order], counts[0], counts[1], n_objects)


def columns_from_keys(
    lo: np.ndarray, hi: np.ndarray, anchor: np.ndarray, n_lo: np.ndarray, n_hi: np.ndarray, n_objects: int
) -> Columns:
    """Columns from one row a key, keys sorted by (lo, hi, anchor) and unique; counts, or weights, as they are. O(K)."""
    begins = np.flatnonzero(first_of_equal(lo, hi))
    return Columns(lo[begins], hi[begins], np.append(begins, len(lo)).astype(np.int64), anchor, n_lo, n_hi, n_objects)


def first_of_equal(*columns: np.ndarray) -> np.ndarray:
    """(m,) bool: whether a row differs from the one before it, in rows that stand sorted.

    >>> first_of_equal(np.array([0, 0, 1]), np.array([5, 5, 5])).tolist()
    [True, False, True]
    """
    first = np.ones(len(columns[0]), bool)
    if len(first):
        first[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return first


def columns_from_triplets(triplets: np.ndarray, n_objects: int) -> Columns:
    """Columns straight from an (m, 3) array of anchor, near, far: for scripts, notebooks and tests. O(m log m).

    The counts come by sorting all comparisons at once, independently of the accumulator.

    >>> columns_from_triplets(np.array([[0, 1, 2], [0, 2, 1], [0, 1, 2]]), 3).n_lo.tolist()
    [2]
    """
    anchor, near, far = np.asarray(triplets, np.int64).reshape(-1, 3).T
    lo, hi = np.minimum(near, far), np.maximum(near, far)
    order = np.lexsort((anchor, hi, lo))
    anchor, lo, hi, nearer = anchor[order], lo[order], hi[order], (near < far)[order]
    begins = np.flatnonzero(first_of_equal(lo, hi, anchor))
    edges = np.append(begins, len(lo))
    n_lo = np.diff(np.cumsum(nearer)[edges[1:] - 1], prepend=0) if len(lo) else begins
    n_hi = np.diff(edges) - n_lo
    return columns_from_rows(anchor[begins], lo[begins], hi[begins], n_lo, n_hi, n_objects)


def state_of_columns(columns: Columns) -> dict[str, np.ndarray]:
    """The arrays of columns by name, as a snapshot holds triplet counts: all fields but `n_objects`."""
    return {
        "lo": columns.lo,
        "hi": columns.hi,
        "start": columns.start,
        "anchor": columns.anchor,
        "n_lo": columns.n_lo,
        "n_hi": columns.n_hi,
    }


def columns_of_state(state: Mapping[str, np.ndarray], n_objects: int) -> Columns:
    """The inverse of `state_of_columns`."""
    lo, hi, start, anchor, n_lo, n_hi = (state[name] for name in Columns._fields[:-1])
    return Columns(lo, hi, start, anchor, n_lo, n_hi, n_objects)


def pair_of_entry(columns: Columns) -> np.ndarray:
    """(K,) int64: the column number of every entry."""
    return np.repeat(np.arange(len(columns.lo)), np.diff(columns.start))


def by_anchor(columns: Columns) -> np.ndarray:
    """(K,) int64: the entries in the order of anchor, lo, hi. O(K).

    >>> by_anchor(columns_from_triplets(np.array([[3, 0, 1], [2, 0, 1], [2, 3, 0]]), 4)).tolist()
    [0, 2, 1]
    """
    small = columns.n_objects <= 1 << 16  # NumPy sorts so short numbers by their digits; columns stand by lo and hi
    return np.argsort(columns.anchor.astype(np.uint16) if small else columns.anchor, kind="stable")


def net_vote(n_lo: np.ndarray, n_hi: np.ndarray) -> np.ndarray:
    """(K,) by how many answers lo was nearer rather than hi: the sign is the direction of the majority, 0 is a tie.

    In the type of the counts, which has room for the difference (`COUNT_LIMIT`).
    """
    return n_lo - n_hi


def net_triplets(columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """`((m, 3) int32 anchor, near, far; (m,) votes)`: the majority's direction of every key and by how many votes, in
    the type of the counts; ties are excluded. O(K).

    >>> net_triplets(columns_from_triplets(np.array([[0, 1, 2], [0, 2, 1], [1, 2, 0]]), 3))[0].tolist()
    [[1, 2, 0]]
    """
    net, pair = net_vote(columns.n_lo, columns.n_hi), pair_of_entry(columns)
    is_decided = net != 0
    net, anchor, lo, hi = (
        net[is_decided],
        columns.anchor[is_decided],
        columns.lo[pair[is_decided]],
        columns.hi[pair[is_decided]],
    )
    triplets = np.stack([anchor, np.where(net > 0, lo, hi), np.where(net > 0, hi, lo)], axis=1).astype(np.int32)
    return triplets, np.abs(net)
