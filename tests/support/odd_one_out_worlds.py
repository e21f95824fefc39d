"""Odd-one-out responses of objects with planted sparse, non-negative weights."""

import numpy as np


def planted(seed: int, n: int, d: int, size: float = 2.0) -> np.ndarray:
    """(n, d) weights: each object has some of the dimensions, gamma distributed, and one of them for sure."""
    rng = np.random.default_rng(seed)
    has = rng.random((n, d)) < rng.uniform(0.1, 0.35, d)
    has[np.arange(n), rng.integers(d, size=n)] = True
    return (rng.gamma(2.0, size / 2.0, (n, d)) * has).astype(np.float32)


def shares(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(m, 3) probabilities that the pairs ab, ac and bc of (m, 3) rows are found the most similar."""
    a, b, c = (weights[column] for column in rows.T)
    s = np.stack([np.einsum("mk,mk->m", *pair) for pair in ((a, b), (a, c), (b, c))], axis=1)
    s = np.exp(s - s.max(axis=1, keepdims=True))
    return s / s.sum(axis=1, keepdims=True)


def odd_one_out(rng: np.random.Generator, weights: np.ndarray, m: int) -> np.ndarray:
    """(m, 3) int32 responses a, b, c to random questions: c is the odd one."""
    n, parts = len(weights), []
    for begin in range(0, m, 1 << 18):
        size = min(1 << 18, m - begin)
        rows = rng.integers(n, size=(2 * size, 3))
        rows = rows[(rows[:, 0] != rows[:, 1]) & (rows[:, 0] != rows[:, 2]) & (rows[:, 1] != rows[:, 2])][:size]
        found = (rng.random((len(rows), 1)) > np.cumsum(shares(weights, rows), axis=1)[:, :2]).sum(axis=1)
        parts.append(np.take_along_axis(rows, np.array([[0, 1, 2], [0, 2, 1], [1, 2, 0]])[found], axis=1))
    return np.concatenate(parts).astype(np.int32)
