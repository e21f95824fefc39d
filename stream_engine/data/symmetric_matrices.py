"""A similarity's entries i, j, w (AddS as stored in a state) as a symmetric matrix, dense or sparse.

An entry is at (i, j) and at (j, i). All exports, predictors, clusterings and eigenvectors use this conversion.
"""

from typing import TYPE_CHECKING

import numpy as np

from stream_engine.data.compiled import njit, read_only

if TYPE_CHECKING:
    import scipy.sparse as sp

DENSE_LIMIT = 4096  # objects: an (n, n) matrix of 128 MB; above it similarities stay their entries i < j


def dense_matrix(i: np.ndarray, j: np.ndarray, w: np.ndarray, n_objects: int, dtype=None) -> np.ndarray:
    """(n, n) of w's type, or `dtype`; each pair is named once. O(n^2).

    >>> dense_matrix(np.array([0]), np.array([2]), np.array([5]), 3).tolist()
    [[0, 0, 5], [0, 0, 0], [5, 0, 0]]
    """
    matrix = np.zeros((n_objects, n_objects), w.dtype if dtype is None else dtype)
    matrix[i, j] = matrix[j, i] = w
    return matrix


def sparse_matrix(i: np.ndarray, j: np.ndarray, w: np.ndarray, n_objects: int, dtype=None) -> "sp.csr_array":
    """(n, n) scipy CSR array of w's type, or `dtype`, indices sorted; what names a pair again is added.

    Entries in order (i < j, rising, as an AddS state has them) are put where they belong: 24 bytes an entry and nothing
    beside the result; others are sorted and summed.

    >>> sparse_matrix(np.array([0]), np.array([2]), np.array([5]), 3).toarray().tolist()
    [[0, 0, 5], [0, 0, 0], [5, 0, 0]]
    """
    import scipy.sparse as sp  # not needed to count

    i, j, w = np.asarray(i), np.asarray(j), np.asarray(w)
    dtype, shape = w.dtype if dtype is None else np.dtype(dtype), (n_objects, n_objects)
    if not _in_order(i, j):
        i, j, w = i.astype(np.int64), j.astype(np.int64), w.astype(dtype)
        places = np.concatenate([i, j]), np.concatenate([j, i])
        return sp.csr_array((np.concatenate([w, w]), places), shape=shape)
    size = np.int32 if 2 * len(w) < 2**31 else np.int64
    indptr, indices, data = np.zeros(n_objects + 1, size), np.empty(2 * len(w), size), np.empty(2 * len(w), dtype)
    _mirror(read_only(i, np.int32), read_only(j, np.int32), read_only(w), indptr, indices, data)
    matrix = sp.csr_array((data, indices, indptr), shape=shape)
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix


def _in_order(i: np.ndarray, j: np.ndarray) -> bool:
    """Whether i < j everywhere and (i, j) increases strictly."""
    rises = (i[1:] > i[:-1]) | ((i[1:] == i[:-1]) & (j[1:] > j[:-1]))
    return bool((i < j).all() and rises.all())


@njit(cache=True, nogil=True)
def _mirror(i, j, w, indptr, indices, data):
    """Rows of a symmetric CSR matrix from its upper triangle in order: those of a row that lie left of the diagonal
    come by rising i, so columns rise. `indptr` holds n + 1 zeros."""
    for e in range(len(i)):
        indptr[i[e] + 1] += 1
        indptr[j[e] + 1] += 1
    for row in range(len(indptr) - 1):
        indptr[row + 1] += indptr[row]
    place = indptr[:-1].copy()
    for e in range(len(i)):  # left of the diagonal
        entry = place[j[e]]
        place[j[e]] = entry + 1
        indices[entry], data[entry] = i[e], w[e]
    for e in range(len(i)):  # right of it
        entry = place[i[e]]
        place[i[e]] = entry + 1
        indices[entry], data[entry] = j[e], w[e]
