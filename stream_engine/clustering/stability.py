"""How stable a partition is: the same number of clusters made from each of two random halves of the responses, again
and again.

A half differs from the whole as the whole differs from the truth (`drawn_answers.halved`). So the share of the halves
that put an object into another cluster says how well the study knows where it belongs; and halves of two different
splits agree as two independent studies of the whole size do. (The two halves of one split agree less: as two of half
the size.)

Cluster numbers that mean the same from one snapshot to the next, and an order of objects that does not depend on
their ids.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from stream_engine.clustering import BETWEEN, partition
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
    """Adjusted Rand index over objects that have a cluster in both; None when there are fewer than two."""
    from sklearn.metrics import adjusted_rand_score

    both = (labels >= 0) & (previous >= 0)
    return float(adjusted_rand_score(previous[both], labels[both])) if both.sum() > 1 else None


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


class Replicates(NamedTuple):
    """Over the clustered objects, in their order."""

    labels: np.ndarray  # (m,) the partition itself
    share: np.ndarray  # (m, k) of the halves that put an object into each cluster
    together: np.ndarray  # (m, m) float32: share of the halves that put both into one cluster
    agreement: np.ndarray  # (splits,) float64: adjusted Rand index of a split's halves to the next split's

    @classmethod
    def of(cls, labels: np.ndarray, pairs: list[tuple[np.ndarray, np.ndarray]]) -> "Replicates":
        """Of `labels` (m,), 0 .. k - 1, from the labels that the two halves of each split give.

        >>> made = Replicates.of(np.array([0, 0, 1, 1]), [(np.array([1, 1, 0, 0]), np.array([0, 1, 1, 1]))])
        >>> made.share.tolist(), made.between.tolist(), made.second.tolist()
        ([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [0.0, 1.0]], [False, True, False, False], [-1, 1, -1, -1])
        """
        m, k = len(labels), int(labels.max()) + 1
        halves = [half for pair in pairs for half in pair]
        share, together = np.zeros((m, k)), np.zeros((m, m), np.float32)
        for half in halves:
            together += half[:, None] == half
            numbers = matched(half, labels)
            inside = numbers < k
            share[np.flatnonzero(inside), numbers[inside]] += 1
        agreements = [
            np.mean([agreement(half, other) for half in pair for other in pairs[number - 1]])
            for number, pair in enumerate(pairs)
        ]
        number = max(len(halves), 1)
        return cls(labels, share / number, together / number, np.array(agreements, np.float64))

    def renumbered(self, labels: np.ndarray) -> "Replicates":
        """The same, of the same groups with the numbers that they have in `labels`, 0 .. k - 1."""
        order = np.empty(self.share.shape[1], np.int64)
        order[labels] = self.labels
        return self._replace(labels=labels, share=self.share[:, order])

    @property
    def stability(self) -> np.ndarray:
        """(m,) share of the halves that put an object into its own cluster."""
        return self.share[np.arange(len(self.labels)), self.labels]

    @property
    def between(self) -> np.ndarray:
        """(m,) bool: whether an object lies between clusters."""
        return self.stability < BETWEEN

    @property
    def second(self) -> np.ndarray:
        """(m,) int32: the cluster that an object is in most often besides its own; -1: in none."""
        others = self.share.copy()
        others[np.arange(len(self.labels)), self.labels] = 0.0
        return np.where(others.any(axis=1), others.argmax(axis=1), -1).astype(np.int32)


def improved_partition(W, labels: np.ndarray, seed: int) -> np.ndarray:
    """The better partition of W into as many clusters of those refined from a spectral start and from `labels`."""
    k = int(labels.max()) + 1
    if k == 1:
        return np.zeros(len(labels), np.int32)
    starts = partition.spectral_partition(W, k, seed), labels
    return max((partition.refined(W, start) for start in starts), key=lambda each: partition.value(W, each))
