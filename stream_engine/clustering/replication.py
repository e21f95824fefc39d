"""How well the same study, repeated, would agree: partitions of positions moved by their errors."""

from typing import NamedTuple

import numpy as np

from stream_engine.clustering import borders
from stream_engine.clustering.stability import agreement, match_numbers


class Replication(NamedTuple):
    """The agreement of replicates of a partition of n objects."""

    ari: float  # adjusted Rand index of two replicates: mean
    low: float  # quantiles of it
    high: float
    stability: np.ndarray  # (n,) share of the replicates that put an object into its group
    second: np.ndarray  # (n,) int32 the group that it is in most often besides; -1: none


# A replicate is x_i + e_i, e_i normal with the variance of position i (`position_errors`), which is how the estimate
# from half of the responses differs from that from all, and the estimate from all from the truth (Efron 1979, sec. 3).
# It is cut into the same number of groups. Two replicates agree as two studies of the full size do. The errors come
# from one fixed stream, and object i takes its i-th place in the order of the positions, so that neither the order of
# events nor names of objects count.
REPLICATES = 100
MIN_REPLICATES = 12
MAX_WORK = 4e7  # number of replicates times squared number of objects
INTERVAL = (0.025, 0.975)  # quantiles of the agreement of two replicates


def replication(points: np.ndarray, variance: np.ndarray, labels: np.ndarray) -> Replication:
    """The replication of the partition `labels` (n,), 0 .. k - 1, of points (n, d) whose errors have `variance` (n, d,
    d). O(n^2) a replicate.

    >>> points = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> found = replication(points, np.full((6, 1, 1), 1e-4), np.array([0, 0, 0, 1, 1, 1], np.int32))
    >>> found.ari, found.stability.tolist(), found.second.tolist()
    (1.0, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [-1, -1, -1, -1, -1, -1])
    """
    n, k = len(points), int(labels.max()) + 1
    count = int(np.clip(MAX_WORK / n**2, MIN_REPLICATES, REPLICATES))
    rng = np.random.default_rng(0)
    place = np.empty(n, np.int64)
    place[np.lexsort(points.T[::-1])] = np.arange(n)
    values, vectors = np.linalg.eigh(variance)
    root = np.einsum("iab,ib,icb->iac", vectors, np.sqrt(np.maximum(values, 0.0)), vectors)
    share, partitions = np.zeros((n, k)), []
    for _ in range(count):
        replicate = points + np.einsum("iab,ib->ia", root, rng.normal(size=points.shape)[place])
        replicate_labels = borders.cuts(replicate, (k,))[0].labels
        partitions.append(replicate_labels)
        numbers = match_numbers(replicate_labels, labels)
        matched_objects = np.flatnonzero(numbers < k)
        share[matched_objects, numbers[matched_objects]] += 1 / count
    agreements = np.array([agreement(a, b) for a, b in zip(partitions, partitions[1:] + partitions[:1], strict=True)])
    own_share = share[np.arange(n), labels]
    share[np.arange(n), labels] = 0.0
    second = np.where(share.any(axis=1), share.argmax(axis=1), -1).astype(np.int32)
    low, high = np.quantile(agreements, INTERVAL)
    return Replication(float(agreements.mean()), float(low), float(high), np.minimum(own_share, 1.0), second)
