"""From records to what the engine learns: decode, turn what was refused into dead letters, find out where it stood."""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from connectors import DeadLetter, Position, Record, open_source
from stream_engine.data.comparisons import Decoded, Rejected
from stream_engine.data.csv_grammar import column_names
from stream_engine.formats import Decoder, decoder
from stream_engine.formats.options import EventOptions, UnreadableHeader
from stream_engine.service.in_flight import DEATHS, InFlight
from stream_engine.service.quarantine import decoded_apart, failure_of, many_apart, refused
from stream_engine.service.record_bounds import bounded
from stream_engine.state import spark_deltas

if TYPE_CHECKING:
    from stream_engine.formats.json_events import Decoder as JsonDecoder

BLOCK_BYTES = 8 << 20  # of messages that are decoded at once

# of a record, taken from thousands of messages without a step of the interpreter for each
_VALUE, _PARTITION, _FORMAT, _UNIT, _PROBLEM = (
    itemgetter(Record._fields.index(field)) for field in ("value", "partition", "format", "unit", "problem")
)
_NONE = np.empty((0, 3), np.int32), np.empty((0, 4), np.int32), np.empty(0, np.int64)


class Block(NamedTuple):
    """Records that are learned in one go, their events as columns, and what was refused with its place."""

    records: list[Record]
    decoded: Decoded
    dead_letters: list[DeadLetter]
    more: bool = False  # the rest of its record follows, and the position after it comes with the last part

    def positions(self) -> dict[str, Position]:
        """The position after the last record of every partition; none while the rest of a record follows."""
        last = {} if self.more else dict(zip(map(_PARTITION, self.records), self.records, strict=True))
        return {partition: Position(record.next_offset, record.mark) for partition, record in last.items()}

    def counts(self) -> Counter[str]:
        """How many records of the source's unit came from each partition: messages, or else lines or rows."""
        if self.records[0].unit == "message":
            return Counter(map(_PARTITION, self.records))
        return Counter({self.records[0].partition: records_in(self.records[0], self.decoded)})


class Ingest:
    """From records to blocks of columns: a decoder for each format, all with the same options.

    A record that a decoder fails on is refused (`quarantine`). `in_flight` is told what is at work; what it suspects
    of having killed the process is taken in parts, and what is found guilty is refused.
    """

    def __init__(self, options: EventOptions, format: str | None = None, in_flight: InFlight | None = None):
        self.options, self._format, self._in_flight = options, format, in_flight
        self._decoders: dict[str, Decoder] = {}
        self.block_bytes = BLOCK_BYTES

    def decode(self, record: Record) -> Decoded:
        """The record's events as columns. Raises `UnreadableHeader` when a table lacks what every event needs."""
        if record.problem:
            reason = "too_large" if record.too_large else "incomplete"
            refused = Rejected(0, 0, reason, record.problem, bytes(record.value))
            return Decoded([], *_NONE, [], {}, [refused])
        try:
            return self._by_decoder(record)
        except UnreadableHeader as error:
            raise UnreadableHeader(f"{record.partition}: {error}") from None
        except Exception as error:
            failure_of(error)
        return decoded_apart(self._by_decoder, record, self.options.provenance)

    def _by_decoder(self, record: Record) -> Decoded:
        decode = self._decoder(record)
        if record.unit == "byte" and (self._format or record.format) == "json":
            return cast("JsonDecoder", decode).lines(record.value)  # a block of lines is no Arrow stream
        return decode(record.value, record.header)

    def _decoder(self, record: Record) -> Decoder:
        name = self._format or record.format
        if name not in self._decoders:
            self._decoders[name] = decoder(name, self.options)
        return self._decoders[name]

    def blocks(self, records: list[Record]) -> Iterator[Block]:
        """The records of one poll, in order: messages together as far as they can be, larger records one by one, tables
        in parts that hold no more than one may."""
        if self._fit_together(records):
            yield from self._messages(records)
            return
        waiting: list[Record] = []
        size = 0
        for record in bounded(records, self.options.bounds):
            alone = record.unit != "message" or bool(record.problem)
            if waiting and (alone or size >= self.block_bytes or record.format != waiting[0].format):
                yield from self._messages(waiting)
                waiting, size = [], 0
            if record.unit == "batch":
                self._begins([record])
                yield Block([record], *spark_deltas.decode(record))
            elif alone:
                yield from self._alone(record)
            else:
                waiting.append(record)
                size += len(record.value)
        if waiting:
            yield from self._messages(waiting)

    def _fit_together(self, records: list[Record]) -> bool:
        """Whether these are nothing but sound messages of one format that make one block: as most polls of a topic."""
        if not records or set(map(_UNIT, records)) != {"message"} or any(map(_PROBLEM, records)):
            return False
        size = sum(map(len, map(_VALUE, records)))
        if size > self.options.bounds.max_bytes and max(map(len, map(_VALUE, records))) > self.options.bounds.max_bytes:
            return False
        return size <= self.block_bytes and len(set(map(_FORMAT, records))) == 1

    def _alone(self, record: Record) -> Iterator[Block]:
        """A record of many lines or rows: one block, or as many as its suspects ask for."""
        if self._in_flight is not None and self._in_flight.suspected(record):
            yield from self._in_parts(record, self._in_flight)
            return
        self._begins([record])
        decoded = self.decode(record)
        yield Block([record], decoded, dead_letters_of(record, decoded.rejected))

    def _in_parts(self, record: Record, in_flight: InFlight) -> Iterator[Block]:
        before = 0
        for part, single in in_flight.parts_of(record):
            in_flight.begins([part], single)
            decoded = self._refused(part) if single and in_flight.refuses(part) else self.decode(part)
            letters = dead_letters_of(part, decoded.rejected, before)
            before += records_in(part, decoded) - decoded.empty
            yield Block([part], decoded, letters, more=part.next_offset != record.next_offset)

    def _messages(self, records: list[Record]) -> Iterator[Block]:
        """Messages together; those that the process may have died of, in parts."""
        if self._in_flight is None or not self._in_flight.suspects:
            yield from self._together(records)
            return
        for part in self._in_flight.parts_of_messages(records):
            if len(part) == 1 and self._in_flight.refuses(part[0]):
                self._begins(part)
                decoded = self._refused(part[0])
                yield Block(part, decoded, dead_letters_of(part[0], decoded.rejected))
            else:
                yield from self._together(part)

    def _refused(self, record: Record) -> Decoded:
        message = f"the process died {DEATHS} times while it was at work on it"
        return refused(record, "process_died", message, self.options.provenance)

    def _begins(self, records: list[Record]) -> None:
        if self._in_flight is not None:
            self._in_flight.begins(records)

    def _together(self, records: list[Record]) -> Iterator[Block]:
        """Messages as one block, or as several where together they are too much."""
        while records:
            self._begins(records)
            block = self._decoded_together(records)
            yield block
            records = records[len(block.records) :]

    def _decoded_together(self, records: list[Record]) -> Block:
        try:
            decoded, refused_in = self._decoder(records[0]).many(list(map(_VALUE, records)))
        except Exception as error:
            failure_of(error)
            decoded, refused_in = many_apart(self._decoder(records[0]).many, records, self.options.provenance)
        dead_letters = [
            letter
            for number, rejected in zip(refused_in, decoded.rejected)
            for letter in dead_letters_of(records[number], [rejected])
        ]
        return Block(records if decoded.values is None else records[: decoded.values], decoded, dead_letters)


def dead_letters_of(record: Record, rejected: Iterable[Rejected], before: int = 0) -> list[DeadLetter]:
    """What was refused, with its place in the stream: its own byte or row where the record's unit allows it. `before`
    counts the events before, where the record is a part of one."""
    dead_letters = []
    for each in rejected:
        within = {"byte": each.start, "row": each.index}.get(record.unit, 0)
        dead_letters.append(
            DeadLetter(
                record.partition,
                record.offset + within,
                before + each.index,
                each.reason,
                each.message,
                each.value,
                record.key,
            )
        )
    return dead_letters


def records_in(record: Record, decoded: Decoded) -> int:
    """How many records of the source's unit a block held: one per message, else one per line or row."""
    if record.unit == "message":
        return 1
    if decoded.counted:
        return decoded.counted.records
    return sum(decoded.events.values()) + len(decoded.rejected) + decoded.filtered + decoded.empty


def read_labels(path: str, columns: Mapping[str, tuple[str, ...]]) -> tuple[list[Block], Position]:
    """A whole file of label events, and the position that identifies its content: (size, CRC-32 of all of it).

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
    """In which columns of a file of labels its fields stand: as told, or as the header shows."""
    names = [name.strip() for name in column_names(header, errors="replace")]
    if not columns and len(names) == 2 and "object" in names and "label" not in names:
        return {"label": (names[1 - names.index("object")],)}
    return columns
