"""Answers by the model itself about planted points, and points aligned to others."""

import numpy as np

from stream_engine.data.answers import Answers


def by_the_model(seed: int, n: int, d: int, m: int, lapse: float = 0.1, copies: int = 1) -> tuple[np.ndarray, Answers]:
    """Standard normal points (n, d) and about m triplets with P(near) = lapse / 2 + (1 - lapse) sigma(Delta); with
    `copies` each answer is given so often, as one unit."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d))
    anchor = rng.integers(n, size=m)
    one, other = ((anchor + rng.integers(1, n, size=m)) % n for _ in range(2))
    anchor, one, other = (column[one != other] for column in (anchor, one, other))
    delta = ((points[anchor] - points[other]) ** 2).sum(axis=1) - ((points[anchor] - points[one]) ** 2).sum(axis=1)
    yes = rng.random(len(anchor)) < lapse / 2 + (1 - lapse) / (1 + np.exp(-delta))
    rows = np.stack([anchor, np.where(yes, one, other), anchor, np.where(yes, other, one)], axis=1).astype(np.int32)
    unit = np.repeat(np.arange(len(rows)), copies)
    rows = np.repeat(rows, copies, axis=0)
    return points, Answers(rows, np.ones(len(rows)), np.full(len(rows), -1, np.int32), unit, n)


def aligned(points: np.ndarray, to: np.ndarray) -> np.ndarray:
    """The points moved, turned and scaled onto others about 0 (Procrustes), in as many dimensions as those have."""
    middle = points - points.mean(axis=0)
    u, sizes, v = np.linalg.svd(middle.T @ to, full_matrices=False)
    turned = middle @ (u @ v)
    return turned * sizes.sum() / (turned**2).sum()


def covered(points: np.ndarray, found: np.ndarray, covariance: np.ndarray, radius: float) -> np.ndarray:
    """(n,) bool: whether each planted place lies within its ellipse about the place found."""
    miss = aligned(points, found) - found
    return np.einsum("na,nab,nb->n", miss, np.linalg.inv(covariance), miss) <= radius**2
