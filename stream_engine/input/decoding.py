"""Records to blocks for the engine: decode, convert rejected events to dead letters, determine their locations."""

from collections import Counter
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from connectors import DeadLetter, Position, Record, SourceFailed
from stream_engine.data.comparisons import DecodedEvents, Rejected
from stream_engine.formats import Decoder, decoder
from stream_engine.formats.event_block import nothing
from stream_engine.formats.options import EventOptions, UnreadableHeader, UnusableOptions, raise_if_out_of_memory
from stream_engine.formats.repeats import Repeats
from stream_engine.input.in_flight import MAX_CRASHES, InFlight
from stream_engine.input.record_units import unit_of
from stream_engine.input.sources import MAX_BLOCK_BYTES

# of a record, for fast access over thousands of messages
_VALUE, _PARTITION, _FORMAT, _UNIT, _PROBLEM = (
    itemgetter(Record._fields.index(field)) for field in ("value", "partition", "format", "unit", "problem")
)


class Block(NamedTuple):
    """Records that are learned together: their events as columns, and the rejected ones with their locations."""

    records: list[Record]
    decoded: DecodedEvents
    dead_letters: list[DeadLetter]
    has_more_parts: bool = False  # of its record; the position after the record comes with the last part

    def positions(self) -> dict[str, Position]:
        """The position after the last record of every partition; empty if more parts of a record follow."""
        last = {} if self.has_more_parts else dict(zip(map(_PARTITION, self.records), self.records, strict=True))
        return {partition: Position(record.next_offset, record.mark) for partition, record in last.items()}

    def counts(self) -> Counter[str]:
        """The number of records of each partition, in the source's unit: messages, lines or rows."""
        return unit_of(self.records[0]).counts(self.records, self.decoded)


# If a decoder fails, only the event that it fails on is lost: it is rejected as `decoder_failed`. The block is halved
# until a single message, line or row remains, so that its neighbours are counted as if it were absent: O(log n)
# decodings of a block per failing event.
MAX_LOCATED_FAILURES = 1024  # of a block; later ones are rejected in ranges, with one dead letter each
RANGE_SIZE = 4096  # events


class RecordDecoder:
    """Records to blocks of columns, with one decoder per format and the same options for all. `in_flight` tracks the
    records being processed: which to process item by item, and which to reject."""

    def __init__(self, options: EventOptions, format: str | None = None, in_flight: InFlight | None = None):
        self.options, self._format = options, format
        self._in_flight = in_flight or InFlight()
        self._decoders: dict[str, Decoder] = {}
        self.repeats = Repeats(options.drop_duplicates)
        self.files: set[str] = set()  # already read
        self.participants = False  # whether any event names a participant
        self.block_bytes = MAX_BLOCK_BYTES

    def files_in_words(self) -> str:
        """What to say of files that may be of one participant each; "" where somebody is named."""
        files = len(self.files)
        if files < 2 or "worker" in self.options.columns or self.participants:
            return ""
        return f"no column says who answered, in {files:,} files; if each is of one: --participant-from file"

    def blocks(self, records: list[Record]) -> Iterator[Block]:
        """The records of one poll in order: messages together where possible, larger records one by one, tables in
        parts of limited size."""
        if self._fit_into_one_block(records):
            yield from self._decode_together(records)
            return
        batch: list[Record] = []
        size = 0
        for record in (
            part
            for whole_record in records
            for part in unit_of(whole_record).within_bounds(whole_record, self.options.bounds)
        ):
            can_join = unit_of(record).several_at_once and not record.problem and not self._in_flight.suspects(record)
            if batch and (not can_join or size >= self.block_bytes or record.format != batch[0].format):
                yield from self._decode_together(batch)
                batch, size = [], 0
            if can_join:
                batch.append(record)
                size += len(record.value)
            else:
                yield from self._decode_alone(record)
        if batch:
            yield from self._decode_together(batch)

    def _fit_into_one_block(self, records: list[Record]) -> bool:
        """Whether these are only valid messages of one format that fit into one block, as in most polls of a topic."""
        if not records or set(map(_UNIT, records)) != {"message"} or any(map(_PROBLEM, records)):
            return False
        size = sum(map(len, map(_VALUE, records)))
        if size > self.options.bounds.max_bytes and max(map(len, map(_VALUE, records))) > self.options.bounds.max_bytes:
            return False
        one_format = len(set(map(_FORMAT, records))) == 1
        return size <= self.block_bytes and one_format and not self._in_flight.suspects_of_crash

    def _decode_together(self, records: list[Record]) -> Iterator[Block]:
        """Messages as one block, or as several if they do not fit into one or if decoding fails. After a block of n
        messages, at most 2 n are tried: O(messages) however many fit."""
        n_next = len(records)
        while records:
            head = records[:n_next]
            self._in_flight.begins(head, alone=len(head) == 1)
            try:
                events, rejected_numbers = self._decoder(self._format or head[0].format).many(list(map(_VALUE, head)))
            except Exception as error:
                message, n_next = failure_of(error), len(head) // 2
                if n_next:
                    self._in_flight.retry_in_parts()
                else:
                    yield self._rejected_block(head[0], "decoder_failed", message)
                    records, n_next = records[1:], 1
                continue
            decoded_records = head if events.values is None else head[: events.values]
            n_next = 2 * len(decoded_records)
            letters = [
                letter
                for number, rejected_event in zip(rejected_numbers, events.rejected)
                for letter in unit_of(records[number]).dead_letters(records[number], [rejected_event])
            ]
            yield Block(decoded_records, events, letters)
            records = records[len(decoded_records) :]

    def _decode_alone(self, record: Record) -> Iterator[Block]:
        """One record as one block, or in parts if decoding fails or if the process may have crashed on it."""
        unit, suspect = unit_of(record), self._in_flight.suspects(record)
        waiting = unit.parts(record, 1)[::-1] if suspect else [record]
        events = failures = 0
        while waiting:
            part = waiting.pop()
            self._in_flight.begins([part], alone=suspect)
            if suspect and self._in_flight.is_rejected(part):
                message = f"the process crashed {MAX_CRASHES} times while processing it"
                blocks = [self._rejected_block(part, "process_died", message)]
            else:
                try:
                    blocks = [Block([part], *self.read(part))]
                except Exception as error:
                    message = failure_of(error)
                    parts = unit.parts(part, None if failures < MAX_LOCATED_FAILURES else RANGE_SIZE)
                    if len(parts) > 1 and failures < MAX_LOCATED_FAILURES:
                        self._in_flight.retry_in_parts()
                        waiting += parts[::-1]
                        continue
                    failures += 1
                    blocks = [
                        self._rejected_block(part_or_letter, "decoder_failed", message) for part_or_letter in parts
                    ]
            for number, block in enumerate(blocks, 1):
                letters = [
                    part_or_letter._replace(event_index=part_or_letter.event_index + events)
                    for part_or_letter in block.dead_letters
                ]
                events += unit.events(block.records[0], block.decoded)
                yield block._replace(dead_letters=letters, has_more_parts=bool(waiting) or number < len(blocks))

    def read(self, record: Record) -> tuple[DecodedEvents, list[DeadLetter]]:
        """The events of a record, and the rejected ones. Raises `UnreadableHeader` if a table lacks a required column,
        and the exceptions of a decoder."""
        if record.problem:
            block = self._rejected_block(record, "too_large" if record.too_large else "incomplete", record.problem)
            return block.decoded, block.dead_letters
        try:
            events, dead_letters = unit_of(record).decode(record, self._decoder, self._format or record.format)
        except UnreadableHeader as error:
            raise UnreadableHeader(f"{record.partition}: {error}") from None
        if record.unit not in ("byte", "row"):
            return events, dead_letters
        if self.options.participant_from == "file":
            events = of_participant(events, Path(record.partition).name.partition(".")[0])
        self.files.add(record.partition)
        self.participants |= events.provenance is not None and bool(events.provenance.workers)
        return self.repeats.without(events), dead_letters

    def _decoder(self, name: str) -> Decoder:
        if name not in self._decoders:
            self._decoders[name] = decoder(name, self.options)
        return self._decoders[name]

    def _rejected_block(self, record: Record, reason: str, message: str) -> Block:
        """A block of a record that is rejected as a whole, with all of its bytes."""
        rejected = [Rejected(0, 0, reason, message, unit_of(record).content(record))]
        decoded = nothing(provenance=self.options.provenance)._replace(rejected=rejected)
        return Block([record], decoded, unit_of(record).dead_letters(record, rejected))


def of_participant(decoded: DecodedEvents, name: str) -> DecodedEvents:
    """The block with all of its events by the participant `name`."""

    def with_participant(part: DecodedEvents) -> DecodedEvents:
        provenance = part.provenance
        if provenance is None:
            return part
        worker, catch = (np.zeros(len(numbers), np.int32) for numbers in (provenance.worker, provenance.catch_worker))
        return part._replace(provenance=provenance._replace(worker=worker, workers=[name], catch_worker=catch))

    return with_participant(decoded)._replace(rest=[with_participant(part) for part in decoded.rest])


MAX_MESSAGE_LENGTH = 500  # characters of an exception's text


def failure_of(error: Exception) -> str:
    """Type and text of a decoder's exception in one line. Re-raises exceptions that do not concern the event."""
    raise_if_out_of_memory(error)
    if isinstance(error, UnusableOptions | SourceFailed):
        raise error
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:MAX_MESSAGE_LENGTH].removesuffix(": ")
