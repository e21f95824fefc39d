"""What the exact counts of triplets and of quadruplets share: a batch's rows become events, events become counts.

A kind of counts says how many objects a key has, which rows of a batch it counts and how they become events.
"""

from collections.abc import Callable
from typing import ClassVar, Self

from stream_engine.accumulators.sorted_counts import LOG_FLOOR, SortedCounts, rows_of
from stream_engine.data.comparisons import Batch


class KeyCounts:
    """`update`, `merge` and `nbytes` of counts by key; see `sorted_counts` for cost and memory."""

    FIELDS: ClassVar[int]  # objects in a key
    ROWS: ClassVar[str]  # the field of a batch whose rows are counted
    ENCODE: ClassVar[Callable[..., None]]  # (rows, high, low, wide, at, bits): compiled

    def __init__(self, key_bits: int = 64, log_floor: int = LOG_FLOOR):
        self._counts = SortedCounts(self.FIELDS, key_bits, log_floor)

    def update(self, batch: Batch) -> None:
        """Count the rows of a batch."""
        self._counts.fit(batch.n_objects)
        counts, rows, into = self._counts, rows_of(getattr(batch, self.ROWS)), type(self).ENCODE

        def encode(log, at, begin, end):
            into(rows[begin:end], *log, counts.wide, at, counts.bits)

        counts.append(len(rows), encode)

    def merge(self, other: Self) -> None:
        """Add another one's counts. O(keys of both)."""
        self._counts.merge(other._counts)

    @property
    def nbytes(self) -> int:
        """Bytes held, buffers included."""
        return self._counts.nbytes
