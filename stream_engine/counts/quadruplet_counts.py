"""Exact counts of every quadruplet of four distinct objects, for MulK-4 (Perrot et al. 2020, App. A). Off by default.

A key is two unordered pairs, {i, j} before {k, l} with i < j, k < l and (i, j) < (k, l); n_lo counts how often the
first pair was nearer, n_hi the second. Cost as in `sorted_counts`; keys are packed up to 2**15 objects.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from stream_engine.counts import radix
from stream_engine.counts.removal import Removal, counted_quadruplets_without
from stream_engine.counts.triplet_counts import KeyCounts
from stream_engine.data.array_checks import EXACT, ArraySpec, check_counts, check_rising, check_rows, ids
from stream_engine.data.comparisons import Batch
from stream_engine.data.compiled import njit
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation
from stream_engine.data.triplet_columns import handed_over


@njit(cache=True, nogil=True)
def _encode(rows, high, low, wide, at, bits):
    """Events (i, j, k, l, direction) from rows near_i, near_j, far_i, far_j."""
    bits, one = np.uint64(bits), np.uint64(1)
    for e in range(len(rows)):
        near = np.uint64(min(rows[e, 0], rows[e, 1])) << bits | np.uint64(max(rows[e, 0], rows[e, 1]))
        far = np.uint64(min(rows[e, 2], rows[e, 3])) << bits | np.uint64(max(rows[e, 2], rows[e, 3]))
        first, second = min(near, far), max(near, far)
        tail = second << one | np.uint64(near > far)
        if wide:
            high[at + e] = first
            low[at + e] = tail
        else:
            low[at + e] = first << (bits + bits + one) | tail


class QuadrupletCounts(KeyCounts):
    """`state()`: `i`, `j`, `k`, `l` (K,) int32 in key order, `n_lo`, `n_hi` (K,) int32, or int64 from 2**30 on.

    >>> from stream_engine.data.comparisons import empty_batch
    >>> counts = QuadrupletCounts()
    >>> counts.update(empty_batch(4)._replace(quadruplets=np.array([[0, 1, 2, 3], [3, 2, 1, 0]], np.int32)))
    >>> [int(array[0]) for array in counts.state().values()]
    [0, 1, 2, 3, 1, 1]
    """

    FIELDS, ENCODE = 4, staticmethod(_encode)
    HOLDS: ClassVar[Mapping[str, ArraySpec]] = {**{name: ids("keys") for name in "ijkl"}, **EXACT}

    @staticmethod
    def rows_of(batch: Batch) -> np.ndarray:
        """near_i, near_j, far_i, far_j."""
        return batch.quadruplets

    def state(self) -> dict[str, np.ndarray]:
        """One entry a key, in order. O(keys); `n_lo`, `n_hi` are read-only views of live memory."""
        self._counts.settle()
        return handed_over(dict(zip("ijkl", self._counts.ids()))) | self._counts.counts()

    @classmethod
    def check_state(cls, state: Mapping[str, np.ndarray], n_objects: int, **forgetting: Any) -> None:
        """Raise `Corrupt` unless keys are two pairs of four objects, in order."""
        super().check_state(state, n_objects, **forgetting)
        i, j, k, l = (state[name] for name in "ijkl")

        def four(part: slice) -> np.ndarray:
            a, b, c, d = i[part], j[part], k[part], l[part]
            return (a < b) & (c < d) & (a < c) & (b != c) & (b != d)

        check_rows("i, j, k, l", len(i), four, "four objects, i < j, k < l, i < k")
        check_rising("i, j, k, l", i, j, k, l)
        check_counts(state["n_lo"], state["n_hi"])

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray], allocation: Allocation = IN_MEMORY) -> Self:
        """The accumulator that has this state."""
        counts = cls(allocation=allocation)
        counts._counts.load([state[name] for name in "ijkl"], state["n_lo"], state["n_hi"])
        return counts

    @classmethod
    def renamed(cls, state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object x is called new_id[x]. O(keys * digits)."""
        new_id = np.asarray(new_id, np.int64)
        i, j, k, l = (new_id[state[name]] for name in "ijkl")
        i, j, k, l = np.minimum(i, j), np.maximum(i, j), np.minimum(k, l), np.maximum(k, l)
        flip = i > k  # four distinct objects: i == k does not occur
        ids = [np.where(flip, b, a) for a, b in ((i, k), (j, l), (k, i), (l, j))]
        n_lo, n_hi = np.where(flip, state["n_hi"], state["n_lo"]), np.where(flip, state["n_lo"], state["n_hi"])
        order = radix.argsort(ids, int(max(new_id.max(initial=1), 1)).bit_length())
        named = {name: column[order].astype(np.int32) for name, column in zip("ijkl", ids)}
        return named | {"n_lo": n_lo[order], "n_hi": n_hi[order]}

    @classmethod
    def without(cls, state: Mapping[str, np.ndarray], leaving: Removal) -> dict[str, np.ndarray]:
        """The state without the keys of an object. O(keys)."""
        return counted_quadruplets_without(state, leaving)
