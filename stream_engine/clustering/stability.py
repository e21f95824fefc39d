"""How stable a partition is: the same number of clusters found again in resampled comparisons (bootstrap over counts).

Each replicate counts every comparison a Poisson(1) number of times and takes the better of two local optima of the
partition's exact value: from a spectral start, and from the partition under test. An object's stability is the mean
overlap (Jaccard) of its cluster with its cluster in a replicate (Hennig 2007, "Cluster-wise assessment of cluster
stability", for single objects); two objects' co-assignment the share of replicates that put them together.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stream_engine.clustering import label_matching, partition


class Stability(NamedTuple):
    """Over the clustered objects, in their order."""

    object: np.ndarray  # (m,) float64 in (0, 1]
    together: np.ndarray  # (m, m) float32: share of the replicates that put both into one cluster
    ari: np.ndarray  # (replicates,) float64: adjusted Rand index to the partition


def stability(
    resampled: Callable[[np.random.Generator], np.ndarray | None], labels: np.ndarray, replicates: int, seed: int
) -> Stability | None:
    """Of `labels` (m,), 0 .. k - 1; `resampled(rng)` is the similarity (m, m) of one bootstrap sample, or None where
    the counts that it needs are not kept. O(replicates) spectral partitions."""
    m, k = len(labels), int(labels.max()) + 1
    overlap, together, ari = np.zeros(m), np.zeros((m, m), np.float32), []
    for replicate in range(replicates):
        W = resampled(np.random.default_rng([seed, 7919, replicate]))
        if W is None:
            return None
        replicated = again(W, labels, k, seed)
        overlap += jaccard(labels, replicated)
        together += replicated[:, None] == replicated
        ari.append(label_matching.agreement(replicated, labels))
    return Stability(overlap / replicates, together / replicates, np.array(ari))


def again(W, labels: np.ndarray, k: int, seed: int) -> np.ndarray:
    """The better partition of W into k clusters of those refined from a spectral start and from `labels`."""
    if k == 1:
        return np.zeros(len(labels), np.int32)
    starts = partition.spectral_partition(W, k, seed), labels
    return max((partition.refined(W, start) for start in starts), key=lambda each: partition.value(W, each))


def jaccard(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(m,): for each object |C and D| / |C or D|, C its cluster in `one`, D in `other`.

    >>> jaccard(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])).round(2).tolist()
    [0.67, 0.67, 0.25, 0.5]
    """
    both = np.zeros((one.max() + 1, other.max() + 1), np.int64)
    np.add.at(both, (one, other), 1)
    shared = both[one, other]
    return shared / (both.sum(axis=1)[one] + both.sum(axis=0)[other] - shared)
