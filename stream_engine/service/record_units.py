"""What the offsets of a record count, and what follows from that: one class for each `Record.unit`.

Invariant of `parts`: the parts of a record follow each other without a gap, each has the place that its bytes or rows
have in the source, and decoded one by one they are what the record is as a whole. O(bytes).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, cast

import numpy as np

from connectors import DeadLetter, Record
from stream_engine.data.comparisons import Decoded, Rejected
from stream_engine.data.csv_grammar import column_names, delimiter_of, rows_of
from stream_engine.formats import Decoder
from stream_engine.formats.bounds import Bounds, too_many_bytes

if TYPE_CHECKING:
    from stream_engine.formats.json_events import Decoder as JsonDecoder

SHOWN = 1 << 20  # of a message that is too large, in its dead letter
_PARTITION = itemgetter(Record._fields.index("partition"))


class Unit:
    """What all units have in common, and what holds where a record is one item that cannot be divided."""

    several_at_once = False  # records that follow each other are decoded together
    refusable = True  # one that kills the process is refused

    def bounded(self, record: Record, bounds: Bounds) -> Iterator[Record]:
        """The record, with a `problem` where it is too large, before it is decoded."""
        yield record

    def starts(self, record: Record) -> Sequence[int]:
        """Where its items begin, counted from its first byte or row; just [0] where it cannot be divided."""
        return [0]

    def cut(self, record: Record, first: int, after: int) -> Record:
        """Its bytes or rows from `first` up to, not including, `after`, as a record."""
        return record

    def parts(self, record: Record, most: int | None = None) -> list[Record]:
        """The record in parts of `most` items each; None: in halves."""
        starts = self.starts(record)
        cuts = list(starts[:: most or (len(starts) + 1) // 2])
        if len(cuts) == 1:
            return [record]
        parts = [self.cut(record, first, after) for first, after in pairwise(cuts)]
        last = self.cut(record, cuts[-1], len(record.value))
        return [*parts, last._replace(next_offset=record.next_offset)]

    def content(self, record: Record) -> bytes:
        """What a dead letter keeps of a record."""
        return bytes(record.value or b"")

    def decode(
        self, record: Record, decoder_of: Callable[[str], Decoder], format: str
    ) -> tuple[Decoded, list[DeadLetter]]:
        """The events of a record, and what was refused of it, with its place."""
        decoded = decoder_of(format)(record.value, record.header)
        return decoded, self.dead_letters(record, decoded.rejected)

    def dead_letters(self, record: Record, rejected: Sequence[Rejected]) -> list[DeadLetter]:
        """What was refused of a record, each with its own byte or row where the unit allows it."""
        return [
            DeadLetter(
                record.partition,
                record.offset + self._place(each.start, each.index),
                each.index,
                each.reason,
                each.message,
                each.value,
                record.key,
            )
            for each in rejected
        ]

    def _place(self, start: int, index: int) -> int:
        return 0

    def events(self, record: Record, decoded: Decoded) -> int:
        """How many events a record has, good or bad."""
        return sum(decoded.events.values()) + len(decoded.rejected) + decoded.filtered

    def counts(self, records: Sequence[Record], decoded: Decoded) -> Counter[str]:
        """How many records of the source came from each partition: messages, or else lines or rows."""
        return Counter({records[0].partition: Unit.events(self, records[0], decoded) + decoded.empty})

    def input_of(self, partition: str) -> str:
        """The input that a partition is of."""
        return partition


class Text(Unit):
    """Bytes of lines or of CSV records."""

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

    def cut(self, record: Record, first: int, after: int) -> Record:
        value, offset = record.value[first:after], record.offset
        return record._replace(value=value, offset=offset + first, next_offset=offset + after)

    def decode(
        self, record: Record, decoder_of: Callable[[str], Decoder], format: str
    ) -> tuple[Decoded, list[DeadLetter]]:
        if format != "json":
            return super().decode(record, decoder_of, format)
        decoded = cast("JsonDecoder", decoder_of(format)).lines(record.value)  # a block of lines is no Arrow stream
        return decoded, self.dead_letters(record, decoded.rejected)

    def _place(self, start: int, index: int) -> int:
        return start


class Rows(Unit):
    """Rows of a table."""

    def bounded(self, record: Record, bounds: Bounds) -> Iterator[Record]:
        """In parts that hold `max_bytes` at most, because a file is no message: it is valid however large it is. A row
        that is more by itself is a problem."""
        from stream_engine.formats.arrow_bounds import slices  # pyarrow only where there is a table

        parts = slices(record.value, bounds) or [(0, len(record.value), 0)]
        for first, after, size in parts:
            part = self.cut(record, first, after) if len(parts) > 1 else record
            if size > bounds.max_bytes:
                problem = too_many_bytes("the row", size, bounds)
                part = part._replace(value=b"", problem=problem, too_large=True)
            yield part

    def starts(self, record: Record) -> Sequence[int]:
        return [0] if record.problem else range(max(1, record.value.num_rows))

    def cut(self, record: Record, first: int, after: int) -> Record:
        value, offset = record.value.slice(first, after - first), record.offset
        return record._replace(value=value, offset=offset + first, next_offset=offset + after)

    def content(self, record: Record) -> bytes:
        """Of a row its fields as JSON, of several rows an Arrow stream."""
        if record.problem:
            return super().content(record)
        from stream_engine.formats.arrow_events import batch_as_bytes

        return batch_as_bytes(record.value)

    def _place(self, start: int, index: int) -> int:
        return index

    def events(self, record: Record, decoded: Decoded) -> int:
        return 1 if record.problem else record.value.num_rows


class Messages(Unit):
    """Messages of a topic, of one event or of many."""

    several_at_once = True

    def bounded(self, record: Record, bounds: Bounds) -> Iterator[Record]:
        """
        >>> [record] = Messages().bounded(Record(b"x" * 9, "t/0", 4, 5, unit="message"), Bounds(max_bytes=8))
        >>> record.problem
        'the message holds 9 bytes; the limit is 8 (input.max_message_bytes)'
        """
        if len(record.value) > bounds.max_bytes:
            problem = too_many_bytes("the message", len(record.value), bounds)
            record = record._replace(value=bytes(record.value[:SHOWN]), problem=problem, too_large=True)
        yield record

    def counts(self, records: Sequence[Record], decoded: Decoded) -> Counter[str]:
        return Counter(map(_PARTITION, records))

    def input_of(self, partition: str) -> str:
        return partition.rpartition("/")[0]


class Deltas(Unit):
    """Counts that a Spark job has made, a batch at a time."""

    refusable = False

    def decode(
        self, record: Record, decoder_of: Callable[[str], Decoder], format: str
    ) -> tuple[Decoded, list[DeadLetter]]:
        from stream_engine.state import spark_deltas

        return spark_deltas.decode(record)

    def counts(self, records: Sequence[Record], decoded: Decoded) -> Counter[str]:
        return Counter({records[0].partition: decoded.counted.records if decoded.counted else 0})


UNITS: dict[str, Unit] = {"byte": Text(), "row": Rows(), "message": Messages(), "batch": Deltas()}


def unit_of(record: Record) -> Unit:
    """What the offsets of a record count."""
    return UNITS[record.unit]


def part_inside(record: Record, begin: int, end: int) -> Record | None:
    """The part of a record between two offsets that are ends of items; None when there is none.

    >>> part_inside(Record(b"1\\n2\\n3\\n", "f", 10, 16), 12, 14)[:4]
    (b'2\\n', 'f', 12, 14)
    """
    first, after = max(record.offset, begin), min(record.next_offset, end)
    if after <= first or (first, after) == (record.offset, record.next_offset):
        return record if after > first else None
    if record.problem:
        return None  # an item that cannot be cut: the stretch ends before it
    part = unit_of(record).cut(record, first - record.offset, after - record.offset)
    return None if part is record else part
