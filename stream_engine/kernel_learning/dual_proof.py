"""Smallest eigenvalues by Lanczos, and the proof by Cholesky factors that a dual point is feasible."""

import inspect

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.sparse.linalg import ArpackError, eigsh

from stream_engine.kernel_learning import pair_lists
from stream_engine.kernel_learning.pair_lists import PairLists
from stream_engine.kernel_learning.problem import Problem

DENSE_UP_TO = 64  # rows of a matrix up to which all eigenvalues are computed
RESTARTS = (
    {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}
)  # without, Lanczos is unseeded since scipy 1.17


def smallest_eigenvalues(matrix, count: int, precision: float = 1e-6) -> tuple[np.ndarray, np.ndarray]:
    """`(values, vectors)` of the `count` smallest eigenvalues of a symmetric matrix, by Lanczos from a fixed start.

    These are estimates from above: a Ritz value is never below the smallest eigenvalue, and does not prove that there
    is none below it.
    """
    n = matrix.shape[0]
    if n <= DENSE_UP_TO or count >= n // 2:
        values, vectors = np.linalg.eigh(dense(matrix))
        return values[:count], vectors[:, :count]
    first = np.random.default_rng(n).standard_normal(n)
    try:
        values, vectors = eigsh(matrix, k=count, which="SA", v0=first, tol=precision, maxiter=50 * n, **RESTARTS)
    except ArpackError:  # no convergence, or a matrix of zeros
        values, vectors = np.linalg.eigh(dense(matrix))
        return values[:count], vectors[:, :count]
    order = np.argsort(values)
    return values[order], vectors[:, order]


MIN_SHRINKAGE = 1e-9  # of y, so that rounding in a Cholesky factor proves nothing false


def shrink_to_proven(problem: Problem, lists: PairLists, y: np.ndarray) -> np.ndarray:
    """y, in [0, w] and within the cost of the columns, shrunk as little as needed until every block is proven feasible.

    M + b I has a Cholesky factor: then no eigenvalue of M is below -b, and c / b of y is feasible. O(r_p^3 / 3) a try.
    """
    s, share = 1.0, pair_lists.shares(lists, y)
    for p, cost in enumerate(problem.trace_cost):
        matrix, shrinkage = dense(dual_block(problem, lists, share, p)), MIN_SHRINKAGE
        while not _has_cholesky(matrix, cost * (1.0 + shrinkage)):
            shrinkage *= 8.0
        s = min(s, 1.0 / (1.0 + shrinkage))
    return s * y


def dual_block(problem: Problem, lists: PairLists, s: np.ndarray, p: int):
    """s_p R_p' S R_p: sparse where R_p is the identity."""
    matrix, factor, scale = pair_lists.laplacian(lists, s), problem.factors[p], problem.block_scale[p]
    return scale * matrix if factor is None else scale * (factor.T @ (matrix @ factor))


def dense(matrix) -> np.ndarray:
    """The matrix as an array of its own."""
    return matrix.copy() if isinstance(matrix, np.ndarray) else matrix.toarray()


def _has_cholesky(matrix: np.ndarray, shift: float) -> bool:
    shifted_matrix = matrix.copy()
    shifted_matrix.flat[:: len(matrix) + 1] += shift
    try:
        cholesky(shifted_matrix, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True
