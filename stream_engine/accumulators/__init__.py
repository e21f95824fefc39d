"""Order-free statistics of a stream of comparisons: mergeable, each with its slow definition; exact integers by default.

Every accumulator is a commutative monoid: `update` in any order and batching gives the same `state()`, and `merge` of
two halves is the whole. `state()` is the meaning, in one canonical form (equal statistics: equal arrays), never the
index behind it. One file per accumulator, registered here; the laws in tests/laws pick it up.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from stream_engine.data.comparisons import Batch

ACCUMULATORS = {
    "adds3": "stream_engine.accumulators.adds_similarity:AddS3",
    "adds4": "stream_engine.accumulators.adds_similarity:AddS4",
    "triplet_counts": "stream_engine.accumulators.triplet_counts:TripletCounts",
    "quadruplet_counts": "stream_engine.accumulators.quadruplet_counts:QuadrupletCounts",
    "adds3_weighted": "stream_engine.accumulators.weighted_counts:WeightedAddS3",
    "triplet_counts_weighted": "stream_engine.accumulators.weighted_counts:WeightedTripletCounts",
    "adds3_decayed": "stream_engine.accumulators.decayed_counts:DecayedAddS3",
    "triplet_counts_decayed": "stream_engine.accumulators.decayed_counts:DecayedTripletCounts",
    "worker_votes": "stream_engine.accumulators.worker_votes:WorkerVotes",
    "worker_reliability": "stream_engine.accumulators.worker_reliability:WorkerReliability",
    "window": "stream_engine.accumulators.window:Window",
}


class Forgetting(NamedTuple):
    """How the forgetting accumulators forget: by "count" (of triplets) or by event "time" (seconds)."""

    by: str = "count"
    half_life: float = 1e6
    window: float = 1e6


class Accumulator(Protocol):
    """A statistic that can be kept in one pass. The constructor needs no arguments.

    Class attributes that say what differs: `judged = True` asks for `batch.judges` (who said each comparison, when, and
    with what weight); `forgets` names the fields of `Forgetting` that the constructor takes; `tolerance` is by how much,
    relative to the sum of absolute weights, a state may differ from its definition (none: not at all); `arrival` names
    arrays that depend on the order of arrival; an instance with `mergeable = False` depends on it altogether.
    """

    def update(self, batch: Batch) -> None:
        """Count a batch. `batch.n_objects` never shrinks from one call to the next."""

    def merge(self, other: Self) -> None:
        """Add another one's counts; both speak of the same object ids. `other` is left unchanged."""

    def state(self) -> dict[str, np.ndarray]:
        """The statistic in canonical form. Arrays may be views of live memory, or the memory itself: `snapshot.frozen`
        copies them before the next update, but for those that were made just now and marked so (`columns.handed_over`)."""

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


def made(name: str, forgetting: Forgetting = Forgetting()) -> Any:
    """An empty accumulator of the kind registered under `name`."""
    cls = accumulator(name)
    return cls(**{field: getattr(forgetting, field) for field in getattr(cls, "forgets", ())})
