"""Order-free statistics of a stream of comparisons: exact integers, mergeable, each with its slow definition.

Every accumulator is a commutative monoid: `update` in any order and batching gives the same `state()`, and `merge` of
two halves is the whole. `state()` is the meaning, in one canonical form (equal statistics: equal arrays), never the
index behind it. One file per accumulator, registered here; the laws in tests/laws pick it up.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, Self

import numpy as np

from stream_engine.comparisons import Batch

ACCUMULATORS = {
    "adds3": "stream_engine.accumulators.adds:AddS3",
    "adds4": "stream_engine.accumulators.adds:AddS4",
    "triplet_counts": "stream_engine.accumulators.triplet_counts:TripletCounts",
    "quadruplet_counts": "stream_engine.accumulators.quadruplet_counts:QuadrupletCounts",
}


class Accumulator(Protocol):
    """A statistic that can be kept in one pass. The constructor takes no arguments. A class attribute `judged = True`
    asks for `batch.judges`: who said each comparison, when, and with what weight."""

    def update(self, batch: Batch) -> None:
        """Count a batch. `batch.n_objects` never shrinks from one call to the next."""

    def merge(self, other: Self) -> None:
        """Add another one's counts; both speak of the same object ids. `other` is left unchanged."""

    def state(self) -> dict[str, np.ndarray]:
        """The statistic in canonical form. Arrays may be views of live memory: copy before the next update."""

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray]) -> Self:
        """The accumulator that has this state; it must not keep or change the arrays given."""

    @staticmethod
    def renamed(state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i] (injective int array), canonical again."""

    @staticmethod
    def definition(batch: Batch) -> dict[str, np.ndarray]:
        """The state after this one batch, straight from the paper's formula, slowly, in plain Python."""


def accumulator(name: str) -> Any:
    """The class registered under `name`."""
    module, _, attribute = ACCUMULATORS[name].partition(":")
    return getattr(import_module(module), attribute)
