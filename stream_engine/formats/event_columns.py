"""Columns of events between a format and a block: names become numbers, pieces are put into row order.

A *piece* holds the events of some rows, of any kinds: how many members (names) each has, where its last field begins,
and all members concatenated. O(members), vectorised.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.compiled import njit, read_only
from stream_engine.data.interner import Interner
from stream_engine.data.packed_names import Names, pack_names


class Pool:
    """The names of a block, as text (an integer is its decimal text), numbered in order of appearance."""

    def __init__(self) -> None:
        self._interner = Interner()

    def ids(self, names: Iterable[str | int]) -> np.ndarray:
        """(q,) int32: the number of each name.

        >>> pool = Pool()
        >>> pool.ids([5, "a", "5"]).tolist(), pool.texts()
        ([0, 1, 0], ('5', 'a'))
        """
        texts: Any = names if isinstance(names, (list, Names)) else list(names)
        try:
            packed = pack_names(texts)
        except TypeError:  # integers among them
            packed = pack_names(list(map(str, texts)))
        return self.ids_of_bytes(packed["utf8"], packed["offsets"][:-1], packed["offsets"][1:])

    def ids_of_bytes(
        self, data: np.ndarray, begins: np.ndarray, ends: np.ndarray, out: np.ndarray | None = None
    ) -> np.ndarray:
        """(q,) int32, in `out` if given: the number of each name data[begins[q] : ends[q]], UTF-8."""
        return self._interner.ids(data, begins, ends, out)

    def texts(self) -> Names:
        """The names by number."""
        return self._interner.names


class KnownNames(Pool):
    """A pool of fixed names: -1 for every other name."""

    def __init__(self, names: Sequence[str]):
        super().__init__()
        self._interner.ids_of(names)

    def ids_of_bytes(
        self, data: np.ndarray, begins: np.ndarray, ends: np.ndarray, out: np.ndarray | None = None
    ) -> np.ndarray:
        """(q,) int32: the number of each name data[begins[q] : ends[q]], -1 for unknown ones."""
        return self._interner.find(data, begins, ends)[0]


class FieldNames(NamedTuple):
    """The names of one field for some events: how many each event has, and all of them concatenated."""

    lengths: np.ndarray  # (e,) int64
    flat: np.ndarray  # (f,) int32


class Origins(NamedTuple):
    """Who gave the answers of some events, with what weight, when, and how fast."""

    worker: np.ndarray  # (e,) int32, -1 without a name
    weight: np.ndarray  # (e,) float64
    time: np.ndarray  # (e,) float64, NaN if not given
    sampler: np.ndarray  # (e,) int32, -1 without a name
    seconds: np.ndarray  # (e,) float64, NaN if not given


def untold(events: int) -> Origins:
    """The origins of events that state none: one value each, repeated at no cost."""
    nobody, never = np.broadcast_to(np.int32(-1), events), np.broadcast_to(np.nan, events)
    return Origins(nobody, np.broadcast_to(1.0, events), never, nobody, never)


def joined_origins(parts: Sequence[Origins]) -> Origins:
    if all(column.strides == (0,) for part in parts for column in part):
        return untold(sum(len(part.worker) for part in parts))
    return Origins(*(np.concatenate(column) for column in zip(*parts, strict=True)))


class Piece(NamedTuple):
    """Events of any kinds; `split` is where the last field of each begins, relative to its first member."""

    row: np.ndarray  # (e,) int64: which event of the value
    kind: np.ndarray  # (e,) int8
    size: np.ndarray  # (e,) int64: members
    split: np.ndarray  # (e,) int64
    members: np.ndarray  # (f,) int32
    origins: Origins | None  # None if not requested
    votes: np.ndarray | None = None  # (e, 2) int64: number of answers as stated, and the opposite; None: once each


def empty_piece(with_origins: bool) -> Piece:
    """No events."""
    none = np.empty(0, np.int64)
    return Piece(none, none.astype(np.int8), none, none, none.astype(np.int32), untold(0) if with_origins else None)


def in_order(pieces: list[Piece]) -> Piece:
    """All events of one or more pieces as one piece, by row."""
    if len(pieces) == 1:
        return pieces[0]
    whole = _one_after_the_other(pieces)
    if (whole.row[1:] > whole.row[:-1]).all():
        return whole
    order = np.argsort(whole.row, kind="stable")
    start = np.cumsum(whole.size) - whole.size
    return Piece(
        whole.row[order],
        whole.kind[order],
        whole.size[order],
        whole.split[order],
        whole.members[slices_side_by_side(whole.size[order], start[order])],
        whole.origins and Origins(*(column[order] for column in whole.origins)),
        None if whole.votes is None else whole.votes[order],
    )


def _one_after_the_other(pieces: list[Piece]) -> Piece:
    origins = [piece.origins for piece in pieces if piece.origins is not None]
    return Piece(
        np.concatenate([piece.row for piece in pieces]),
        np.concatenate([piece.kind for piece in pieces]),
        np.concatenate([piece.size for piece in pieces]),
        np.concatenate([piece.split for piece in pieces]),
        np.concatenate([piece.members for piece in pieces]),
        joined_origins(origins) if origins else None,
        None if all(piece.votes is None for piece in pieces) else np.concatenate([votes_in(piece) for piece in pieces]),
    )


def votes_in(piece: Piece) -> np.ndarray:
    """(e, 2) int64: the votes of each event."""
    return np.broadcast_to(np.array([1, 0]), (len(piece.kind), 2)) if piece.votes is None else piece.votes


def members_of(fields: Sequence[FieldNames], size: np.ndarray) -> np.ndarray:
    """(f,) int32: the members of each event, field after field; `size` (e,) says how many it has.

    >>> one, lists = np.array([1, 1]), np.array([2, 1])
    >>> members_of([FieldNames(one, np.array([7, 8])), FieldNames(lists, np.array([1, 2, 3]))], one + lists).tolist()
    [7, 1, 2, 8, 3]
    """
    widths = [len(field.flat) // max(len(size), 1) for field in fields]
    if all((field.lengths == width).all() for field, width in zip(fields, widths, strict=True)):
        of_events = [
            field.flat.reshape(-1, max(width, 1)) for field, width in zip(fields, widths, strict=True) if width
        ]
        return np.concatenate(of_events, axis=1).reshape(-1) if of_events else np.empty(0, np.int32)
    members = np.empty(int(size.sum()), np.int32)
    start = np.cumsum(size) - size
    for field in fields:
        members[slices_side_by_side(field.lengths, start)] = field.flat
        start = start + field.lengths
    return members


def slices_side_by_side(lengths: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Indices of slices laid end to end: start[i], start[i] + 1, ... (lengths[i] of them), for each i.

    >>> slices_side_by_side(np.array([2, 0, 3]), np.array([5, 0, 7])).tolist()
    [5, 6, 7, 8, 9]
    """
    indices = np.empty(int(lengths.sum()), np.int64)
    _count_up(read_only(lengths, np.int64), read_only(start, np.int64), indices)
    return indices


@njit(cache=True, nogil=True)
def _count_up(lengths, start, indices):
    at = 0
    for i in range(len(lengths)):
        for step in range(lengths[i]):
            indices[at] = start[i] + step
            at += 1
