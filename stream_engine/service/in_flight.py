"""What a process is at work on, in a file that outlives it: so that a record that kills it is found, and refused.

    DIR/in_flight      one line: the records being decoded, learned or judged just now, from the first to the last;
                       empty between them, gone after a run
    DIR/suspects.json  where the last deaths happened; there only after a process died at work

Neither is part of the state. After a death the records that were at work are taken one by one, so that the next death
is at one of them alone. One that the process died of alone twice in a row, three deaths in all, is refused: a person
who kills a healthy process again and again does not hit the same record. The line is never synced; losing it costs a
few more deaths, no event.
"""

import os
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import Any
from zlib import crc32

import msgspec

from connectors import Position, Record, SourceFailed
from connectors.disk import Disk, write_whole
from stream_engine.formats.options import UnusableOptions
from stream_engine.service.record_parts import item_starts, part_of
from stream_engine.service.run_failed import RunFailed

DEATHS, ALONE = 3, 2  # in all, and of these the last ones at one record alone: then it is refused
FAILURES = MemoryError, OSError, UnusableOptions, SourceFailed, RunFailed  # told in one line: no record's fault
_NOTHING = b"\n"
_BEGIN, _END = itemgetter(1, 2), itemgetter(1, 3)  # of a record: its partition and offset, or next offset
Ranges = dict[str, tuple[int, int]]  # partition -> from the offset of the first record to the one after the last


class Flight(msgspec.Struct, frozen=True):
    """What was at work in a process; `check` is the CRC-32 of the bytes of a record alone, None for rows of a table."""

    ranges: Ranges
    alone: bool = False
    check: int | None = None
    process: str = ""  # which one, so that no death is counted twice


class Suspects(msgspec.Struct, frozen=True):
    """The content of suspects.json: what the last `deaths` have in common, and the records that are refused. Another
    version of the engine may do better on the same record: it is tried again."""

    version: str
    last: Flight
    deaths: int
    alone: int  # of the last deaths, at just this one record
    refused: list[Flight] = []


def after_death(before: Suspects | None, flight: Flight, version: str) -> Suspects:
    """The suspects after one more death.

    >>> one = after_death(None, Flight({"f": (0, 90)}), "1")
    >>> two = after_death(one, Flight({"f": (40, 50)}, alone=True), "1")
    >>> three = after_death(two, Flight({"f": (40, 50)}, alone=True), "1")
    >>> [(each.deaths, len(each.refused)) for each in (one, two, three)]
    [(1, 0), (2, 0), (3, 1)]
    """
    refused = before.refused if before else []
    if before is None or not _touch(before.last.ranges, flight.ranges):
        return Suspects(version, flight, 1, int(flight.alone), refused)
    same = flight.alone and (flight.ranges, flight.check) == (before.last.ranges, before.last.check)
    deaths, alone = before.deaths + 1, before.alone + 1 if same else int(flight.alone)
    if deaths >= DEATHS and alone >= ALONE:
        refused = [*refused, flight]
    return Suspects(version, flight, deaths, alone, refused)


class InFlight:
    """The note of one run about what it is at work on, and what is known of the deaths before it.

    `told` holds a sentence for each thing an operator should know, `suspects` the places that are taken one by one.
    """

    def __init__(self, directory: str | Path, positions: Mapping[str, Position], version: str):
        self._path, self._deaths_path = Path(directory) / "in_flight", Path(directory) / "suspects.json"
        self._process = uuid.uuid4().hex
        self._flights: deque[Flight] = deque()  # what is at work, oldest first
        self._lock = Lock()
        self.told: list[str] = []
        before = _read(self._deaths_path, Suspects)
        if before and before.version != version:
            before = None
        flight, known = _read(self._path, Flight), before
        if flight and not (before and before.last.process == flight.process):
            known = after_death(before, flight, version)
            self.told.append(f"the process before this one died at work on {_places(flight.ranges)}")
        self._refused = [each for each in (known.refused if known else []) if _ahead(each.ranges, positions)]
        last = [known.last] if known and _ahead(known.last.ranges, positions) else []
        self.suspects = [each.ranges for each in [*last, *self._refused]]
        self._write_deaths(msgspec.structs.replace(known, refused=self._refused) if known and self.suspects else None)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)

    def _write_deaths(self, known: Suspects | None) -> None:
        try:
            if known:
                write_whole(Disk(), self._deaths_path, [msgspec.json.encode(known) + b"\n"])
            else:
                self._deaths_path.unlink(missing_ok=True)
        except OSError as error:
            self.told.append(f"{self._deaths_path}: what a process died of cannot be noted: {error.strerror}")

    # ---- while it runs

    def begins(self, records: Sequence[Record], alone: bool = False) -> None:
        """These records are at work from here on, behind those that are already, until `ended` or `rest` is called.
        `alone`: one item, of a record that was taken in parts. Any thread."""
        first, after = dict(map(_BEGIN, reversed(records))), dict(map(_END, records))
        ranges = {partition: (first[partition], after[partition]) for partition in first}
        single = alone or (len(records) == 1 and records[0].unit == "message")
        flight = Flight(ranges, single, check_of(records[0]) if single else None, self._process)
        with self._lock:
            self._flights.append(flight)
            self._note()

    def ended(self) -> None:
        """The records that are longest at work are so no more."""
        with self._lock:
            if self._flights:
                self._flights.popleft()
            self._note()

    def rest(self) -> None:
        """Nothing is at work; also after a failure of the run, which is no death."""
        with self._lock:
            self._flights.clear()
            self._note()

    def _note(self) -> None:
        line = _NOTHING
        if self._flights:
            together: Ranges = {}  # from the first to the last record: flights follow each other
            for flight in self._flights:
                for partition, (first, after) in flight.ranges.items():
                    begin, end = together.get(partition, (first, after))
                    together[partition] = min(begin, first), max(end, after)
            only = self._flights[0] if len(self._flights) == 1 else Flight(together, process=self._process)
            line = msgspec.json.encode(only) + b"\n"
        with suppress(OSError):  # a full disk; the run says so of its snapshots
            os.pwrite(self._file, line, 0)

    def suspected(self, record: Record) -> bool:
        """Whether a process may have died of something in this record."""
        return self._suspected(record.partition, record.offset, record.next_offset)

    def parts_of(self, record: Record) -> Iterator[tuple[Record, bool]]:
        """A suspected record in order, what is not suspected as a whole; and whether a part is one item alone."""
        starts = item_starts(record)
        places = [record.offset + start for start in starts]
        items = zip(places, [*places[1:], record.next_offset], strict=True)
        for begin, end in _cut([self._suspected(record.partition, first, after) for first, after in items]):
            yield part_of(record, starts, begin, end), end - begin == 1

    def parts_of_messages(self, records: Sequence[Record]) -> Iterator[list[Record]]:
        """Messages in order, those under suspicion one by one."""
        for begin, end in _cut([self.suspected(record) for record in records]):
            yield list(records[begin:end])

    def refuses(self, record: Record) -> bool:
        """Whether this record, taken by itself, is not to be decoded any more."""
        place = {record.partition: (record.offset, record.next_offset)}
        return any(_touch(each.ranges, place) and each.check == check_of(record) for each in self._refused)

    def _suspected(self, partition: str, first: int, after: int) -> bool:
        return any(_touch(each, {partition: (first, after)}) for each in self.suspects)

    def close(self) -> None:
        """The run has ended, and did not die. What a bug was at work on stays noted."""
        left = os.pread(self._file, 1, 0)
        os.close(self._file)
        if left in (b"", _NOTHING):
            self._path.unlink(missing_ok=True)


def _read(path: Path, kind: type[Any]) -> Any:
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode(path.read_bytes().partition(b"\n")[0], type=kind)
    return None


def _touch(one: Ranges, other: Ranges) -> bool:
    return any(one[p][0] < other[p][1] and other[p][0] < one[p][1] for p in one.keys() & other.keys())


def _ahead(ranges: Ranges, positions: Mapping[str, Position]) -> bool:
    """Whether a state at these positions has not read all of it."""
    return any(positions.get(partition, Position(0)).offset < after for partition, (_, after) in ranges.items())


def _cut(suspected: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Where to cut: stretches without a suspect stay whole, suspects are alone.

    >>> list(_cut([False, False, True, True, False]))
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    begin = 0
    for suspect, group in groupby(suspected):
        end = begin + len(list(group))
        yield from ((at, at + 1) for at in range(begin, end)) if suspect else [(begin, end)]
        begin = end


def check_of(record: Record) -> int | None:
    """The CRC-32 of a record's bytes; None for rows of a table."""
    return crc32(record.value) if isinstance(record.value, bytes) else None


def _places(ranges: Mapping[str, tuple[int, int]]) -> str:
    shown = [f"{partition}@{first}..{after}" for partition, (first, after) in list(ranges.items())[:3]]
    return ", ".join(shown) + (f" and {len(ranges) - 3} more partitions" if len(ranges) > 3 else "")
