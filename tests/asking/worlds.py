"""Small worlds that questions are asked about."""

import numpy as np

from stream_engine.asking.knowledge import Knowledge
from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.state.artifact import Artifact
from tests.support.generators import planted_triplets


def world(n: int, size: int, seed: int = 0, dimensions: int = 2) -> tuple[np.ndarray, Knowledge]:
    """Planted points and what some noisy answers about them tell."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, dimensions))
    triplets = planted_triplets(rng, points, size, 0.1) if size else np.empty((0, 3), np.int32)
    return points, Knowledge(tuple(f"o{i}" for i in range(n)), columns_from_triplets(triplets, n))


def artifact(points: np.ndarray, seed: int = 0, covariance: bool = True, **report) -> Artifact:
    """An artifact `embedding` that says these points, unsure of each in its own way; `report` says what differs."""
    n, d = points.shape
    root = np.random.default_rng(seed).normal(0, 0.4, (n, d, d))
    arrays = {"X": points, "asked": np.ones(n, bool), "lapse": np.array(0.1)}
    arrays |= {"covariance": (root @ root.transpose(0, 2, 1)).astype(np.float32)} if covariance else {}
    said = {"alpha": 0.0, "ridge": 0.5, "scale": 1.0, "accuracy": 0.8, "standard_error": 0.01} | report
    return Artifact("embedding", "", 1, {}, 0, arrays, said)


def taught(n: int, size: int, seed: int = 0, dimensions: int = 2, **more) -> Knowledge:
    """A world with an embedding of it."""
    points, known = world(n, size, seed, dimensions)
    return known._replace(embedding=artifact(points, seed, **more))
