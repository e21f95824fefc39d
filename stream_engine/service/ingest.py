"""Records to blocks for the engine: decode, convert rejected events to dead letters, determine their locations.

If a decoder fails, only the event that it fails on is lost: it is rejected as `decoder_failed`. The block is halved
until a single message, line or row remains, so that its neighbours are counted as if it were absent: O(log n) decodings
of a block per failing event, for the first `LOCATED` of a block; later ones are rejected in ranges of up to `STRETCH`
events, one dead letter each.

The records being processed, in a file that survives the process, so that a record that kills it is found and
rejected.

`DIR/in_flight` holds one line: the records that are being decoded, learned or judged, and the history of earlier
crashes; it is removed when a run ends normally. After a crash, these records are processed item by item, so the next
crash identifies one of them. An item at which the last `DEATHS` crashes happened is rejected; someone who kills a
healthy process repeatedly does not hit the same item. The line is not part of the state and never synced; if it is
lost, finding the record takes a few more crashes, but no event is lost.
"""

import os
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import msgspec
import numpy as np

from connectors import DeadLetter, Position, Record, SourceFailed, open_source
from stream_engine.data.comparisons import DecodedEvents, Rejected
from stream_engine.data.csv_grammar import column_names
from stream_engine.formats import Decoder, decoder
from stream_engine.formats.event_block import nothing
from stream_engine.formats.options import EventOptions, UnreadableHeader, UnusableOptions, raise_if_out_of_memory
from stream_engine.formats.repeats import Repeats
from stream_engine.service.context import RunFailed
from stream_engine.service.record_units import unit_of
from stream_engine.service.sources import MOST_BLOCK

DEATHS = 3
FAILURES = MemoryError, OSError, UnusableOptions, SourceFailed, RunFailed  # told in one line: no record's fault
_NOTHING = b"\n"
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
        refused = [*self.refused, self.ranges] if self.alone and deaths >= DEATHS else self.refused
        return Note(last=self.ranges, deaths=deaths, refused=refused)

    def ahead_of(self, positions: Mapping[str, Position]) -> "Note":
        """The note without the records that a state at these positions has counted."""

        def ahead(ranges: Ranges) -> bool:
            return any(positions.get(name, Position(0)).offset < after for name, (_, after) in ranges.items())

        last = self.last if ahead(self.last) else {}
        return Note(
            last=last, deaths=self.deaths if last else 0, refused=[each for each in self.refused if ahead(each)]
        )


class InFlight:
    """The note of one run; without a directory, nothing is written. `suspected` are the records to process item by
    item; `died_at` describes where the previous process crashed, "" if it did not."""

    def __init__(self, directory: str | Path | None = None, positions: Mapping[str, Position] = {}):
        self._path = Path(directory) / "in_flight" if directory else None
        self._flights: deque[tuple[Ranges, bool]] = deque()  # what is at work, oldest first
        self._lock = Lock()
        self._known, self.died_at, self._file = Note(), "", -1
        if self._path:
            with suppress(OSError, msgspec.MsgspecError):
                self._known = msgspec.json.decode(self._path.read_bytes().partition(_NOTHING)[0], type=Note)
            if self._known.ranges:
                self.died_at = ", ".join(f"{name}@{a}..{b}" for name, (a, b) in self._known.ranges.items())[:500]
                self._known = self._known.after_death()
            self._known = self._known.ahead_of(positions)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
            self._write()
        self.suspected = [each for each in (self._known.last, *self._known.refused) if each]

    def suspects(self, record: Record) -> bool:
        """Whether this record may have crashed a process."""
        place = {record.partition: (record.offset, record.next_offset)}
        return any(_touch(each, place) for each in self.suspected) and unit_of(record).refusable

    def refuses(self, item: Record) -> bool:
        """Whether this item, processed alone, must not be decoded any more."""
        return {item.partition: (item.offset, item.next_offset)} in self._known.refused

    def begins(self, records: Sequence[Record], alone: bool) -> None:
        """Note that these records are being processed, in addition to earlier ones, until `ended` or `clear` is called.
        `alone`: they are one item. Thread-safe."""
        if not self._path:
            return
        first, after = dict(map(_BEGIN, reversed(records))), dict(map(_END, records))
        with self._lock:
            self._flights.append(({partition: (first[partition], after[partition]) for partition in first}, alone))
            self._write()

    def retry_in_parts(self) -> None:
        """Note that the newest records are about to be processed again, in parts."""
        with self._lock:
            if self._flights:
                self._flights.pop()

    def ended(self) -> None:
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
            line = _NOTHING if self._known == Note() else msgspec.json.encode(self._known) + _NOTHING
            with suppress(OSError):
                os.pwrite(self._file, line, 0)

    def _write(self) -> None:
        if not self._path:
            return
        together: Ranges = {}  # from the first to the last record: flights follow each other
        for ranges, _ in self._flights:
            for partition, (first, after) in ranges.items():
                begin, end = together.get(partition, (first, after))
                together[partition] = min(begin, first), max(end, after)
        alone = len(self._flights) == 1 and self._flights[0][1]
        note = msgspec.structs.replace(self._known, ranges=together, alone=alone)
        line = _NOTHING if note == Note() else msgspec.json.encode(note) + _NOTHING
        with suppress(OSError):  # a full disk; the run says so of its snapshots
            os.pwrite(self._file, line, 0)

    def close(self) -> None:
        """The run ended without a crash. Records that triggered a bug remain in the note."""
        if self._path:
            first_byte = os.pread(self._file, 1, 0)
            os.close(self._file)
            if first_byte in (b"", _NOTHING):
                self._path.unlink(missing_ok=True)


def _touch(one: Ranges, other: Ranges) -> bool:
    return any(one[p][0] < other[p][1] and other[p][0] < one[p][1] for p in one.keys() & other.keys())


LOCATED = 1024
STRETCH = 4096
_SHOWN = 500  # characters of an exception's text

# of a record, for fast access over thousands of messages
_VALUE, _PARTITION, _FORMAT, _UNIT, _PROBLEM = (
    itemgetter(Record._fields.index(field)) for field in ("value", "partition", "format", "unit", "problem")
)


class Block(NamedTuple):
    """Records that are learned together: their events as columns, and the rejected ones with their locations."""

    records: list[Record]
    decoded: DecodedEvents
    dead_letters: list[DeadLetter]
    more: bool = False  # the rest of its record follows, and the position after it comes with the last part

    def positions(self) -> dict[str, Position]:
        """The position after the last record of every partition; empty if more parts of a record follow."""
        last = {} if self.more else dict(zip(map(_PARTITION, self.records), self.records, strict=True))
        return {partition: Position(record.next_offset, record.mark) for partition, record in last.items()}

    def counts(self) -> Counter[str]:
        """The number of records of each partition, in the source's unit: messages, lines or rows."""
        return unit_of(self.records[0]).counts(self.records, self.decoded)


class Ingest:
    """Records to blocks of columns, with one decoder per format and the same options for all. `in_flight` tracks the
    records being processed, and knows which to process item by item and which to reject."""

    def __init__(self, options: EventOptions, format: str | None = None, in_flight: InFlight | None = None):
        self.options, self._format = options, format
        self._in_flight = in_flight or InFlight()
        self._decoders: dict[str, Decoder] = {}
        self.repeats = Repeats(options.drop_duplicates)
        self.files: set[str] = set()  # that were read
        self.participants = False  # whether any event names one
        self.block_bytes = MOST_BLOCK

    def blocks(self, records: list[Record]) -> Iterator[Block]:
        """The records of one poll in order: messages together where possible, larger records one by one, tables in
        parts of limited size."""
        if self._fit_together(records):
            yield from self._together(records)
            return
        waiting: list[Record] = []
        size = 0
        for record in (part for each in records for part in unit_of(each).bounded(each, self.options.bounds)):
            several = unit_of(record).several_at_once and not record.problem and not self._in_flight.suspects(record)
            if waiting and (not several or size >= self.block_bytes or record.format != waiting[0].format):
                yield from self._together(waiting)
                waiting, size = [], 0
            if several:
                waiting.append(record)
                size += len(record.value)
            else:
                yield from self._alone(record)
        if waiting:
            yield from self._together(waiting)

    def _fit_together(self, records: list[Record]) -> bool:
        """Whether these are only valid messages of one format that fit into one block, as in most polls of a topic."""
        if not records or set(map(_UNIT, records)) != {"message"} or any(map(_PROBLEM, records)):
            return False
        size = sum(map(len, map(_VALUE, records)))
        if size > self.options.bounds.max_bytes and max(map(len, map(_VALUE, records))) > self.options.bounds.max_bytes:
            return False
        one_format = len(set(map(_FORMAT, records))) == 1
        return size <= self.block_bytes and one_format and not self._in_flight.suspected

    def _together(self, records: list[Record]) -> Iterator[Block]:
        """Messages as one block, or as several if they do not fit into one or if decoding fails. Where only some were
        taken, no more than twice as many are tried next: O(messages) however they are cut."""
        n = len(records)
        while records:
            head = records[:n]
            self._in_flight.begins(head, alone=len(head) == 1)
            try:
                decoded, refused_in = self._decoder(self._format or head[0].format).many(list(map(_VALUE, head)))
            except Exception as error:
                message, n = failure_of(error), len(head) // 2
                if n:
                    self._in_flight.retry_in_parts()
                else:
                    yield self._refused(head[0], "decoder_failed", message)
                    records, n = records[1:], 1
                continue
            decoded_records = head if decoded.values is None else head[: decoded.values]
            n = 2 * len(decoded_records)
            letters = [
                letter
                for number, rejected in zip(refused_in, decoded.rejected)
                for letter in unit_of(records[number]).dead_letters(records[number], [rejected])
            ]
            yield Block(decoded_records, decoded, letters)
            records = records[len(decoded_records) :]

    def _alone(self, record: Record) -> Iterator[Block]:
        """One record as one block, or in parts if decoding fails or if the process may have crashed on it."""
        unit, suspect = unit_of(record), self._in_flight.suspects(record)
        waiting = unit.parts(record, 1)[::-1] if suspect else [record]
        events = failures = 0
        while waiting:
            part = waiting.pop()
            self._in_flight.begins([part], alone=suspect)
            if suspect and self._in_flight.refuses(part):
                message = f"the process crashed {DEATHS} times while processing it"
                blocks = [self._refused(part, "process_died", message)]
            else:
                try:
                    blocks = [Block([part], *self.read(part))]
                except Exception as error:
                    message = failure_of(error)
                    parts = unit.parts(part, None if failures < LOCATED else STRETCH)
                    if len(parts) > 1 and failures < LOCATED:
                        self._in_flight.retry_in_parts()
                        waiting += parts[::-1]
                        continue
                    failures += 1
                    blocks = [self._refused(each, "decoder_failed", message) for each in parts]
            for number, block in enumerate(blocks, 1):
                letters = [each._replace(event_index=each.event_index + events) for each in block.dead_letters]
                events += unit.events(block.records[0], block.decoded)
                yield block._replace(dead_letters=letters, more=bool(waiting) or number < len(blocks))

    def read(self, record: Record) -> tuple[DecodedEvents, list[DeadLetter]]:
        """The events of a record, and the rejected ones. Raises `UnreadableHeader` if a table lacks a required column,
        and the exceptions of a decoder."""
        if record.problem:
            block = self._refused(record, "too_large" if record.too_large else "incomplete", record.problem)
            return block.decoded, block.dead_letters
        try:
            decoded, letters = unit_of(record).decode(record, self._decoder, self._format or record.format)
        except UnreadableHeader as error:
            raise UnreadableHeader(f"{record.partition}: {error}") from None
        if record.unit not in ("byte", "row"):
            return decoded, letters
        if self.options.participant_from == "file":
            decoded = of_participant(decoded, Path(record.partition).name.partition(".")[0])
        self.files.add(record.partition)
        self.participants |= decoded.provenance is not None and bool(decoded.provenance.workers)
        return self.repeats.without(decoded), letters

    def _decoder(self, name: str) -> Decoder:
        if name not in self._decoders:
            self._decoders[name] = decoder(name, self.options)
        return self._decoders[name]

    def _refused(self, record: Record, reason: str, message: str) -> Block:
        """A record rejected as a whole, with all of its bytes."""
        rejected = [Rejected(0, 0, reason, message, unit_of(record).content(record))]
        decoded = nothing(provenance=self.options.provenance)._replace(rejected=rejected)
        return Block([record], decoded, unit_of(record).dead_letters(record, rejected))


def of_participant(decoded: DecodedEvents, name: str) -> DecodedEvents:
    """A block whose events are all one participant's."""

    def told(each: DecodedEvents) -> DecodedEvents:
        given = each.provenance
        if given is None:
            return each
        worker, catch = (np.zeros(len(numbers), np.int32) for numbers in (given.worker, given.catch_worker))
        return each._replace(provenance=given._replace(worker=worker, workers=[name], catch_worker=catch))

    return told(decoded)._replace(rest=[told(each) for each in decoded.rest])


def failure_of(error: Exception) -> str:
    """Type and text of a decoder's exception in one line. Re-raises exceptions that do not concern the event."""
    raise_if_out_of_memory(error)
    if isinstance(error, UnusableOptions | SourceFailed):
        raise error
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:_SHOWN].removesuffix(": ")


def read_labels(path: str, columns: Mapping[str, tuple[str, ...]]) -> tuple[list[Block], Position]:
    """The label events of a file, and the position that identifies its content: (size, CRC-32 of the whole file).

    In a CSV of exactly two columns, one of them `object`, the other one is the label whatever its name.
    """
    source = open_source(path, {})
    blocks: list[Block] = []
    size, check = 0, 0
    try:
        ingest = None
        while not source.finished():
            for record in source.poll(0.1):
                ingest = ingest or Ingest(EventOptions("label", label_columns(record.header, columns)))
                blocks += ingest.blocks([record])
                size, check = record.next_offset, zlib.crc32(_bytes(record), check)
    finally:
        source.close()
    return blocks, Position(size, check)


def _bytes(record: Record) -> bytes:
    return record.value if isinstance(record.value, bytes) else repr(record.value.to_pylist()).encode()


def label_columns(header: bytes, columns: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    """The columns of a file of labels that hold its fields: as given, or as the header shows."""
    names = [name.strip() for name in column_names(header, errors="replace")]
    if not columns and len(names) == 2 and "object" in names and "label" not in names:
        return {"label": (names[1 - names.index("object")],)}
    return columns
