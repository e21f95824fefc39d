"""Does a similarity show any clusters, and how many at most? Asked before anything is solved.

The eigenvalues of PWP (P = I - 1 1'/n) are held against those of `COPIES` matrices in which every entry of PWP keeps
its size and gets a random sign: who was compared with whom, and how often, stays; what was answered goes. Where answers
are coins the leading eigenvalue exceeds those of all copies one time in COPIES + 1 only, whatever the degrees: this is
parallel analysis by flipped signs (Hong, Sheng & Dobriban 2020, "Selecting the number of components in PCA via random
signflips"). A formula such as SPUR's lambda_min, 2 sqrt(c ln n / n), lies a third above that edge at 1,000 objects.
k clusters make k - 1 eigenvalues. O((COPIES + 1) nnz) a Lanczos step.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from stream_engine.counts.spectral import centred, dense, top_eigenpairs

COPIES = 19
LEAST = 12  # objects: of fewer, random signs give the same matrix too often for any test
NEAR = 1e-3  # relative error of the copies' eigenvalues
SPARSE = 0.1  # share of entries up to which sparse products are quicker


class ParallelAnalysis(NamedTuple):
    """`edge`: the largest eigenvalue that random answers gave; `k`: one more than the eigenvalues above it, at most
    one more than were computed. No evidence of clusters: k = 1."""

    eigenvalues: np.ndarray
    edge: float
    k: int


def parallel_analysis(W, most: int, seed: int) -> ParallelAnalysis:
    """What W (n, n), symmetric with a zero diagonal, n >= 2, shows of up to `most` clusters.

    >>> rng = np.random.default_rng(0)
    >>> noise = np.triu(rng.choice([-1.0, 1.0], (90, 90)), 1)
    >>> planted = noise + noise.T + np.kron(np.eye(3), np.ones((30, 30)))
    >>> parallel_analysis(noise + noise.T, 5, 0).k, parallel_analysis(planted, 5, 0).k
    (1, 3)
    """
    n = W.shape[0]
    count = max(1, min(n - 1, most - 1))
    values = top_eigenpairs(W, count, tol=1e-4)[0]
    edge = max(leading(each) for each in flipped(centred(dense(W)), seed))
    return ParallelAnalysis(values, edge, 1 + int((values > edge).sum()))


def flipped(W, seed: int):
    """`COPIES` times W with a random sign for every pair, one after the other."""
    rng, n = np.random.default_rng([seed, 19]), W.shape[0]
    rows, columns = np.triu_indices(n, 1) if not sparse.issparse(W) else sparse.triu(W, 1).nonzero()
    size = np.asarray(W[rows, columns]).ravel()
    kept = size != 0
    rows, columns, size = rows[kept], columns[kept], size[kept]
    for _ in range(COPIES):
        signed = np.where(rng.integers(2, size=len(size), dtype=np.int8) > 0, size, -size)
        upper = sparse.csr_array((signed, (rows, columns)), shape=(n, n))
        whole = upper + upper.T
        yield whole if whole.nnz <= SPARSE * n * n else dense(whole)


def leading(W) -> float:
    """The largest eigenvalue of PWP."""
    return float(top_eigenpairs(W, 1, tol=NEAR)[0][0])
