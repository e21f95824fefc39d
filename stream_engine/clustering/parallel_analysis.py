"""Whether a similarity shows any clusters, and how many at most, before anything is solved: parallel analysis by
flipped signs (Hong, Sheng & Dobriban 2020, "Selecting the number of components in PCA via random signflips")."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from stream_engine.counts.spectral import centred, dense, top_eigenpairs

# The eigenvalues of PWP (P = I - 1 1'/n) are compared with those of COPIES matrices in which every entry of PWP keeps
# its size and gets a random sign: who was compared with whom, and how often, stays; what was answered does not. If
# answers are random, the leading eigenvalue exceeds those of all copies only one time in COPIES + 1, whatever the
# degrees. A formula such as SPUR's lambda_min, 2 sqrt(c ln n / n), lies a third above that edge at 1,000 objects. k
# clusters make k - 1 eigenvalues. O((COPIES + 1) nnz) a Lanczos step.
COPIES = 19
MIN_OBJECTS = 12  # with fewer, random signs give the same matrix too often for any test
COPY_TOLERANCE = 1e-3  # relative error of the copies' eigenvalues
MAX_SPARSE_SHARE = 0.1  # share of nonzero entries up to which sparse products are faster


class ParallelAnalysis(NamedTuple):
    """The number of clusters that a similarity can show, at most.

    `edge` is the largest eigenvalue of the copies with random signs; `k` is one more than the number of computed
    eigenvalues above it, so k = 1 means no evidence of clusters.
    """

    eigenvalues: np.ndarray
    edge: float
    k: int


def parallel_analysis(W, max_clusters: int, seed: int) -> ParallelAnalysis:
    """What W (n, n), symmetric with a zero diagonal, n >= 2, shows of up to `max_clusters` clusters.

    >>> rng = np.random.default_rng(0)
    >>> noise = np.triu(rng.choice([-1.0, 1.0], (90, 90)), 1)
    >>> planted = noise + noise.T + np.kron(np.eye(3), np.ones((30, 30)))
    >>> parallel_analysis(noise + noise.T, 5, 0).k, parallel_analysis(planted, 5, 0).k
    (1, 3)
    """
    n = W.shape[0]
    count = max(1, min(n - 1, max_clusters - 1))
    values = top_eigenpairs(W, count, tol=1e-4)[0]
    edge = max(leading(copy) for copy in random_sign_copies(centred(dense(W)), seed))
    return ParallelAnalysis(values, edge, 1 + int((values > edge).sum()))


def random_sign_copies(W, seed: int):
    """`COPIES` times W with a random sign for every pair, one after the other."""
    rng, n = np.random.default_rng([seed, 19]), W.shape[0]
    rows, columns = np.triu_indices(n, 1) if not sparse.issparse(W) else sparse.triu(W, 1).nonzero()
    size = np.asarray(W[rows, columns]).ravel()
    nonzero = size != 0
    rows, columns, size = rows[nonzero], columns[nonzero], size[nonzero]
    for _ in range(COPIES):
        entries = np.where(rng.integers(2, size=len(size), dtype=np.int8) > 0, size, -size)
        upper = sparse.csr_array((entries, (rows, columns)), shape=(n, n))
        symmetric_copy = upper + upper.T
        yield symmetric_copy if symmetric_copy.nnz <= MAX_SPARSE_SHARE * n * n else dense(symmetric_copy)


def leading(W) -> float:
    """The largest eigenvalue of PWP."""
    return float(top_eigenpairs(W, 1, tol=COPY_TOLERANCE)[0][0])
