"""Records to blocks for the engine: decode, convert rejected events to dead letters, determine their locations.

If a decoder fails, only the event that it fails on is lost: it is rejected as `decoder_failed`. The block is halved
until a single message, line or row remains, so that its neighbours are counted as if it were absent: O(log n) decodings
of a block per failing event, for the first `LOCATED` of a block; later ones are rejected in ranges of up to `STRETCH`
events, one dead letter each.
"""

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from connectors import DeadLetter, Position, Record, SourceFailed, open_source
from stream_engine.data.comparisons import DecodedEvents, Rejected
from stream_engine.data.csv_grammar import column_names
from stream_engine.formats import Decoder, decoder
from stream_engine.formats.event_block import nothing
from stream_engine.formats.options import EventOptions, UnreadableHeader, UnusableOptions, raise_if_out_of_memory
from stream_engine.formats.repeats import Repeats
from stream_engine.input.in_flight import DEATHS, InFlight
from stream_engine.input.record_units import unit_of
from stream_engine.input.sources import MOST_BLOCK

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


class RecordDecoder:
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
                ingest = ingest or RecordDecoder(EventOptions("label", label_columns(record.header, columns)))
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
