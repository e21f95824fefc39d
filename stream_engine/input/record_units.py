"""The unit of a record's offsets (bytes, rows, messages, batches), with one class for each `Record.unit`."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, cast

import numpy as np

from connectors import DeadLetter, Record
from stream_engine.data.comparisons import DecodedEvents, Rejected
from stream_engine.data.csv_grammar import column_names, delimiter_of, rows_of
from stream_engine.formats import Decoder
from stream_engine.formats.options import Bounds, too_many_bytes

if TYPE_CHECKING:
    from stream_engine.formats.json_events import Decoder as JsonDecoder

MAX_STORED_BYTES = 1 << 20  # in the dead letter of a message that is too large
_PARTITION = itemgetter(Record._fields.index("partition"))


class Unit:
    """Defaults for all units, and the behaviour for records that are a single indivisible item.

    Invariant of `parts`: the parts of a record are consecutive, each has the location of its bytes or rows in the
    source, and decoding them one by one gives the same result as decoding the record as a whole.
    """

    several_at_once = False  # consecutive records are decoded together
    refusable = True  # an item that crashes the process is rejected

    def within_bounds(self, record: Record, bounds: Bounds) -> Iterator[Record]:
        """The record, with a `problem` if it is too large, before decoding."""
        yield record

    def starts(self, record: Record) -> Sequence[int]:
        """The start of each item, relative to the first byte or row; just [0] if the record is indivisible."""
        return [0]

    def slice(self, record: Record, first: int, end: int) -> Record:
        """The bytes or rows from `first` up to `end` (exclusive) as a record."""
        return record

    def parts(self, record: Record, items_per_part: int | None = None) -> list[Record]:
        """The record in parts of `items_per_part` items each; None: in halves."""
        starts = self.starts(record)
        cuts = list(starts[:: items_per_part or (len(starts) + 1) // 2])
        if len(cuts) == 1:
            return [record]
        parts = [self.slice(record, first, end) for first, end in pairwise(cuts)]
        last = self.slice(record, cuts[-1], len(record.value))
        return [*parts, last._replace(next_offset=record.next_offset)]

    def content(self, record: Record) -> bytes:
        """The content of a record for a dead letter."""
        return bytes(record.value or b"")

    def decode(
        self, record: Record, decoder_of: Callable[[str], Decoder], format: str
    ) -> tuple[DecodedEvents, list[DeadLetter]]:
        """The events of a record, and its rejected events with their locations."""
        decoded = decoder_of(format)(record.value, record.header)
        return decoded, self.dead_letters(record, decoded.rejected)

    def dead_letters(self, record: Record, rejected: Sequence[Rejected]) -> list[DeadLetter]:
        """The rejected events of a record, each with its own byte or row if the unit allows it."""
        return [
            DeadLetter(
                record.partition,
                record.offset + self._place(rejection.start, rejection.index),
                rejection.index,
                rejection.reason,
                rejection.message,
                rejection.value,
                record.key,
            )
            for rejection in rejected
        ]

    def _place(self, start: int, index: int) -> int:
        return 0

    def events(self, record: Record, decoded: DecodedEvents) -> int:
        """The number of events in a record, valid or not."""
        return sum(decoded.events.values()) + len(decoded.rejected) + decoded.filtered

    def counts(self, records: Sequence[Record], decoded: DecodedEvents) -> Counter[str]:
        """The number of records from each partition: messages, lines or rows."""
        return Counter({records[0].partition: Unit.events(self, records[0], decoded) + decoded.empty})

    def input_of(self, partition: str) -> str:
        """The input that a partition belongs to."""
        return partition


class Text(Unit):
    """Bytes of lines or CSV records."""

    def starts(self, record: Record) -> Sequence[int]:
        """
        >>> Text().starts(Record(b"{}\\n{}\\n", "f", 10, 16))
        [0, 3]
        >>> Text().starts(Record(b'"a\\nb",c\\nd,e\\n', "f", 4, 16, format="csv", header=b"x,y\\n"))
        [0, 8]
        """
        if record.problem or record.format not in ("json", "csv"):
            return [0]
        if record.format == "csv":
            width = len(column_names(record.header, errors="replace"))
            return [0, *rows_of(record.value, width, delimiter_of(record.header)).start.tolist()[1:]] if width else [0]
        ends = np.flatnonzero(np.frombuffer(record.value, np.uint8) == 10) + 1
        return [0, *ends[ends < len(record.value)].tolist()]

    def slice(self, record: Record, first: int, end: int) -> Record:
        value, offset = record.value[first:end], record.offset
        return record._replace(value=value, offset=offset + first, next_offset=offset + end)

    def decode(
        self, record: Record, decoder_of: Callable[[str], Decoder], format: str
    ) -> tuple[DecodedEvents, list[DeadLetter]]:
        if format != "json":
            return super().decode(record, decoder_of, format)
        decoded = cast("JsonDecoder", decoder_of(format)).lines(record.value)  # a block of lines is no Arrow stream
        return decoded, self.dead_letters(record, decoded.rejected)

    def _place(self, start: int, index: int) -> int:
        return start


class Rows(Unit):
    def within_bounds(self, record: Record, bounds: Bounds) -> Iterator[Record]:
        """The record in parts of at most `max_bytes`, because a file, unlike a message, is valid whatever its size.
        A single row that is larger is a problem."""
        from stream_engine.formats.arrow_bounds import slices  # load pyarrow only for tables

        parts = slices(record.value, bounds) or [(0, len(record.value), 0)]
        for first, end, size in parts:
            part = self.slice(record, first, end) if len(parts) > 1 else record
            if size > bounds.max_bytes:
                problem = too_many_bytes("the row", size, bounds)
                part = part._replace(value=b"", problem=problem, too_large=True)
            yield part

    def starts(self, record: Record) -> Sequence[int]:
        return [0] if record.problem else range(max(1, record.value.num_rows))

    def slice(self, record: Record, first: int, end: int) -> Record:
        value, offset = record.value.slice(first, end - first), record.offset
        return record._replace(value=value, offset=offset + first, next_offset=offset + end)

    def content(self, record: Record) -> bytes:
        """The fields of a single row as JSON, several rows as an Arrow stream."""
        if record.problem:
            return super().content(record)
        from stream_engine.formats.arrow_events import batch_as_bytes

        return batch_as_bytes(record.value)

    def _place(self, start: int, index: int) -> int:
        return index

    def events(self, record: Record, decoded: DecodedEvents) -> int:
        return 1 if record.problem else record.value.num_rows


class Messages(Unit):
    """Messages of a topic, with one or many events."""

    several_at_once = True

    def within_bounds(self, record: Record, bounds: Bounds) -> Iterator[Record]:
        """
        >>> [record] = Messages().within_bounds(Record(b"x" * 9, "t/0", 4, 5, unit="message"), Bounds(max_bytes=8))
        >>> record.problem
        'the message holds 9 bytes; the limit is 8 (input.max_message_bytes)'
        >>> record.value  # of a larger one, the first `MAX_STORED_BYTES` bytes
        b'xxxxxxxxx'
        """
        if len(record.value) > bounds.max_bytes:
            problem = too_many_bytes("the message", len(record.value), bounds)
            record = record._replace(value=bytes(record.value[:MAX_STORED_BYTES]), problem=problem, too_large=True)
        yield record

    def counts(self, records: Sequence[Record], decoded: DecodedEvents) -> Counter[str]:
        return Counter(map(_PARTITION, records))

    def input_of(self, partition: str) -> str:
        return partition.rpartition("/")[0]


class Deltas(Unit):
    """Counts of a Spark job, one batch at a time."""

    refusable = False

    def decode(
        self, record: Record, decoder_of: Callable[[str], Decoder], format: str
    ) -> tuple[DecodedEvents, list[DeadLetter]]:
        from stream_engine.state import spark_deltas

        return spark_deltas.decode(record)

    def counts(self, records: Sequence[Record], decoded: DecodedEvents) -> Counter[str]:
        return Counter({records[0].partition: decoded.counted.records if decoded.counted else 0})


UNITS: dict[str, Unit] = {"byte": Text(), "row": Rows(), "message": Messages(), "batch": Deltas()}


def unit_of(record: Record) -> Unit:
    return UNITS[record.unit]


def part_inside(record: Record, begin: int, end: int) -> Record | None:
    """The part of a record between two offsets at which items end; None if it is empty.

    >>> part_inside(Record(b"1\\n2\\n3\\n", "f", 10, 16), 12, 14)[:4]
    (b'2\\n', 'f', 12, 14)
    """
    first, stop = max(record.offset, begin), min(record.next_offset, end)
    if stop <= first or (first, stop) == (record.offset, record.next_offset):
        return record if stop > first else None
    if record.problem:
        return None  # an indivisible item: the range ends before it
    part = unit_of(record).slice(record, first - record.offset, stop - record.offset)
    return None if part is record else part
