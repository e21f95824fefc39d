"""A record that holds many events, taken apart into records of fewer: lines, rows of CSV, rows of a table.

Invariant: the parts of a record follow each other without a gap, each has the place that its bytes or rows have in the
source, and read one by one they are what the record is as a whole. O(bytes).
"""

from collections.abc import Sequence

import numpy as np

from connectors import Record
from stream_engine.data.csv_grammar import column_names, delimiter_of, rows_of


def item_starts(record: Record) -> Sequence[int]:
    """Where the items of a record begin, counted from its first byte or row; just [0] where it cannot be taken apart.

    >>> item_starts(Record(b"{}\\n{}\\n", "f", 10, 16))
    [0, 3]
    >>> item_starts(Record(b'"a\\nb",c\\nd,e\\n', "f", 4, 16, format="csv", header=b"x,y\\n"))
    [0, 8]
    """
    if record.unit == "row":
        return range(max(1, record.value.num_rows))
    if record.unit != "byte" or record.problem or record.format not in ("json", "csv"):
        return [0]
    if record.format == "csv":
        width = len(column_names(record.header, errors="replace"))
        return [0, *rows_of(record.value, width, delimiter_of(record.header)).start.tolist()[1:]] if width else [0]
    ends = np.flatnonzero(np.frombuffer(record.value, np.uint8) == 10) + 1
    return [0, *ends[ends < len(record.value)].tolist()]


def part_of(record: Record, starts: Sequence[int], begin: int, end: int) -> Record:
    """The items `begin` to `end` (excluded) of a record, as a record."""
    if len(starts) == 1:
        return record
    first, whole = starts[begin], end == len(starts)
    size = record.value.num_rows if record.unit == "row" else len(record.value)
    after = size if whole else starts[end]
    value = record.value.slice(first, after - first) if record.unit == "row" else record.value[first:after]
    next_offset = record.next_offset if whole else record.offset + after
    return record._replace(value=value, offset=record.offset + first, next_offset=next_offset)


def as_bytes(record: Record) -> bytes:
    """What a dead letter keeps of a record: its bytes; of a row its fields as JSON, of several rows an Arrow stream."""
    if not hasattr(record.value, "num_rows"):
        return bytes(record.value or b"")
    from stream_engine.formats.arrow_events import batch_as_bytes  # pyarrow only where there is a table

    return batch_as_bytes(record.value)
