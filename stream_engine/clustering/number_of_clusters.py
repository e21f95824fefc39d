"""How many clusters, by the silhouette or by the gap statistic, where kernel k-means is not told.

Silhouette (Rousseeuw 1987): s(i) = (b - a) / max(a, b), a the mean dissimilarity to the own cluster, b to the nearest
other; the k of the largest mean. It never says one cluster. Gap (Tibshirani, Walther & Hastie 2001): Gap(k) = E* log
D(k) - log D(k), D(k) the squared distances to the means, E* over points drawn uniformly from the box along the
principal axes; the smallest k with Gap(k) >= Gap(k + 1) - s(k + 1). It may say one, and is careful: four groups in a
square are one to it. (The smallest k within one standard error of the largest gap finds these, and finds groups in
uniform points too.) Directions that are noise shrink every gap, so it looks at the leading axes only.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stream_engine.clustering import partition
from stream_engine.statistics.spectral import top_eigenpairs

PATIENCE = 6  # numbers in a row that do not help, after which the search ends
REFERENCES = 10  # draws from the box
GAP_AXES = 8  # leading axes that the gap statistic looks at


class Tried(NamedTuple):
    """The number chosen and the criterion of each k from 2 on (gap: from 1 on)."""

    k: int
    criterion: np.ndarray


def silhouette(dissimilarity: np.ndarray, labels: np.ndarray) -> float:
    """The mean silhouette of a partition; objects that are alone count 0. O(n^2).

    >>> D = np.array([[0, 1, 4, 4], [1, 0, 4, 4], [4, 4, 0, 2], [4, 4, 2, 0.]])
    >>> silhouette(D, np.array([0, 0, 1, 1]))
    0.625
    """
    labels = partition.compact(labels)
    sizes = np.bincount(labels)
    at = np.arange(len(labels))
    sums = dissimilarity @ (labels[:, None] == np.arange(len(sizes)))
    own = sums[at, labels] / np.maximum(sizes[labels] - 1, 1)
    other = sums / sizes
    other[at, labels] = np.inf
    nearest, largest = other.min(axis=1), np.maximum(own, other.min(axis=1))
    apart = (sizes[labels] > 1) & (largest > 0) & np.isfinite(nearest)
    s = np.divide(nearest - own, largest, out=np.zeros(len(labels)), where=apart)
    return float(s.mean())


def by_silhouette(W, top: float, most: int, seed: int, tell: Callable[..., None]) -> Tried:
    """The k of kernel k-means on W (n, n) whose dissimilarities `top - W` have the largest mean silhouette. O(n^2 k)
    each; ends after `PATIENCE` numbers that do not help."""
    n = W.shape[0]
    if n < 3:
        return Tried(1, np.empty(0))
    dissimilarity = top - (W if isinstance(W, np.ndarray) else W.toarray())
    np.fill_diagonal(dissimilarity, 0.0)
    dissimilarity -= min(dissimilarity.min(), 0.0)
    np.fill_diagonal(dissimilarity, 0.0)
    most = min(most, n - 1)
    vectors, values = top_eigenpairs(W, most - 1, tol=1e-4)[1], []
    for k in range(2, most + 1):
        labels = partition.refined(W, partition.k_means(vectors[:, : k - 1], k, seed, partition.STARTS))
        values.append(silhouette(dissimilarity, labels))
        tell(k, most, k=k, silhouette=values[-1])
        if len(values) - 1 - int(np.argmax(values)) >= PATIENCE:
            break
    return Tried(2 + int(np.argmax(values)), np.array(values))


def by_gap(W, most: int, seed: int, tell: Callable[..., None]) -> Tried:
    """The k of the gap statistic on the leading axes of PWP. O(n^2) an axis, and k-means of `REFERENCES` copies."""
    n = W.shape[0]
    if n < 3:
        return Tried(1, np.empty(0))
    values, vectors = top_eigenpairs(W, min(GAP_AXES, n - 1), tol=1e-4)
    points = vectors[:, values > 0] * np.sqrt(values[values > 0])
    if not points.shape[1]:
        return Tried(1, np.empty(0))
    rng = np.random.default_rng(seed)
    low, high = points.min(axis=0), points.max(axis=0)
    boxes = [rng.uniform(low, high, points.shape) for _ in range(REFERENCES)]
    gaps: list[float] = []
    errors: list[float] = []
    for k in range(1, min(most, n - 1) + 1):
        drawn = np.array([_log_dispersion(box, k, seed) for box in boxes])
        gaps.append(float(drawn.mean() - _log_dispersion(points, k, seed)))
        errors.append(float(drawn.std() * np.sqrt(1 + 1 / REFERENCES)))
        tell(k, most, k=k, gap=gaps[-1])
        if k > 1 and gaps[-2] >= gaps[-1] - errors[-1]:
            return Tried(k - 1, np.array(gaps))
    return Tried(1 + int(np.argmax(gaps)), np.array(gaps))


def _log_dispersion(points: np.ndarray, k: int, seed: int) -> float:
    labels = partition.k_means(points, k, seed, partition.STARTS) if k > 1 else np.zeros(len(points), np.int32)
    sizes = np.bincount(labels)
    means = np.stack([np.bincount(labels, column) for column in points.T], axis=1) / sizes[:, None]
    return float(np.log(max(((points - means[labels]) ** 2).sum(), 1e-300)))
