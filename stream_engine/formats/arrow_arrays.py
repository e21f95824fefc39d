"""Arrow arrays to numbers: names to indices of a pool, weights and times to doubles, cells to plain values. Vectorised.

What is no name, weight or time comes out as -1 or NaN, never as an exception: `table_events` leaves its row to the
definition.
"""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from stream_engine.data.comparisons import InvalidEvent
from stream_engine.formats.event_columns import Pool
from stream_engine.formats.field_values import MOST_FLOAT, WHOLE_FLOAT, time_of, weight_of


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
    if is_list(kind):
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


_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def is_text(kind: pa.DataType) -> bool:
    if pt.is_dictionary(kind):
        return is_text(kind.value_type)
    return pt.is_string(kind) or pt.is_large_string(kind)


def holds_names(kind: pa.DataType) -> bool:
    if pt.is_dictionary(kind):
        return holds_names(kind.value_type)
    return is_text(kind) or pt.is_integer(kind)


def is_float(kind: pa.DataType) -> bool:
    return pt.is_floating(kind)


def whole_or_nan(column: pa.Array) -> np.ndarray:
    """(n,) bool: which of these floats are whole numbers of at most 16 digits, or NaN."""
    values = _filled(column.cast(pa.float64())).astype(np.float64)
    return np.isnan(values) | ((values == np.floor(values)) & (np.abs(values) < MOST_FLOAT))


def _whole_floats(column: pa.Array) -> pa.Array:
    """Floats as integers, null where they are not whole numbers of at most 16 digits.

    >>> _whole_floats(pa.array([16.0, None, 1.5, float("nan"), -0.0, 1e16])).to_pylist()
    [16, None, None, None, 0, None]
    """
    values = _filled(column.cast(pa.float64())).astype(np.float64)
    good = whole_or_nan(column) & ~np.isnan(values) & ~nulls(column)
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


def whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def coded(column: pa.Array, pool: Pool) -> np.ndarray:
    """(n,) int32 numbers in the pool; -1 where the value is no string and no whole number."""
    if is_float(column.type):
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
    _, offsets, letters = column.buffers()
    width = np.int64 if pt.is_large_string(column.type) else np.int32
    if offsets is None or not len(column):
        return np.empty(0, np.int32)
    bounds = np.frombuffer(offsets, width)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    data = np.frombuffer(letters, np.uint8) if letters is not None and letters.size else np.empty(0, np.uint8)
    if not column.null_count:
        return pool.ids_of_bytes(data, bounds[:-1], bounds[1:])
    numbers, present = np.full(len(column), -1, np.int32), ~nulls(column)
    numbers[present] = pool.ids_of_bytes(data, bounds[:-1][present], bounds[1:][present])
    return numbers


def weights(column: pa.Array, missing: np.ndarray, text: bool) -> tuple[np.ndarray, np.ndarray]:
    """(n,) float64, and (n,) bool: which of them are good; with `text`, text may be the text of a number."""
    values = _numbers(column)
    if values is None:
        values = _parsed(column, missing, weight_of, text) if text else np.full(len(column), np.nan)
    return values, np.isfinite(values) & (values >= 0)


def times(column: pa.Array, missing: np.ndarray, text: bool) -> tuple[np.ndarray, np.ndarray]:
    """(n,) float64 epoch seconds, and (n,) bool: which of them are good; with `text`, numbers may be text."""
    if pt.is_timestamp(column.type):
        values = _filled(column.cast(pa.int64())).astype(np.float64) / _PER_SECOND[column.type.unit]
    else:
        numbers = _numbers(column)
        values = _parsed(column, missing, time_of, text) if numbers is None else numbers
    return values, np.isfinite(values)


def _numbers(column: pa.Array) -> np.ndarray | None:
    """(n,) float64 of a column of numbers; None for others."""
    if pt.is_integer(column.type) or pt.is_floating(column.type) or pt.is_decimal(column.type):
        return _filled(column.cast(pa.float64(), safe=False)).astype(np.float64)
    return None


def _parsed(column: pa.Array, missing: np.ndarray, parse: Callable[[Any, bool], float], text: bool) -> np.ndarray:
    """(n,) float64 of a column of text; NaN where `parse` refuses the value or there is none, and for other columns."""
    if not is_text(column.type):
        return np.full(len(column), np.nan)
    if pt.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    column = pc.if_else(pa.array(missing), None, column)
    if text:
        try:
            return _filled(column.cast(pa.float64())).astype(np.float64)
        except pa.ArrowInvalid:  # not all of them are plain numbers
            pass
    seen: dict[Any, float] = {None: np.nan}
    for each in column.to_pylist():
        if each not in seen:
            try:
                seen[each] = parse(each, text)
            except InvalidEvent:
                seen[each] = np.nan
    return np.fromiter(map(seen.__getitem__, column.to_pylist()), np.float64, len(column))


def _filled(column: pa.Array) -> np.ndarray:
    return pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
