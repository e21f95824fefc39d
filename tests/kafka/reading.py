"""Reading a source in tests: until so many records are there, with a deadline instead of a sleep."""

import time
from collections.abc import Callable

from connectors import Position, Record, Source

SECONDS = 30.0


def read(source: Source, count: int, seconds: float = SECONDS) -> list[Record]:
    """Poll until `count` records are there; fails after `seconds`."""
    records: list[Record] = []
    deadline = time.monotonic() + seconds
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records after {seconds:g} s: {source.notices()}"
        records += source.poll(0.2)
    return records


def idle(source: Source, seconds: float) -> list[Record]:
    """Everything that comes within `seconds`."""
    records, deadline = [], time.monotonic() + seconds
    while time.monotonic() < deadline:
        records += source.poll(0.1)
    return records


def until(true: Callable[[], object], source: Source, seconds: float = SECONDS) -> list[Record]:
    """Poll until the condition holds; returns what came meanwhile."""
    records, deadline = [], time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds:g} s; notices: {source.notices()}"
        records += source.poll(0.1)
    return records


def positions(records: list[Record]) -> dict[str, Position]:
    """What a snapshot after these records holds."""
    return {record.partition: Position(record.next_offset, record.mark) for record in records}
