"""Cluster numbers that mean the same from one snapshot to the next, the agreement of two partitions, and an order of
objects that does not depend on their ids."""

import numpy as np
from scipy import sparse

from stream_engine.data.hashing import splitmix64
from stream_engine.state.artifact import Artifact


def with_nearest_cluster(labels: np.ndarray, W) -> np.ndarray:
    """The labels, and for objects without one (-1) the cluster a with the largest mean similarity
    sum_{j in a} W_ij / n_a; none where W says nothing about an object and any cluster. Ties: the lowest. O(nnz + n k).

    >>> W = np.array([[0, 2, 1, 0], [2, 0, -1, 0], [1, -1, 0, 0], [0, 0, 0, 0]])
    >>> with_nearest_cluster(np.array([0, 1, -1, -1], np.int32), W).tolist()
    [0, 1, 0, -1]
    """
    clustered = np.flatnonzero(labels >= 0)
    if not len(clustered):
        return labels
    share = 1.0 / np.bincount(labels[clustered])
    shape = (len(labels), len(share))
    membership = sparse.csr_array((share[labels[clustered]], (clustered, labels[clustered])), shape=shape)
    mean = W @ membership
    mean = mean.toarray() if sparse.issparse(mean) else mean
    free = (labels < 0) & (mean != 0).any(axis=1)
    out = labels.copy()
    out[free] = mean[free].argmax(axis=1)
    return out


def continued(labels: np.ndarray, previous: Artifact | None) -> tuple[np.ndarray, float | None]:
    """Labels with the cluster numbers of the previous artifact, and the adjusted Rand index to its partition."""
    if previous is None or "labels" not in previous.arrays:
        return labels, None
    before = np.full(len(labels), -1, np.int64)
    old_labels = np.asarray(previous.arrays["labels"])[: len(labels)]
    before[: len(old_labels)] = old_labels
    return matched(labels, before), agreement(labels, before)


def matched(labels: np.ndarray, previous: np.ndarray) -> np.ndarray:
    """`labels` renumbered so that each cluster keeps the number of the previous cluster it shares most objects with.

    Both (n,) int, -1 for objects without a cluster. A one-to-one assignment of largest total overlap (Hungarian
    method); clusters that match none get the smallest numbers not used before. O(n + k^3).

    >>> matched(np.array([0, 0, 1, 1, 2]), np.array([3, 3, 0, -1, -1])).tolist()
    [3, 3, 0, 0, 1]
    """
    from scipy.optimize import linear_sum_assignment  # not before two clusterings are compared

    clusters, inverse = np.unique(labels[labels >= 0], return_inverse=True)
    both = (labels >= 0) & (previous >= 0)
    old = np.unique(previous[previous >= 0])
    overlap = np.zeros((len(clusters), len(old)), np.int64)
    np.add.at(overlap, (np.searchsorted(clusters, labels[both]), np.searchsorted(old, previous[both])), 1)
    number = np.full(len(clusters), -1, np.int64)
    for new, kept in zip(*linear_sum_assignment(-overlap)):
        if overlap[new, kept]:
            number[new] = old[kept]
    free = iter(sorted(set(range(len(clusters) + len(old))) - set(old.tolist())))
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
    both = (labels >= 0) & (previous >= 0)
    n = int(both.sum())
    if n < 2:
        return None
    one, other = (np.unique(each[both], return_inverse=True)[1].astype(np.int64) for each in (labels, previous))
    in_both, in_one, in_other = (
        int((np.bincount(each) ** 2).sum()) - n for each in (one * (other.max() + 1) + other, one, other)
    )  # ordered pairs of objects that are together
    if in_both == in_one == in_other:
        return 1.0
    only_one, only_other, apart = in_one - in_both, in_other - in_both, n * (n - 1) - in_one - in_other + in_both
    whole = in_one * (only_one + apart) + in_other * (only_other + apart)
    return 2 * (in_both * apart - only_one * only_other) / whole


def canonical_order(W) -> np.ndarray:
    """(n,) a permutation of the objects that depends on W only up to renaming, apart from ties.

    Three rounds of Weisfeiler-Lehman colours: an object's colour is the wrapping 64-bit sum, over its entries, of a
    mix of the value and the other object's colour; such sums do not depend on their order. With the objects put into
    this order a solver gives the same partition whatever ids they have. Objects that tie keep their order. O(nnz).

    >>> W = np.array([[0, 5, 1], [5, 0, 2], [1, 2, 0.]])
    >>> p = np.array([2, 0, 1])
    >>> np.array_equal(W[canonical_order(W)], W[p][:, p][canonical_order(W[p][:, p])][:, np.argsort(p)])
    True
    """
    coo = sparse.coo_array(W)
    i, j = coo.coords
    values = (coo.data + 0.0).view(np.uint64)
    colour = np.zeros(W.shape[0], np.uint64)
    for _ in range(3):
        after = splitmix64(colour)
        np.add.at(after, i, splitmix64(values ^ splitmix64(colour[j])))
        colour = after
    return np.argsort(colour, kind="stable")
