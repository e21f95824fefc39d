"""Collects the accepted and rejected events of a value, and returns the block as `DecodedEvents`.

Whatever the pieces in which events arrive, the block is in row order, and every event is accepted or rejected exactly
once. O(members + comparisons), vectorised.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter

import numpy as np

from stream_engine.data.comparisons import EVENT_TYPES, DecodedEvents, InvalidEvent, Kinds, Label, Provenance, Rejected
from stream_engine.data.compiled import njit, read_only
from stream_engine.data.packed_names import Names
from stream_engine.formats import expand_in_pieces
from stream_engine.formats.event_columns import FieldNames, Origins, Piece, Pool, empty_piece, in_order, members_of
from stream_engine.formats.event_fields import LABEL, PICK, TRIPLET
from stream_engine.formats.expand import FINE, SAME, Faults, explain, faults_of, name_flags
from stream_engine.formats.expand_in_pieces import AcceptedOrigins, EventArrays, Pieces
from stream_engine.formats.options import EventOptions
from stream_engine.formats.validate import CatchTrial, Event, trial_key

MAX_UNKNOWN = 100  # names of unknown fields that a decoder remembers


# The most common block, of valid triplet events only, in one pass over their members and a quarter of the time: the
# same result as `expand` and `first_appearance`, or None.
def plain_triplets(events: Piece, texts: Names) -> DecodedEvents | None:
    """The comparisons of events that are all valid triplets; None for any others, for no events, for more than one
    piece, and for events with a worker, time or sampler."""
    m, origins = len(events.kind), events.origins
    if events.votes is not None:
        return None
    if not 0 < m <= expand_in_pieces.COMPARISONS_AT_ONCE or len(events.members) != 3 * m:
        return None
    if origins is not None and not all(column.strides == (0,) for column in origins):
        return None
    if (events.kind != TRIPLET).any() or (events.size != 3).any() or name_flags(texts).any():
        return None
    triplets, order = np.empty((m, 3), np.int32), np.empty(len(texts), np.int32)
    used = _numbered(read_only(events.members, np.int32), triplets, order)
    if used < 0:
        return None
    none, of_triplet = np.empty(0, np.int64), np.arange(m, dtype=np.int32)
    kinds = Kinds(of_triplet, none.astype(np.int32), events.kind)
    return DecodedEvents(
        texts.taken(order[:used]),
        triplets,
        np.empty((0, 4), np.int32),
        none,
        [],
        {EVENT_TYPES[TRIPLET]: m},
        [],
        provenance=None if origins is None else _told_nothing(kinds, origins),
        kinds=kinds,
    )


def _told_nothing(kinds: Kinds, origins: Origins) -> Provenance:
    """That of events which name neither worker nor sampler."""
    worker, weight, time, sampler, seconds = origins
    nowhere = np.broadcast_to(np.int32(0), len(worker))
    return Provenance(
        *kinds[:3], worker, [], weight, time, sampler=sampler, shown=nowhere, position=nowhere, seconds=seconds
    )


@njit(cache=True, nogil=True)
def _numbered(members, triplets, order):
    """Triplets with names renumbered by first appearance, the old numbers in `order`; how many names, or -1 where two
    of a triplet are the same."""
    new = np.full(len(order), -1, np.int32)
    count = 0
    for t in range(len(triplets)):
        a, b, c = members[3 * t], members[3 * t + 1], members[3 * t + 2]
        if a in (b, c) or b == c:
            return -1
        for column in range(3):
            old = members[3 * t + column]
            if new[old] < 0:
                new[old], order[count] = count, old
                count += 1
            triplets[t, column] = new[old]
    return count


_NO_OPTIONS = EventOptions()


class Block:
    """What was read of a value so far. With `provenance`, it keeps who gave each answer, when, and with what weight;
    `options`: those of the events."""

    def __init__(self, provenance: bool, options: EventOptions = _NO_OPTIONS):
        self.provenance, self.catch_by_anchor, self._columns = provenance, options.catch_by_anchor, options.columns
        self.names, self.workers, self.samplers = Pool(), Pool(), Pool()
        self.refused: list[tuple[int, InvalidEvent]] = []
        self.filtered = 0
        self._pieces: list[Piece] = []
        self._catch_trials: list[tuple[int, CatchTrial]] = []

    def add_catch_trial(self, row: int, trial: CatchTrial) -> None:
        """Add a catch trial: excluded like events excluded by `--where`, and stored with its worker."""
        self.filtered += 1
        self._catch_trials.append((row, trial))

    def add(
        self,
        kind: int,
        row: np.ndarray,
        fields: Sequence[FieldNames],
        origins: Origins | None = None,
        votes: np.ndarray | None = None,
    ) -> None:
        """Add events of one kind, field by field in the order of the contract."""
        size = np.add.reduce([field.lengths for field in fields])
        self._add(
            row, np.full(len(row), kind, np.int8), size, fields[-1].lengths, members_of(fields, size), origins, votes
        )

    def add_events(self, rows: list[int], events: list[Event]) -> None:
        """Add events of any kinds that were read one by one."""
        if not events:
            return
        size = np.array([sum(map(len, event.names)) for event in events], np.int64)
        last = np.array([len(event.names[-1]) for event in events], np.int64)
        members = chain.from_iterable(chain.from_iterable(event.names) for event in events)
        origins = None
        if self.provenance:
            origins = Origins(
                _numbers(self.workers, [event.worker for event in events]),
                np.array([event.weight for event in events]),
                np.array([event.time for event in events]),
                _numbers(self.samplers, [event.sampler for event in events]),
                np.array([event.seconds for event in events]),
            )
        kinds = np.array([event.kind for event in events], np.int8)
        votes = np.array([event.votes for event in events], np.int64)
        self._add(np.array(rows, np.int64), kinds, size, last, self.names.ids(members), origins, votes)

    def _add(self, row, kind, size, last, members, origins: Origins | None, votes: np.ndarray | None = None) -> None:
        if votes is not None and (votes == (1, 0)).all():
            votes = None
        self._pieces.append(Piece(row, kind, size, size - last, members, origins if self.provenance else None, votes))

    def decoded(
        self, locate: Callable[[int], tuple[int, bytes]], unknown: frozenset[str] = frozenset()
    ) -> DecodedEvents:
        """The block as columns; `locate(row)` returns the start and the bytes of a rejected event."""
        events = in_order(self._pieces) if self._pieces else empty_piece(self.provenance)
        texts, members = self.names.texts(), events.members
        if not self.refused and (plain := plain_triplets(events, texts)):
            return plain._replace(filtered=self.filtered, unknown_fields=unknown)
        start = np.zeros(len(events.size) + 1, np.int64)
        np.cumsum(events.size, out=start[1:])
        flags = name_flags(texts)
        arrays = EventArrays(events.kind, start, start[:-1] + events.split, members, flags, events.votes)
        faults = faults_of(*arrays[:5], votes=events.votes)
        accepted = faults.fault == FINE

        def names_of(event: int) -> list[str]:
            return [texts[member] for member in members[start[event] : start[event + 1]]]

        for event in np.flatnonzero(~accepted).tolist():
            row, names = int(events.row[event]), names_of(event)
            passed = _passed_catch(events, faults, event, names) if self.catch_by_anchor else None
            if passed is None:
                self.refused.append((row, _fault_of(events, faults, event, names, self._columns)))
            else:
                self.add_catch_trial(row, self._catch_trial(events, event, names, passed))
        rejected = []
        for row, fault in sorted(self.refused, key=itemgetter(0)):
            begin, value = locate(row)
            rejected.append(Rejected(row, begin, fault.reason, str(fault), value))
        self.refused = []  # a fault holds the frames it was raised in, and these the values of a whole poll: a cycle
        kinds = events.kind if accepted.all() else events.kind[accepted]
        of_type = np.bincount(kinds, minlength=len(EVENT_TYPES)).tolist()
        origins = None if events.origins is None else self._accepted_origins(events.origins, accepted)
        pieces = Pieces(arrays, faults, texts, origins)
        first, *others = pieces.runs()
        return pieces.block(first)._replace(
            labels=[_label(names_of(event)) for event in np.flatnonzero((events.kind == LABEL) & accepted).tolist()],
            events={name: number for name, number in zip(EVENT_TYPES, of_type, strict=True) if number},
            rejected=rejected,
            filtered=self.filtered,
            unknown_fields=unknown,
            rest=pieces.of(others) if others else (),
        )

    def _catch_trial(self, events: Piece, event: int, names: list[str], passed: bool) -> CatchTrial:
        worker, origins = self._worker_of(events, event), events.origins
        if origins is None:
            return CatchTrial(worker, passed)
        time, seconds = float(origins.time[event]), float(origins.seconds[event])
        return CatchTrial(worker, passed, trial_key(worker, time, seconds, "\n".join(names)))

    def _worker_of(self, events: Piece, event: int) -> str | None:
        number = -1 if events.origins is None else int(events.origins.worker[event])
        return None if number < 0 else self.workers.texts()[number]

    def _accepted_origins(self, origins: Origins, accepted: np.ndarray) -> AcceptedOrigins:
        """Workers are numbered in the order in which they first appear in accepted events, then in catch trials."""
        if not accepted.all():
            origins = Origins(*(column[accepted] for column in origins))
        worker, names = _by_first_appearance(origins.worker, self.workers.texts())
        sampler, samplers = _by_first_appearance(origins.sampler, self.samplers.texts())
        number_of: dict[str | None, int] = {name: number for number, name in enumerate(names)} | {None: -1}
        trials = [trial for _, trial in sorted(self._catch_trials, key=itemgetter(0))]
        for trial in trials:
            if trial.worker is not None and trial.worker not in number_of:
                number_of[trial.worker] = len(names)
                names.append(trial.worker)
        return AcceptedOrigins(
            worker,
            origins.weight,
            origins.time,
            names,
            sampler,
            samplers,
            np.array([number_of[trial.worker] for trial in trials], np.int32),
            np.array([trial.passed for trial in trials], bool),
            np.array([trial.key for trial in trials], np.uint64),
            origins.seconds,
        )


def _numbers(pool: Pool, names: Sequence[str | None]) -> np.ndarray:
    """(e,) int32: the number of each name, -1 where there is none."""
    named = np.fromiter(map(bool, names), bool, len(names))
    numbers = np.full(len(names), -1, np.int32)
    numbers[named] = pool.ids([name for name in names if name])
    return numbers


def _by_first_appearance(column: np.ndarray, texts: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Numbers of names (-1: none), renumbered by first appearance; and these names."""
    if not len(texts):
        return column, []
    used, first = np.unique(column[column >= 0], return_index=True)
    used = used[np.argsort(first)]
    new = np.full(len(texts) + 1, -1, np.int32)  # the slot at the end stands for "none"
    new[used] = np.arange(len(used))
    return new[column], [texts[old] for old in used]


def nothing(empty: int = 0, unknown: frozenset[str] = frozenset(), provenance: bool = False) -> DecodedEvents:
    """A value without events."""
    return Block(provenance).decoded(lambda row: (0, b""), unknown)._replace(empty=empty)


def unreadable(value: bytes, message: str, provenance: bool = False, reason: str = "not_parseable") -> DecodedEvents:
    """A value that cannot be split into events: one rejected event, with all of its bytes."""
    block = Block(provenance)
    block.refused.append((0, InvalidEvent(reason, message)))
    return block.decoded(lambda row: (0, value))


def _fault_of(
    events: Piece, faults: Faults, event: int, names: list[str], columns: Mapping[str, tuple[str, ...]]
) -> InvalidEvent:
    first, second = faults.members[event].tolist()
    fault, kind, split = (int(column[event]) for column in (faults.fault, events.kind, events.split))
    inputs = columns.get("shown" if kind == PICK else "objects", ())
    return explain(fault, kind, names, split, first, second, inputs)


def _passed_catch(events: Piece, faults: Faults, event: int, names: list[str]) -> bool | None:
    """Whether a catch trial that offered the anchor itself was passed; None if the event is not a catch trial."""
    anchor_again = faults.fault[event] == SAME and faults.members[event, 0] == 0
    split = int(events.split[event])
    if not anchor_again or events.kind[event] not in (TRIPLET, PICK):
        return None
    offered, chosen = (names[1:], names[1:2]) if events.kind[event] == TRIPLET else (names[1:split], names[split:])
    return names[0] in chosen if chosen and set(chosen) <= set(offered) else None


def _label(names: list[str]) -> Label:
    return Label(names[0], names[1] if len(names) == 2 else None)
