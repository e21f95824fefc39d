"""Arrow columns for `table_events`: names to numbers, weights and times to floats, cells to plain values."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from stream_engine.data.comparisons import InvalidEvent
from stream_engine.formats.cells import LIST_SEPARATOR, inside, paths_of
from stream_engine.formats.event_columns import Pool
from stream_engine.formats.event_fields import LABEL, EventFields
from stream_engine.formats.field_values import MAX_WHOLE_FLOAT, MISSING, WHOLE_FLOAT, number_of, time_of
from stream_engine.formats.table_events import CertainNames, ExcludedEvent, Table, kept_rows
from stream_engine.formats.text_values import plain_times
from stream_engine.formats.validate import Event, read_event

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def plain_value(scalar: pa.Scalar) -> Any:
    """A cell as a JSON-like Python value: a time as epoch seconds, a decimal number as a double.

    >>> plain_value(pa.scalar(["a", None])), plain_value(pa.scalar(1500, pa.timestamp("ms")))
    (['a', None], 1.5)
    """
    kind = scalar.type
    if not scalar.is_valid:
        return None
    if pt.is_timestamp(kind):
        return scalar.value / _PER_SECOND[kind.unit]
    if pt.is_duration(kind) or pt.is_time(kind):
        return float(scalar.value)
    if is_list(kind) or pt.is_list_view(kind) or pt.is_large_list_view(kind):
        return [plain_value(item) for item in scalar.values]
    if pt.is_struct(kind):
        return {name: plain_value(item) for name, item in scalar.items()}
    value = scalar.as_py()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    return value


def is_text(kind: pa.DataType) -> bool:
    if pt.is_dictionary(kind):
        return is_text(kind.value_type)
    return pt.is_string(kind) or pt.is_large_string(kind)


def holds_names(kind: pa.DataType) -> bool:
    """Whether values of this type can be names: text or integers."""
    if pt.is_dictionary(kind):
        return holds_names(kind.value_type)
    return is_text(kind) or pt.is_integer(kind)


def _whole_or_nan(column: pa.Array) -> np.ndarray:
    """(n,) bool: which of these floats are whole numbers of at most 16 digits, or NaN."""
    values = _filled(column.cast(pa.float64())).astype(np.float64)
    return np.isnan(values) | ((values == np.floor(values)) & (np.abs(values) < MAX_WHOLE_FLOAT))


def _whole_floats(column: pa.Array) -> pa.Array:
    """Floats as integers, null where they are not whole numbers of at most 16 digits.

    >>> _whole_floats(pa.array([16.0, None, 1.5, float("nan"), -0.0, 1e16])).to_pylist()
    [16, None, None, None, 0, None]
    """
    values = _filled(column.cast(pa.float64())).astype(np.float64)
    good = _whole_or_nan(column) & ~np.isnan(values) & ~nulls(column)
    return pa.array(np.where(good, values, 0).astype(np.int64), mask=~good)


def without_zero_decimals(column: pa.Array) -> pa.Array:
    """Text with "16" for every "16.0" that a column of floats has made of it.

    >>> without_zero_decimals(pa.array(["16.0", "-3.0", "05.0", "1.50", "0.0", None])).to_pylist()
    ['16', '-3', '05.0', '1.50', '0', None]
    """
    if pt.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pc.replace_substring_regex(column, f"^{WHOLE_FLOAT}$", r"\1")


def stripped(column: pa.Array) -> pa.Array:
    """Text without the spaces and tabs around it; other columns as they are."""
    if pt.is_dictionary(column.type) and is_text(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, stripped(column.dictionary))
    return pc.ascii_trim(column, " \t") if is_text(column.type) else column


def is_list(kind: pa.DataType) -> bool:
    return pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)


def nulls(column: pa.Array) -> np.ndarray:
    """(n,) bool: where the column has no value."""
    if not column.null_count:
        return np.zeros(len(column), bool)
    return column.is_null().to_numpy(zero_copy_only=False)


def equal(column: pa.Array, wanted: str) -> np.ndarray:
    """(n,) bool: where the value, as text, is `wanted`; never where it is null or has no text."""
    if pt.is_dictionary(column.type):
        of_code = np.append(equal(column.dictionary, wanted), False)  # the slot at the end stands for null
        return of_code[_codes(column)]
    if not is_text(column.type):
        if pt.is_nested(column.type) or pt.is_null(column.type):
            return np.zeros(len(column), bool)
        column = column.cast(pa.string())
    return pc.fill_null(pc.equal(column, pa.scalar(wanted, column.type)), False).to_numpy(zero_copy_only=False)


def _codes(column: pa.DictionaryArray) -> np.ndarray:
    """(n,) int64 indices into the dictionary, -1 at nulls."""
    return pc.fill_null(column.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)


def coded(column: pa.Array, pool: Pool) -> np.ndarray:
    """(n,) int32 numbers in the pool; -1 where the value is no string and no whole number."""
    if pt.is_floating(column.type):
        column = _whole_floats(column)
    if not holds_names(column.type):
        return np.full(len(column), -1, np.int32)
    if pt.is_dictionary(column.type) and len(column.dictionary) > len(column):
        column = column.cast(column.type.value_type)
    if is_text(column.type) and not pt.is_dictionary(column.type):
        return _coded_texts(column, pool)
    if not pt.is_dictionary(column.type):
        column = column.dictionary_encode()
    values = column.dictionary
    names = values.cast(pa.string()) if pt.is_integer(values.type) else values
    return np.append(_coded_texts(names, pool), np.int32(-1))[_codes(column)]


def _coded_texts(column: pa.Array, pool: Pool) -> np.ndarray:
    """(n,) int32 numbers in the pool, -1 at nulls, of a column of text: read from its buffers, no Python string made.

    >>> pool = Pool()
    >>> _coded_texts(pa.array(["zz", "b", None, "", "b"])[1:], pool).tolist(), pool.texts()
    ([0, -1, 1, 0], ('b', ''))
    """
    letters, begins, ends = _letters(column)
    if not column.null_count:
        return pool.ids_of_bytes(letters, begins, ends)
    numbers, present = np.full(len(column), -1, np.int32), ~nulls(column)
    numbers[present] = pool.ids_of_bytes(letters, begins[present], ends[present])
    return numbers


def _letters(column: pa.Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The bytes of a column of text, and where each of its values begins and ends in them."""
    _, offsets, letters = column.buffers()
    width = np.int64 if pt.is_large_string(column.type) else np.int32
    bounds = np.zeros(1, np.int64)
    if offsets is not None and len(column):
        bounds = np.frombuffer(offsets, width)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = np.frombuffer(letters, np.uint8) if letters is not None and letters.size else np.empty(0, np.uint8)
    return data, bounds[:-1], bounds[1:]


def _numbers(column: pa.Array) -> np.ndarray | None:
    """(n,) float64 of a column of numbers; None for others."""
    if pt.is_integer(column.type) or pt.is_floating(column.type) or pt.is_decimal(column.type):
        return _filled(column.cast(pa.float64(), safe=False)).astype(np.float64)
    return None


def _parsed(
    column: pa.Array, missing: np.ndarray, parse: Callable[[Any, bool], float | None], text: bool
) -> np.ndarray:
    """(n,) float64 of a column of text; NaN where `parse` refuses the value or there is none, and for other columns."""
    values = np.full(len(column), np.nan)
    if not is_text(column.type):
        return values
    if pt.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = pc.if_else(pa.array(missing), None, column)
    if text:
        try:
            return _filled(column.cast(pa.float64())).astype(np.float64)
        except pa.ArrowInvalid:  # not all of them are plain numbers
            pass
    if parse is time_of:
        values = plain_times(*_letters(column))
    values_of: dict[Any, float] = {None: np.nan}
    unparsed = np.flatnonzero(np.isnan(values))
    for place, cell in zip(unparsed.tolist(), column.take(pa.array(unparsed)).to_pylist(), strict=True):
        if cell not in values_of:
            try:
                value = parse(cell, text)
            except InvalidEvent:
                value = None
            values_of[cell] = np.nan if value is None else value
        values[place] = values_of[cell]
    return values


def _filled(column: pa.Array) -> np.ndarray:
    return pc.fill_null(column, 0).to_numpy(zero_copy_only=False)


class ArrowColumn(NamedTuple):
    """A `Column` of Arrow.

    In tables of `text` (CSV), an empty cell is an absent value, and lists, numbers and times are written as text;
    `floats` is False if certainly no name is an integer formatted as a float. In other tables, text is text, and a null
    is an absent value.
    """

    values: pa.Array
    text: bool = False
    floats: bool = True

    def of_rows(self, rows: np.ndarray) -> "ArrowColumn":
        return self._replace(values=self.values.take(pa.array(rows)))

    def absent(self) -> np.ndarray:
        return nulls(self.values) | equal(self.values, "") if self._is_text else nulls(self.values)

    def is_label_removal(self) -> np.ndarray:
        return equal(self.values, "") if self.text else nulls(self.values)

    def equal(self, wanted: str) -> np.ndarray:
        return equal(self.values, wanted)

    def names(self, pool: Pool) -> np.ndarray:
        return self._ids(self.values, pool)

    def optional_names(self, pool: Pool | None) -> tuple[np.ndarray, np.ndarray]:
        kind, size = self.values.type, len(self.values)
        if pt.is_floating(kind):
            sure = nulls(self.values) | _whole_or_nan(self.values)
        else:
            sure = np.ones(size, bool) if holds_names(kind) else nulls(self.values)
        if pool is None or not (holds_names(kind) or pt.is_floating(kind)):
            return np.broadcast_to(np.int32(-1), size), sure
        numbers = self._ids(self.values, pool)
        numbers[equal(self.values, "")] = -1
        return numbers, sure

    def lists(self, pool: Pool, answer: bool) -> CertainNames:
        """In tables of text, items are separated by `|`."""
        column, size = self.values, len(self.values)
        if answer and not self.text and (holds_names(column.type) or pt.is_floating(column.type)):
            ids = self._ids(column, pool)
            return CertainNames(np.ones(size, np.int64), ids, ids >= 0)
        sure = ~nulls(column)
        if pt.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if self._is_text:
            sure &= ~equal(column, "")
            brackets = pc.match_substring_regex(column, r"^[\[(].*[\])]$")
            sure &= ~pc.fill_null(brackets, False).to_numpy(zero_copy_only=False)
            column = pc.split_pattern(column, LIST_SEPARATOR)
        elif not is_list(column.type):
            return CertainNames(np.zeros(size, np.int64), np.empty(0, np.int32), np.zeros(size, bool))
        items = pc.list_flatten(column)
        items = items.combine_chunks() if isinstance(items, pa.ChunkedArray) else items
        if self.text and is_text(items.type):
            items = stripped(items)
        lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        flat = self._ids(items, pool)
        unknown_before = np.concatenate([[0], np.cumsum(flat < 0)])
        ends = np.cumsum(lengths)
        return CertainNames(lengths, flat, sure & (unknown_before[ends] == unknown_before[ends - lengths]))

    def numbers(self, missing: np.ndarray) -> np.ndarray:
        """In tables of text, text may be formatted numbers."""
        values = _numbers(self.values)
        if values is not None:
            return values
        return _parsed(self.values, missing, number_of, True) if self.text else np.full(len(self.values), np.nan)

    def times(self, missing: np.ndarray) -> np.ndarray:
        if pt.is_timestamp(self.values.type):
            seconds = _filled(self.values.cast(pa.int64())).astype(np.float64)
            return seconds / _PER_SECOND[self.values.type.unit]
        values = _numbers(self.values)
        return _parsed(self.values, missing, time_of, self.text) if values is None else values

    @property
    def _is_text(self) -> bool:
        return self.text and is_text(self.values.type)

    def _ids(self, column: pa.Array, pool: Pool) -> np.ndarray:
        """The numbers of the names in a column; integral floats are the integers that they represent."""
        if self.text and self.floats and is_text(column.type):
            column = without_zero_decimals(column)
        return coded(column, pool)


def with_paths(columns: dict[str, pa.Array], sources: Iterable[str], text: bool) -> dict[str, pa.Array]:
    """The columns, and one for each source that reaches into their cells of JSON: see `cells`."""
    paths = paths_of(sources, list(columns))
    if not paths:
        return columns
    cells = {name: [inside(cell) for cell in columns[name].to_pylist()] for name, _ in paths.values()}
    reached = {source: [cell.get(path) for cell in cells[name]] for source, (name, path) in paths.items()}
    return columns | {source: _reached(values, text) for source, values in reached.items()}


def _reached(values: list[Any], text: bool) -> pa.Array:
    plain = [LIST_SEPARATOR.join(map(str, value)) if isinstance(value, list) else value for value in values]
    texts = [None if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell) for cell in plain]
    return pa.array(["" if cell is None and text else cell for cell in texts], pa.string())


def arrow_table(
    columns: dict[str, pa.Array],
    size: int,
    event_fields: EventFields,
    text: bool,
    floats: bool = True,
    fast: bool = True,
) -> Table:
    """Arrow columns as a table of events. Without `fast`, every row is read by the definition."""
    fast = fast and not event_fields.by_definition
    of_table = {name: ArrowColumn(column, text, floats) for name, column in columns.items()}
    label = event_fields.by_kind[LABEL][1].inputs[0] if LABEL in event_fields.kinds else None
    absent = "" if text else None

    def event(row: int) -> Event:
        for filter in event_fields.where:
            value = columns.get(filter.source)
            if not kept_rows(filter, None if value is None else ArrowColumn(value.slice(row, 1), text), 1)[0]:
                raise ExcludedEvent

        def cell(source: str) -> Any:
            """The value of one field, `MISSING` where it is null or has no column; None takes a label back."""
            if source not in columns:
                return MISSING
            value = plain_value(columns[source][row])
            if source == label and value == absent:
                return None
            return MISSING if value is None else value

        return read_event(cell, event_fields, text)

    return Table(of_table, size, event, None if fast else np.zeros(size, bool))
