"""Triplet counts as columns of sign features: the one layout that kernels, boosting and the canonical order share.

A *column* belongs to an unordered pair {lo, hi}, lo < hi; its entries are the anchors that were asked about that pair,
in increasing order, with how often lo was nearer and how often hi was. It is at once McFee & Lanckriet's signed edge
counts, a column of k1's feature map (Kleindessner & von Luxburg 2017, eq. for Phi_k1) and a triplet classifier
(Perrot & von Luxburg 2019, sec. 2.1).
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

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


def summary(counts: "Columns | Mapping[str, np.ndarray]") -> dict[str, int]:
    """`triplets`, `unique_triplets` (distinct directed ones), `contradicting_pairs` (keys seen in both directions) and
    `contradicting_triplets` (sum of the smaller of the two counts), of columns or of the state of triplet counts. O(K).

    >>> summary(columns_from_triplets(np.array([[0, 1, 2], [0, 2, 1], [0, 1, 2], [1, 0, 2]]), 3))
    {'triplets': 4, 'unique_triplets': 3, 'contradicting_pairs': 1, 'contradicting_triplets': 1}
    """
    n_lo, n_hi = (counts["n_lo"], counts["n_hi"]) if isinstance(counts, Mapping) else (counts.n_lo, counts.n_hi)
    both = (n_lo > 0) & (n_hi > 0)
    return {
        "triplets": int(n_lo.sum(dtype=np.int64) + n_hi.sum(dtype=np.int64)),
        "unique_triplets": int(np.count_nonzero(n_lo) + np.count_nonzero(n_hi)),
        "contradicting_pairs": int(np.count_nonzero(both)),
        "contradicting_triplets": int(np.minimum(n_lo, n_hi).sum(dtype=np.int64)),
    }


def columns_from_rows(anchor, lo, hi, n_lo, n_hi, n_objects: int) -> Columns:
    """Columns from one row a key in any order (keys must be unique). O(K log K).

    >>> c = columns_from_rows([2, 0], [0, 1], [1, 2], [3, 1], [0, 1], 3)
    >>> c.lo.tolist(), c.hi.tolist(), c.start.tolist(), c.anchor.tolist(), c.n_lo.tolist()
    ([0, 1], [1, 2], [0, 1, 2], [2, 0], [3, 1])
    """
    anchor, lo, hi = (np.asarray(a, np.int32) for a in (anchor, lo, hi))
    order = np.lexsort((anchor, hi, lo))
    anchor, lo, hi = anchor[order], lo[order], hi[order]
    n_lo, n_hi = canonical_counts(np.asarray(n_lo)[order], np.asarray(n_hi)[order])
    first = np.ones(len(lo), bool)
    first[1:] = (lo[1:] != lo[:-1]) | (hi[1:] != hi[:-1])
    at = np.flatnonzero(first)
    return Columns(lo[at], hi[at], np.append(at, len(lo)).astype(np.int64), anchor, n_lo, n_hi, n_objects)


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
    first = np.ones(len(lo), bool)
    first[1:] = (lo[1:] != lo[:-1]) | (hi[1:] != hi[:-1]) | (anchor[1:] != anchor[:-1])
    at = np.flatnonzero(first)
    n_lo = np.diff(np.cumsum(nearer)[np.append(at[1:], len(lo)) - 1], prepend=0) if len(lo) else at
    n_hi = np.diff(np.append(at, len(lo))) - n_lo
    return columns_from_rows(anchor[at], lo[at], hi[at], n_lo, n_hi, n_objects)


def pair_of_entry(columns: Columns) -> np.ndarray:
    """(K,) int64: the column number of every entry."""
    return np.repeat(np.arange(len(columns.lo)), np.diff(columns.start))
