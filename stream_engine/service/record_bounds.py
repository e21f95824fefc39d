"""Records that hold more than they may, before anything is decoded: a message as it came, a table row by row.

A table of a file is cut into parts that hold no more than one message may, because a file is no message: it is valid
however large it is. O(1) for most records.
"""

from collections.abc import Iterable, Iterator

from connectors import Record
from stream_engine.formats.bounds import Bounds, too_many_bytes

SHOWN = 1 << 20  # of a message that is too large, in its dead letter


def bounded(records: Iterable[Record], bounds: Bounds) -> Iterator[Record]:
    """The same records, with a `problem` where one is too large, and tables in parts.

    >>> for record in bounded([Record(b"x" * 9, "t/0", 4, 5, unit="message")], Bounds(max_bytes=8)):
    ...     print(record.problem)
    the message holds 9 bytes; the limit is 8 (input.max_message_bytes)
    """
    most = bounds.max_bytes
    for record in records:
        if record.unit == "row":
            yield from _parts(record, bounds)
        elif record.unit == "message" and len(record.value) > most:
            problem = too_many_bytes("the message", len(record.value), bounds)
            yield record._replace(value=bytes(record.value[:SHOWN]), problem=problem, too_large=True)
        else:
            yield record


def _parts(record: Record, bounds: Bounds) -> Iterator[Record]:
    """A table in parts that hold `max_bytes` at most; a row that is more by itself is a problem."""
    from stream_engine.formats.arrow_bounds import slices  # pyarrow only when it is met

    parts = slices(record.value, bounds)
    if not parts or (len(parts) == 1 and parts[0][2] <= bounds.max_bytes):
        yield record
        return
    for first, last, size in parts:
        part = record._replace(
            value=record.value.slice(first, last - first),
            offset=record.offset + first,
            next_offset=record.offset + last,
        )
        if size > bounds.max_bytes:
            part = part._replace(value=b"", problem=too_many_bytes("the row", size, bounds), too_large=True)
        yield part
