"""From a Gram matrix to what people look at: coordinates, nearest neighbours, a dendrogram.

Works on any kernel, learned or counted. Coordinates are kernel PCA, rotated onto earlier coordinates where there are
some (orthogonal Procrustes, no scaling), so that a picture of a growing stream does not flip between snapshots.
"""

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.linalg import eigh, orthogonal_procrustes
from scipy.spatial.distance import squareform


class Coordinates(NamedTuple):
    """`points` (n, d), centred, axes by decreasing variance; `explained` (d,): share of the variance on each axis."""

    points: np.ndarray
    explained: np.ndarray


def squared_distances(gram: np.ndarray) -> np.ndarray:
    """(n, n): G_ii + G_jj - 2 G_ij, rounding below 0 clipped, exact zeros on the diagonal. O(n^2).

    >>> squared_distances(np.diag([1.0, 3.0])).tolist()
    [[0.0, 4.0], [4.0, 0.0]]
    """
    own = np.diag(gram)
    d = np.maximum(own[:, None] + own[None, :] - gram - gram.T, 0.0)
    np.fill_diagonal(d, 0.0)
    return d


def centred(gram: np.ndarray) -> np.ndarray:
    """H G H, symmetric: the Gram matrix about the mean object. O(n^2)."""
    rows = gram.mean(axis=0)
    out = gram - rows[None, :] - gram.mean(axis=1)[:, None] + rows.mean()
    return (out + out.T) / 2


def kernel_pca(gram: np.ndarray, dimensions: int) -> Coordinates:
    """The `dimensions` leading axes of an (n, n) kernel; missing ones (rank, n) are zero. Negative directions are left
    out.

    Each axis is signed so that its entry of largest size is positive: equal kernels give equal pictures. O(n^2 d) for
    few axes of many objects, else O(n^3).

    >>> kernel_pca(np.array([[1.0, -1.0], [-1.0, 1.0]]), 2).points.round(6).tolist()
    [[1.0, 0.0], [-1.0, 0.0]]
    """
    n = len(gram)
    points, explained = np.zeros((n, dimensions)), np.zeros(dimensions)
    if n < 2 or dimensions == 0:
        return Coordinates(points, explained)
    middle = centred(np.asarray(gram, float))
    first = max(0, n - dimensions)
    values, vectors = eigh(middle, subset_by_index=(first, n - 1), driver="evr")
    values, vectors = values[::-1], vectors[:, ::-1]
    total = max(float(np.trace(middle)), 1e-300)
    kept = values > 1e-12 * total
    count = int(kept.sum())
    vectors = vectors[:, :count]
    largest = np.argmax(np.abs(np.round(vectors, 9)), axis=0)  # rounded: mirror images of one size keep one winner
    vectors = vectors * np.where(vectors[largest, np.arange(count)] < 0, -1.0, 1.0)
    points[:, :count] = vectors * np.sqrt(values[:count])
    explained[:count] = values[:count] / total
    return Coordinates(points, explained)


def aligned(points: np.ndarray, before: np.ndarray, common: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """`points` (n, d) turned and mirrored, not scaled, so that points[common[0]] lie nearest to before[common[1]].

    Both are compared about the mean of the common objects; fewer than one common object changes nothing. O(c d^2).

    >>> aligned(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([[0.0, 2.0], [0.0, -2.0]]), (np.arange(2), np.arange(2)))
    array([[ 0.,  1.],
           [ 0., -1.]])
    """
    mine, theirs = points[common[0]], before[common[1]]
    if len(mine) == 0 or points.shape[1] != before.shape[1]:
        return points
    turn, _ = orthogonal_procrustes(mine - mine.mean(axis=0), theirs - theirs.mean(axis=0))
    return points @ turn + 0.0


def nearest(gram: np.ndarray, k: int) -> np.ndarray:
    """(n, min(k, n - 1)) int32: the nearest other objects of each, nearest first, ties by lower id. O(n^2 log n).

    >>> nearest(np.array([[0.0, 0, 0], [0, 1, 2], [0, 2, 4]]), 1).tolist()      # points 0, 1, 2 on a line
    [[1], [0], [1]]
    """
    d = squared_distances(gram)
    np.fill_diagonal(d, np.inf)
    return np.argsort(d, axis=1, kind="stable")[:, : min(k, max(0, len(d) - 1))].astype(np.int32)


def complete_linkage(gram: np.ndarray) -> np.ndarray:
    """(n - 1, 4) float64 dendrogram in scipy's format, heights are distances (not squared); (0, 4) for fewer than 2
    objects.

    >>> complete_linkage(np.array([[0.0, 0, 0], [0, 1, 3], [0, 3, 9]])).tolist()   # points 0, 1, 3
    [[0.0, 1.0, 1.0, 2.0], [2.0, 3.0, 3.0, 3.0]]
    """
    if len(gram) < 2:
        return np.empty((0, 4))
    return linkage(squareform(np.sqrt(squared_distances(gram)), checks=False), "complete")


def pictures(gram: np.ndarray, dimensions: int, k: int, before: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """What an artifact stores of a kernel for looking at: `coordinates` (turned onto `before`, whose objects are the
    first ones), `explained`, `neighbours` and `linkage`. O(n^2 log n) and more."""
    found = kernel_pca(gram, dimensions)
    points = found.points
    if before is not None and before.ndim == 2:
        common = np.arange(min(len(before), len(points)))
        points = aligned(points, before, (common, common))
    return {
        "coordinates": points,
        "explained": found.explained,
        "neighbours": nearest(gram, k),
        "linkage": complete_linkage(gram),
    }
