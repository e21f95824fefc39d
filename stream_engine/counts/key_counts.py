"""What the exact counts of triplets and of quadruplets share: a batch's rows become events, events become counts.

A kind of counts says how many objects a key has, which rows of a batch it counts and how they become events.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from stream_engine.counts import Accumulator
from stream_engine.counts.sorted_counts import LOG_FLOOR, SortedCounts
from stream_engine.data.comparisons import Batch
from stream_engine.data.compiled import read_only
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation


class KeyCounts(Accumulator):
    """`update`, `merge` and `nbytes` of counts by key; see `sorted_counts` for cost and memory."""

    FIELDS: ClassVar[int]  # objects in a key
    ENCODE: ClassVar[Callable[..., None]]  # (rows, high, low, wide, at, bits): compiled

    def __init__(self, key_bits: int = 64, log_floor: int = LOG_FLOOR, allocation: Allocation = IN_MEMORY):
        self._counts = SortedCounts(self.FIELDS, key_bits, log_floor, allocation)

    @classmethod
    def empty(cls, allocation: Allocation, **forgetting: Any) -> Self:
        """Nothing counted yet; the counts are allocated as told."""
        return cls(allocation=allocation)

    @staticmethod
    @abstractmethod
    def rows_of(batch: Batch) -> np.ndarray:
        """The rows of a batch that are counted."""

    def update(self, batch: Batch) -> None:
        """Count the rows of a batch."""
        self._counts.fit(batch.n_objects)
        counts, rows, into = self._counts, read_only(self.rows_of(batch), np.int32), type(self).ENCODE

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
