"""Projection onto {X psd, X <= I, X 1 = 1 [, tr X = k]}: closed form, the eigen step of the ADMM.

X = 1 1'/n + U diag(x) U' with (d, U) the eigenpairs of PMP and x = clip(d, 0, 1), or x = clip(d - tau, 0, 1) with tau
such that the x sum to k - 1. Only eigenvalues above the threshold matter, so when up to a quarter of all are expected,
a block Krylov space started from the last eigenvectors is enough (`Eigen`), which takes a quarter of the time of a
partial decomposition by LAPACK. The result is exactly feasible in either case, because any orthonormal U orthogonal to
1 gives exact row sums, trace and psd. So all this may be in single precision, which takes about half the time, while
the gap that is left is far above its rounding.
"""

import numpy as np
from scipy.linalg import cholesky, eigh, solve_triangular

SMALL = 128  # below, the full decomposition always
LOW = 0.08  # up to this fraction of n: a Krylov space of three blocks
MIDDLE = 0.25  # up to this: of two
SINGLE_ABOVE = 1e-3  # relative gap: an eigenvalue in single precision is off by about 1e-6 of the norm


class Eigen:
    """Leading eigenpairs of P M P for a slowly changing M. Invariant: `self.basis` is orthonormal and orthogonal to 1.

    `expected` is how many pairs the last projection used; the next one computes a few more than that, and goes over to
    a method for more pairs when all that it found were used. `single`: decompose in single precision.
    """

    def __init__(self, n: int, seed: int = 0):
        self.n = n
        self.expected = n
        self.basis = np.empty((n, 0))
        self.single = n >= SMALL
        self._random = np.random.default_rng(seed)

    def leading(self, M: np.ndarray, row_means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (r,) descending and vectors (n, r) of PMP on the complement of 1; M may be overwritten."""
        wanted = self.expected + max(4, self.expected // 4)
        if self.n >= SMALL and self.basis.shape[1] and wanted <= MIDDLE * self.n:
            values, vectors = self._krylov(M.astype(np.float32) if self.single else M, wanted)
        else:
            M -= row_means[:, None]
            M -= row_means - row_means.mean()
            M -= (2.0 * np.abs(M).sum(axis=0).max() + 1.0) / self.n  # the trivial pair goes just below the rest
            A = M.astype(np.float32) if self.single else M
            values, vectors = eigh(A, driver="evd", overwrite_a=True, check_finite=False)
            values, vectors = values[:0:-1], vectors[:, :0:-1]
        return values.astype(float), _orthonormal(vectors.astype(float)) if self.single else vectors

    def used(self, count: int, vectors: np.ndarray) -> None:
        """Remember that `count` of these leading vectors were above the threshold."""
        self.expected = count
        self.basis = vectors

    def _krylov(self, M: np.ndarray, wanted: int) -> tuple[np.ndarray, np.ndarray]:
        """Ritz pairs on [U, MU] around the last vectors U, and M M U beside these while they are few."""
        start = self.basis[:, :wanted].astype(M.dtype)
        if start.shape[1] < wanted:
            fresh = self._random.standard_normal((self.n, wanted - start.shape[1]), M.dtype.type)
            start = np.hstack([start, fresh - fresh.mean(axis=0)])
        blocks = [start, _centred(M @ start)]
        if wanted <= LOW * self.n:
            blocks.append(_centred(M @ blocks[1]))
        basis = _centred(np.linalg.qr(np.hstack(blocks))[0])
        values, turn = np.linalg.eigh(basis.T @ (M @ basis))
        return values[::-1][:wanted], basis @ turn[:, ::-1][:, :wanted]


def _centred(block: np.ndarray) -> np.ndarray:
    block -= block.mean(axis=0)
    return block


def _orthonormal(vectors: np.ndarray) -> np.ndarray:
    """Nearly orthonormal vectors (n, r) made so, and orthogonal to 1, to double precision."""
    vectors = _centred(vectors)
    return solve_triangular(cholesky(vectors.T @ vectors), vectors.T, trans=1, check_finite=False).T


def projected(values: np.ndarray, k: int | None) -> np.ndarray:
    """Eigenvalues of the projection, (r,) in [0, 1]: clip(d, 0, 1), or with a shift so that they sum to k - 1.

    >>> projected(np.array([2., .5, -1.]), None).tolist(), projected(np.array([2., .5, -1.]), 2).tolist()
    ([1.0, 0.5, 0.0], [1.0, 0.0, 0.0])
    """
    if k is None:
        return np.clip(values, 0.0, 1.0)
    total = k - 1.0
    knots = np.sort(np.concatenate([values, values - 1.0]))
    sums = _sums(values, knots)
    at = int(np.searchsorted(-sums, -total, side="right")) - 1  # sums fall along knots
    at = min(max(at, 0), len(knots) - 2)
    fall = sums[at] - sums[at + 1]
    tau = knots[at] + ((sums[at] - total) / fall * (knots[at + 1] - knots[at]) if fall > 0 else 0.0)
    return np.clip(values - tau, 0.0, 1.0)


def _sums(values: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """sum_i clip(values_i - knot, 0, 1) for every knot, in O(r log r)."""
    ascending = np.sort(values)
    prefix = np.concatenate([[0.0], np.cumsum(ascending)])
    low, high = np.searchsorted(ascending, knots), np.searchsorted(ascending, knots + 1.0)
    return prefix[high] - prefix[low] - knots * (high - low) + (len(values) - high)
