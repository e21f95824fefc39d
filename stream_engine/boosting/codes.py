"""Triplets as columns of (anchor << 1 | side): what a triplet classifier h_jk predicts, two bytes an example."""

from typing import NamedTuple

import numpy as np

from stream_engine.boosting.labels import Groups
from stream_engine.data.compiled import njit
from stream_engine.data.triplet_columns import Columns


class Codes(NamedTuple):
    """Columns in order of (a, b): those of a are row[a]:row[a + 1], column p has the entries start[p]:start[p + 1].

    A column belongs to a pair of references a < b of different groups (numbered as in `labels.Groups`); an entry is an
    anchor that does not abstain on it: side 0 if it was more often nearer to a, side 1 if to b. With ties, #(x,j,k) =
    #(x,k,j), the classifier abstains. Invariant: within a reference's row the partners increase, so a column is found
    at once if every pair occurs, and otherwise by bisection over as many places as the row lacks. 2 bytes an entry up
    to 32,768 anchors, else 4; 6 or 8 bytes a pair (4 more from 2^32 entries on). Built in O(K + P log P).
    """

    first: np.ndarray  # (n,) int64: the first reference of a later group than a's; its partners are first[a] ... n - 1
    row: np.ndarray  # (n + 1,) int64
    partner: np.ndarray  # (P,) uint16 or uint32: b
    start: np.ndarray  # (P + 1,) uint32, int64 from 2^32 entries on
    code: np.ndarray  # (K,) uint16 or uint32: anchor << 1 | side

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self)


def code_dtype(n: int) -> type:
    """The dtype of codes over n anchors or references."""
    return np.uint16 if n <= 2**15 else np.uint32


def first_partner(groups: Groups) -> np.ndarray:
    """(n,) int64: where the next group starts, for every example."""
    return np.repeat(groups.start[1:], np.diff(groups.start))


def codes_from_columns(columns: Columns, groups: Groups, anchors: np.ndarray) -> Codes:
    """The columns whose two references are examples of different groups, with the given object ids as anchors 0, 1, ...

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> from stream_engine.boosting.labels import group, label_sets
    >>> columns = columns_from_triplets([[0, 1, 2], [3, 2, 1], [3, 2, 1], [3, 1, 2], [0, 1, 3]], 4)
    >>> c = codes_from_columns(columns, group(label_sets([0, 1, 0, 0], 4), [0, 1, 2, 3]), np.array([0, 3]))
    >>> c.row.tolist(), c.partner.tolist(), c.code.tolist()         # examples are 0, 2, 3 and 1: columns {2,1}, {3,1}
    ([0, 0, 1, 2, 2], [3, 3], [1, 2, 1])
    """
    n = len(groups.example)
    number = np.full(columns.n_objects, -1, np.int64)
    number[groups.example] = np.arange(n)
    place = np.full(columns.n_objects, -1, np.int64)
    place[anchors] = np.arange(len(anchors))
    first = first_partner(groups)
    key, count = _survey(columns, number, place, first)
    pairs = np.flatnonzero(count)
    pairs = pairs[np.argsort(key[pairs], kind="stable")]
    key, start = key[pairs], np.append(0, np.cumsum(count[pairs])).astype(np.int64)
    dtype = code_dtype(max(n, len(anchors)))
    code = np.empty(start[-1], dtype)
    _fill(columns, pairs, number, place, start, code)
    row = np.searchsorted(key, np.arange(n + 1) * n)
    start = start.astype(np.uint32 if len(code) < 2**32 else np.int64)
    return Codes(first, row.astype(np.int64), (key % max(n, 1)).astype(dtype), start, code)


@njit(cache=True)
def _survey(columns, number, place, first):
    """Of every pair: its key a * n + b, and how many entries it has (0: same group, not examples, all abstain)."""
    n, n_pairs = len(first), len(columns.lo)
    key, count = np.zeros(n_pairs, np.int64), np.zeros(n_pairs, np.int64)
    for p in range(n_pairs):
        a, b = number[columns.lo[p]], number[columns.hi[p]]
        if a < 0 or b < 0:
            continue
        a, b = min(a, b), max(a, b)
        if b < first[a]:
            continue
        key[p] = a * n + b
        for e in range(columns.start[p], columns.start[p + 1]):
            count[p] += place[columns.anchor[e]] >= 0 and columns.n_lo[e] != columns.n_hi[e]
    return key, count


@njit(cache=True)
def _fill(columns, pairs, number, place, start, code):
    """Write the entries of `pairs`; the side is swapped if the example numbers of a pair are in the opposite order."""
    for q in range(len(pairs)):
        p = pairs[q]
        is_swapped = number[columns.lo[p]] > number[columns.hi[p]]
        at = start[q]
        for e in range(columns.start[p], columns.start[p + 1]):
            x = place[columns.anchor[e]]
            if x >= 0 and columns.n_lo[e] != columns.n_hi[e]:
                code[at] = x << 1 | ((columns.n_lo[e] < columns.n_hi[e]) ^ is_swapped)
                at += 1


def bytes_needed(columns: Columns, n: int, n_anchors: int) -> int:
    """Upper bound of the memory of `codes_from_columns`, in bytes, from the counts alone."""
    width = np.dtype(code_dtype(max(n, n_anchors))).itemsize
    return len(columns.anchor) * width + len(columns.lo) * (6 * 8 + width) + 3 * 8 * columns.n_objects
