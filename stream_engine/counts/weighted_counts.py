"""Weighted AddS-3 and triplet counts: a comparison counts as much as the `weight` of its event (default 1).

    W_ij = sum over triplets e of weight_e ([{anchor, near} = {i, j}] - [{anchor, far} = {i, j}])

A commutative monoid up to the rounding of float additions (relative 1e-9).
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from stream_engine.counts import Accumulator
from stream_engine.counts.float_sums import KeySums, PairSums
from stream_engine.counts.removal import Removal, sums_without
from stream_engine.data.array_checks import check_arrays
from stream_engine.data.comparisons import Batch, triplet_weights
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation


class _Weighted(Accumulator):
    """What is summed is all that differs."""

    SUMS: ClassVar[type[PairSums] | type[KeySums]]
    needs_provenance = True
    tolerance = 1e-9

    def __init__(self, **limits: int):
        self._sums = self.SUMS(**limits)

    def update(self, batch: Batch) -> None:
        """Add the triplets of a batch. O(comparisons) amortised."""
        self._sums.add(batch.triplets, triplet_weights(batch), batch.n_objects)

    def merge(self, other: Self) -> None:
        """Add another one's sums."""
        self._sums.load(other.state())

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._sums.nbytes

    def state(self) -> dict[str, np.ndarray]:
        """The sums: see `float_sums.PairSums`, `float_sums.KeySums`."""
        return self._sums.state()

    @classmethod
    def check_state(cls, state: Mapping[str, np.ndarray], n_objects: int, **forgetting: Any) -> None:
        """Raise `Corrupt` unless the arrays are the sums that they should be."""
        check_arrays(cls.SUMS.HOLDS, state, objects=n_objects)
        cls.SUMS.check(state)

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray], allocation: Allocation = IN_MEMORY) -> Self:
        """The accumulator that has this state, in memory."""
        weighted = cls()
        weighted._sums.load(state)
        return weighted

    @classmethod
    def renamed(cls, state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i]."""
        return cls.SUMS.renamed(state, new_id)

    @classmethod
    def without(cls, state: Mapping[str, np.ndarray], leaving: Removal) -> dict[str, np.ndarray]:
        """Sums by key without those of an object; sums over pairs cannot be told apart. O(keys)."""
        return sums_without(state, leaving, cls.SUMS is KeySums)


class WeightedAddS3(_Weighted):
    """W of the triplets, each with the weight of its event.

    >>> from stream_engine.data.comparisons import empty_batch
    >>> w = WeightedAddS3()
    >>> w.update(empty_batch(3)._replace(triplets=np.array([[0, 1, 2]], np.int32)))
    >>> {key: array.tolist() for key, array in w.state().items()}
    {'i': [0, 0], 'j': [1, 2], 'w': [1.0, -1.0], 'squares': 1.0}
    """

    SUMS = PairSums


class WeightedTripletCounts(_Weighted):
    """Triplet counts, each with the weight of its event."""

    SUMS = KeySums
