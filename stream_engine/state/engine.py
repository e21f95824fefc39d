"""The fold: state = fold(step, empty, records). No clock, thread, socket, file, logger or metric in here.

The state is made of accumulators (order-free, mergeable), ledgers (order-dependent: the object index, the labels, the
guard of the partial order, and statistics of the order of arrival), exact counters, and the position after the last
record of every partition. A record's effect and its position enter together, so a snapshot between two records is
always consistent.
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
from stream_engine.data.comparisons import Batch, Decoded, ExternalCounts, Quadruplet, Triplet, canonical_quadruplet
from stream_engine.data.mapped_arrays import IN_MEMORY, Allocation
from stream_engine.data.triplet_columns import handed_over
from stream_engine.order.partial_order import PartialOrder, Verdicts
from stream_engine.order.stored_states import CHANGED, FORMER, POLICY
from stream_engine.state import merged_votes
from stream_engine.state.labels import learn_labels
from stream_engine.state.object_index import ObjectIndex
from stream_engine.state.snapshot import Snapshot, frozen

_PLAIN_COUNTS = ("events", "records", "comparisons", "triplets", "quadruplets", "labels", "filtered", "empty")
# in a snapshot only where there is something
_SELDOM: dict[str, Callable[[], Any]] = {"lost": dict, "dead_letters": dict, "history": list, "input": dict}
_NOT_COUNTED = ExternalCounts({}, np.empty((0, 4), np.int32), 0, 0, 0, 0)


class OverlappingStates(ValueError):
    """Two states that cannot be merged: they counted the same partition, whose events would count twice, or differ in
    kind. One line."""


def empty_counters() -> dict[str, Any]:
    """All counters at zero. `rejected` is by reason, `kinds` by event type, `progressive` by predictor, `lost` (records
    that were passed over with consent) by partition, `dead_letters` (which are in their folder no more) by what became
    of them: lost or removed; `history` is what operators did to the state, oldest first; `input` says how it was
    read."""
    return {
        **dict.fromkeys(_PLAIN_COUNTS, 0),
        "rejected": {},
        "kinds": {},
        "guard": dict.fromkeys(Verdicts._fields, 0),
        "unknown_fields": [],
        "progressive": {},
        **{name: empty() for name, empty in _SELDOM.items()},
    }


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
        wanted = set(accumulators)
        self.accumulators: dict[str, Accumulator | Ledger] = {
            name: empty(name, forgetting, allocation) for name in ACCUMULATORS if name in wanted
        }
        common_sums.share(self.accumulators)
        self._hashes_names = any(each.needs_name_hashes for each in self.accumulators.values())
        self.forgetting = forgetting
        self.allocation = allocation
        if isinstance(guard, str):
            warnings.warn("the policies of the guard are gone; use guard=True or False", FutureWarning, stacklevel=2)
            guard = guard != "off"
        self.guard = PartialOrder() if guard else None
        self.sequence = 0  # of the last snapshot taken
        self.sinks: dict[str, Any] = {}  # what sinks asked to be remembered: positions after the last durable letter
        self.share: str | None = None  # "i/n": the share of a topic's partitions that the state was made with

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

    def batch(self, decoded: Decoded) -> Batch:
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

    def learn(self, decoded: Decoded, positions: Mapping[str, Position] = {}, records: int = 1) -> Batch:
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
        decoded: Decoded,
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
        self._count("guard", verdicts._asdict())

    def _learn_block(self, decoded: Decoded, records: int, judge: Callable[[Batch], None]) -> Batch:
        batch = self.batch(decoded)
        judge(batch)
        for each in self.accumulators.values():
            each.update(batch)
        if decoded.counted:
            self._learn_counted(decoded.counted, self.objects.ids(decoded.names))
        learn_labels(self.labels, decoded.labels)
        counters = self.counters
        counters["records"] += records
        counters["events"] += sum(decoded.events.values())
        elsewhere = decoded.counted or _NOT_COUNTED
        triplets, quadruplets = (
            len(batch.triplets) + elsewhere.triplets,
            len(batch.quadruplets) + elsewhere.quadruplets,
        )
        counters["triplets"] += triplets
        counters["quadruplets"] += quadruplets
        counters["comparisons"] += triplets + quadruplets
        counters["labels"] += elsewhere.labels if decoded.counted else len(decoded.labels)
        counters["filtered"] += decoded.filtered
        counters["empty"] += decoded.empty
        self._count("kinds", decoded.events)
        for rejected in decoded.rejected:
            self._count("rejected", {rejected.reason: 1})
        if not decoded.unknown_fields <= set(counters["unknown_fields"]):
            counters["unknown_fields"] = sorted(decoded.unknown_fields.union(counters["unknown_fields"]))
        return batch

    def _learn_counted(self, counted: ExternalCounts, ids: np.ndarray) -> None:
        """Add counts made elsewhere, object i of theirs being ids[i] here; the guard is offered their net votes."""
        self._merge(counted.states.__getitem__, ids)
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
        names: dict[str, int] = {}
        triplets: list[list[int]] = []
        quadruplets: list[list[int]] = []
        triplets_before: list[int] = []
        for comparison in comparisons:
            if isinstance(comparison, Triplet):
                pair = (comparison.anchor, comparison.near), (comparison.anchor, comparison.far)
            else:
                pair = comparison.near, comparison.far
            row = [names.setdefault(name, len(names)) for name in canonical_quadruplet(*pair[0], *pair[1])]
            if len(row) == 3:
                triplets.append(row)
            else:
                triplets_before.append(len(triplets))
                quadruplets.append(row)
        kinds = {"triplet": len(triplets), "quadruplet": len(quadruplets)}
        self.learn(
            Decoded(
                list(names),
                np.array(triplets, np.int32).reshape(-1, 3),
                np.array(quadruplets, np.int32).reshape(-1, 4),
                np.array(triplets_before, np.int64),
                [],
                {kind: n for kind, n in kinds.items() if n},
                [],
            ),
            records=len(triplets) + len(quadruplets),
        )

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

    def _count(self, name: str, more: Mapping[str, int]) -> None:
        table = self.counters[name]
        for key, n in more.items():
            table[key] = table.get(key, 0) + n

    def settings(self) -> dict[str, Any]:
        """The settings that determine the state; a state can only be resumed with the same settings.

        Returns
        -------
        dict
            JSON values by name.
        """
        used = {field for each in self.accumulators.values() for field in each.forgets}
        used |= {"by"} if used else set()
        forgetting = {field: value for field, value in self.forgetting._asdict().items() if field in used}
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
        for name, each in self.accumulators.items():
            holder = common_sums.holder(each)
            states[id(holder)] = state = states.get(id(holder)) or holder.state()
            arrays |= _prefixed(name, state)
        return arrays

    def capture(self) -> tuple[Snapshot, Callable[[], Snapshot]]:
        """Copy the state, with the next sequence number, and leave the sorting of the partial order for later.

        Returns
        -------
        snapshot : Snapshot
            The state without the partial order.
        finish : callable
            Returns the complete snapshot, at any time and in any thread.
        """
        self.sequence += 1
        counters = copy.deepcopy(self.counters) | {"sinks": copy.deepcopy(self.sinks)}
        counters = {name: value for name, value in counters.items() if value or name not in _SELDOM}
        if self.share:
            counters["share"] = self.share
        order = self.guard.capture() if self.guard else dict
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
        engine.counters = {name: empty() for name, empty in _SELDOM.items()} | copy.deepcopy(dict(snapshot.counters))
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
        engine._hashes_names = any(each.needs_name_hashes for each in engine.accumulators.values())
        engine.guard = order_of(snapshot)
        if snapshot.settings["guard"] in FORMER:
            engine.note(CHANGED, was=snapshot.settings["guard"], now=POLICY)
        return engine

    def _all_mergeable(self) -> dict[str, Accumulator]:
        """The accumulators by name. Raises `OverlappingStates` where there is a ledger among them."""
        mergeable: dict[str, Accumulator] = {}
        for name, each in self.accumulators.items():
            if not each.mergeable:
                raise OverlappingStates(
                    f"{name} depends on the order of arrival in one stream and cannot be merged"
                    + ('; forgetting.by = "time" can' if each.forgets else "")
                )
            mergeable[name] = each
        return mergeable

    def _merge(self, state_of: Callable[[str], Mapping[str, np.ndarray]], new_id: np.ndarray) -> None:
        """Add a state of each accumulator, object i of theirs being new_id[i] here."""
        mergeable = self._all_mergeable()
        common_sums.part(mergeable, state_of)
        for name, mine in mergeable.items():
            if common_sums.holder(mine) is mine:
                mine.merge(type(mine).from_state(mine.renamed(state_of(name), new_id), self.allocation))

    def merge(self, other: Self) -> None:
        """Add the counts of another engine that read other partitions.

        Objects are united by name, accumulators are summed, the kept comparisons of the other guard are offered to this
        one, and labels are united (for an object with two labels, this engine's stays). If only one engine keeps votes
        of participants, the sum has them if the other one read no participants' names.

        Parameters
        ----------
        other : Engine
            Remains unchanged.

        Raises
        ------
        OverlappingStates
            If both engines read the same partition.
        """
        both = sorted(self.positions.keys() & other.positions.keys())
        if both:
            raise OverlappingStates(f"both states have read {', '.join(both)}; their events would count twice")
        if _without_optional(self.settings()) != _without_optional(other.settings()):
            raise OverlappingStates(f"states of different kinds: {self.settings()} and {other.settings()}")
        if self.accumulators.keys() != other.accumulators.keys():
            try:
                agreed = merged_votes.agreed(self.accumulators, other.accumulators, self.counters, other.counters)
            except merged_votes.VotesUnknown as error:
                raise OverlappingStates(str(error)) from None
            self.accumulators = {name: agreed[name] for name in ACCUMULATORS if name in agreed}
        self._all_mergeable()
        theirs = other._all_mergeable()
        new_id = self.objects.ids(other.objects.names)
        try:
            self._merge(lambda name: (theirs[name] if name in theirs else empty(name)).state(), new_id)
        except TooManyCounts as error:
            raise OverlappingStates(f"the states cannot be summed: {error}") from None
        if self.guard and other.guard:
            self.guard.merge_from(other.guard, new_id)
        self.labels = {**other.labels, **self.labels}
        self.positions |= other.positions
        for name in _PLAIN_COUNTS:
            self.counters[name] += other.counters[name]
        for name in ("rejected", "kinds", "guard", "lost", "dead_letters"):
            self._count(name, other.counters[name])
        self.counters["history"] = sorted([*self.history, *other.history], key=lambda deed: deed["time"])
        self.share = None
        if self.counters["input"] != other.counters["input"]:
            self.counters["input"] = {}
        unknown = {*self.counters["unknown_fields"], *other.counters["unknown_fields"]}
        self.counters["unknown_fields"] = sorted(unknown)


def order_of(snapshot: Snapshot) -> PartialOrder | None:
    """The partial order of a snapshot. Raises `Corrupt` where there is a cycle in it, which reading does not notice."""
    return PartialOrder.from_state(snapshot.section("partial_order")) if snapshot.settings["guard"] else None


def _without_optional(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **settings,
        "accumulators": [name for name in settings["accumulators"] if name not in merged_votes.OPTIONAL],
    }


def _prefixed(section: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {f"{section}/{key}": array for key, array in arrays.items()}
