"""Eigenvectors of K = Phi Phi^T with few feature columns, from the (C, C) matrix Phi^T Phi.

A landmark design asks n objects about C = |L| (|L| - 1) / 2 pairs of landmarks (Kleindessner & von Luxburg 2017, sec.
2.3 and 2.4). Phi is sparse and read in blocks of rows; nothing of size n C is ever made.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from stream_engine.counts.gram_matrices import STRIP
from stream_engine.data.compiled import njit, read_only

if TYPE_CHECKING:
    import scipy.sparse as sp

BLAS_GAIN = 16  # one product in BLAS costs as much as a sixteenth of one that is scattered


@njit(cache=True, nogil=True)
def _by_rows(start, object, value, place, first, size, row, column, data):
    """Entries of the objects first .. first + size - 1, by row: `row` (size + 1,) is where each begins, columns
    increase. `place` (C,) says where each column goes on. With empty `column` only `row` is made, and no place
    moves."""
    if len(column) == 0:
        row[:] = 0
        for c in range(len(place)):
            entry = place[c]
            while entry < start[c + 1] and object[entry] < first + size:
                row[object[entry] - first + 1] += 1
                entry += 1
        for r in range(size):
            row[r + 1] += row[r]
        return
    free = row[:-1].copy()
    for c in range(len(place)):
        entry = place[c]
        while entry < start[c + 1] and object[entry] < first + size:
            to = free[object[entry] - first]
            free[object[entry] - first] = to + 1
            column[to], data[to] = c, value[entry]
            entry += 1
        place[c] = entry


@njit(cache=True, nogil=True)
def _add_products(row, column, data, gram):
    """Add the products of all pairs of entries of every row to the lower triangle."""
    for r in range(len(row) - 1):
        for x in range(row[r], row[r + 1]):
            v, line = data[x], gram[column[x]]
            for y in range(row[r], x + 1):
                line[column[y]] += v * data[y]


@njit(cache=True, nogil=True)
def _multiply(row, column, data, right, shift, result):
    """result = block @ right - shift."""
    sums = np.empty(right.shape[1])
    for r in range(len(row) - 1):
        sums[:] = 0.0
        for x in range(row[r], row[r + 1]):
            v, line = data[x], right[column[x]]
            for k in range(len(sums)):
                sums[k] += v * line[k]
        result[r] = sums - shift


def _blocks(phi: "sp.csc_array") -> Iterator[tuple[slice, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """`(rows, (row, column, data))` for blocks of rows, together all of Phi; as many rows as a strip has room for."""
    if not phi.has_sorted_indices:
        phi = phi.sorted_indices()
    n, width = phi.shape
    arrays = read_only(phi.indptr, np.int64), read_only(phi.indices), read_only(phi.data, np.float64)
    place, tall = arrays[0][:-1].copy(), max(STRIP // (8 * max(width, 1)), 256)
    none = np.empty(0, np.int32), np.empty(0)
    for first in range(0, n, tall):
        size = min(tall, n - first)
        row = np.zeros(size + 1, np.int64)
        _by_rows(*arrays, place, first, size, row, *none)
        column, data = np.empty(row[-1], np.int32), np.empty(row[-1])
        if row[-1]:
            _by_rows(*arrays, place, first, size, row, column, data)
        yield slice(first, first + size), (row, column, data)


def column_gram(phi: "sp.csc_array") -> np.ndarray:
    """Phi^T Phi, (C, C) float64, of sparse columns (n, C). O(sum of squared row sizes), or O(n C^2) in BLAS where that
    is less; memory C^2 and one strip.

    >>> from scipy import sparse as sp
    >>> column_gram(sp.csc_array([[1.0, 2.0], [0.0, 1.0]])).tolist()
    [[1.0, 2.0], [2.0, 5.0]]
    """
    from scipy.sparse import csr_array

    width = phi.shape[1]
    gram = np.zeros((width, width))
    for _, (row, column, data) in _blocks(phi):
        sizes = np.diff(row)
        if BLAS_GAIN * int(sizes @ sizes) < len(sizes) * width * width:
            _add_products(row, column, data, gram)
        else:
            strip = csr_array((data, column, row), shape=(len(sizes), width)).toarray()
            gram += np.tril(strip.T @ strip)
    gram += np.tril(gram, -1).T
    return gram


def projected(phi: "sp.csc_array", right: np.ndarray, mean: np.ndarray | None = None, dtype=np.float64) -> np.ndarray:
    """(Phi - 1 mean^T) right, (n, k) of `dtype`, summed in float64. O(nonzeros k), memory the result.

    >>> from scipy import sparse as sp
    >>> projected(sp.csc_array([[1.0, 2.0], [0.0, 1.0]]), np.array([[1.0], [1.0]]), np.array([0.5, 1.5])).tolist()
    [[1.0], [-1.0]]
    """
    right = np.ascontiguousarray(right, np.float64)
    shift = np.zeros(right.shape[1]) if mean is None else mean @ right
    result = np.empty((phi.shape[0], right.shape[1]), dtype)
    for rows, entries in _blocks(phi):
        _multiply(*entries, right, shift, result[rows])
    return result
