"""The size of an Arrow IPC stream according to its headers, before anything is unpacked.

The header of a record batch has its number of rows and the lengths of its columns and buffers, and a compressed buffer
begins with its decompressed size (Arrow columnar format, "Serialization and Interprocess Communication"; the headers
are flatbuffers). O(messages).
"""

from collections.abc import Iterator
from struct import Struct, error, unpack_from
from typing import NamedTuple

STREAM_START = b"\xff\xff\xff\xff"  # the marker that every message of a stream begins with; no JSON text does
ENTRY = 8  # bytes that every entry counts, however little it takes: a null, a bit, a view
_DICTIONARY, _RECORDS = 2, 3  # kinds of messages
_CONTINUES = 0xFFFFFFFF
_U8, _U16, _U32, _I32, _I64 = Struct("<B"), Struct("<H"), Struct("<I"), Struct("<i"), Struct("<q")


class Batch(NamedTuple):
    """A record batch, or a dictionary, of a stream."""

    rows: int  # 0 of a dictionary
    size: int  # bytes once decompressed, every entry counted with `ENTRY` at least
    is_dictionary: bool
    is_compressed: bool


class StreamSize(NamedTuple):
    """The declared size of an IPC stream: rows, decompressed bytes, and bytes of dictionaries."""

    rows: int = 0
    size: int = 0
    dictionaries: int = 0


class _Flat:
    """A table of a flatbuffer."""

    def __init__(self, data: memoryview, at: int):
        self.data, self.at = data, at
        self._fields = at - _I32.unpack_from(data, at)[0]
        self._end = _U16.unpack_from(data, self._fields)[0]

    def place(self, field: int) -> int:
        """Position of a field; 0 if it is absent."""
        slot = 4 + 2 * field
        inside = _U16.unpack_from(self.data, self._fields + slot)[0] if slot < self._end else 0
        return self.at + inside if inside else 0

    def number(self, field: int, of: Struct = _I64) -> int:
        """A numeric field; 0 if it is absent."""
        place = self.place(field)
        return of.unpack_from(self.data, place)[0] if place else 0

    def pointed(self, field: int) -> int:
        """Position that a field points to; 0 if it is absent."""
        place = self.place(field)
        return place + _U32.unpack_from(self.data, place)[0] if place else 0

    def pairs(self, field: int) -> tuple[int, ...]:
        """A field that holds pairs of numbers."""
        place = self.pointed(field)
        return unpack_from(f"<{2 * _U32.unpack_from(self.data, place)[0]}q", self.data, place + 4) if place else ()


def batches_of(value: bytes | memoryview) -> Iterator[Batch]:
    """The record batches and dictionaries of an IPC stream in order. Raises ValueError for an invalid stream."""
    data, at = memoryview(value).cast("B"), 0
    try:
        while at < len(data):
            (length,) = _U32.unpack_from(data, at)
            at += 4
            if length == _CONTINUES:
                (length,) = _U32.unpack_from(data, at)
                at += 4
            if not length:
                break
            message = _Flat(data, at + _U32.unpack_from(data, at)[0])
            at += length
            kind, body = message.number(1, _U8), message.number(3)
            if body < 0:
                raise ValueError(f"a message body of {body} bytes")
            if kind in (_DICTIONARY, _RECORDS):
                header = _Flat(data, message.pointed(2))
                batch = header if kind == _RECORDS else _Flat(data, header.pointed(1))
                size = _size_of_batch(batch, data[at : at + body])
                rows = batch.number(0) if kind == _RECORDS else 0
                yield Batch(rows, size, kind == _DICTIONARY, bool(batch.place(3)))
            at += body
    except error as problem:
        raise ValueError(f"truncated, or a pointer beyond the end ({problem})") from None


def size_of_stream(value: bytes | memoryview) -> StreamSize:
    """The declared size of a stream. Raises ValueError for an invalid stream.

    >>> import pyarrow as pa
    >>> batch, sink = pa.RecordBatch.from_pydict({"a": ["x", "yz"]}), pa.BufferOutputStream()
    >>> with pa.ipc.new_stream(sink, batch.schema) as writer:
    ...     writer.write_batch(batch)
    >>> size_of_stream(sink.getvalue())
    StreamSize(rows=2, size=16, dictionaries=0)
    """
    rows = size = dictionaries = 0
    for batch in batches_of(value):
        rows += batch.rows
        size += batch.size
        dictionaries += batch.size if batch.is_dictionary else 0
    return StreamSize(rows, size, dictionaries)


def _size_of_batch(batch: _Flat, body: memoryview) -> int:
    """The bytes of a record batch once decompressed, its entries counted with `ENTRY` at least."""
    nodes, buffers = batch.pairs(1), batch.pairs(2)
    if min((batch.number(0), *nodes, *buffers)) < 0:
        raise ValueError("a negative length")
    sizes = buffers[1::2]
    if batch.place(3):  # compressed: each buffer that is not empty begins with its size, -1 where it is as it is
        claimed = [
            (_I64.unpack_from(body, start)[0], size) if size else (0, 0)
            for start, size in zip(buffers[::2], sizes, strict=True)
        ]
        if min((size_of_buffer for size_of_buffer, _ in claimed), default=0) < -1:
            raise ValueError("a buffer of negative size")
        sizes = tuple(size if claim == -1 else claim for claim, size in claimed)
    return max(sum(sizes), ENTRY * sum(nodes[::2]))
