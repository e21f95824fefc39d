"""From a Gram matrix to coordinates that people look at.

Works on any kernel, learned or counted. Coordinates are kernel PCA, rotated onto earlier coordinates where there are
some (orthogonal Procrustes, no scaling), so that a picture of a growing stream does not flip between snapshots.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

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


def aligned(points: np.ndarray, before: np.ndarray, common: np.ndarray) -> np.ndarray:
    """`points` (n, d) turned and mirrored, not scaled, so that points[common] lie nearest to before[common].

    Both are compared about the mean of the common objects; fewer than one common object changes nothing. O(c d^2).

    >>> aligned(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([[0.0, 2.0], [0.0, -2.0]]), np.arange(2))
    array([[ 0.,  1.],
           [ 0., -1.]])
    """
    mine, theirs = points[common], before[common]
    if len(mine) == 0 or points.shape[1] != before.shape[1]:
        return points
    from scipy.linalg import orthogonal_procrustes

    turn, _ = orthogonal_procrustes(mine - mine.mean(axis=0), theirs - theirs.mean(axis=0))
    return points @ turn + 0.0


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


def coordinates(
    gram: np.ndarray,
    ids: np.ndarray,
    n: int,
    dimensions: int,
    before: PreviousMap | None = None,
    factor: np.ndarray | None = None,
    known: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """What an artifact stores of a kernel over the objects `ids` of n for looking at: `coordinates` (n, d), turned onto
    `before`, 0 where nothing is known, and `explained`.

    With a `factor` (n, r) of all that are `known` (n,), nonzero, the others lie on the same axes (least squares where
    the factor is shorter than the kernel). O(n'^3 + n r d), in blocks.
    """
    axes, points, placed = kernel_pca(gram, dimensions), np.zeros((n, dimensions)), ids
    points[ids] = axes.points
    if factor is not None and known is not None:
        placed = np.flatnonzero(known)
        rest = np.setdiff1d(placed, ids)
        landmarks = factor[ids].astype(float)
        middle = landmarks.mean(axis=0)
        onto = np.linalg.lstsq(landmarks - middle, axes.points, rcond=None)[0]
        for begin in range(0, len(rest), BLOCK):
            block = rest[begin : begin + BLOCK]
            points[block] = (factor[block] - middle) @ onto
    return {"coordinates": _turned(points, placed, before), "explained": axes.explained}


def _turned(points: np.ndarray, ids: np.ndarray, before: PreviousMap | None) -> np.ndarray:
    """`points`, of which the rows `ids` mean something, turned onto those of `before` for the objects both know."""
    if before is None:
        return points
    return aligned(points, before.points, np.intersect1d(ids, before.ids, assume_unique=True))
