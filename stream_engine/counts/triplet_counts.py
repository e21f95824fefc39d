"""Exact counts of every triplet, contradictions kept apart: the basis of k1, k2, boosting and the order.

A key is (lo, hi, anchor) with lo < hi; its counts are how often lo, and hi, was nearer to the anchor. Sorted, this is
the layout of `triplet_columns.Columns`: a column per pair, an entry per anchor.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from stream_engine.counts import Accumulator, radix
from stream_engine.counts.removal import Removal, counted_triplets_without
from stream_engine.counts.sorted_counts import LOG_FLOOR, SortedCounts
from stream_engine.data.array_checks import COUNT_COLUMNS, check_columns, check_counts
from stream_engine.data.comparisons import Batch
from stream_engine.data.compiled import for_size, njit, read_only
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation
from stream_engine.data.triplet_columns import handed_over


# Shared by triplets and quadruplets: a kind of counts says how many objects a key has, which rows of a batch it counts
# and how they become events. Kleindessner & von Luxburg 2017, sec. 2; Perrot & von Luxburg 2019, sec. 2.1.
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
            for_size(into, end - begin)(rows[begin:end], *log, counts.wide, at, counts.bits)

        counts.append(len(rows), encode)

    def merge(self, other: Self) -> None:
        """Add another one's counts. O(keys of both)."""
        self._counts.merge(other._counts)

    @property
    def nbytes(self) -> int:
        """Bytes held, buffers included."""
        return self._counts.nbytes


@njit(cache=True, nogil=True)
def _encode(triplets, high, low, wide, at, bits):
    """Events (lo, hi, anchor, direction) from rows anchor, near, far."""
    bits = np.uint64(bits)
    for e in range(len(triplets)):
        near, far = triplets[e, 1], triplets[e, 2]
        pair = np.uint64(min(near, far)) << bits | np.uint64(max(near, far))
        tail = np.uint64(triplets[e, 0]) << np.uint64(1) | np.uint64(near > far)
        if wide:
            high[at + e] = pair
            low[at + e] = tail
        else:
            low[at + e] = pair << (bits + np.uint64(1)) | tail


@njit(cache=True, nogil=True)
def _columns(high, low, shift, bits, lo, hi, start, anchor):
    """Split sorted keys into columns; returns how many. With empty `anchor` it only counts them."""
    shift, bits, fill = np.uint64(shift), np.uint64(bits), len(anchor) > 0
    mask = (np.uint64(1) << bits) - np.uint64(1)
    columns, last = 0, np.uint64(0)
    for e in range(len(low)):
        pair = high[e] >> shift
        if columns == 0 or pair != last:
            if fill:
                lo[columns] = pair >> bits
                hi[columns] = pair & mask
                start[columns] = e
            last = pair
            columns += 1
        if fill:
            anchor[e] = low[e] & mask
    if fill:
        start[columns] = len(low)
    return columns


class TripletCounts(KeyCounts):
    """`state()`: `lo`, `hi` (P,) int32, `start` (P + 1,) int64, `anchor` (K,) int32, `n_lo`, `n_hi` (K,) int32, or
    int64 once a count reaches 2**30: the fields of `triplet_columns.Columns`.

    >>> from stream_engine.data.comparisons import Batch, empty_batch
    >>> counts = TripletCounts()
    >>> counts.update(empty_batch(3)._replace(triplets=np.array([[0, 1, 2], [0, 2, 1], [0, 1, 2]], np.int32)))
    >>> state = counts.state()
    >>> [state[key].tolist() for key in ("lo", "hi", "start", "anchor", "n_lo", "n_hi")]
    [[1], [2], [0, 1], [0], [2], [1]]
    """

    FIELDS, ENCODE = 3, staticmethod(_encode)
    HOLDS = COUNT_COLUMNS

    @staticmethod
    def rows_of(batch: Batch) -> np.ndarray:
        """Anchor, near, far."""
        return batch.triplets

    def state(self) -> dict[str, np.ndarray]:
        """The columns. O(keys); `n_lo`, `n_hi` are read-only views of live memory, the rest is fresh."""
        counts, allocate = self._counts, self._counts.allocation.allocate
        counts.settle()
        shift = 0 if counts.wide else counts.bits
        none = np.empty(0, np.int32)
        split = for_size(_columns, 2 * len(counts))
        columns = split(counts.high, counts.low, shift, counts.bits, none, none, np.empty(0, np.int64), none)
        lo, hi, anchor = (allocate(size, np.int32) for size in (columns, columns, len(counts)))
        start = allocate(columns + 1, np.int64)
        start[0] = 0  # it stays so without a key
        split(counts.high, counts.low, shift, counts.bits, lo, hi, start, anchor)
        return handed_over({"lo": lo, "hi": hi, "start": start, "anchor": anchor}) | counts.counts()

    @classmethod
    def check_state(cls, state: Mapping[str, np.ndarray], n_objects: int, **forgetting: Any) -> None:
        """Raise `Corrupt` unless columns, anchors and counts are as `triplet_columns` says."""
        super().check_state(state, n_objects, **forgetting)
        check_columns(state)
        check_counts(state["n_lo"], state["n_hi"])

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray], allocation: Allocation = IN_MEMORY) -> Self:
        """The accumulator that has this state."""
        counts = cls(allocation=allocation)
        lo, hi = (allocation.repeated(state[name], state["start"]) for name in ("lo", "hi"))
        counts._counts.load([lo, hi, state["anchor"]], state["n_lo"], state["n_hi"])
        return counts

    @classmethod
    def renamed(cls, state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i]. O(keys * digits)."""
        new_id, sizes = np.asarray(new_id, np.int64), np.diff(state["start"])
        lo, hi = (np.repeat(new_id[state[name]], sizes) for name in ("lo", "hi"))
        ids, flip = [np.minimum(lo, hi), np.maximum(lo, hi), new_id[state["anchor"]]], lo > hi
        order = radix.argsort(ids, int(max(new_id.max(initial=1), 1)).bit_length())
        counts = cls()
        n_lo, n_hi = (np.where(flip, state[b], state[a])[order] for a, b in (("n_lo", "n_hi"), ("n_hi", "n_lo")))
        counts._counts.load([column[order] for column in ids], n_lo, n_hi)
        return counts.state()

    @classmethod
    def without(cls, state: Mapping[str, np.ndarray], leaving: Removal) -> dict[str, np.ndarray]:
        """The state without the keys of an object, or less a worker's answers. O(keys)."""
        return counted_triplets_without(state, leaving)
