"""Simulated noisy answers about handwritten digits that ship with scikit-learn."""

import numpy as np
from sklearn.datasets import load_digits

PER_DIGIT = 20
FLIPPED = 0.1


def digits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, 64) pixels and (n,) digits: a seeded choice of PER_DIGIT handwritten examples of each."""
    data = load_digits()
    rng = np.random.default_rng(seed)
    chosen = np.concatenate([rng.permutation(np.flatnonzero(data.target == d))[:PER_DIGIT] for d in range(10)])
    chosen = rng.permutation(chosen)
    return data.data[chosen], data.target[chosen]


def simulated_answers(pixels: np.ndarray, size: int, flipped: float, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) anchor, near, far: questions about Euclidean distance, answered wrongly with probability `flipped`."""
    n = len(pixels)
    anchor, b, c = rng.integers(n, size=(3, size))
    keep = (anchor != b) & (anchor != c) & (b != c)
    anchor, b, c = anchor[keep], b[keep], c[keep]
    square = (pixels**2).sum(axis=1)
    distance = square[:, None] + square - 2 * pixels @ pixels.T
    swap = (distance[anchor, b] > distance[anchor, c]) ^ (rng.random(len(anchor)) < flipped)
    return np.stack([anchor, np.where(swap, c, b), np.where(swap, b, c)], axis=1)
