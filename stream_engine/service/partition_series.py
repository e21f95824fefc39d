"""Series by partition in bounded number: the first partitions have their own, all others are told as one.

Invariant: which series a partition belongs to is decided when it is first told of and never changes in a process, so
that counters only grow.
"""

from collections.abc import Callable, Iterable

from prometheus_client import Gauge

OTHER = "other"  # no partition is called so: they are absolute paths, topic/number, or a scheme's own


class PartitionLabels:
    """The label of each partition: its name for the first `most` of them, `OTHER` for the rest."""

    def __init__(self, most: int):
        self._most = most
        self._labels: dict[str, str] = {}

    def of(self, partition: str) -> str:
        """The label of a partition, now and for as long as the process lives.

        >>> labels = PartitionLabels(1)
        >>> labels.of("a"), labels.of("b"), labels.of("a")
        ('a', 'other', 'a')
        """
        label = self._labels.get(partition)
        if label is None:
            label = self._labels[partition] = partition if len(self._labels) < self._most else OTHER
        return label


class PartitionGauge:
    """A gauge by partition; `together` makes one value of those that have no series of their own: sum or max."""

    def __init__(self, gauge: Gauge, labels: PartitionLabels, together: Callable[[Iterable[float]], float]):
        self._gauge, self._labels, self._together = gauge, labels, together
        self._others: dict[str, float] = {}

    def set(self, partition: str, value: float) -> None:
        label = self._labels.of(partition)
        if label == OTHER:
            if not self._others:  # put together when it is asked for
                self._gauge.labels(OTHER).set_function(lambda: self._together(list(self._others.values())))
            self._others[partition] = value
        else:
            self._gauge.labels(label).set(value)
