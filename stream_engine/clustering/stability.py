"""Cluster numbers that mean the same from one snapshot to the next, and the agreement of two partitions."""

import numpy as np
from scipy import sparse

from stream_engine.state.artifact import Artifact


def with_nearest_cluster(labels: np.ndarray, W) -> np.ndarray:
    """The labels, and for each object without one (-1) the cluster a with the largest mean similarity sum_{j in a} W_ij
    / n_a.

    An object whose mean similarities are all 0 stays without a cluster. Ties: the lowest number. O(nnz + n k).

    >>> W = np.array([[0, 2, 1, 0], [2, 0, -1, 0], [1, -1, 0, 0], [0, 0, 0, 0]])
    >>> with_nearest_cluster(np.array([0, 1, -1, -1], np.int32), W).tolist()
    [0, 1, 0, -1]
    """
    cluster_members = np.flatnonzero(labels >= 0)
    if not len(cluster_members):
        return labels
    share = 1.0 / np.bincount(labels[cluster_members])
    shape = (len(labels), len(share))
    membership = sparse.csr_array(
        (share[labels[cluster_members]], (cluster_members, labels[cluster_members])), shape=shape
    )
    mean = W @ membership
    mean = mean.toarray() if sparse.issparse(mean) else mean
    free = (labels < 0) & (mean != 0).any(axis=1)
    out = labels.copy()
    out[free] = mean[free].argmax(axis=1)
    return out


def keep_numbers(labels: np.ndarray, previous: Artifact | None) -> tuple[np.ndarray, float | None]:
    """Labels with the cluster numbers of the previous artifact, and the adjusted Rand index to its partition."""
    if previous is None or "labels" not in previous.arrays:
        return labels, None
    old_numbers = np.full(len(labels), -1, np.int64)
    old_labels = np.asarray(previous.arrays["labels"])[: len(labels)]
    old_numbers[: len(old_labels)] = old_labels
    return match_numbers(labels, old_numbers), agreement(labels, old_numbers)


def match_numbers(labels: np.ndarray, previous: np.ndarray) -> np.ndarray:
    """`labels` renumbered so that each cluster keeps the number of the previous cluster it shares most objects with.

    Both (n,) int, -1 for objects without a cluster. A one-to-one assignment of largest total overlap (Hungarian
    method); clusters that match none get the smallest numbers not used before. O(n + k^3).

    >>> match_numbers(np.array([0, 0, 1, 1, 2]), np.array([3, 3, 0, -1, -1])).tolist()
    [3, 3, 0, 0, 1]
    """
    from scipy.optimize import linear_sum_assignment  # not before two clusterings are compared

    clusters, inverse = np.unique(labels[labels >= 0], return_inverse=True)
    in_both_partitions = (labels >= 0) & (previous >= 0)
    old_clusters = np.unique(previous[previous >= 0])
    overlap = np.zeros((len(clusters), len(old_clusters)), np.int64)
    np.add.at(
        overlap,
        (
            np.searchsorted(clusters, labels[in_both_partitions]),
            np.searchsorted(old_clusters, previous[in_both_partitions]),
        ),
        1,
    )
    number = np.full(len(clusters), -1, np.int64)
    for new_cluster, old_cluster in zip(*linear_sum_assignment(-overlap)):
        if overlap[new_cluster, old_cluster]:
            number[new_cluster] = old_clusters[old_cluster]
    free = iter(sorted(set(range(len(clusters) + len(old_clusters))) - set(old_clusters.tolist())))
    for cluster in np.flatnonzero(number < 0):
        number[cluster] = next(free)
    out = np.full(len(labels), -1, np.int32)
    out[labels >= 0] = number[inverse]
    return out


def agreement(labels: np.ndarray, previous: np.ndarray) -> float | None:
    """Adjusted Rand index (Hubert & Arabie 1985) over objects that have a cluster in both; None when there are fewer
    than two.

    >>> agreement(np.array([0, 0, 1, 2, -1]), np.array([0, 0, 1, 1, 1]))
    0.5714285714285714
    """
    in_both_partitions = (labels >= 0) & (previous >= 0)
    n = int(in_both_partitions.sum())
    if n < 2:
        return None
    a, b = (
        np.unique(groups[in_both_partitions], return_inverse=True)[1].astype(np.int64) for groups in (labels, previous)
    )
    in_both, in_a, in_b = (
        int((np.bincount(groups) ** 2).sum()) - n for groups in (a * (b.max() + 1) + b, a, b)
    )  # ordered pairs of objects that are together
    if in_both == in_a == in_b:
        return 1.0
    only_a, only_b, in_neither = in_a - in_both, in_b - in_both, n * (n - 1) - in_a - in_b + in_both
    expected_scale = in_a * (only_a + in_neither) + in_b * (only_b + in_neither)
    return 2 * (in_both * in_neither - only_a * only_b) / expected_scale
