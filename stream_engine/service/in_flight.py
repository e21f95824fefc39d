"""What a process is at work on, in a file that outlives it: so that a record that kills it is found, and put aside.

    DIR/in_flight      one line: the records being decoded, learned or judged just now, from the first to the last;
                       empty between them, gone after a run
    DIR/suspects.json  what the deaths so far have in common; there only after a process died at work

Neither is part of the state. The line is written by one call for each block, and never synced: a process that dies
leaves it to the system. Losing it costs a few more deaths, no event. While there are suspects, the records among them
are taken in parts that grow smaller from death to death (see `suspects`); everything else goes on as ever.
"""

import os
import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import Lock
from zlib import crc32

import msgspec

from connectors import Position, Record, SourceFailed
from connectors.disk import Disk, write_whole
from stream_engine.formats.options import UnusableOptions
from stream_engine.service.record_parts import item_starts, part_of
from stream_engine.service.run_failed import RunFailed
from stream_engine.service.suspects import Flight, Ranges, Suspect, after_death, still_ahead

PARTS = 2048  # of a stretch of suspects
FAILURES = MemoryError, OSError, UnusableOptions, SourceFailed, RunFailed  # told in one line: no record's fault
_NOTHING = b"\n"
_BEGIN, _END = itemgetter(1, 2), itemgetter(1, 3)  # of a record: its partition and offset, or next offset


class _Deaths(msgspec.Struct, frozen=True):
    """The content of suspects.json; `process` is the last one whose death was counted. Another version of the engine
    may do better on the same record: it is tried again."""

    version: str
    process: str = ""
    suspects: list[Suspect] = []


class InFlight:
    """The note of one run about what it is at work on, and what is known of the deaths before it.

    `told` holds a sentence for each thing an operator should know.
    """

    def __init__(self, directory: str | Path, positions: Mapping[str, Position], version: str):
        self._path, self._deaths_path = Path(directory) / "in_flight", Path(directory) / "suspects.json"
        self._process = uuid.uuid4().hex
        self._flights: deque[Flight] = deque()  # what is at work, oldest first
        self._noted, self._lock = False, Lock()
        self.told: list[str] = []
        before = self._read_deaths(version)
        suspects, flight = before.suspects, self._left_behind()
        if flight and flight.process != before.process:
            suspects = after_death(suspects, flight)
            self.told.append(f"the process before this one died at work on {_places(flight.ranges)}")
        self.suspects = still_ahead(suspects, positions)
        if flight or self.suspects != before.suspects:
            self._write_deaths(_Deaths(version, flight.process if flight else before.process, self.suspects))
        self._guilty = [suspect for suspect in self.suspects if suspect.guilty()]
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)

    def _read_deaths(self, version: str) -> _Deaths:
        with suppress(OSError, msgspec.MsgspecError):
            deaths = msgspec.json.decode(self._deaths_path.read_bytes(), type=_Deaths)
            if deaths.version == version:
                return deaths
        return _Deaths(version)

    def _left_behind(self) -> Flight | None:
        """What the process before was at work on when it died; None when it was not, or ended well."""
        try:
            return msgspec.json.decode(self._path.read_bytes().partition(b"\n")[0], type=Flight)
        except (OSError, msgspec.MsgspecError):
            return None

    def _write_deaths(self, deaths: _Deaths) -> None:
        try:
            if deaths.suspects:
                write_whole(Disk(), self._deaths_path, [msgspec.json.encode(deaths) + b"\n"])
            else:
                self._deaths_path.unlink(missing_ok=True)
        except OSError as error:
            self.told.append(f"{self._deaths_path}: what a process died of cannot be noted: {error.strerror}")

    # ---- while it runs

    @contextmanager
    def at(self, records: Sequence[Record], alone: bool = False) -> Iterator[None]:
        """These records are at work from here on, behind those that are already, until `ended` or `rest` is called.
        `alone`: one item, of a record that was taken in parts. A failure of the run is no death; a bug that ends it
        is. Any thread."""
        first = dict(map(_BEGIN, reversed(records)))
        after = dict(map(_END, records))
        ranges = {partition: (first[partition], after[partition]) for partition in first}
        single = alone or (len(records) == 1 and records[0].unit == "message")
        flight = Flight(ranges, single, check_of(records[0]) if single else None, self._process)
        with self._lock:
            self._flights.append(flight)
            self._note()
        with self._no_death_by_failure():
            yield

    @contextmanager
    def again(self) -> Iterator[None]:
        """What is at work is so inside the block, also where the stream waited before it."""
        with self._lock:
            if not self._noted:
                self._note()
        with self._no_death_by_failure():
            yield

    def ended(self) -> None:
        """The records that are longest at work are so no more. None are after a failure: see `at`."""
        with self._lock:
            if self._flights:
                self._flights.popleft()
            self._note()

    def waits(self) -> None:
        """The stream waits for something, and who kills it meanwhile says nothing about a record."""
        with self._lock:
            self._put(_NOTHING)

    def rest(self) -> None:
        """Nothing is at work."""
        with self._lock:
            self._flights.clear()
            self._put(_NOTHING)

    @contextmanager
    def _no_death_by_failure(self) -> Iterator[None]:
        try:
            yield
        except FAILURES:
            self.rest()
            raise

    def _note(self) -> None:
        flights = self._flights
        together = flights[0] if len(flights) == 1 else Flight(_union(flights), process=self._process)
        self._put(msgspec.json.encode(together) + b"\n" if flights else _NOTHING)

    def _put(self, line: bytes) -> None:
        self._noted = line != _NOTHING
        with suppress(OSError):  # a full disk; the run says so of its snapshots
            os.pwrite(self._file, line, 0)

    def suspected(self, record: Record) -> bool:
        """Whether the process may have died of something in this record."""
        return any(each.holds(record.partition, record.offset, record.next_offset) for each in self.suspects)

    def parts_of(self, record: Record) -> Iterator[tuple[Record, bool]]:
        """A suspected record in order, what is not suspected as a whole; and whether a part is one item alone."""
        starts = item_starts(record)
        after = [*starts[1:], record.next_offset - record.offset]
        holds = [self._holds(record, record.offset + a, record.offset + b) for a, b in zip(starts, after, strict=True)]
        for begin, end in _cut(holds):
            yield part_of(record, starts, begin, end), end - begin == 1

    def parts_of_messages(self, records: Sequence[Record]) -> Iterator[list[Record]]:
        """Messages in order, those under suspicion in parts."""
        for begin, end in _cut([self.suspected(record) for record in records]):
            yield list(records[begin:end])

    def _holds(self, record: Record, first: int, after: int) -> bool:
        return any(each.holds(record.partition, first, after) for each in self.suspects)

    def guilty(self, record: Record) -> Suspect | None:
        """Why this record, taken by itself, is not to be decoded any more."""
        return next((each for each in self._guilty if each.is_record(record, check_of(record))), None)

    def close(self) -> None:
        """The run has ended, and did not die. What a bug was at work on stays noted."""
        left = os.pread(self._file, 1, 0)
        os.close(self._file)
        if left in (b"", _NOTHING):
            self._path.unlink(missing_ok=True)


def _union(flights: Iterable[Flight]) -> Ranges:
    """From the first to the last record of several flights, which follow each other."""
    union: Ranges = {}
    for flight in flights:
        for partition, (first, after) in flight.ranges.items():
            begin, end = union.get(partition, (first, after))
            union[partition] = min(begin, first), max(end, after)
    return union


def _cut(suspected: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Where to cut: stretches without a suspect stay whole, those with suspects have `PARTS` parts in all.

    >>> list(_cut([False, False, True, True, False]))
    [(0, 2), (2, 3), (3, 4), (4, 5)]
    """
    size = -(-sum(suspected) // PARTS)
    begin = 0
    for suspect, group in groupby(suspected):
        end = begin + len(list(group))
        for at in range(begin, end, size if suspect else end - begin):
            yield at, min(end, at + size) if suspect else end
        begin = end


def check_of(record: Record) -> int | None:
    """The CRC-32 of a record's bytes; None for rows of a table."""
    return crc32(record.value) if isinstance(record.value, bytes) else None


def _places(ranges: Mapping[str, tuple[int, int]]) -> str:
    shown = [f"{partition}@{first}..{after}" for partition, (first, after) in list(ranges.items())[:3]]
    return ", ".join(shown) + (f" and {len(ranges) - 3} more partitions" if len(ranges) > 3 else "")
