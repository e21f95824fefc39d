"""Places that a position can be moved to: ends of items, and how many records lie between one and another.

Of topics and tables any number will do. In a text file a position must stand behind a whole line or CSV record, so the
file is looked at: from the present position, or from its beginning to go back. O(bytes between).
"""

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from connectors import Position
from connectors.files.line_blocks import FRAMINGS, Blocks, Framing
from connectors.files.readers import Kind, Sizes, failures_of, kind_of, opened_text
from connectors.files.tables import open_table
from connectors.kafka.address import partition_of
from stream_engine.service.settings import BadSettings

MOST = 2**63 - 1


class CannotMove(BadSettings):
    """A position cannot be moved so; one line."""


class Place(NamedTuple):
    """A position to go on at, and how many records lie between it and the present one; None: nobody knows."""

    position: Position
    between: int | None


class Item(NamedTuple):
    """A line or CSV record of a text file; `blank`: an empty line, which is no record."""

    begin: int
    end: int
    blank: bool


def place_at(name: str, now: Position, target: int, format: str | None) -> Place:
    """The place at an offset of a partition. Raises `CannotMove`, `SourceFailed`."""
    if not 0 <= target <= MOST:
        raise CannotMove(f"{name}: got offset {target}, expected a whole number from 0 to {MOST}")
    unit = unit_of(name)
    if unit != "file":
        distance = abs(target - now.offset)
        return Place(now._replace(offset=target), None if unit == "batch" else distance)
    kind = kind_of(name, format)
    return _in_text(name, kind, now, target) if kind.is_text else _in_table(name, kind, now, target)


def place_behind(name: str, now: Position, count: int, format: str | None) -> Place:
    """The place behind the next `count` records. Raises `CannotMove`, `SourceFailed`."""
    if count < 1:
        raise CannotMove(f"{name}: got {count} records to skip, expected at least 1")
    if unit_of(name) != "file" or not kind_of(name, format).is_text:
        return place_at(name, now, now.offset + count, format)
    with closing(_Text(name, kind_of(name, format), now)) as text:
        passed, end = 0, now.offset
        for item in text.items():
            passed, end = passed + (not item.blank), item.end
            if passed == count:
                return Place(Position(end, text.blocks.mark(end)), count)
    raise CannotMove(f"{name}: got {count} records to skip, only {passed} are there behind byte {now.offset:,}")


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


class _Text:
    """A text file from a position on, item by item."""

    def __init__(self, path: str, kind: Kind, position: Position):
        self._path, self._position = path, position
        with failures_of(path, position, "byte"):
            self.blocks = Blocks(opened_text(path, kind), FRAMINGS[kind.name], position, *Sizes(), kind.layout)

    def items(self) -> Iterator[Item]:
        """Its items to the end of the file. Raises `SourceFailed`."""
        while True:
            with failures_of(self._path, self._position, "byte"):
                block = self.blocks.take(final=True)
            if block is None:
                if self.blocks.starved:
                    return
            elif block.problem:
                yield Item(block.offset, block.next_offset, False)
            else:
                yield from _items(block.value, block.offset, self.blocks.framing, self.blocks.width)

    def close(self) -> None:
        self.blocks.close()


def _items(value: bytes, offset: int, framing: Framing, width: int) -> Iterator[Item]:
    rest = bytearray(value)
    while rest:
        size = framing.first(rest, len(rest), width) or len(rest)
        yield Item(offset, offset + size, not rest[:size].strip())
        offset += size
        del rest[:size]


def _in_text(path: str, kind: Kind, now: Position, target: int) -> Place:
    back = target < now.offset
    if target == 0:
        with closing(_Text(path, kind, Position(0))) as text:
            count = sum(not item.blank for item in text.items() if item.end <= now.offset)
        return Place(Position(0), count)
    between, last, begin = 0, now.offset, Position(0) if back else now
    with closing(_Text(path, kind, begin)) as text:
        for item in text.items():
            if item.begin == target:
                last = target  # behind the header
            inside = target < item.end <= now.offset if back else now.offset < item.end <= target
            between += inside and not item.blank
            if item.end <= target:
                last = item.end
            if item.end >= max(target, now.offset):
                break
        mark = text.blocks.mark(target)
    if last != target:
        raise CannotMove(
            f"{path}: byte {target:,} is not behind a whole line or record of the file; the one before it ends at "
            f"{last:,}"
        )
    return Place(Position(target, mark), between)


def _in_table(path: str, kind: Kind, now: Position, target: int) -> Place:
    with failures_of(path, now, "row"):
        table = open_table(path, kind.name, now)
        try:
            rows = (
                table.rows if table.rows is not None else max((each.next_offset for each in table.batches), default=0)
            )
        finally:
            table.batches.close()
            table.file.close()
    if target > max(rows, now.offset):
        raise CannotMove(f"{path}: got row {target:,}, the file has {rows:,}")
    return Place(Position(target, table.mark), abs(target - now.offset))
