"""A list of items as a source, in which silences are items too: for tests.

Invariant: like every source, opening at a record's `next_offset` gives exactly the rest. Offsets count the items of a
partition ("message"). A `Pause` is one poll that finds nothing.
"""

from collections.abc import Mapping, Sequence
from zlib import crc32

from connectors import Position, Record, Source, SourceFailed


class Pause:
    """An item that makes one poll find nothing."""


class MemorySource(Source):
    """Items in order: bytes (of partition `rest` and `format`), `Record`s whose offsets are set here, `Pause`.

    >>> source = MemorySource("m", {"m": Position(1, 0xF4DBDF21)}, items=[b"0", b"1", Pause(), b"2"])
    >>> [[record.value for record in source.poll(0)] for _ in range(3)], source.finished()
    ([[b'1'], [], [b'2']], True)
    """

    def __init__(
        self,
        rest: str,
        positions: Mapping[str, Position],
        *,
        items: Sequence[object],
        format: str | None = None,
        per_poll: int = 1000,
    ):
        self._items, self._next, self._per_poll = items, 0, per_poll
        self._partition, self._format = rest or "memory", format or "json"
        self._marks: dict[str, int] = {}
        self._lag: dict[str, int] = {}
        for item in items:
            if not isinstance(item, Pause):
                template = self._template(item)
                self._marks.setdefault(template.partition, _check(template.value))
                self._lag[template.partition] = self._lag.get(template.partition, 0) + 1
        self._next_offset = dict.fromkeys(self._lag, 0)
        self._start = {name: positions.get(name, Position(0)) for name in self._lag}
        self._failure = ""
        for name, (offset, mark) in self._start.items():
            if offset and (offset > self._lag[name] or mark != self._marks[name]):
                self._failure = (
                    f"{name}: its items are not those of the snapshot: {self._lag[name]} are there, the "
                    f"snapshot had read {offset}; open it with the same list"
                )
            self._lag[name] = max(0, self._lag[name] - offset)

    def _template(self, item: object) -> Record:
        if isinstance(item, Record):
            return item
        return Record(item, self._partition, 0, 0, format=self._format)

    def poll(self, timeout: float) -> list[Record]:
        """Up to `per_poll` records, as far as the next `Pause`. Raises `SourceFailed`."""
        if self._failure:
            raise SourceFailed(self._failure)
        records: list[Record] = []
        while len(records) < self._per_poll and not self.finished():
            item = self._items[self._next]
            if isinstance(item, Pause):
                self._next += not records
                break
            self._next += 1
            records += self._record_of(self._template(item))
        return records

    def _record_of(self, template: Record) -> list[Record]:
        """The record with its offsets; none where it lies before the start."""
        name = template.partition
        offset = self._next_offset[name]
        self._next_offset[name] = offset + 1
        if offset < self._start[name].offset:
            return []
        self._lag[name] -= 1
        return [template._replace(offset=offset, next_offset=offset + 1, mark=self._marks[name], unit="message")]

    def finished(self) -> bool:
        return self._next == len(self._items)

    def ready(self) -> bool:
        return True

    def lag(self) -> dict[str, int]:
        """Items that were not handed out yet."""
        return dict(self._lag)

    def close(self) -> None: ...


def _check(value: object) -> int:
    """The CRC-32 of a partition's first item stands for the list."""
    return crc32(value if isinstance(value, bytes) else repr(value).encode())
