"""Arrow events: a record batch of a Parquet or Arrow file, or a message that holds an IPC stream.

Values have the types of JSON; names may be dictionary-encoded, times may be timestamps, and a null is an absent field.
Every buffer is validated, since messages are untrusted; rejected rows are stored as JSON with their row number.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from stream_engine.data.comparisons import MAX_LIST, DecodedEvents
from stream_engine.data.json_floats import writable
from stream_engine.formats.arrow_bounds import check_stream, check_written_out
from stream_engine.formats.arrow_columns import arrow_table, plain_value, stripped, with_paths
from stream_engine.formats.event_block import MAX_UNKNOWN, Block, nothing, unreadable
from stream_engine.formats.event_fields import LIST_SEPARATOR, PAIR_COLUMNS, QUADRUPLET, EventFields, fields_of
from stream_engine.formats.options import Bounds, EventOptions, OverBound, raise_if_out_of_memory
from stream_engine.formats.table_events import read_table
from stream_engine.formats.wide_columns import wide_questions

TEXT_CELLS = {b"stream_engine.cells": b"text"}  # metadata of a schema: all columns are text, as in CSV
_MAX_SHOWN_CHARACTERS = 4096  # characters of a text, in the dead letter of its row


# A stream with `TEXT_CELLS` in its schema holds the text cells of a CSV table and is read like one. A quadruplet has
# two list columns near and far, or four columns near_i, near_j, far_i, far_j. An incomplete or inconsistent stream, or
# one above a size limit (checked before it is unpacked), is rejected as one event. Consecutive streams of one schema
# are decoded as one table, so that they share its fixed cost.
class Decoder:
    """Decodes record batches and IPC streams of events; its only state is the options and the unknown fields."""

    def __init__(self, options: EventOptions, fast: bool = True):
        """Without `fast`, every row is read by the definition."""
        self.options, self._fast = options, fast
        self._list_fields, self._pair_fields = fields_of(options), fields_of(options, pairs=True)
        self.unknown: dict[str, None] = {}

    def __call__(self, value: "pa.RecordBatch | bytes | None", header: bytes = b"") -> DecodedEvents:
        """The events of `value` (see the module); `header` is unused. An empty value counts as `empty`."""
        if value is None or (isinstance(value, (bytes, memoryview)) and not len(value)):
            return nothing(1, frozenset(self.unknown), self.options.provenance)
        raw = bytes(value) if isinstance(value, (bytes, memoryview)) else b""
        try:
            if isinstance(value, pa.RecordBatch):
                return self._decoded(value)
            return self._decoded(_one_batch(_opened(value, self.options.bounds).table))
        except OverBound as over:
            return unreadable(raw, str(over), self.options.provenance, "too_large")
        except (pa.ArrowException, OSError, ValueError) as error:
            raise_if_out_of_memory(error)
            return unreadable(raw, f"not a readable Arrow stream: {_first_line(error)}", self.options.provenance)

    def many(self, values: Sequence["pa.RecordBatch | bytes | None"]) -> tuple[DecodedEvents, list[int]]:
        """Decode the first values that can be read as one table, or the first alone; also returns the value of each
        rejected event, see `formats.Decoder`. Together they do not exceed the size limit of one."""
        tables = _run(values, self.options.bounds)
        part = self._together(tables) if len(tables) > 1 else None
        if part is None:
            part = self(values[0])
            return part._replace(values=1), [0] * len(part.rejected)
        part, numbers = _rows_within(part, [table.num_rows for table in tables])
        return part._replace(values=len(tables)), numbers

    def _together(self, tables: list[pa.Table]) -> DecodedEvents | None:
        """Tables of one schema as one table; None if that is impossible."""
        try:
            return self._decoded(_one_batch(pa.concat_tables(tables)))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise_if_out_of_memory(error)
            return None

    def _decoded(self, batch: pa.RecordBatch) -> DecodedEvents:
        columns, text = _columns(batch), holds_text_cells(batch.schema)
        if text:
            columns = {name: stripped(column) for name, column in columns.items()}
        block, known_fields = Block(self.options.provenance, self.options), set[str]()
        for question in wide_questions(self.options, list(columns)):
            fields = self._fields_of(columns, text) if question.options is self.options else fields_of(question.options)
            known_fields |= fields.inputs
            cells = columns | {
                name: pa.repeat(constant, batch.num_rows) for name, constant in question.constants.items()
            }
            cells = with_paths(cells, fields.inputs, text)
            read_table(
                arrow_table(cells, batch.num_rows, fields, text, fast=self._fast),
                fields,
                block,
                np.arange(batch.num_rows),
            )
        for name in columns:
            if name not in known_fields and len(self.unknown) < MAX_UNKNOWN:
                self.unknown[name] = None
        return block.decoded(lambda row: (row, _as_json(columns, row)), frozenset(self.unknown))

    def _fields_of(self, columns: dict[str, pa.Array], text: bool) -> EventFields:
        """Quadruplets from two list columns if they exist, else from four columns of names."""
        if text:
            return self._pair_fields
        lists = all(
            len(field.inputs) > 1 or (field.inputs[0] in columns and pt.is_nested(columns[field.inputs[0]].type))
            for field in self._list_fields.by_kind[QUADRUPLET]
        )
        pairs = any(name in columns for names in PAIR_COLUMNS.values() for name in names)
        return self._pair_fields if pairs and not lists else self._list_fields


def holds_text_cells(schema: pa.Schema) -> bool:
    return TEXT_CELLS.items() <= (schema.metadata or {}).items()


def _alike(one: pa.Schema, other: pa.Schema) -> bool:
    """Whether tables of two schemas can be read as one."""
    return one.equals(other) and holds_text_cells(one) == holds_text_cells(other)


class _Opened(NamedTuple):
    """A table, and its size in bytes when written out."""

    table: pa.Table
    size: int


def _opened(value: "pa.RecordBatch | bytes | memoryview", bounds: Bounds) -> _Opened:
    """The batches of an IPC stream; nothing is copied unless it is compressed. Raises `OverBound`."""
    if isinstance(value, pa.RecordBatch):
        return _Opened(pa.Table.from_batches([value]), value.nbytes)
    stream = check_stream(value, bounds)
    table = pa.ipc.open_stream(pa.py_buffer(value)).read_all()
    return _Opened(table, check_written_out(table, stream, bounds))


def _rows_within(part: DecodedEvents, sizes: list[int]) -> tuple[DecodedEvents, list[int]]:
    """A block of tables of these sizes, with the location of each rejected event in its own table; and the tables'
    numbers."""
    ends = np.cumsum(sizes).tolist()
    numbers = [bisect_right(ends, refused.index) for refused in part.rejected]
    rejected = []
    for number, refused in zip(numbers, part.rejected, strict=True):
        row = refused.index - (ends[number] - sizes[number])
        rejected.append(refused._replace(index=row, start=row))
    return part._replace(rejected=rejected), numbers


def _run(values: Sequence["pa.RecordBatch | bytes | None"], bounds: Bounds) -> list[pa.Table]:
    """The tables of the first values that have one schema, up to the size limit of one value; none where the first
    cannot be opened."""
    run: list[pa.Table] = []
    size = 0
    for value in values:
        opened = _opened_if_readable(value, bounds)
        size += opened.size if opened else 0
        if not opened or (run and not (_alike(opened.table.schema, run[0].schema) and size <= bounds.max_bytes)):
            break
        run.append(opened.table)
    return run


def _opened_if_readable(value: "pa.RecordBatch | bytes | None", bounds: Bounds) -> _Opened | None:
    try:
        return _opened(value, bounds) if value is not None else None
    except OverBound:
        return None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise_if_out_of_memory(error)
        return None


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    """All batches of a table as one, dictionaries united. Raises `ArrowInvalid` for buffers that cannot be trusted."""
    table.validate(full=True)  # before anything follows an offset
    batches = table.unify_dictionaries().combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    """The columns by name (the first of equal names), in types that `table_events` knows."""
    columns: dict[str, pa.Array] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        columns.setdefault(name, _plainer(column))
    return columns


def _plainer(column: pa.Array) -> pa.Array:
    """A validated column in a type that `table_events` supports; invalid UTF-8 stays binary, so that only these rows
    are rejected. Raises `ArrowInvalid` for inconsistent buffers."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        if not (pt.is_string(column.type) or pt.is_large_string(column.type)):
            raise
        column = column.view(pa.binary() if pt.is_string(column.type) else pa.large_binary())
        column.validate(full=True)
        return column
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _plainer(column.storage)
    if pt.is_run_end_encoded(kind):
        return _plainer(pc.run_end_decode(column))
    if pt.is_dictionary(kind) and _is_binary(kind.value_type):
        return _plainer(column.cast(kind.value_type))
    if pt.is_string_view(kind):
        return column.cast(pa.large_string())
    if _is_binary(kind):
        try:
            return column.cast(pa.large_binary()).cast(pa.large_string())
        except pa.ArrowInvalid:
            return column
    return column


def _is_binary(kind: pa.DataType) -> bool:
    return pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_binary_view(kind) or pt.is_fixed_size_binary(kind)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _as_json(columns: dict[str, pa.Array], row: int) -> bytes:
    values = {name: _shortened(plain_value(column[row])) for name, column in columns.items()}
    return msgspec.json.encode(writable(values), enc_hook=str)


def _shortened(value: Any) -> Any:
    """A value as stored for a rejected row, truncated: a dictionary may hold it once for a million such rows. What is
    truncated was too long for any event, and still is.

    >>> len(_shortened("x" * 1_000_000)), len(_shortened(["x"] * 1_000_000)), _shortened("x")
    (4096, 10001, 'x')
    """
    if (
        isinstance(value, str) and len(value) > _MAX_SHOWN_CHARACTERS
    ):  # perhaps a list as text, which must not become a valid one
        parts = value.split(LIST_SEPARATOR, MAX_LIST + 1)[: MAX_LIST + 1]
        return LIST_SEPARATOR.join(part[:_MAX_SHOWN_CHARACTERS] for part in parts)
    if isinstance(value, bytes):
        return value[: 4 * _MAX_SHOWN_CHARACTERS]
    if isinstance(value, list):
        return [_shortened(item) for item in value[: MAX_LIST + 1]]
    if isinstance(value, dict):
        return {name: _shortened(item) for name, item in value.items()}
    return value


def batch_as_bytes(batch: pa.RecordBatch) -> bytes:
    """The content of a dead letter for rows that cannot be decoded: one row as JSON, else an IPC stream, else
    nothing."""
    try:
        if batch.num_rows == 1:
            return _as_json({name: batch.column(i) for i, name in enumerate(batch.schema.names)}, 0)
    except (pa.ArrowException, TypeError, ValueError, RecursionError):
        pass  # inconsistent columns: unchanged
    sink = pa.BufferOutputStream()
    try:
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
    except (pa.ArrowException, ValueError):
        return b""
    return sink.getvalue().to_pybytes()
