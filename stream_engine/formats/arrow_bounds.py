"""How much an Arrow value holds, found out before it is unpacked.

An IPC stream says it itself: a record batch's header has its rows, the lengths of its columns and of its buffers, and
a compressed buffer begins with its size once decompressed (Arrow columnar format, "Serialization and Interprocess
Communication"; the headers are flatbuffers). What a value means *written out*, without dictionaries, runs and views
that stand for the same bytes many times, is added up from the lengths that the decoded columns hold, and nothing is
written out for it. O(messages of a stream); O(entries) where something can stand for more than it takes.
"""

from struct import Struct, error, unpack_from
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from stream_engine.formats.bounds import Bounds, OverBound, too_many_bytes, too_many_rows

ENTRY = 8  # bytes that every entry counts, however little it takes: a null, a bit, a view
_DICTIONARY, _RECORDS = 2, 3  # kinds of messages
_CONTINUES = 0xFFFFFFFF
_U16, _U32, _I32, _I64 = Struct("<H"), Struct("<I"), Struct("<i"), Struct("<q")


class StreamSize(NamedTuple):
    """What an IPC stream says of itself: its rows, its bytes once decompressed, and those of its dictionaries."""

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
        """Where a field stands; 0 when it is left out."""
        slot = 4 + 2 * field
        inside = _U16.unpack_from(self.data, self._fields + slot)[0] if slot < self._end else 0
        return self.at + inside if inside else 0

    def number(self, field: int, of: Struct = _I64) -> int:
        """A field that holds a number; 0 when it is left out."""
        place = self.place(field)
        return of.unpack_from(self.data, place)[0] if place else 0

    def pointed(self, field: int) -> int:
        """Where that stands which a field points to; 0 when it is left out."""
        place = self.place(field)
        return place + _U32.unpack_from(self.data, place)[0] if place else 0

    def pairs(self, field: int) -> tuple[int, ...]:
        """A field that holds pairs of numbers, one after the other."""
        place = self.pointed(field)
        return unpack_from(f"<{2 * _U32.unpack_from(self.data, place)[0]}q", self.data, place + 4) if place else ()


def size_of_stream(value: bytes | memoryview) -> StreamSize:
    """What an IPC stream says that it holds. Raises ValueError where it is none.

    >>> batch = pa.RecordBatch.from_pydict({"a": ["x", "yz"]})
    >>> sink = pa.BufferOutputStream()
    >>> with pa.ipc.new_stream(sink, batch.schema) as writer:
    ...     writer.write_batch(batch)
    >>> size_of_stream(sink.getvalue())
    StreamSize(rows=2, size=16, dictionaries=0)
    """
    data, at = memoryview(value).cast("B"), 0
    rows = size = dictionaries = 0
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
            kind, body = message.number(1, Struct("<B")), message.number(3)
            if body < 0:
                raise ValueError(f"a message body of {body} bytes")
            if kind in (_DICTIONARY, _RECORDS):
                batch = _Flat(data, message.pointed(2))
                if kind == _DICTIONARY:
                    batch = _Flat(data, batch.pointed(1))
                held = _size_of_batch(batch, data[at : at + body])
                size += held
                dictionaries += held if kind == _DICTIONARY else 0
                rows += batch.number(0) if kind == _RECORDS else 0
            at += body
    except error as problem:
        raise ValueError(f"it ends, or points, where there is nothing ({problem})") from None
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
        if min((each for each, _ in claimed), default=0) < -1:
            raise ValueError("a buffer of negative size")
        sizes = tuple(size if each == -1 else each for each, size in claimed)
    return max(sum(sizes), ENTRY * sum(nodes[::2]))


def check_stream(value: bytes | memoryview, bounds: Bounds) -> StreamSize:
    """What a stream holds. Raises `OverBound` before anything of it is unpacked, ValueError where it is no stream."""
    held = size_of_stream(value)
    if held.rows > bounds.max_rows:
        raise OverBound(too_many_rows("the message", held.rows, "rows", bounds))
    if held.size > bounds.max_bytes:
        raise OverBound(too_many_bytes("the message, decompressed,", held.size, bounds))
    return held


def check_written_out(table: pa.Table, held: StreamSize, bounds: Bounds) -> int:
    """The bytes of a stream's table without dictionaries, runs and views. Raises `OverBound`, `ArrowInvalid`."""
    most = held.size + held.rows * held.dictionaries
    if not stands_for_more(table.schema) and most <= max(held.size, bounds.max_bytes // 64):
        return most
    table.validate(full=True)  # before anything follows an offset
    size = int(sum(row_bytes(batch).sum() for batch in table.to_batches()))
    if size > bounds.max_bytes:
        raise OverBound(too_many_bytes("the message, its dictionaries written out,", size, bounds))
    return max(size, held.size)


def slices(batch: pa.RecordBatch, bounds: Bounds) -> list[tuple[int, int, int]]:
    """(first row, row behind the last, bytes) of parts of a batch that hold `max_bytes` at most, written out; a row that
    is more by itself stands alone.

    >>> slices(pa.RecordBatch.from_pydict({"a": ["x" * 92, "y", "z" * 200, "x"]}), Bounds(max_bytes=120))
    [(0, 2, 109), (2, 3, 208), (3, 4, 9)]
    """
    coded = any(pt.is_dictionary(kind) or pt.is_nested(kind) for kind in batch.schema.types)
    if not coded and not stands_for_more(batch.schema) and batch.nbytes + ENTRY * len(batch) <= bounds.max_bytes:
        return [(0, len(batch), batch.nbytes)] if len(batch) else []
    ends = np.cumsum(row_bytes(batch))
    parts, first = [], 0
    while first < len(batch):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + bounds.max_bytes, side="right")))
        parts.append((first, last, int(ends[last - 1]) - before))
        first = last
    return parts


def row_bytes(batch: pa.RecordBatch) -> np.ndarray:
    """(n,) int64: the bytes of each row, written out."""
    total = np.zeros(len(batch), np.int64)
    for column in batch.columns:
        total += entry_bytes(column)
    return total


def entry_bytes(column: pa.Array) -> np.ndarray:
    """(n,) int64: the bytes of each entry of an array that was validated, without dictionaries, runs and views.

    >>> entry_bytes(pa.array(["abc", None, "abc"]).dictionary_encode()).tolist()
    [11, 8, 11]
    """
    kind, size = column.type, len(column)
    if isinstance(kind, pa.BaseExtensionType):
        return entry_bytes(column.storage)
    if pt.is_dictionary(kind):
        of_code = np.append(entry_bytes(column.dictionary), ENTRY)  # the slot at the end stands for null
        return of_code[pc.fill_null(column.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)]
    if pt.is_run_end_encoded(kind):
        runs = np.diff(np.concatenate([[0], column.run_ends.to_numpy(zero_copy_only=False)]).astype(np.int64))
        whole = np.repeat(entry_bytes(column.values), runs)
        return whole[column.offset : column.offset + size]
    if _is_list(kind):
        sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        if not size:
            return np.zeros(0, np.int64)
        if pt.is_fixed_size_list(kind):
            begins = (np.arange(size) + column.offset) * kind.list_size
        else:
            begins = column.offsets.to_numpy(zero_copy_only=False).astype(np.int64)[:size]
        before = np.concatenate([[0], np.cumsum(entry_bytes(column.values))])
        begins = np.where(sizes > 0, begins, 0)  # a null may begin anywhere
        return ENTRY + before[begins + sizes] - before[begins]
    if pt.is_struct(kind):
        return ENTRY + sum((entry_bytes(field) for field in column.flatten()), np.zeros(size, np.int64))
    if pt.is_map(kind):
        return entry_bytes(column.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))))
    if pt.is_union(kind):
        fields = [entry_bytes(column.field(number)) for number in range(kind.num_fields)]
        return np.full(size, ENTRY + max((int(field.max()) for field in fields if len(field)), default=0))
    if pt.is_string_view(kind) or pt.is_binary_view(kind):
        views = np.frombuffer(column.buffers()[1], np.int32)[4 * column.offset : 4 * (column.offset + size) : 4]
        return ENTRY + np.where(column.is_valid().to_numpy(zero_copy_only=False), views, 0).astype(np.int64)
    if _is_binary(kind):
        lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        return ENTRY + lengths
    width = kind.bit_width // 8 if not pt.is_null(kind) else 0
    return np.full(size, max(ENTRY, width), np.int64)


def stands_for_more(schema: pa.Schema) -> bool:
    """Whether columns of these types, dictionaries apart, can stand for more bytes than they take."""
    return any(_stands_for_more(kind) for kind in schema.types)


def _stands_for_more(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        return _stands_for_more(kind.storage_type)
    if pt.is_dictionary(kind):
        return _stands_for_more(kind.value_type)
    several = (
        pt.is_run_end_encoded,
        pt.is_string_view,
        pt.is_binary_view,
        pt.is_list_view,
        pt.is_large_list_view,
        pt.is_union,
    )
    if any(test(kind) for test in several):
        return True
    return pt.is_nested(kind) and any(_stands_for_more(kind.field(number).type) for number in range(kind.num_fields))


def _is_list(kind: pa.DataType) -> bool:
    lists = (pt.is_list, pt.is_large_list, pt.is_fixed_size_list, pt.is_list_view, pt.is_large_list_view)
    return any(test(kind) for test in lists)


def _is_binary(kind: pa.DataType) -> bool:
    return any(test(kind) for test in (pt.is_string, pt.is_large_string, pt.is_binary, pt.is_large_binary))
