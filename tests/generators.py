"""Made data: dense little worlds in which every branch is reached, and the planted models of the papers."""

import numpy as np

from stream_engine.comparisons import Batch, canonical_quadruplet


def dense_batch(rng: np.random.Generator, n_objects: int = 5, size: int = 60, quadruplets: float = 0.3) -> Batch:
    """Random comparisons over so few objects that repeats, contradictions and cycles all occur."""
    triplets, quads, at = [], [], []
    for _ in range(size):
        if n_objects >= 4 and rng.random() < quadruplets:
            i, j, k, l = (int(x) for x in rng.choice(n_objects, 4, replace=False))
            quads.append(canonical_quadruplet(i, j, k, l))
            at.append(len(triplets))
        else:
            triplets.append(rng.choice(n_objects, 3, replace=False))
    return Batch(np.array(triplets, np.int32).reshape(-1, 3), np.array(quads, np.int32).reshape(-1, 4),
                 np.array(at, np.int64), n_objects)


def planted_triplets(rng, points: np.ndarray, size: int, flip: float = 0.0) -> np.ndarray:
    """(size, 3) int32 triplets with replacement over points (n, d), Euclidean, each answer flipped with probability."""
    n = len(points)
    anchor = rng.integers(n, size=size)
    near = (anchor + rng.integers(1, n, size=size)) % n
    far = (anchor + rng.integers(1, n, size=size)) % n
    clash = near == far
    while clash.any():
        far[clash] = (anchor[clash] + rng.integers(1, n, size=clash.sum())) % n
        clash = near == far
    wrong = np.linalg.norm(points[anchor] - points[near], axis=1) > np.linalg.norm(points[anchor] - points[far], axis=1)
    wrong ^= rng.random(size) < flip
    near[wrong], far[wrong] = far[wrong], near[wrong]
    return np.stack([anchor, near, far], axis=1).astype(np.int32)


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


def as_batch(triplets: np.ndarray, n_objects: int) -> Batch:
    """Triplets alone as a batch."""
    return Batch(np.asarray(triplets, np.int32), np.empty((0, 4), np.int32), np.empty(0, np.int64), n_objects)
