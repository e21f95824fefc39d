"""What is counted of a stream of comparisons: one file per statistic, registered here, exact integers by default.

Nearly all are accumulators, commutative monoids: `update` in any order and batching gives the same `state()`, and
`merge` of two halves is the whole. What depends on the order of arrival is a ledger.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np

from stream_engine.counts.removal import CannotForget, Removal
from stream_engine.data.array_checks import ArraySpec, check_arrays, check_like
from stream_engine.data.comparisons import Batch
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation

# `state()` is the meaning in one canonical form: equal statistics give equal arrays, whatever the index behind them.
ACCUMULATORS = {
    "adds3": "stream_engine.counts.adds_similarity:AddS3",
    "adds4": "stream_engine.counts.adds_similarity:AddS4",
    "triplet_counts": "stream_engine.counts.triplet_counts:TripletCounts",
    "quadruplet_counts": "stream_engine.counts.quadruplet_counts:QuadrupletCounts",
    "adds3_weighted": "stream_engine.counts.weighted_counts:WeightedAddS3",
    "triplet_counts_weighted": "stream_engine.counts.weighted_counts:WeightedTripletCounts",
    "adds3_decayed": "stream_engine.counts.decayed_counts:DecayedAddS3",
    "triplet_counts_decayed": "stream_engine.counts.decayed_counts:DecayedTripletCounts",
    "worker_votes": "stream_engine.counts.worker_votes:WorkerVotes",
    "window": "stream_engine.counts.window:Window",
    "judgements": "stream_engine.counts.judgements:Judgements",
    "response_patterns": "stream_engine.counts.response_patterns:ResponsePatterns",
}
# of an engine and of a run
DEFAULT_ACCUMULATORS = ("adds3", "adds4", "triplet_counts", "worker_votes", "judgements", "response_patterns")
# Those of the above that forget, where they forget by count: a statement about arrival, hence a ledger.
BY_ARRIVAL = {
    "adds3_decayed": "stream_engine.counts.decayed_counts:DecayedAddS3ByArrival",
    "triplet_counts_decayed": "stream_engine.counts.decayed_counts:DecayedTripletCountsByArrival",
    "window": "stream_engine.counts.window:WindowByArrival",
}


class Forgetting(NamedTuple):
    """How what forgets does it: by "count" (of triplets) or by event "time" (seconds)."""

    by: str = "count"
    half_life: float = 1e6
    window: float = 1e6


BY_COUNT, BY_TIME = Forgetting("count"), Forgetting("time")


class Statistic(Protocol):
    """What accumulators and ledgers have in common: a statistic that is kept in one pass.

    The constructor takes the fields of `Forgetting` that `forgets` names; all have defaults.
    """

    needs_provenance: ClassVar[bool] = False  # asks for `batch.provenance`: who answered, when, and with what weight
    needs_name_hashes: ClassVar[bool] = False  # asks for `batch.name_hashes`
    forgets: ClassVar[tuple[str, ...]] = ()
    tolerance: ClassVar[float] = 0.0  # how far a state may be from its definition, relative to the sum of |weights|
    arrival: ClassVar[tuple[str, ...]] = ()  # arrays of the state that depend on the order of arrival all the same
    mergeable: ClassVar[bool]
    HOLDS: ClassVar[Mapping[str, ArraySpec]] = {}  # what the arrays of a state are, by name: see `data.array_checks`

    def update(self, batch: Batch) -> None:
        """Count a batch. `batch.n_objects` never shrinks from one call to the next."""

    def state(self) -> dict[str, np.ndarray]:
        """The statistic in canonical form. Arrays may be views of live memory, or the memory itself: `snapshot.frozen`
        copies them before the next update, but for those that were made just now and marked so (`handed_over`)."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes held, buffers included."""
        ...

    @property
    def newest_time(self) -> float | None:
        """The newest time that was counted (-inf: nothing yet); None for what does not forget by time."""
        return None

    @classmethod
    def empty(cls, allocation: Allocation, **forgetting: Any) -> Self:
        """Nothing counted yet; `forgetting` holds the fields that `forgets` names. Who holds one array a key or an
        object pair allocates them as told."""
        return cls(**forgetting)

    @classmethod
    def from_state(cls, state: Mapping[str, np.ndarray], allocation: Allocation = IN_MEMORY) -> Self:
        """The statistic that has this state; it must not keep or change the arrays given."""
        ...

    @classmethod
    def check_state(cls, state: Mapping[str, np.ndarray], n_objects: int, **forgetting: Any) -> None:
        """Raise `Corrupt` unless these arrays, which come from a file, can be a state over so many objects:
        `from_state` and compiled code ask nothing. By `HOLDS`; a class adds what entries have to do with each other. A
        class that declares nothing gets its arrays by name, kind and number of axes; what is in them is not looked at.
        """
        if cls.HOLDS:
            check_arrays(cls.HOLDS, state, objects=n_objects)
        else:
            check_like(cls.empty(IN_MEMORY, **forgetting).state(), state)

    @classmethod
    def answers(cls, state: Mapping[str, np.ndarray]) -> float:
        """How many comparisons a stream must have had, at least, to lead to this state; 0 where it does not tell."""
        return 0.0

    @classmethod
    def renamed(cls, state: Mapping[str, np.ndarray], new_id: np.ndarray) -> dict[str, np.ndarray]:
        """The state after object i is called new_id[i] (injective int array), canonical again."""
        ...

    @classmethod
    def without(cls, state: Mapping[str, np.ndarray], leaving: Removal) -> dict[str, np.ndarray]:
        """The state as if the comparisons that leave had never come, canonical; see `leaving`. Raises `CannotForget`
        where that cannot be told, which is what a statistic says that does not know better."""
        raise CannotForget("cannot be separated by object or participant")

    @classmethod
    def with_worker_called(cls, state: Mapping[str, np.ndarray], old: str, new: str) -> dict[str, np.ndarray]:
        """The state after a worker of that name, if there is one, got another that nobody has; most know no workers."""
        return dict(state)


class Accumulator(Statistic, Protocol):
    """Any order and batching of the same comparisons gives the same state, so states add up."""

    mergeable: ClassVar[Literal[True]] = True

    def merge(self, other: Self) -> None:
        """Add another one's counts; both speak of the same object ids. `other` is left unchanged."""


class Ledger(Statistic, Protocol):
    """Depends on the order of arrival in one stream, bit for bit the same whatever the batches: two cannot be merged.

    Of this kind, though no statistics, are the object index (ids by first appearance), the labels (the last one holds)
    and the guard of the partial order. Merging states unites these by a rule: names by name, the first state's labels
    first, and what the other guard kept is offered to this one.
    """

    mergeable: ClassVar[Literal[False]] = False


def accumulator(name: str, forgetting: Forgetting = BY_TIME) -> type[Accumulator] | type[Ledger]:
    """The class registered under `name`: where it forgets by count, the ledger in its place."""
    registered = BY_ARRIVAL if forgetting.by == "count" and name in BY_ARRIVAL else ACCUMULATORS
    module, _, attribute = registered[name].partition(":")
    return getattr(import_module(module), attribute)


def empty(name: str, forgetting: Forgetting = BY_COUNT, allocation: Allocation = IN_MEMORY) -> Accumulator | Ledger:
    """Nothing counted yet, of the class registered under `name`."""
    kind = accumulator(name, forgetting)
    return kind.empty(allocation, **{field: getattr(forgetting, field) for field in kind.forgets})
