"""From a Gram matrix to what people look at: coordinates, nearest neighbours, a dendrogram.

Works on any kernel, learned or counted. Coordinates are kernel PCA, rotated onto earlier coordinates where there are
some (orthogonal Procrustes, no scaling), so that a picture of a growing stream does not flip between snapshots.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from stream_engine.evaluation.subset import common

BLOCK = 1 << 14  # objects whose distances to the subset are held at once


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


def margin_scale(gram: np.ndarray) -> float:
    """Root mean square of d(i, j) - d(i, k) over all distinct objects i, j, k: the unit of margins in which two fits of
    one world are alike, however far apart each puts the objects. 1 where all are equally far. O(n^2).

    >>> margin_scale(np.diag([0.0, 1.0, 4.0]))  # the differences are 3 about 0, 4 about 1, 1 about 2
    2.943920288775949
    """
    n = len(gram)
    if n < 3:
        return 1.0
    d = squared_distances(gram)
    mean = d.sum(axis=1) / (n - 1)
    spread = ((d - mean[:, None]) ** 2).sum(axis=1) - mean**2  # without the zeros of the diagonal
    return float(np.sqrt(2.0 * max(spread.sum(), 0.0) / (n * (n - 2)))) or 1.0


def centred(gram: np.ndarray) -> np.ndarray:
    """H G H, symmetric: the Gram matrix about the mean object. O(n^2)."""
    rows = gram.mean(axis=0)
    middle = gram - rows[None, :] - gram.mean(axis=1)[:, None] + rows.mean()
    return (middle + middle.T) / 2


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
    from scipy.linalg import eigh  # here and below: a run that only takes distances does without

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
    from scipy.linalg import orthogonal_procrustes

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
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    return linkage(squareform(np.sqrt(squared_distances(gram)), checks=False), "complete")


class PreviousMap(NamedTuple):
    """Coordinates of an earlier artifact: `points` (m, d), of which the rows `ids` (increasing) mean something."""

    points: np.ndarray
    ids: np.ndarray


def earlier(arrays: Mapping[str, np.ndarray]) -> PreviousMap | None:
    """What an artifact's arrays say of where the snapshot's objects were; None where they say nothing."""
    if "coordinates" not in arrays or arrays["coordinates"].ndim != 2:
        return None
    points = arrays["coordinates"]
    return PreviousMap(points, np.flatnonzero(arrays["known"]) if "known" in arrays else np.arange(len(points)))


def pictures(gram: np.ndarray, dimensions: int, k: int, before: PreviousMap | None = None) -> dict[str, np.ndarray]:
    """What an artifact stores of a kernel for looking at: `coordinates` (turned onto `before`, whose objects are the
    first ones), `explained`, `neighbours` and `linkage`. O(n^2 log n) and more."""
    axes = kernel_pca(gram, dimensions)
    return {
        "coordinates": _turned(axes.points, np.arange(len(gram)), before),
        "explained": axes.explained,
        "neighbours": nearest(gram, k),
        "linkage": complete_linkage(gram),
    }


def pictures_of_subset(
    gram: np.ndarray,
    ids: np.ndarray,
    n: int,
    dimensions: int,
    k: int,
    before: PreviousMap | None = None,
    factor: np.ndarray | None = None,
    known: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """The same of a kernel over a subset, the objects `ids` of n.

    `coordinates` (n, d) and `neighbours` (n, k) have a row for each of the n, zeros and -1 where nothing is known;
    neighbours are of the subset; `linkage` is over it, its leaf t being ids[t]. With a `factor` (n, r) of all that are
    `known` (n,), nonzero, the others lie on the same axes (least squares where the factor is shorter than the kernel).
    O(n'^2 log n' + n n' r), in blocks.
    """
    axes, near = kernel_pca(gram, dimensions), nearest(gram, k)
    points, neighbours = np.zeros((n, dimensions)), np.full((n, near.shape[1]), -1, np.int32)
    points[ids], neighbours[ids], all_known = axes.points, ids[near], ids
    if factor is not None and known is not None:
        all_known = np.flatnonzero(known)
        rest = np.setdiff1d(all_known, ids)
        _extend(points, neighbours, axes.points, ids, factor, rest)
    return {
        "coordinates": _turned(points, all_known, before),
        "explained": axes.explained,
        "neighbours": neighbours,
        "linkage": complete_linkage(gram),
    }


def _extend(
    points: np.ndarray,
    neighbours: np.ndarray,
    learned: np.ndarray,
    ids: np.ndarray,
    factor: np.ndarray,
    rest: np.ndarray,
) -> None:
    """Fill the rows `rest` of points and neighbours from a factor whose rows `ids` have the points `learned`."""
    landmarks = factor[ids].astype(float)
    middle = landmarks.mean(axis=0)
    onto = np.linalg.lstsq(landmarks - middle, learned, rcond=None)[0]
    for begin in range(0, len(rest), BLOCK):
        block = rest[begin : begin + BLOCK]
        rows = factor[block].astype(float)
        points[block] = (rows - middle) @ onto
        d = (landmarks**2).sum(axis=1) - 2 * rows @ landmarks.T  # up to |row|^2, which orders nothing
        neighbours[block] = ids[np.argsort(d, axis=1, kind="stable")[:, : neighbours.shape[1]]]


def _turned(points: np.ndarray, ids: np.ndarray, before: PreviousMap | None) -> np.ndarray:
    """`points`, of which the rows `ids` mean something, turned onto those of `before` for the objects both know."""
    if before is None:
        return points
    mine, theirs = common(ids, before.ids)
    return aligned(points, before.points, (ids[mine], before.ids[theirs]))
