"""How stable a partition is: the same number of clusters made from each of two random halves of the responses, again
and again.

A half differs from the whole as the whole differs from the truth (`drawn_answers.halved`). So the share of the halves
that put an object into another cluster says how well the study knows where it belongs; and halves of two different
splits agree as two independent studies of the whole size do. (The two halves of one split agree less: as two of half
the size.)
"""

from typing import NamedTuple

import numpy as np

from stream_engine.clustering import BETWEEN, label_matching, partition


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
            matched = label_matching.matched(half, labels)
            inside = matched < k
            share[np.flatnonzero(inside), matched[inside]] += 1
        agreement = [
            np.mean([label_matching.agreement(half, other) for half in pair for other in pairs[number - 1]])
            for number, pair in enumerate(pairs)
        ]
        number = max(len(halves), 1)
        return cls(labels, share / number, together / number, np.array(agreement, np.float64))

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
