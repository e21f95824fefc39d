"""Coordinates of objects in the embedding, their uncertainty, and nearest objects.

Numbers of clusters as people read them: from 1, the largest first.

The labels of an artifact keep the identity of a cluster from one refit to the next (`clustering.stability`), in
whatever order; programs go on reading them (`labels` of the export `clusters`, `cluster_label` of its tables).
"""

from typing import NamedTuple

import numpy as np

from stream_engine.evaluation.connection import members
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published

EMBEDDING, PICTURE, SUPPORTED = "embedding", "picture", "embedding in the supported dimensions"
REGION_SQUARED_RADIUS = 5.991  # of 95 % in the plane: the quantile of chi-squared with 2 degrees of freedom


class ObjectCoordinates(NamedTuple):
    """Where objects lie: one map."""

    name: str  # what made it
    points: np.ndarray  # (n, d), NaN for an object that it does not know
    covariance: np.ndarray | None  # (n, d, d) of each place


def of_embedding(published: Published, n: int) -> ObjectCoordinates | None:
    """Where the embedding puts the objects; None where none was fitted."""
    places = _of_array(published, n, "X", EMBEDDING)
    if places is None or not has_regions(artifact := published.artifacts["embedding"]):
        return places
    known, d = artifact.arrays["X"].shape
    covariance = np.full((n, d, d), np.nan)
    covariance[:known] = artifact.arrays["covariance"]
    return places._replace(covariance=covariance)


def has_regions(artifact: Artifact) -> bool:
    """Whether regions of 95 % may be drawn from the covariances: see `no_regions` of the report."""
    return "covariance" in artifact.arrays and not artifact.report.get("no_regions")


def of_picture(published: Published, n: int) -> ObjectCoordinates | None:
    """The picture of an embedding with more than two dimensions, see `embedding.picture`; None where there is none."""
    return _of_array(published, n, "picture", PICTURE)


def of_supported(published: Published, n: int) -> ObjectCoordinates | None:
    """The embedding in the number of dimensions that the answers support; None where that is the number it has."""
    return _of_array(published, n, "supported", SUPPORTED)


def _of_array(published: Published, n: int, array: str, name: str) -> ObjectCoordinates | None:
    artifact = published.artifacts.get("embedding")
    if artifact is None or array not in artifact.arrays:
        return None
    coordinates, ids = np.asarray(artifact.arrays[array]), np.asarray(artifact.arrays["asked"])
    points = np.full((n, coordinates.shape[1]), np.nan)
    points[: len(coordinates)][ids] = coordinates[ids]
    return ObjectCoordinates(name, points, None)


def ellipses_of(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Half axes a >= b and angle of the regions of 95 % of (k, 2, 2) covariances: a^2, b^2 = 5.991 eigenvalues.

    >>> a, b, angle = ellipses_of(np.array([[[4.0, 0.0], [0.0, 1.0]]]))
    >>> (a / b).round(6).tolist(), np.cos(angle).round(6).tolist()
    ([2.0], [1.0])
    """
    values, vectors = np.linalg.eigh(np.nan_to_num(covariance.astype(float)))
    half = np.sqrt(REGION_SQUARED_RADIUS * np.maximum(values, 0.0))
    direction = vectors[:, :, 1] * np.where(vectors[:, 0, 1] < 0, -1.0, 1.0)[:, None]
    return half[:, 1], half[:, 0], np.arctan2(direction[:, 1], direction[:, 0])


def nearest(points: np.ndarray, of: np.ndarray, k: int = 3, sets: np.ndarray | None = None) -> np.ndarray:
    """(len(of), k) int: the k nearest other objects of each in the map, -1 where there are fewer; of `sets` that were
    never compared with each other (`evaluation.connection`), those of its own. O(n log n) in few dimensions, by a tree.

    >>> nearest(np.array([[0.0], [0.1], [0.3], [0.2]]), np.arange(3), 1, np.array([0, 1, 0, 1])).ravel().tolist()
    [2, 3, 0]
    """
    neighbours = np.full((len(of), k), -1)
    parts = members(sets, np.arange(len(points)))
    if len(parts) == 1:
        return _nearest(points, of, k)
    number = np.empty(len(points), int)  # of an object in its set
    for ids in parts:
        number[ids] = np.arange(len(ids))
        rows = np.flatnonzero(np.isin(of, ids))
        if len(rows):
            near = _nearest(points[ids], number[of[rows]], k)
            neighbours[rows] = np.where(near >= 0, ids[near], -1)
    return neighbours


def _nearest(points: np.ndarray, of: np.ndarray, k: int) -> np.ndarray:
    """`nearest` in one set."""
    from scipy.spatial import KDTree

    neighbours = np.full((len(of), k), -1)
    placed = np.flatnonzero(np.isfinite(points).all(axis=1))
    rows_placed = np.flatnonzero(np.isfinite(points[of]).all(axis=1))
    if len(placed) < 2 or not len(rows_placed):
        return neighbours
    count = min(k + 1, len(placed))
    _, at = KDTree(points[placed]).query(points[of[rows_placed]], count)
    for row, (mine, others) in zip(rows_placed.tolist(), zip(of[rows_placed].tolist(), placed[at].tolist())):
        nearest_others = [other for other in others if other != mine][:k]
        neighbours[row, : len(nearest_others)] = nearest_others
    return neighbours


def by_size(labels: np.ndarray) -> np.ndarray:
    """(n,) int: 0 for members of the largest cluster, 1 for those of the second ...; -1 stays. Of equal sizes the one
    with the first object comes first. O(n log n).

    >>> by_size(np.array([4, 2, 2, -1, 0, 0])).tolist()
    [2, 0, 0, -1, 1, 1]
    """
    return _ranks(labels, labels)


def numbers(labels: np.ndarray, of: np.ndarray | None = None) -> np.ndarray:
    """(n,) int: the clusters of objects, or other labels `of` the same clusters, counted from 1; -1 stays.

    >>> numbers(np.array([4, 2, 2, -1])).tolist(), numbers(np.array([4, 2, 2]), np.array([2, -1, 4])).tolist()
    ([2, 1, 1, -1], [1, -1, 2])
    """
    ranks = _ranks(labels, labels if of is None else of)
    return np.where(ranks >= 0, ranks + 1, -1)


def _ranks(labels: np.ndarray, of: np.ndarray) -> np.ndarray:
    """The rank by size of each label in `of`; -1 where it is none of `labels`. No label is too large for it."""
    values, first, sizes = np.unique(labels[labels >= 0], return_index=True, return_counts=True)
    if not len(values):
        return np.full(len(of), -1)
    rank = np.empty(len(values), int)
    rank[np.lexsort((first, -sizes))] = np.arange(len(values))
    at = np.minimum(np.searchsorted(values, of), len(values) - 1)
    return np.where(values[at] == of, rank[at], -1)
