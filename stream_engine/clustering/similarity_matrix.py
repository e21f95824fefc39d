"""Symmetric similarity matrices, dense (n, n) float64 or scipy CSR, exactly symmetric, with a zero diagonal."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from stream_engine.data.symmetric_matrices import sparse_matrix


class Blocks(NamedTuple):
    """Sums of W over the clusters of a partition."""

    rows: np.ndarray  # (n, k): R[i, b] = sum of W[i, j] over j in cluster b
    sums: np.ndarray  # (k, k): B[a, b] = sum of R[i, b] over i in cluster a
    sizes: np.ndarray  # (k,) float64


MAX_MAGNITUDE = 1e120  # of an entry, so that sums of squares and the bounds' shifts stay finite


def checked(W) -> np.ndarray | sparse.csr_array:
    """W as float64, its diagonal set to zero. Sparse stays sparse. O(nnz).

    Raises ValueError when W is not square, not finite, not symmetric or beyond what float64 can square.

    >>> checked([[5, 1], [1, 5]]).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    if sparse.issparse(W):
        W = sparse.csr_array(W, dtype=np.float64)
        values, difference = W.data, abs(W - W.T)
        asymmetry = difference.max() if difference.nnz else 0.0
    else:
        W = np.array(W, dtype=np.float64)
        values, asymmetry = W, 0.0
    if W.ndim != 2 or W.shape[0] != W.shape[1]:
        raise ValueError(f"similarity: not a square matrix, got shape {W.shape}, expected (n, n)")
    if not np.isfinite(values).all():
        raise ValueError("similarity: has entries that are not finite numbers, expected all finite")
    largest = float(np.abs(values).max(initial=0.0))
    if largest and not 1 / MAX_MAGNITUDE <= largest <= MAX_MAGNITUDE:
        raise ValueError(
            f"similarity: its largest entry is {largest:.3g} in size, "
            f"expected {1 / MAX_MAGNITUDE:g} to {MAX_MAGNITUDE:g}: scale it"
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

    >>> from_triangle([0], [2], [7], 3)[2, 0]
    np.float64(7.0)
    """
    matrix = sparse_matrix(i, j, w, n, np.float64)
    return matrix.toarray() if n < 256 or matrix.nnz * 10 >= n * n else matrix


def blocks(W, labels: np.ndarray, k: int) -> Blocks:
    """Sums of W over clusters 0 .. k - 1. O(nnz + nk) sparse, O(n^2 k) dense.

    >>> blocks(np.array([[0., 2.], [2., 0.]]), np.array([0, 0]), 1).sums.tolist()
    [[4.0]]
    """
    n = len(labels)
    one_hot = sparse.csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, k))
    rows = (W @ one_hot).toarray() if sparse.issparse(W) else W @ one_hot.toarray()
    return Blocks(rows, one_hot.T @ rows, np.bincount(labels, minlength=k).astype(float))
