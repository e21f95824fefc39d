"""The unit of a record's offsets, with one class for each `Record.unit`.

Invariant of `parts`: the parts of a record are consecutive, each has the location of its bytes or rows in the source,
and decoding them one by one gives the same result as decoding the record as a whole. O(bytes).

The rows of one record, as dicts, whatever its format: for what looks at some of them, not for counting.
"""

import csv
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np

from connectors import DeadLetter, Record
from stream_engine.data.comparisons import DecodedEvents, Rejected
from stream_engine.data.csv_grammar import WHOLE, column_names, delimiter_of, rows_of
from stream_engine.formats import Decoder
from stream_engine.formats.json_places import ERRORS, places_of
from stream_engine.formats.options import NOT_UTF8, Bounds, UnreadableHeader, too_many_bytes

if TYPE_CHECKING:
    from stream_engine.formats.json_events import Decoder as JsonDecoder

SHOWN = 1 << 20  # stored of a message that is too large, in its dead letter
_PARTITION = itemgetter(Record._fields.index("partition"))


class Unit:
    """Defaults for all units, and the behaviour for records that are a single indivisible item."""

    several_at_once = False  # consecutive records are decoded together
    refusable = True  # an item that crashes the process is rejected

    def bounded(self, record: Record, bounds: Bounds) -> Iterator[Record]:
        """The record, with a `problem` if it is too large, before decoding."""
        yield record

    def starts(self, record: Record) -> Sequence[int]:
        """The start of each item, relative to the first byte or row; just [0] if the record is indivisible."""
        return [0]

    def cut(self, record: Record, first: int, after: int) -> Record:
        """The bytes or rows from `first` up to `after` (exclusive) as a record."""
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

    def cut(self, record: Record, first: int, after: int) -> Record:
        value, offset = record.value[first:after], record.offset
        return record._replace(value=value, offset=offset + first, next_offset=offset + after)

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
    """Rows of a table."""

    def bounded(self, record: Record, bounds: Bounds) -> Iterator[Record]:
        """The record in parts of at most `max_bytes`, because a file, unlike a message, is valid whatever its size.
        A single row that is larger is a problem."""
        from stream_engine.formats.arrow_bounds import slices  # load pyarrow only for tables

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

    def bounded(self, record: Record, bounds: Bounds) -> Iterator[Record]:
        """
        >>> [record] = Messages().bounded(Record(b"x" * 9, "t/0", 4, 5, unit="message"), Bounds(max_bytes=8))
        >>> record.problem
        'the message holds 9 bytes; the limit is 8 (input.max_message_bytes)'
        >>> record.value  # of a larger one, the first `SHOWN` bytes
        b'xxxxxxxxx'
        """
        if len(record.value) > bounds.max_bytes:
            problem = too_many_bytes("the message", len(record.value), bounds)
            record = record._replace(value=bytes(record.value[:SHOWN]), problem=problem, too_large=True)
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
    """The unit of a record's offsets."""
    return UNITS[record.unit]


def part_inside(record: Record, begin: int, end: int) -> Record | None:
    """The part of a record between two offsets at which items end; None if it is empty.

    >>> part_inside(Record(b"1\\n2\\n3\\n", "f", 10, 16), 12, 14)[:4]
    (b'2\\n', 'f', 12, 14)
    """
    first, after = max(record.offset, begin), min(record.next_offset, end)
    if after <= first or (first, after) == (record.offset, record.next_offset):
        return record if after > first else None
    if record.problem:
        return None  # an indivisible item: the range ends before it
    part = unit_of(record).cut(record, first - record.offset, after - record.offset)
    return None if part is record else part


def rows_of_record(record: Record, format: str) -> Iterator[tuple[int, Any]]:
    """(where it begins, its fields by name, or what is wrong with it) of every row. Raises `UnreadableHeader`."""
    return {"csv": _rows_of_csv, "arrow": _rows_of_table}.get(format, _rows_of_json)(record)


def _rows_of_csv(record: Record) -> Iterator[tuple[int, dict[str, str] | str]]:
    """(where it begins, its cells by name or what is wrong with it) of every row."""
    try:
        names = [name.strip() for name in column_names(record.header)]
    except ValueError as error:
        problem = f"is {NOT_UTF8}" if isinstance(error, UnicodeError) else error
        raise UnreadableHeader(f"{record.partition}: the header {problem}") from None
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise UnreadableHeader(f"{record.partition}: column {twice[0]!r} occurs twice")
    delimiter, value = delimiter_of(record.header), bytes(record.value)
    rows = rows_of(value, len(names), delimiter)
    for start, end, state, fields in zip(*(each.tolist() for each in (rows.start, rows.end, rows.state, rows.fields))):
        if state != WHOLE:
            yield start, f"the row has {fields} fields, or an unclosed quote; the header has {len(names)}"
            continue
        try:
            cells = next(csv.reader([value[start:end].decode()], delimiter=chr(delimiter)), [])
        except UnicodeDecodeError:
            yield start, f"the row is {NOT_UTF8}"
        except csv.Error as error:
            yield start, f"not CSV: {error}"
        else:
            yield start, dict(zip(names, (cell.strip(" \t") for cell in cells)))


def _rows_of_table(record: Record) -> Iterator[tuple[int, dict[str, Any]]]:
    yield from enumerate(record.value.to_pylist())


def _rows_of_json(record: Record) -> Iterator[tuple[int, Any]]:
    value = bytes(record.value)
    places = places_of(value)
    for begin, end in zip(places.begins.tolist(), places.ends.tolist(), strict=True):
        try:
            yield begin, msgspec.json.decode(value[begin:end].removeprefix(BOM_UTF8))
        except ERRORS as error:
            yield begin, "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else f"not JSON: {error}"
