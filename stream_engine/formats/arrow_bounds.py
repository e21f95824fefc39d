"""The size of an Arrow value, determined before it is unpacked.

An IPC stream declares it. The size without dictionaries, runs and views, which may repeat the same bytes, is computed
from lengths alone.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from connectors.arrow_headers import ENTRY, StreamSize, size_of_stream
from stream_engine.formats.options import Bounds, OverBound, too_many_bytes, too_many_rows


def check_stream(value: bytes | memoryview, bounds: Bounds) -> StreamSize:
    """The declared size of a stream. Raises `OverBound` before unpacking anything, ValueError for an invalid stream."""
    size = size_of_stream(value)
    if size.rows > bounds.max_rows:
        raise OverBound(too_many_rows("the message", size.rows, "rows", bounds))
    if size.size > bounds.max_bytes:
        raise OverBound(too_many_bytes("the message, decompressed,", size.size, bounds))
    return size


def check_written_out(table: pa.Table, stream: StreamSize, bounds: Bounds) -> int:
    """The bytes of a stream's table without dictionaries, runs and views. Raises `OverBound`, `ArrowInvalid`."""
    most = stream.size + stream.rows * stream.dictionaries
    if not stands_for_more(table.schema) and most <= max(stream.size, bounds.max_bytes // 64):
        return most
    table.validate(full=True)  # before anything follows an offset
    size = int(sum(row_bytes(batch).sum() for batch in table.to_batches()))
    if size > bounds.max_bytes:
        raise OverBound(too_many_bytes("the message, its dictionaries written out,", size, bounds))
    return max(size, stream.size)


def slices(batch: pa.RecordBatch, bounds: Bounds) -> list[tuple[int, int, int]]:
    """(first row, end row, bytes) of parts of a batch with at most `max_bytes` each, written out; a single row that is
    larger forms its own part.

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
        ends = column.run_ends.to_numpy(zero_copy_only=False).astype(np.int64)
        whole = np.repeat(entry_bytes(column.values), ends - np.append(0, ends[:-1]))
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
    """Whether columns of these types, dictionaries apart, can represent more bytes than they take."""
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
