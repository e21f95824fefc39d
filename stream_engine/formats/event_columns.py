"""Columns of events on the way from a format to `Decoded`: names become indices, pieces become one block in order.

A format hands over *pieces*, each the events of some rows with the names of each field as (lengths, flat indices), and
the events that it refused itself. Invariant: whatever the pieces, the block comes out in row order, and an event is
accepted or refused exactly once. O(members + comparisons), vectorised.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count
from typing import NamedTuple

import numpy as np

from stream_engine.data.comparisons import EVENT_TYPES, Decoded, InvalidEvent, Judges, Kinds, Label, Rejected
from stream_engine.formats.event_fields import LABEL
from stream_engine.formats.expand import expand, first_appearance, name_flags
from stream_engine.formats.fault_messages import FINE, explain
from stream_engine.formats.validate import Caught, Said

MAX_UNKNOWN = 100  # names of ignored fields that a decoder remembers


class Piece(NamedTuple):
    """Events of any kinds; `split` is where the last field of each begins, counted from its first member."""

    row: np.ndarray  # (e,) int64: which event of the value
    kind: np.ndarray  # (e,) int8
    size: np.ndarray  # (e,) int64: members
    split: np.ndarray  # (e,) int64
    members: np.ndarray  # (f,) int32
    worker: np.ndarray | None  # (e,) int32, or None when nobody asked
    weight: np.ndarray | None
    time: np.ndarray | None


class FieldNames(NamedTuple):
    """The names of one field over some events: how many each has, and all of them in a row."""

    lengths: np.ndarray  # (e,) int64
    flat: np.ndarray  # (f,) int32


class Pool:
    """Names met in a block, as they stand in the input (an integer is its decimal text), numbered as they come."""

    def __init__(self):
        self._ids: defaultdict = defaultdict(count().__next__)

    def ids(self, names: Iterable, size: int) -> np.ndarray:
        """(size,) int32: the number of each name."""
        return np.fromiter(map(self._ids.__getitem__, names), np.int32, size)

    def texts(self) -> tuple[list[str], np.ndarray | None]:
        """The names as text and, when integers and their texts must be united, old number -> new number.

        >>> pool = Pool()
        >>> _ = pool.ids([5, "a", "5"], 3)
        >>> texts, united = pool.texts()
        >>> texts, united.tolist()
        (['5', 'a'], [0, 1, 0])
        """
        if all(type(name) is str for name in self._ids):
            return list(self._ids), None
        united: defaultdict = defaultdict(count().__next__)
        new = np.fromiter((united[str(name)] for name in self._ids), np.int32, len(self._ids))
        return list(united), new


class Block:
    """What a value has said so far: pieces, and events refused before they could be one."""

    def __init__(self, judges: bool):
        self.judges = judges
        self.names, self.workers = Pool(), Pool()
        self.pieces: list[Piece] = []
        self.refused: list[tuple[int, InvalidEvent]] = []
        self.filtered = 0
        self._caught: list[tuple[int, Caught]] = []

    def caught(self, row: int, catch: Caught) -> None:
        """A catch trial: left out like what `--where` leaves out, and remembered with its worker."""
        self.filtered += 1
        self._caught.append((row, catch))

    def add(
        self, kind: int, row: np.ndarray, fields: Sequence[FieldNames], worker=None, weight=None, time=None
    ) -> None:
        """Events of one kind, field by field in the order of the contract."""
        size = np.sum([field.lengths for field in fields], axis=0, dtype=np.int64)
        judged = (worker, weight, time) if self.judges else (None, None, None)
        self.pieces.append(
            Piece(
                row,
                np.full(len(row), kind, np.int8),
                size,
                size - fields[-1].lengths,
                _side_by_side(fields, size),
                *judged,
            )
        )

    def add_columns(
        self, kind: int, row: np.ndarray, columns: Sequence[np.ndarray], last: int, worker=None, weight=None, time=None
    ) -> None:
        """Events of one kind of as many names each, given as (e,) columns; the last field is the last `last` of them."""
        size = np.full(len(row), len(columns))
        judged = (worker, weight, time) if self.judges else (None, None, None)
        self.pieces.append(
            Piece(
                row, np.full(len(row), kind, np.int8), size, size - last, np.stack(columns, axis=1).reshape(-1), *judged
            )
        )

    def add_said(self, row: list[int], said: list[Said]) -> None:
        """Events of any kinds that were read one by one."""
        if not said:
            return
        size = np.array([sum(map(len, s.names)) for s in said], np.int64)
        last = np.array([len(s.names[-1]) for s in said], np.int64)
        members = self.names.ids(chain.from_iterable(chain.from_iterable(s.names) for s in said), int(size.sum()))
        judged: tuple = (None, None, None)
        if self.judges:
            judged = (
                self.who([s.worker for s in said]),
                np.array([s.weight for s in said]),
                np.array([s.time for s in said]),
            )
        self.pieces.append(
            Piece(
                np.array(row, np.int64), np.array([s.kind for s in said], np.int8), size, size - last, members, *judged
            )
        )

    def who(self, workers: Sequence) -> np.ndarray:
        """(e,) int32: the number of each worker, -1 where there is none."""
        numbers = self.workers.ids(
            (w for w in workers if w is not None and w != ""), sum(w is not None and w != "" for w in workers)
        )
        out = np.full(len(workers), -1, np.int32)
        out[np.fromiter((w is not None and w != "" for w in workers), bool, len(workers))] = numbers
        return out

    def decoded(self, locate: Callable[[int], tuple[int, bytes]], unknown: frozenset[str] = frozenset()) -> Decoded:
        """The block as columns; `locate(row)` gives the first byte and the bytes of an event that is refused."""
        said = _in_order(self.pieces)
        texts, united = self.names.texts()
        members = said.members if united is None else united[said.members]
        start = np.concatenate([[0], np.cumsum(said.size)])
        found = expand(said.kind, start, start[:-1] + said.split, members, name_flags(texts))
        fine = found.fault == FINE
        refused = self.refused + [
            (int(said.row[e]), _explained(said, found, members, start, texts, e)) for e in np.flatnonzero(~fine)
        ]
        rejected = [Rejected(row, *_at(locate(row), fault)) for row, fault in sorted(refused, key=lambda one: one[0])]
        self.refused = []  # a fault holds the frames it was raised in, and these the values of a whole poll: a cycle
        order = first_appearance(found.triplets, found.quadruplets, found.quadruplet_at, len(texts))
        accepted = np.bincount(said.kind[fine], minlength=len(EVENT_TYPES))
        return Decoded(
            [texts[old] for old in order],
            found.triplets,
            found.quadruplets,
            found.quadruplet_at,
            _labels(said, fine, members, start, texts),
            {name: int(n) for name, n in zip(EVENT_TYPES, accepted, strict=True) if n},
            rejected,
            self.filtered,
            0,
            unknown,
            self._judges(said, fine, found) if self.judges else None,
            Kinds(found.of_triplet, found.of_quadruplet, said.kind[fine]),
        )

    def _judges(self, said: Piece, fine: np.ndarray, found) -> Judges:
        """Workers are numbered as they first appear among the accepted events, then among the catch trials."""
        texts, united = self.workers.texts()
        worker = said.worker[fine]
        if united is not None:
            worker = np.where(worker < 0, -1, united[worker])
        used, first = np.unique(worker[worker >= 0], return_index=True)
        used = used[np.argsort(first)]
        new = np.full(len(texts) + 1, -1, np.int32)  # the slot at the end stands for "none"
        new[used] = np.arange(len(used))
        names = [texts[w] for w in used]
        number = {name: at for at, name in enumerate(names)} | {None: -1}
        catches = [catch for _, catch in sorted(self._caught, key=lambda one: one[0])]
        for catch in catches:
            if catch.worker not in number:
                number[catch.worker] = len(names)
                names.append(catch.worker)
        return Judges(
            found.of_triplet,
            found.of_quadruplet,
            said.kind[fine],
            new[worker],
            names,
            said.weight[fine],
            said.time[fine],
            np.array([number[catch.worker] for catch in catches], np.int32),
            np.array([catch.passed for catch in catches], bool),
        )


def nothing(empty: int = 0, unknown: frozenset[str] = frozenset(), judges: bool = False) -> Decoded:
    """A value without events."""
    return Block(judges).decoded(lambda row: (0, b""), unknown)._replace(empty=empty)


def joined(parts: Sequence[Decoded]) -> Decoded:
    """Values that follow each other as one: what decoding them as one block gives. Refusals keep the places that they
    have in their own values. O(names + comparisons).

    >>> one = nothing()._replace(names=["a", "b", "c"], triplets=np.array([[0, 1, 2]], np.int32))
    >>> two = one._replace(names=["c", "a", "d"])
    >>> both = joined([one, two])
    >>> both.names, both.triplets.tolist()
    (['a', 'b', 'c', 'd'], [[0, 1, 2], [2, 0, 3]])
    """
    pool, empty = Pool(), nothing()
    ids = [pool.ids(part.names, len(part.names)) for part in parts]
    before = np.cumsum([0, *(len(part.triplets) for part in parts)])
    events: dict[str, int] = {}
    for part in parts:
        for name, n in part.events.items():
            events[name] = events.get(name, 0) + n
    return Decoded(
        pool.texts()[0],
        np.concatenate([empty.triplets, *(new[part.triplets] for new, part in zip(ids, parts, strict=True))]),
        np.concatenate([empty.quadruplets, *(new[part.quadruplets] for new, part in zip(ids, parts, strict=True))]),
        np.concatenate(
            [empty.quadruplet_at, *(part.quadruplet_at + m for m, part in zip(before[:-1], parts, strict=True))]
        ),
        [label for part in parts for label in part.labels],
        {name: events[name] for name in EVENT_TYPES if name in events},
        [one for part in parts for one in part.rejected],
        sum(part.filtered for part in parts),
        sum(part.empty for part in parts),
        frozenset().union(*(part.unknown_fields for part in parts)),
        _joined_judges([part.judges for part in parts]) if parts and all(part.judges for part in parts) else None,
        _joined_kinds([part.kinds for part in parts]) if parts and all(part.kinds for part in parts) else None,
    )


def _joined_kinds(parts: Sequence[Kinds]) -> Kinds:
    before = np.cumsum([0, *(len(part.kind) for part in parts)]).astype(np.int32)[:-1]
    return Kinds(
        np.concatenate([part.of_triplet + e for e, part in zip(before, parts, strict=True)]),
        np.concatenate([part.of_quadruplet + e for e, part in zip(before, parts, strict=True)]),
        np.concatenate([part.kind for part in parts]),
    )


def _joined_judges(parts: Sequence[Judges]) -> Judges:
    workers = Pool()
    new = [np.append(workers.ids(part.workers, len(part.workers)), -1).astype(np.int32) for part in parts]
    before = np.cumsum([0, *(len(part.kind) for part in parts)]).astype(np.int32)[:-1]
    return Judges(
        np.concatenate([part.of_triplet + e for e, part in zip(before, parts, strict=True)]),
        np.concatenate([part.of_quadruplet + e for e, part in zip(before, parts, strict=True)]),
        np.concatenate([part.kind for part in parts]),
        np.concatenate([numbers[part.worker] for numbers, part in zip(new, parts, strict=True)]),
        workers.texts()[0],
        np.concatenate([part.weight for part in parts]),
        np.concatenate([part.time for part in parts]),
        np.concatenate([numbers[part.catch_worker] for numbers, part in zip(new, parts, strict=True)]),
        np.concatenate([part.catch_passed for part in parts]),
    )


def unreadable(value: bytes, message: str, judges: bool = False) -> Decoded:
    """A value that cannot be taken apart into events: one refusal, with all of its bytes."""
    block = Block(judges)
    block.refused.append((0, InvalidEvent("not_parseable", message)))
    return block.decoded(lambda row: (0, value))


def spread(lengths: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Indices of slices laid end to end: start[i], start[i] + 1, ... (lengths[i] of them), for each i.

    >>> spread(np.array([2, 0, 3]), np.array([5, 0, 7])).tolist()
    [5, 6, 7, 8, 9]
    """
    ends = np.cumsum(lengths)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(start - ends + lengths, lengths)


def _at(place: tuple[int, bytes], fault: InvalidEvent) -> tuple[int, str, str, bytes]:
    return place[0], fault.reason, str(fault), place[1]


def _side_by_side(fields: Sequence[FieldNames], size: np.ndarray) -> np.ndarray:
    """The members of each event, field after field."""
    if all(len(field.flat) == len(size) and (field.lengths == 1).all() for field in fields):
        return np.stack([field.flat for field in fields], axis=1).reshape(-1)
    members = np.empty(int(size.sum()), np.int32)
    start = np.cumsum(size) - size
    for field in fields:
        members[spread(field.lengths, start)] = field.flat
        start = start + field.lengths
    return members


def _in_order(pieces: list[Piece]) -> Piece:
    """All pieces as one, by row."""
    if not pieces:
        none, real = np.empty(0, np.int64), np.empty(0)
        return Piece(none, none.astype(np.int8), none, none, none.astype(np.int32), none.astype(np.int32), real, real)
    if len(pieces) == 1:
        return pieces[0]
    whole = Piece(*(None if column[0] is None else np.concatenate(column) for column in zip(*pieces, strict=True)))
    if (whole.row[1:] > whole.row[:-1]).all():
        return whole
    order = np.argsort(whole.row, kind="stable")
    start = np.cumsum(whole.size) - whole.size
    members = whole.members[spread(whole.size[order], start[order])]
    return Piece(
        *(members if column is whole.members else None if column is None else column[order] for column in whole)
    )


def _explained(said: Piece, found, members, start, texts, e: int) -> InvalidEvent:
    first, second = (int(x) for x in found.at[e])
    names = [texts[m] for m in members[start[e] : start[e + 1]]]
    return explain(int(found.fault[e]), int(said.kind[e]), names, int(said.split[e]), first, second)


def _labels(said: Piece, fine, members, start, texts) -> list[Label]:
    return [
        Label(*(texts[m] for m in members[start[e] : start[e + 1]]), *(() if said.size[e] == 2 else (None,)))
        for e in np.flatnonzero((said.kind == LABEL) & fine)
    ]
