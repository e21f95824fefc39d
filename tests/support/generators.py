"""Made data: dense little worlds in which every branch is reached, and the planted models of the papers."""

import numpy as np

from stream_engine.data.comparisons import DecodedEvents
from stream_engine.testing.batches import batch_of, concatenated, dense_batch, with_provenance
from stream_engine.testing.refits import as_batch, planted_triplets

__all__ = [
    "as_batch",
    "batch_of",
    "concatenated",
    "dense_batch",
    "planted_triplets",
    "with_provenance",
]  # and what is defined here


def planted_similarities(n: int, k: int, delta: float, sigma: float, rng) -> tuple[np.ndarray, np.ndarray]:
    """Perrot et al. 2020, sec. 4: a symmetric (n, n) matrix of Gaussian similarities with mu_in - mu_out =
    sqrt(2) sigma Phi^-1((1 + delta) / 2), and the (n,) labels of k equal clusters."""
    from scipy.stats import norm

    labels = np.arange(n) * k // n
    gap = np.sqrt(2) * sigma * norm.ppf((1 + delta) / 2)
    w = np.triu(rng.normal(0, sigma, (n, n)) + gap * (labels[:, None] == labels), 1)
    return w + w.T, labels


def similarity_triplets(rng, w: np.ndarray, size: int, flip: float = 0.0) -> np.ndarray:
    """(size, 3) int32 triplets over a similarity matrix: near is the more similar one, flipped with probability."""
    n = len(w)
    anchor = rng.integers(n, size=size)
    near = (anchor + rng.integers(1, n, size=size)) % n
    far = (anchor + rng.integers(1, n, size=size)) % n
    keep = near != far
    anchor, near, far = anchor[keep], near[keep], far[keep]
    wrong = (w[anchor, near] < w[anchor, far]) ^ (rng.random(len(anchor)) < flip)
    near[wrong], far[wrong] = far[wrong], near[wrong].copy()
    return np.stack([anchor, near, far], axis=1).astype(np.int32)


def decoded(triplets, n):
    return DecodedEvents(
        [str(i) for i in range(n)], triplets, np.empty((0, 4), np.int32), np.empty(0, np.int64), [], {}, []
    )
