"""From a Gram matrix, of any kernel, to coordinates for a map: kernel PCA, rotated onto earlier coordinates."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class Coordinates(NamedTuple):
    """`points` (n, d), centred, axes by decreasing variance; `explained` (d,): share of the variance on each axis."""

    points: np.ndarray
    explained: np.ndarray


def squared_distances(gram: np.ndarray) -> np.ndarray:
    """(n, n): G_ii + G_jj - 2 G_ij, rounding below 0 clipped, exact zeros on the diagonal. O(n^2).

    >>> squared_distances(np.diag([1.0, 3.0])).tolist()
    [[0.0, 4.0], [4.0, 0.0]]
    """
    diagonal = np.diag(gram)
    d = np.maximum(diagonal[:, None] + diagonal[None, :] - gram - gram.T, 0.0)
    np.fill_diagonal(d, 0.0)
    return d


def margin_scale(gram: np.ndarray) -> float:
    """Root mean square of d(i, j) - d(i, k) over all distinct objects i, j, k: in this unit, margins of two fits are
    comparable whatever their scale. 1 if all distances are equal. O(n^2).

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
    result = gram - rows[None, :] - gram.mean(axis=1)[:, None] + rows.mean()
    return (result + result.T) / 2


def kernel_pca(gram: np.ndarray, dimensions: int) -> Coordinates:
    """The `dimensions` leading axes of an (n, n) kernel; axes beyond the rank are zero, those of negative eigenvalues
    too.

    Each axis is signed so that its entry of largest size is positive: equal kernels give equal pictures. O(n^2 d) for
    few axes of many objects, else O(n^3).

    >>> kernel_pca(np.array([[1.0, -1.0], [-1.0, 1.0]]), 2).points.round(6).tolist()
    [[1.0, 0.0], [-1.0, 0.0]]
    """
    n = len(gram)
    points, explained = np.zeros((n, dimensions)), np.zeros(dimensions)
    if n < 2 or dimensions == 0:
        return Coordinates(points, explained)
    centred_gram = centred(np.asarray(gram, float))
    first_index = max(0, n - dimensions)
    from scipy.linalg import eigh  # here and below: a run that only takes distances does without

    values, vectors = eigh(centred_gram, subset_by_index=(first_index, n - 1), driver="evr")
    values, vectors = values[::-1], vectors[:, ::-1]
    total = max(float(np.trace(centred_gram)), 1e-300)
    positive = values > 1e-12 * total
    count = int(positive.sum())
    vectors = vectors[:, :count]
    largest = np.argmax(
        np.abs(np.round(vectors, 9)), axis=0
    )  # rounded, so that among entries of equal size the first decides
    vectors = vectors * np.where(vectors[largest, np.arange(count)] < 0, -1.0, 1.0)
    points[:, :count] = vectors * np.sqrt(values[:count])
    explained[:count] = values[:count] / total
    return Coordinates(points, explained)


def aligned(points: np.ndarray, before: np.ndarray, common: np.ndarray) -> np.ndarray:
    """`points` (n, d) rotated and mirrored, not scaled, so that points[common] are nearest to before[common]
    (orthogonal Procrustes about the means of both): so a map of a growing stream does not flip between snapshots.

    Unchanged without common objects, or if the numbers of dimensions differ. O(c d^2).

    >>> aligned(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([[0.0, 2.0], [0.0, -2.0]]), np.arange(2))
    array([[ 0.,  1.],
           [ 0., -1.]])
    """
    shared, shared_before = points[common], before[common]
    if len(shared) == 0 or points.shape[1] != before.shape[1]:
        return points
    from scipy.linalg import orthogonal_procrustes

    rotation, _ = orthogonal_procrustes(shared - shared.mean(axis=0), shared_before - shared_before.mean(axis=0))
    return points @ rotation + 0.0


class PreviousMap(NamedTuple):
    """Coordinates of an earlier artifact: `points` (m, d), valid in the rows `ids` (increasing)."""

    points: np.ndarray
    ids: np.ndarray


def previous_map(arrays: Mapping[str, np.ndarray]) -> PreviousMap | None:
    """The coordinates among an artifact's arrays; None if there are none."""
    if "coordinates" not in arrays or arrays["coordinates"].ndim != 2:
        return None
    points = arrays["coordinates"]
    return PreviousMap(points, np.flatnonzero(arrays["known"]) if "known" in arrays else np.arange(len(points)))


BLOCK_OBJECTS = 1 << 14  # rows of the factor that are converted at a time


def coordinates(
    gram: np.ndarray,
    ids: np.ndarray,
    n: int,
    dimensions: int,
    before: PreviousMap | None = None,
    factor: np.ndarray | None = None,
    has_place: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """The arrays for a map of a kernel over the objects `ids` of n: `coordinates` (n, d), rotated onto `before`, 0 for
    objects without a place, and `explained`.

    With a `factor` (n, r) of the kernel over all objects with nonzero `has_place` (n,), the others are placed on the
    same axes, by least squares if the factor is shorter than the kernel. O(n'^3 + n r d), in blocks.
    """
    axes, points, positioned = kernel_pca(gram, dimensions), np.zeros((n, dimensions)), ids
    points[ids] = axes.points
    if factor is not None and has_place is not None:
        positioned = np.flatnonzero(has_place)
        other_objects = np.setdiff1d(positioned, ids)
        landmarks = factor[ids].astype(float)
        mean = landmarks.mean(axis=0)
        onto = np.linalg.lstsq(landmarks - mean, axes.points, rcond=None)[0]
        for begin in range(0, len(other_objects), BLOCK_OBJECTS):
            block = other_objects[begin : begin + BLOCK_OBJECTS]
            points[block] = (factor[block] - mean) @ onto
    return {"coordinates": _rotated(points, positioned, before), "explained": axes.explained}


def _rotated(points: np.ndarray, ids: np.ndarray, before: PreviousMap | None) -> np.ndarray:
    """`points`, valid in the rows `ids`, rotated onto those of `before` by the objects that both have."""
    if before is None:
        return points
    return aligned(points, before.points, np.intersect1d(ids, before.ids, assume_unique=True))
