"""Projection onto {X psd, X <= I, X 1 = 1 [, tr X = k]} in closed form, the eigen step of the ADMM."""

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

# X = 1 1'/n + U diag(x) U' with (d, U) the eigenpairs of PMP and x = clip(d, 0, 1), or x = clip(d - tau, 0, 1) with tau
# such that the x sum to k - 1. Only eigenvalues above the threshold matter, so when up to a quarter of all are
# expected, a block Krylov space started from the last eigenvectors is enough, which takes a quarter of the time of a
# partial decomposition by LAPACK. The result is exactly feasible in either case, because any orthonormal U orthogonal
# to 1 gives exact row sums, trace and psd. So all this may be in single precision, which takes about half the time,
# while the gap is far above its rounding.
FULL_BELOW = 128  # objects below which the decomposition is always full
THREE_BLOCKS_UP_TO = 0.08  # of n: expected eigenpairs up to which the Krylov space has three blocks, ...
MAX_PAIRS_OF_THREE = 40  # ... and no more than these
TWO_BLOCKS_UP_TO = 0.25  # of n: expected eigenpairs up to which it has two
SINGLE_PRECISION_ABOVE = 1e-3  # relative gap; an eigenvalue in single precision is off by about 1e-6 of the norm


class Eigen:
    """Leading eigenpairs of P M P for a slowly changing M. Invariant: `self.basis` is orthonormal and orthogonal to 1.

    `n_expected` is how many pairs the last projection used. The next one computes a few more than that, and if all of
    them are used, the one after computes more by another method. `single_precision`: decompose in single precision.
    """

    def __init__(self, n: int, seed: int = 0):
        self.n = n
        self.n_expected = n
        self.basis = np.empty((n, 0))
        self.single_precision = n >= FULL_BELOW
        self._random = np.random.default_rng(seed)

    def leading(self, M: np.ndarray, row_means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (r,) descending and vectors (n, r) of PMP on the complement of 1; M may be overwritten."""
        n_pairs = self.n_expected + max(4, self.n_expected // 4)
        if self.n >= FULL_BELOW and self.basis.shape[1] and n_pairs <= TWO_BLOCKS_UP_TO * self.n:
            values, vectors = self._krylov(M.astype(np.float32) if self.single_precision else M, n_pairs)
        else:
            M -= row_means[:, None]
            M -= row_means - row_means.mean()
            M -= (2.0 * np.abs(M).sum(axis=0).max() + 1.0) / self.n  # the trivial pair goes just below all others
            A = M.astype(np.float32) if self.single_precision else M
            values, vectors = eigh(A, driver="evd", overwrite_a=True, check_finite=False)
            values, vectors = values[:0:-1], vectors[:, :0:-1]
        return values.astype(float), _orthonormal(vectors.astype(float)) if self.single_precision else vectors

    def remember(self, count: int, vectors: np.ndarray) -> None:
        """Remember that `count` of these leading vectors were above the threshold."""
        self.n_expected = count
        self.basis = vectors

    def _krylov(self, M: np.ndarray, n_pairs: int) -> tuple[np.ndarray, np.ndarray]:
        """Ritz pairs on [U, MU] around the last vectors U, and also M M U if they are few."""
        start_vectors = self.basis[:, :n_pairs].astype(M.dtype)
        if start_vectors.shape[1] < n_pairs:
            fresh = self._random.standard_normal((self.n, n_pairs - start_vectors.shape[1]), M.dtype.type)
            start_vectors = np.hstack([start_vectors, fresh - fresh.mean(axis=0)])
        blocks = [start_vectors, _centre(M @ start_vectors)]
        if n_pairs <= min(THREE_BLOCKS_UP_TO * self.n, MAX_PAIRS_OF_THREE):
            blocks.append(_centre(M @ blocks[1]))
        basis = _centre(np.linalg.qr(np.hstack(blocks))[0])
        values, turn = np.linalg.eigh(basis.T @ (M @ basis))
        return values[::-1][:n_pairs], basis @ turn[:, ::-1][:, :n_pairs]


def _centre(block: np.ndarray) -> np.ndarray:
    block -= block.mean(axis=0)
    return block


def _orthonormal(vectors: np.ndarray) -> np.ndarray:
    """Nearly orthonormal vectors (n, r) made so, and orthogonal to 1, to double precision."""
    vectors = _centre(vectors)
    return solve_triangular(cholesky(vectors.T @ vectors), vectors.T, trans=1, check_finite=False).T


def project_eigenvalues(values: np.ndarray, k: int | None) -> np.ndarray:
    """Eigenvalues of the projection, (r,) in [0, 1]: clip(d, 0, 1), or with a shift so that they sum to k - 1.

    >>> values = np.array([2., .5, -1.])
    >>> project_eigenvalues(values, None).tolist(), project_eigenvalues(values, 2).tolist()
    ([1.0, 0.5, 0.0], [1.0, 0.0, 0.0])
    """
    if k is None:
        return np.clip(values, 0.0, 1.0)
    total = k - 1.0
    knots = np.sort(np.concatenate([values, values - 1.0]))
    sums = _sums(values, knots)
    knot = int(np.searchsorted(-sums, -total, side="right")) - 1  # sums fall along knots
    knot = min(max(knot, 0), len(knots) - 2)
    fall = sums[knot] - sums[knot + 1]
    tau = knots[knot] + ((sums[knot] - total) / fall * (knots[knot + 1] - knots[knot]) if fall > 0 else 0.0)
    return np.clip(values - tau, 0.0, 1.0)


def _sums(values: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """sum_i clip(values_i - knot, 0, 1) for every knot, in O(r log r)."""
    ascending = np.sort(values)
    prefix = np.concatenate([[0.0], np.cumsum(ascending)])
    low, high = np.searchsorted(ascending, knots), np.searchsorted(ascending, knots + 1.0)
    return prefix[high] - prefix[low] - knots * (high - low) + (len(values) - high)
