"""Predictors made of artifacts: the blocks of a clustering, the distances of learned kernels."""

import numpy as np

from stream_engine.data.mapped_arrays import blocks
from stream_engine.prediction import Predictor
from stream_engine.prediction.similarities import DENSE_LIMIT, by_similarity
from stream_engine.state.published import Published
from stream_engine.statistics.embedding import squared_distances
from stream_engine.statistics.subset import numbered


def _arrays(published: Published, kind: str, name: str) -> np.ndarray | None:
    """An array of the newest artifact, unless it is newer than the snapshot that the state goes on from: after a damaged
    snapshot comparisons are read again that such an artifact has already seen."""
    made = published.artifacts.get(kind)
    if made is None or made.sequence > published.snapshot.sequence or name not in made.arrays:
        return None
    array = np.asarray(made.arrays[name])
    return array if 3 <= len(array) <= DENSE_LIMIT else None


def clusters(published: Published) -> Predictor | None:
    """The same block is nearer than another one; undecided where both or neither are of one block."""
    labels = _arrays(published, "sdp_clustering", "labels")
    if labels is None or not (labels >= 0).any():
        return None
    n = len(labels)

    def margins(rows: np.ndarray) -> np.ndarray:
        i, j, k, l = np.where(rows < n, labels[np.minimum(rows, n - 1)], -1).T
        found = (i == j).astype(float) - (k == l)
        found[(i < 0) | (j < 0) | (k < 0) | (l < 0)] = np.nan
        return found

    return Predictor(margins)


def kernel_learning(published: Published) -> Predictor | None:
    """Distances of the kernel that RCKL learned: of all objects that it learned or placed, NaN about others."""
    return _distances(published, "kernel_learning")


def partial_order_embedding(published: Published) -> Predictor | None:
    """Distances of the partial order embedding."""
    return _distances(published, "partial_order_embedding")


def _distances(published: Published, kind: str) -> Predictor | None:
    gram = _arrays(published, kind, "K")
    if gram is None:
        return None
    arrays = published.artifacts[kind].arrays
    if "ids" not in arrays:
        return by_similarity(-squared_distances(gram))
    chosen = by_similarity(-squared_distances(gram))
    if "factor" in arrays:
        return Predictor(_by_factor(np.asarray(arrays["factor"]), np.asarray(arrays["known"])), chosen.scale)
    return Predictor(_by_place(chosen, numbered(arrays["ids"], len(arrays["known"]))), chosen.scale)


def _by_place(chosen: Predictor, place: np.ndarray):
    """Margins over objects of which only those with a place (n,) >= 0 are known."""

    def margins(rows: np.ndarray) -> np.ndarray:
        inside = np.where(rows < len(place), place[np.minimum(rows, len(place) - 1)], -1)
        known = (inside >= 0).all(axis=1)
        found = np.full(len(rows), np.nan)
        found[known] = chosen.margins(inside[known])
        return found

    return margins


def _by_factor(factor: np.ndarray, known: np.ndarray):
    """Margins |F_k - F_l|^2 - |F_i - F_j|^2 over a factor (n, r) of K; O(m r), in blocks."""

    def margins(rows: np.ndarray) -> np.ndarray:
        found = np.full(len(rows), np.nan)
        for part in blocks(len(rows)):
            here = rows[part]
            there = (here < len(known)).all(axis=1)
            there[there] = (known[here[there]] > 0).all(axis=1)
            i, j, k, l = (factor[column].astype(float) for column in here[there].T)
            found[part][there] = ((k - l) ** 2).sum(axis=1) - ((i - j) ** 2).sum(axis=1)
        return found

    return margins
