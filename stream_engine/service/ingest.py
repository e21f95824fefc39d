"""From records to what the engine learns: decode, turn what was refused into dead letters, find out where it stood."""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from connectors import DeadLetter, Position, Record, open_source
from connectors.files.csv_scanner import column_names
from stream_engine.data.comparisons import Decoded, Rejected
from stream_engine.formats import Decoder, decoder
from stream_engine.formats.options import EventOptions, UnreadableHeader
from stream_engine.state import spark_deltas

BLOCK_BYTES = 8 << 20  # of messages that are decoded at once

_NONE = np.empty((0, 3), np.int32), np.empty((0, 4), np.int32), np.empty(0, np.int64)


class Block(NamedTuple):
    """Records that are learned in one go, their events as columns, and what was refused with its place."""

    records: list[Record]
    decoded: Decoded
    dead_letters: list[DeadLetter]

    def positions(self) -> dict[str, Position]:
        """The position after the last record of every partition."""
        return {record.partition: Position(record.next_offset, record.mark) for record in self.records}

    def counts(self) -> Counter[str]:
        """How many records of the source's unit came from each partition: messages, or else lines or rows."""
        if self.records[0].unit == "message":
            return Counter(record.partition for record in self.records)
        return Counter({self.records[0].partition: records_in(self.records[0], self.decoded)})


class Ingest:
    """From records to blocks of columns: a decoder for each format, all with the same options."""

    def __init__(self, options: EventOptions, format: str | None = None):
        self.options, self._format = options, format
        self._decoders: dict[str, Decoder] = {}

    def decode(self, record: Record) -> Decoded:
        """The record's events as columns. Raises `UnreadableHeader` when a table lacks what every event needs."""
        if record.problem:
            refused = Rejected(0, 0, "incomplete", record.problem, bytes(record.value))
            return Decoded([], *_NONE, [], {}, [refused])
        try:
            return self._decoder(record)(record.value, record.header)
        except UnreadableHeader as error:
            raise UnreadableHeader(f"{record.partition}: {error}") from None

    def _decoder(self, record: Record) -> Decoder:
        name = self._format or record.format
        if name not in self._decoders:
            self._decoders[name] = decoder(name, self.options)
        return self._decoders[name]

    def blocks(self, records: list[Record]) -> Iterator[Block]:
        """The records of one poll, in order: messages together as far as they can be, larger records one by one."""
        waiting: list[Record] = []
        size = 0
        for record in records:
            alone = record.unit != "message" or bool(record.problem)
            if waiting and (alone or size >= BLOCK_BYTES or record.format != waiting[0].format):
                yield self._together(waiting)
                waiting, size = [], 0
            if record.unit == "batch":
                yield Block([record], *spark_deltas.decode(record))
            elif alone:
                decoded = self.decode(record)
                yield Block([record], decoded, dead_letters_of(record, decoded.rejected))
            else:
                waiting.append(record)
                size += len(record.value)
        if waiting:
            yield self._together(waiting)

    def _together(self, records: list[Record]) -> Block:
        decoded, refused_in = self._decoder(records[0]).many([record.value for record in records])
        dead_letters = [
            letter
            for number, rejected in zip(refused_in, decoded.rejected)
            for letter in dead_letters_of(records[number], [rejected])
        ]
        return Block(records, decoded, dead_letters)


def dead_letters_of(record: Record, rejected: Iterable[Rejected]) -> list[DeadLetter]:
    """What was refused, with its place in the stream: its own byte or row where the record's unit allows it."""
    dead_letters = []
    for each in rejected:
        within = {"byte": each.start, "row": each.index}.get(record.unit, 0)
        dead_letters.append(
            DeadLetter(
                record.partition, record.offset + within, each.index, each.reason, each.message, each.value, record.key
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
                ingest = ingest or Ingest(EventOptions("label", _label_columns(record, columns)))
                blocks += ingest.blocks([record])
                size, check = record.next_offset, zlib.crc32(_bytes(record), check)
    finally:
        source.close()
    return blocks, Position(size, check)


def _bytes(record: Record) -> bytes:
    return record.value if isinstance(record.value, bytes) else repr(record.value.to_pylist()).encode()


def _label_columns(record: Record, columns: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    names = [name.strip() for name in column_names(record.header, errors="replace")]
    if not columns and len(names) == 2 and "object" in names and "label" not in names:
        return {"label": (names[1 - names.index("object")],)}
    return columns
