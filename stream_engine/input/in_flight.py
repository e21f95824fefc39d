"""The records that a run works on, in a file that survives the process: a record that kills it is found and
rejected."""

import os
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from threading import Lock

import msgspec

from connectors import Position, Record
from stream_engine.input.record_units import unit_of

# `DIR/in_flight` holds one line: the records that are being decoded, learned or judged, and the history of earlier
# crashes; it is removed when a run ends normally. After a crash, these records are processed item by item, so the next
# crash identifies one of them. An item at which the last MAX_CRASHES crashes happened is rejected; someone who kills a
# healthy process repeatedly does not hit the same item. The line is not part of the state and never synced; if it is
# lost, finding the record takes a few more crashes, but no event is lost.
MAX_CRASHES = 3
_EMPTY_LINE = b"\n"


_BEGIN, _END = itemgetter(1, 2), itemgetter(1, 3)  # of a record: its partition and offset, or next offset


Ranges = dict[str, tuple[int, int]]  # partition -> from the offset of the first record to the one after the last


class Note(msgspec.Struct, frozen=True):
    """The content of the line. `ranges` are being processed, `alone`: they are one item; the last `deaths` crashes
    happened at `last`; the items of `refused` are not tried again."""

    ranges: Ranges = {}
    alone: bool = False
    last: Ranges = {}
    deaths: int = 0
    refused: list[Ranges] = []

    def after_death(self) -> "Note":
        """The note that the next process starts with after this one crashed.

        >>> note = Note({"f": (0, 90)})
        >>> for _ in range(2):
        ...     note = msgspec.structs.replace(note.after_death(), ranges={"f": (40, 50)}, alone=True)
        >>> note.deaths, note.after_death().refused
        (2, [{'f': (40, 50)}])
        """
        deaths = self.deaths + 1 if _touch(self.ranges, self.last) else 1
        refused = [*self.refused, self.ranges] if self.alone and deaths >= MAX_CRASHES else self.refused
        return Note(last=self.ranges, deaths=deaths, refused=refused)

    def ahead_of(self, positions: Mapping[str, Position]) -> "Note":
        """The note without the records that a state at these positions has counted."""

        def is_ahead(ranges: Ranges) -> bool:
            return any(positions.get(name, Position(0)).offset < end for name, (_, end) in ranges.items())

        last = self.last if is_ahead(self.last) else {}
        return Note(
            last=last, deaths=self.deaths if last else 0, refused=[item for item in self.refused if is_ahead(item)]
        )


class InFlight:
    """The note of one run; without a directory, nothing is written. `suspects_of_crash` are the records to process item
    by item; `died_at` describes where the previous process crashed, "" if it did not."""

    def __init__(self, directory: str | Path | None = None, positions: Mapping[str, Position] = {}):
        self._path = Path(directory) / "in_flight" if directory else None
        self._flights: deque[tuple[Ranges, bool]] = deque()  # records being processed, oldest first
        self._lock = Lock()
        self._history, self.died_at, self._file = Note(), "", -1
        if self._path:
            with suppress(OSError, msgspec.MsgspecError):
                self._history = msgspec.json.decode(self._path.read_bytes().partition(_EMPTY_LINE)[0], type=Note)
            if self._history.ranges:
                self.died_at = ", ".join(f"{name}@{a}..{b}" for name, (a, b) in self._history.ranges.items())[:500]
                self._history = self._history.after_death()
            self._history = self._history.ahead_of(positions)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
            self._write()
        self.suspects_of_crash = [ranges for ranges in (self._history.last, *self._history.refused) if ranges]

    def suspects(self, record: Record) -> bool:
        """Whether this record may have crashed a process."""
        place = {record.partition: (record.offset, record.next_offset)}
        return any(_touch(suspect, place) for suspect in self.suspects_of_crash) and unit_of(record).refusable

    def is_rejected(self, item: Record) -> bool:
        """Whether this item, processed alone, must not be decoded any more."""
        return {item.partition: (item.offset, item.next_offset)} in self._history.refused

    def begins(self, records: Sequence[Record], alone: bool) -> None:
        """Note that these records are being processed, in addition to earlier ones, until `finish_oldest` or `clear` is
        called. `alone`: they are one item. Thread-safe."""
        if not self._path:
            return
        begins, ends = dict(map(_BEGIN, reversed(records))), dict(map(_END, records))
        with self._lock:
            self._flights.append(({partition: (begins[partition], ends[partition]) for partition in begins}, alone))
            self._write()

    def retry_in_parts(self) -> None:
        """Note that the newest records are about to be processed again, in parts."""
        with self._lock:
            if self._flights:
                self._flights.pop()

    def finish_oldest(self) -> None:
        """Remove the oldest records from the note."""
        with self._lock:
            if self._flights:
                self._flights.popleft()
            self._write()

    def clear(self) -> None:
        """Nothing is being processed; also called after a run failed, which is not a crash."""
        with self._lock:
            self._flights.clear()
            self._write()

    def give_up(self) -> None:
        """As `clear`, in a handler of a signal: the lock may be held by the code that it interrupts."""
        if self._path:
            line = _EMPTY_LINE if self._history == Note() else msgspec.json.encode(self._history) + _EMPTY_LINE
            with suppress(OSError):
                os.pwrite(self._file, line, 0)

    def _write(self) -> None:
        if not self._path:
            return
        merged: Ranges = {}  # from the first to the last record: flights follow each other
        for ranges, _ in self._flights:
            for partition, (first, last) in ranges.items():
                begin, end = merged.get(partition, (first, last))
                merged[partition] = min(begin, first), max(end, last)
        alone = len(self._flights) == 1 and self._flights[0][1]
        note = msgspec.structs.replace(self._history, ranges=merged, alone=alone)
        line = _EMPTY_LINE if note == Note() else msgspec.json.encode(note) + _EMPTY_LINE
        with suppress(OSError):  # a full disk; the run says so of its snapshots
            os.pwrite(self._file, line, 0)

    def close(self) -> None:
        """The run ended without a crash. Records that triggered a bug remain in the note."""
        if self._path:
            first_byte = os.pread(self._file, 1, 0)
            os.close(self._file)
            if first_byte in (b"", _EMPTY_LINE):
                self._path.unlink(missing_ok=True)


def _touch(a: Ranges, b: Ranges) -> bool:
    return any(a[p][0] < b[p][1] and b[p][0] < a[p][1] for p in a.keys() & b.keys())
