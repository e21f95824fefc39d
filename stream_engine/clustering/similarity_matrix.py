"""Symmetric similarity matrices, dense or sparse, behind the few products that clustering needs.

A similarity is either an (n, n) float64 array or a scipy CSR array, exactly symmetric, with a zero diagonal. P denotes
the projection I - 1 1'/n: the vector of ones carries no information about clusters (every feasible X maps it to
itself), and it must be deflated in every partial eigensolver.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from stream_engine.data.compiled import njit
from stream_engine.statistics.gram_matrices import read_only

LARGEST = 1e120  # magnitude of an entry: sums of squares and the bounds' shifts stay finite


class Blocks(NamedTuple):
    """Sums of W over the clusters of a partition."""

    rows: np.ndarray  # (n, k): R[i, b] = sum of W[i, j] over j in cluster b
    sums: np.ndarray  # (k, k): B[a, b] = sum of R[i, b] over i in cluster a
    sizes: np.ndarray  # (k,) float64


def checked(W) -> np.ndarray | sparse.csr_array:
    """W as float64, its diagonal set to zero. Sparse stays sparse. O(nnz).

    Raises ValueError when W is not square, not finite, not symmetric or beyond what float64 can square.

    >>> checked([[5, 1], [1, 5]]).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    if sparse.issparse(W):
        W = sparse.csr_array(W, dtype=np.float64)
        values, flipped = W.data, abs(W - W.T)
        asymmetry = flipped.max() if flipped.nnz else 0.0
    else:
        W = np.array(W, dtype=np.float64)
        values, asymmetry = W, 0.0
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise ValueError(f"similarity: not a square matrix, got shape {W.shape}, expected (n, n)")
    if not np.isfinite(values).all():
        raise ValueError("similarity: has entries that are not finite numbers, expected all finite")
    largest = float(np.abs(values).max(initial=0.0))
    if largest and not 1 / LARGEST <= largest <= LARGEST:
        raise ValueError(
            f"similarity: its largest entry is {largest:.3g} in size, expected {1 / LARGEST:g} to {LARGEST:g}: scale it"
        )
    if not sparse.issparse(W):
        asymmetry = np.abs(W - W.T).max(initial=0.0)
    if asymmetry > 1e-9 * max(1.0, largest):
        raise ValueError(f"similarity: not symmetric, W and W' differ by {asymmetry:.3g}; pass (W + W') / 2 if meant")
    return _zero_diagonal(W)


def _zero_diagonal(W):
    if sparse.issparse(W):
        W = sparse.csr_array(W - sparse.diags_array(W.diagonal(), format="csr")) if W.diagonal().any() else W
        W.eliminate_zeros()
        return W
    np.fill_diagonal(W, 0.0)
    return W


def from_triangle(i, j, w, n: int) -> np.ndarray | sparse.csr_array:
    """The symmetric matrix with entries w at (i, j) and (j, i): dense when at least a tenth of it is filled.

    Entries in order, as an AddS state has them, are put where they belong: 24 bytes an entry and nothing beside the result;
    others are sorted and summed.

    >>> from_triangle([0], [2], [7], 3)[2, 0]
    np.float64(7.0)
    """
    i, j, w = np.asarray(i), np.asarray(j), np.asarray(w)
    if n >= 256 and len(w) * 20 < n * n and _in_order(read_only(i, np.int32), read_only(j, np.int32)):
        return _mirrored(i, j, w, n)
    i, j, w = i.astype(np.int64), j.astype(np.int64), w.astype(np.float64)
    both = sparse.csr_array((np.concatenate([w, w]), (np.concatenate([i, j]), np.concatenate([j, i]))), shape=(n, n))
    return both.toarray() if n < 256 or both.nnz * 10 >= n * n else both


def _mirrored(i, j, w, n: int) -> sparse.csr_array:
    size = np.int32 if 2 * len(w) < 2**31 else np.int64
    indptr, indices, data = np.zeros(n + 1, size), np.empty(2 * len(w), size), np.empty(2 * len(w))
    _mirror(read_only(i, np.int32), read_only(j, np.int32), read_only(w), indptr, indices, data)
    made = sparse.csr_array((data, indices, indptr), shape=(n, n))
    made.has_sorted_indices = made.has_canonical_format = True
    return made


@njit(cache=True, nogil=True)
def _in_order(i, j):
    """Whether i < j everywhere and (i, j) increases strictly."""
    for e in range(len(i)):
        if i[e] >= j[e] or (e > 0 and (i[e] < i[e - 1] or (i[e] == i[e - 1] and j[e] <= j[e - 1]))):
            return False
    return True


@njit(cache=True, nogil=True)
def _mirror(i, j, w, indptr, indices, data):
    """Rows of a symmetric CSR matrix from its upper triangle in order: those of a row that lie left of the diagonal come by
    rising i, so columns rise. `indptr` holds n + 1 zeros."""
    for e in range(len(i)):
        indptr[i[e] + 1] += 1
        indptr[j[e] + 1] += 1
    for row in range(len(indptr) - 1):
        indptr[row + 1] += indptr[row]
    place = indptr[:-1].copy()
    for e in range(len(i)):  # left of the diagonal
        at = place[j[e]]
        place[j[e]] = at + 1
        indices[at], data[at] = i[e], w[e]
    for e in range(len(i)):  # right of it
        at = place[i[e]]
        place[i[e]] = at + 1
        indices[at], data[at] = j[e], w[e]


def inner(W, X: np.ndarray) -> float:
    """<W, X> for a dense X."""
    return float(W.multiply(X).sum()) if sparse.issparse(W) else float(np.vdot(W, X))


def blocks(W, labels: np.ndarray, k: int) -> Blocks:
    """Sums of W over clusters 0 .. k - 1. O(nnz + nk) sparse, O(n^2 k) dense.

    >>> blocks(np.array([[0., 2.], [2., 0.]]), np.array([0, 0]), 1).sums.tolist()
    [[4.0]]
    """
    n = len(labels)
    one_hot = sparse.csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, k))
    rows = (W @ one_hot).toarray() if sparse.issparse(W) else W @ one_hot.toarray()
    return Blocks(rows, one_hot.T @ rows, np.bincount(labels, minlength=k).astype(float))
