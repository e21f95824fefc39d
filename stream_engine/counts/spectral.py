"""Leading eigenpairs of a symmetric matrix, dense or sparse, on the complement of the vector of ones.

P = I - 1 1'/n. The vector of ones carries no information about groups (similarities and kernels are used up to a
constant shift), and it must be deflated in every partial eigensolver.
"""

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

DENSE_EIGEN = 160  # up to here LAPACK's full decomposition is as fast as Lanczos, and exact


def dense(W) -> np.ndarray:
    """W as an array; no copy when it is one."""
    return W.toarray() if sparse.issparse(W) else W


def size_of(W) -> float:
    """The largest absolute row sum: an upper bound on the spectral norm, 0 only for W = 0."""
    return float(abs(W).sum(axis=1).max()) if W.shape[0] else 0.0


def top_eigenpairs(W, count: int, tol: float = 1e-8) -> tuple[np.ndarray, np.ndarray]:
    """The `count` algebraically largest eigenpairs of PWP on the complement of 1, largest first.

    Values (count,) and orthonormal vectors (n, count), each orthogonal to 1, with a fixed sign. Needs count <= n - 1.
    Full decomposition for small n, Lanczos from a fixed start above; a Lanczos run that has not converged falls back
    to the full decomposition. O(nnz) a Lanczos step.
    """
    n = W.shape[0]
    if n <= DENSE_EIGEN or 3 * count >= n:
        return _full_eigenpairs(W, count)
    shift = size_of(W)  # moves the trivial pair (0, 1) below everything that is wanted
    if shift == 0.0:  # Lanczos has nowhere to start from: any vectors will do
        some = np.random.default_rng(n).standard_normal((n, count))
        return np.zeros(count), _signed(np.linalg.qr(some - some.mean(axis=0))[0])

    def product(x):
        x = x.reshape(n, -1)
        y = W @ (x - x.mean(axis=0))
        return y - y.mean(axis=0) - 2 * shift * x.mean(axis=0)

    operator = LinearOperator((n, n), matvec=product, matmat=product, dtype=np.float64)
    start = np.random.default_rng(n).standard_normal(n)
    try:
        values, vectors = eigsh(
            operator,
            count,
            which="LA",
            v0=start - start.mean(),
            tol=tol,
            ncv=min(n, max(2 * count + 1, 32)),
            maxiter=50 * n,
        )
    except ArpackNoConvergence:
        return _full_eigenpairs(W, count)
    return values[::-1], _signed(vectors[:, ::-1])


def spectral_size(W, lam: float = 0.0) -> float:
    """About the spectral norm of P(W - lambda I)P, from both ends of the spectrum; 1.0 where that is zero."""
    top = top_eigenpairs(W, 1, tol=1e-2)[0][0]
    bottom = -top_eigenpairs(-W, 1, tol=1e-2)[0][0]
    return float(max(abs(top - lam), abs(bottom - lam))) or 1.0


def _full_eigenpairs(W, count: int) -> tuple[np.ndarray, np.ndarray]:
    n = W.shape[0]
    A = centred(dense(W))
    A -= (2 * size_of(W) + 1.0) / n
    values, vectors = np.linalg.eigh(A)
    return values[::-1][:count], _signed(vectors[:, ::-1][:, :count])


def _signed(vectors: np.ndarray) -> np.ndarray:
    """Each column with its entry of largest magnitude positive, so that a rerun gives the same vectors."""
    largest = np.abs(vectors).argmax(axis=0)
    return vectors * np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def centred(A: np.ndarray) -> np.ndarray:
    """PAP for a symmetric array, as a new array.

    >>> centred(np.array([[0., 2.], [2., 0.]])).tolist()
    [[-1.0, 1.0], [1.0, -1.0]]
    """
    mean = A.mean(axis=1)
    out = A - mean[:, None]
    out -= mean - mean.mean()
    return out
