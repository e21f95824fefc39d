"""The fold: state = fold(step, empty, records). No clock, thread, socket, file, logger or metric in here.

The state is accumulators (order-free, mergeable), ledgers (order-dependent), exact counters, and the position after the
last record of every partition. A record's effect and its position enter together, so every snapshot is consistent.
"""

import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np

from connectors import Position
from stream_engine.counts import (
    ACCUMULATORS,
    BY_COUNT,
    DEFAULT_ACCUMULATORS,
    Accumulator,
    Forgetting,
    Ledger,
    accumulator,
    common_sums,
    empty,
)
from stream_engine.counts.sorted_counts import TooManyCounts
from stream_engine.data.comparisons import Batch, DecodedEvents, ExternalCounts, Quadruplet, Triplet, triplet_times
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation
from stream_engine.data.triplet_columns import handed_over
from stream_engine.order.partial_order import PartialOrder, Verdicts
from stream_engine.order.stored_states import CHANGED, FORMER, POLICY
from stream_engine.state import event_time, merging
from stream_engine.state.merging import OPTIONAL_COUNTERS, OverlappingStates, empty_counters
from stream_engine.state.object_index import ObjectIndex, decoded_of, learn_labels
from stream_engine.state.snapshot import Snapshot, frozen


class Engine:
    """The counts, labels and partial order after some prefix of a stream of comparisons.

    Parameters
    ----------
    accumulators : iterable of str
        Registered names, see `stream_engine.counts.ACCUMULATORS`.
    guard : bool
        Whether a partial order is kept.
    forgetting : Forgetting
        Half-life and window of the accumulators that forget.
    allocation : Allocation
        Where large arrays are kept: in memory, or on disk.

    Examples
    --------
    >>> engine = Engine()
    >>> engine.learn_many([Triplet("a", "b", "c"), Triplet("a", "c", "b"), Triplet("b", "a", "c")])
    >>> engine.counters["guard"]
    {'accepted': 2, 'duplicate': 0, 'contradiction': 1, 'cycle': 0}
    """

    def __init__(
        self,
        accumulators: Iterable[str] = DEFAULT_ACCUMULATORS,
        guard: bool = True,
        forgetting: Forgetting = BY_COUNT,
        allocation: Allocation = IN_MEMORY,
    ):
        self.objects = ObjectIndex()
        self.labels: dict[str, str] = {}
        self.counters = empty_counters()
        self.positions: dict[str, Position] = {}
        names = set(accumulators)
        self.accumulators: dict[str, Accumulator | Ledger] = {
            name: empty(name, forgetting, allocation) for name in ACCUMULATORS if name in names
        }
        common_sums.share(self.accumulators)
        self.forgetting = forgetting
        self._look_at_accumulators()
        self.allocation = allocation
        if isinstance(guard, str):
            warnings.warn("the policies of the guard are gone; use guard=True or False", FutureWarning, stacklevel=2)
            guard = guard != "off"
        self.guard = PartialOrder() if guard else None
        self.sequence = 0  # of the last snapshot taken
        self.sinks: dict[str, Any] = {}  # what sinks asked to be remembered: positions after the last durable letter
        self.share: str | None = None  # "i/n": the share of a topic's partitions that the state was made with

    def _look_at_accumulators(self) -> None:
        """What a batch needs, by the accumulators."""
        counting = self.accumulators.values()
        self._hashes_names = any(accumulator.needs_name_hashes for accumulator in counting)
        self._follows_time = any(accumulator.newest_time is not None for accumulator in counting)
        self._jump_limit = event_time.jump_limit(
            self.forgetting, {name for accumulator in counting for name in accumulator.forgets}
        )

    @property
    def history(self) -> list[dict[str, Any]]:
        """Operators' actions on the state (positions moved, objects forgotten, ...), oldest first.

        Returns
        -------
        list of dict
            Each with `did`, `time` and details.
        """
        return self.counters["history"]

    @property
    def lost(self) -> dict[str, int]:
        """Records that were skipped with consent.

        Returns
        -------
        dict of str to int
            Number of records by partition.
        """
        return self.counters["lost"]

    def note(self, did: str, **details: Any) -> None:
        """Add an operator's action to the history. Only this method uses the clock: actions are not records, and no
        record causes one.

        Parameters
        ----------
        did : str
            The kind of action.
        **details : JSON values
            What was done.
        """
        time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self.history.append({"did": did, "time": time, **details})

    def batch(self, decoded: DecodedEvents) -> Batch:
        """Convert the comparisons of a block to object ids; new names get their ids here.

        Parameters
        ----------
        decoded : Decoded
            A block of events.

        Returns
        -------
        Batch
            The comparisons by object id, in order.
        """
        ids = self.objects.ids(decoded.names)
        return Batch(
            ids[decoded.triplets],
            ids[decoded.quadruplets],
            decoded.quadruplet_at,
            len(self.objects),
            decoded.provenance,
            decoded.kinds,
            self.objects.name_hashes() if self._hashes_names else None,
        )

    def learn(self, decoded: DecodedEvents, positions: Mapping[str, Position] = {}, records: int = 1) -> Batch:
        """Count one decoded block, and store the positions after it.

        O(comparisons) amortised.

        Parameters
        ----------
        decoded : Decoded
            A block of events.
        positions : mapping of str to Position
            The position after the block, by partition.
        records : int
            Number of records in the block.

        Returns
        -------
        Batch
            The comparisons by object id; only the last piece if they come in pieces.
        """
        for batch in self.learn_in_pieces(decoded, positions, records):
            last = batch
        return last

    def learn_in_pieces(
        self,
        decoded: DecodedEvents,
        positions: Mapping[str, Position] = {},
        records: int = 1,
        judge: Callable[[Batch], None] | None = None,
    ) -> Iterator[Batch]:
        """Count one decoded block piece by piece, if its comparisons come in pieces.

        The iterator must be exhausted: before that, the state is in the middle of a record, and `positions` are still
        those before it.

        Parameters
        ----------
        decoded : Decoded
            A block of events.
        positions : mapping of str to Position
            The position after the block, by partition.
        records : int
            Number of records in the block.
        judge : callable, optional
            Called with each batch instead of `Engine.judge`; it may judge later, in order.

        Yields
        ------
        Batch
            The comparisons of each piece by object id.
        """
        yield self._learn_block(decoded, records, judge or self.judge)
        for piece in decoded.rest:
            yield self._learn_block(piece, 0, judge or self.judge)
        self.positions |= positions

    def judge(self, batch: Batch) -> None:
        """Offer a batch to the guard, if there is one, and count the verdicts.

        Parameters
        ----------
        batch : Batch
            Comparisons by object id.
        """
        if self.guard:
            self.count_verdicts(self.guard.offer(batch))

    def count_verdicts(self, verdicts: Verdicts) -> None:
        """Count the guard's verdicts about a batch.

        Parameters
        ----------
        verdicts : Verdicts
            The verdicts.
        """
        merging.count(self.counters["guard"], verdicts._asdict())

    def _learn_block(self, decoded: DecodedEvents, records: int, judge: Callable[[Batch], None]) -> Batch:
        batch = self.batch(decoded)
        judge(batch)
        if self._follows_time:
            newest = max(
                time for accumulator in self.accumulators.values() if (time := accumulator.newest_time) is not None
            )
            event_time.count_jumps(self.counters["time_jumps"], newest, triplet_times(batch), self._jump_limit)
        for counts in self.accumulators.values():
            counts.update(batch)
        if decoded.counted:
            self._learn_counted(decoded.counted, self.objects.ids(decoded.names))
        learn_labels(self.labels, decoded.labels)
        merging.count_block(self.counters, decoded, batch, records)
        return batch

    def _learn_counted(self, counted: ExternalCounts, ids: np.ndarray) -> None:
        """Add counts made elsewhere, object i of theirs being ids[i] here; the guard is offered their net votes."""
        self._add(counted.states.__getitem__, ids)
        if self.guard:
            self.count_verdicts(self.guard.offer_rows(ids[counted.votes]))

    def learn_many(self, comparisons: Iterable[Triplet | Quadruplet]) -> None:
        """Count comparisons from Python.

        Parameters
        ----------
        comparisons : iterable of Triplet or Quadruplet
            The comparisons, by object name.

        Raises
        ------
        InvalidEvent
            If one of them is invalid; then nothing is counted.
        """
        decoded = decoded_of(comparisons)
        self.learn(decoded, records=sum(decoded.events.values()))

    def learn_one(self, comparison: Triplet | Quadruplet) -> None:
        """Count one comparison.

        Parameters
        ----------
        comparison : Triplet or Quadruplet
            The comparison, by object name.

        Raises
        ------
        InvalidEvent
            If it is invalid.
        """
        self.learn_many([comparison])

    def settings(self) -> dict[str, Any]:
        """The settings that determine the state; a state can only be resumed with the same settings.

        Returns
        -------
        dict
            JSON values by name.
        """
        fields = {field for accumulator in self.accumulators.values() for field in accumulator.forgets}
        fields |= {"by"} if fields else set()
        forgetting = {field: value for field, value in self.forgetting._asdict().items() if field in fields}
        return {
            "accumulators": list(self.accumulators),
            "guard": POLICY if self.guard else None,
            **({"forgetting": forgetting} if forgetting else {}),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays of the state.

        Returns
        -------
        dict of str to ndarray
            Arrays named "section/array"; they may be views of live memory.
        """
        arrays = self._counted_arrays()
        return arrays | (_prefixed("partial_order", self.guard.state()) if self.guard else {})

    def _counted_arrays(self) -> dict[str, np.ndarray]:
        arrays: dict[str, np.ndarray] = {}
        states: dict[int, dict[str, np.ndarray]] = {}  # of two that are held as one, the arrays are the same
        for name, counts in self.accumulators.items():
            holder = common_sums.holder(counts)
            states[id(holder)] = state = states.get(id(holder)) or holder.state()
            arrays |= _prefixed(name, state)
        return arrays

    def capture(self, last: bool = False) -> tuple[Snapshot, Callable[[], Snapshot]]:
        """Copy the state, with the next sequence number, and leave the sorting of the partial order for later.

        Parameters
        ----------
        last : bool
            Nothing is learned afterwards: the guard is emptied once it is copied, before anything else is, as it takes
            most of the memory.

        Returns
        -------
        snapshot : Snapshot
            The state without the partial order.
        finish : callable
            Returns the complete snapshot, at any time and in any thread.
        """
        self.sequence += 1
        counters = copy.deepcopy(self.counters) | {"sinks": copy.deepcopy(self.sinks)}
        counters = {name: value for name, value in counters.items() if value or name not in OPTIONAL_COUNTERS}
        if self.share:
            counters["share"] = self.share
        order = self.guard.capture(last) if self.guard else dict
        arrays = frozen(self._counted_arrays(), self.allocation)
        now = Snapshot(
            self.sequence,
            dict(self.positions),
            self.objects.names,
            dict(self.labels),
            counters,
            self.settings(),
            arrays,
        )

        def whole() -> Snapshot:
            ordered = handed_over(_prefixed("partial_order", order()))
            return now._replace(arrays={**arrays, **frozen(ordered, self.allocation)})

        return now, whole

    def snapshot(self) -> Snapshot:
        """Copy the state, with the next sequence number. O(state), plus sorting the partial order.

        Returns
        -------
        Snapshot
            The immutable state.
        """
        return self.capture()[1]()

    @classmethod
    def restore(cls, snapshot: Snapshot, allocation: Allocation = IN_MEMORY) -> Self:
        """Create an engine that continues from a snapshot, bit for bit.

        Parameters
        ----------
        snapshot : Snapshot
            The state.
        allocation : Allocation
            Where large arrays are kept.

        Returns
        -------
        Engine
            The engine.

        Raises
        ------
        Corrupt
            If the partial order of the snapshot is invalid.
        """
        forgetting = Forgetting(**snapshot.settings.get("forgetting", {}))
        engine = cls((), False, forgetting, allocation)
        engine.objects = ObjectIndex(snapshot.objects)
        engine.labels = dict(snapshot.labels)
        engine.counters = {name: empty() for name, empty in OPTIONAL_COUNTERS.items()} | copy.deepcopy(
            dict(snapshot.counters)
        )
        engine.sinks = engine.counters.pop("sinks", {})
        engine.share = engine.counters.pop("share", None)
        engine.positions = dict(snapshot.positions)
        engine.sequence = snapshot.sequence
        engine.accumulators = {
            name: accumulator(name, forgetting).from_state(snapshot.section(name), allocation)
            for name in ACCUMULATORS
            if name in snapshot.settings["accumulators"]
        }
        common_sums.share(engine.accumulators)
        engine._look_at_accumulators()
        engine.guard = order_of(snapshot)
        if snapshot.settings["guard"] in FORMER:
            engine.note(CHANGED, was=snapshot.settings["guard"], now=POLICY)
        return engine

    def _add(self, state_of: Callable[[str], Mapping[str, np.ndarray]], new_id: np.ndarray) -> None:
        """Add a state of each accumulator, object i of theirs being new_id[i] here."""
        merging.add(merging.all_mergeable(self.accumulators), state_of, new_id, self.allocation)

    def merge(self, other: Self) -> None:
        """Add the counts of another engine that read other partitions.

        Objects are united by name, accumulators are summed, the kept comparisons of the other guard are offered to this
        one, and labels are united (for an object with two labels, this engine's stays).

        Parameters
        ----------
        other : Engine
            Remains unchanged.

        Raises
        ------
        OverlappingStates
            If both engines read the same partition, or keep different statistics.
        """
        shared = sorted(self.positions.keys() & other.positions.keys())
        if shared:
            raise OverlappingStates(f"both states have read {', '.join(shared)}; their events would count twice")
        if self.settings() != other.settings():
            raise OverlappingStates(f"states of different kinds: {self.settings()} and {other.settings()}")
        merging.all_mergeable(self.accumulators)
        theirs = merging.all_mergeable(other.accumulators)
        new_id = self.objects.ids(other.objects.names)
        try:
            self._add(lambda name: theirs[name].state(), new_id)
        except TooManyCounts as error:
            raise OverlappingStates(f"the states cannot be summed: {error}") from None
        if self.guard and other.guard:
            self.guard.merge_from(other.guard, new_id)
        self.labels = {**other.labels, **self.labels}
        self.positions |= other.positions
        self.counters = merging.summed(self.counters, other.counters)
        self.share = None


def order_of(snapshot: Snapshot) -> PartialOrder | None:
    """The partial order of a snapshot. Raises `Corrupt` where there is a cycle in it, which reading does not notice."""
    return PartialOrder.from_state(snapshot.section("partial_order")) if snapshot.settings["guard"] else None


def _prefixed(section: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{section}/{key}": array for key, array in arrays.items()}
