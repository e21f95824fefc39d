"""A position moved on purpose: noted in the state for ever, what is passed over counted as lost.

Invariant: the move, its note and its loss are published in one snapshot, or none of them is. Moving again to a place
that was reached does nothing.

In topics and deltas any number is a place. In a file a position must stand behind a whole record, so the file is read
from its beginning: O(bytes).
"""

import zlib
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from typing import NamedTuple

from connectors import Position
from connectors.files.line_blocks import HEAD
from connectors.files.readers import Kind, Sizes, failures_of, kind_of, open_reader, opened_text
from connectors.files.readers import partition_of as partition_of_file
from connectors.files.tables import open_table
from connectors.kafka.client import partition_of
from stream_engine.service.record_units import unit_of as record_unit
from stream_engine.service.settings import BadSettings
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store

MOST = 2**63 - 1


class CannotMove(BadSettings):
    """A position cannot be moved so; one line."""


class Target(NamedTuple):
    """Where to: an offset, or with `relative` so many records on; `format` is that of a file whose name does not tell.
    `count_again` allows going back."""

    offset: int
    relative: bool = False
    format: str | None = None
    count_again: bool = False


class Move(NamedTuple):
    """What became of a position; `sequence` is the snapshot that holds it, `records` how many lie between; None: nobody
    knows."""

    partition: str
    at: int
    to: int
    records: int | None
    sequence: int


class Item(NamedTuple):
    """A record of a file, or a blank line, which is none."""

    begin: int
    end: int
    blank: bool


def seek(store: Store, partition: str, target: Target, since: int | None = None) -> Move:
    """Move a position and publish a snapshot; the state's lock must be held. `since`: where the position is expected to
    be; when the last deed moved it away from there, that was this move, and nothing is done.

    Raises `CannotMove`, `NoSuchSnapshot`, `Corrupt`, `SourceFailed`, `OSError`.
    """
    snapshot = store.named("latest")
    name = partition if partition in snapshot.positions else partition_of_file(partition)
    if name not in snapshot.positions:
        known = ", ".join(sorted(snapshot.positions)[:8]) or "none"
        raise CannotMove(f"{partition}: no partition of the state, which has {known}")
    now = snapshot.positions[name]
    history = snapshot.counters.get("history", ())
    if since is not None and now.offset != since:
        last = history[-1] if history else {}
        if (last.get("partition"), last.get("at"), last.get("to")) == (name, since, now.offset):
            return Move(name, now.offset, now.offset, 0, snapshot.sequence)
        raise CannotMove(f"{name}: stands at {now.offset:,}, not at {since:,}; nothing was moved")
    to, between = find(name, now, target)
    if to.offset == now.offset:
        return Move(name, now.offset, now.offset, 0, snapshot.sequence)
    if to.offset < now.offset and not target.count_again:
        raise CannotMove(
            f"{name}: {to.offset:,} lies before {now.offset:,}, where the state has read to: {records_told(between)} "
            "would be counted a second time; say --count-again if that is wanted"
        )
    engine = Engine.restore(snapshot)
    engine.positions[name] = to
    if between and to.offset > now.offset:
        engine.lost[name] = engine.lost.get(name, 0) + between
    engine.note("seek", partition=name, at=now.offset, to=to.offset, records=between)
    published, _ = store.publish(engine.snapshot())
    return Move(name, now.offset, to.offset, between, published.sequence)


def records_told(records: int | None) -> str:
    """How many records lie between two positions, in words."""
    return "an unknown number of records" if records is None else f"{records:,} records"


def unit_of(name: str) -> str:
    """ "message" of a topic, "batch" of deltas, "file"; the position of anything else is not one to move."""
    if name.startswith("deltas://"):
        return "batch"
    if name.startswith("/"):
        return "file"
    topic = name.rpartition("/")[0]
    if name.startswith("labels:") or not topic or partition_of(topic, name) is None:
        raise CannotMove(f"{name}: its position cannot be moved, expected a file, a partition of a topic, or deltas")
    return "message"


def find(name: str, now: Position, target: Target) -> tuple[Position, int | None]:
    """The position that is aimed at, and how many records lie between it and the present one; None: nobody knows.
    Raises `CannotMove`, `SourceFailed`."""
    if target.relative and target.offset < 1:
        raise CannotMove(f"{name}: got {target.offset} records to skip, expected at least 1")
    unit = unit_of(name)
    if unit == "file":
        return _in_file(name, now, target)
    to = target.offset + now.offset * target.relative
    if not 0 <= to <= MOST:
        raise CannotMove(f"{name}: got offset {to}, expected a whole number from 0 to {MOST}")
    return now._replace(offset=to), None if unit == "batch" else abs(to - now.offset)


def _in_file(path: str, now: Position, target: Target) -> tuple[Position, int]:
    kind = kind_of(path, target.format)
    passed = between = last = 0  # records behind the position, and between both; the end of the last item
    for item in _items(path, kind):
        if target.relative:
            passed += item.begin >= now.offset and not item.blank
            if passed == target.offset:
                return Position(item.end, _mark(path, kind, item.end)), passed
            continue
        if target.offset in (item.begin, item.end):
            last = target.offset
        elif item.end <= target.offset:
            last = item.end
        low, high = sorted((now.offset, target.offset))
        between += low < item.end <= high and not item.blank
        if item.end >= high:
            break
    if target.relative:
        raise CannotMove(f"{path}: got {target.offset} records to skip, only {passed} are there behind {now.offset:,}")
    if target.offset not in (0, last):
        raise CannotMove(
            f"{path}: {target.offset:,} is not behind a whole record of the file; the one before it ends at {last:,}"
        )
    return Position(target.offset, _mark(path, kind, target.offset)), between


def _items(path: str, kind: Kind) -> Iterator[Item]:
    """The records and blank lines of a file. Raises `SourceFailed`."""
    with closing(open_reader(path, kind, Position(0), Sizes())) as reader:
        while not reader.done:
            if (record := reader.read()) is None:
                continue
            for first, after in pairwise([*record_unit(record).starts(record), record.next_offset - record.offset]):
                text = b"." if record.unit == "row" or record.problem else record.value[first:after]
                blank = len(text) - len(text.lstrip(b"\r\n"))  # lines before a record of CSV
                yield Item(record.offset + first + blank, record.offset + after, not text.strip())


def _mark(path: str, kind: Kind, offset: int) -> int:
    """The check value of a position in a file."""
    with failures_of(path, Position(offset), "byte"):
        if not kind.is_text:
            table = open_table(path, kind.name, Position(0))
            table.batches.close()
            table.file.close()
            return table.mark
        head = b""
        with closing(opened_text(path, kind)) as stream:
            while len(head) < HEAD and (piece := stream.read()):
                head += piece
        return zlib.crc32(head[: min(HEAD, offset)])
