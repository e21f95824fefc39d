"""Tables in Python, of any library, as Arrow columns; neither pandas nor polars is imported.

These are frames of pandas, anything with `__arrow_c_stream__` (polars, pyarrow, DuckDB, ...), a mapping of columns, a
list of dicts, of `Triplet`, `Quadruplet` or tuples, and NumPy arrays (m, 3) and (m, 4). Equal values give equal
columns.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from stream_engine.data.comparisons import Quadruplet, Triplet
from stream_engine.formats.options import UnusableOptions

# Names of the columns of rows without names, by their number.
WIDTHS = {3: ("anchor", "near", "far"), 4: ("near_i", "near_j", "far_i", "far_j")}
FIRST_ROWS = 1000  # rows from which the type of a column and the layout of a table are inferred
EXPECTED = (
    "expected a pandas, polars or Arrow table, a mapping of columns, a list of dicts or of triplets, an array of 3 or "
    "4 columns, a file, or a state directory"
)


class BadFrame(UnusableOptions):
    """A table that cannot be read; the message is one line: which row (counted from 0) and column, got, expected."""


class FrameColumns(NamedTuple):
    """A table of `rows` rows; `take` returns a column by its name, and raises `BadFrame`."""

    names: list[str]
    rows: int
    take: Callable[[str], "pa.Array | pa.ChunkedArray"]
    library: str  # the library of the table, "" for plain Python and NumPy


def columns_of(data: Any) -> FrameColumns:
    """The columns of any of these tables (see the module). Raises `BadFrame`. O(1), but O(rows) for Python objects."""
    library = library_of(data)
    if library == "pandas":
        return _of_pandas(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _of_arrow(pa.RecordBatchReader.from_stream(data).read_all(), library)
    if hasattr(data, "__arrow_c_array__"):
        return _of_arrow(pa.Table.from_batches([pa.record_batch(data)]), library)
    if hasattr(data, "collect") and library == "polars":
        raise BadFrame("read: got a lazy frame of polars, expected a frame: call .collect() first")
    if isinstance(data, Mapping):
        return _of_mapping(data)
    if isinstance(data, np.ndarray):
        return _of_array(data)
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _of_rows(data)
    raise BadFrame(f"read: got a {type(data).__name__}, {EXPECTED}")


def library_of(data: Any) -> str:
    """The library of a table: pandas, polars, pyarrow, or "" for plain Python and NumPy."""
    name = type(data).__module__.partition(".")[0]
    return "" if name in ("builtins", "numpy", "collections", "stream_engine") else name


def first_columns(data: Any, table: FrameColumns) -> dict[str, list[Any]]:
    """The first `FIRST_ROWS` rows of a table as columns of cells, without columns that Arrow cannot hold. O(1)."""
    if hasattr(data, "iloc"):
        table = columns_of(data.iloc[:FIRST_ROWS])
    elif isinstance(data, Mapping):
        table = columns_of({name: values[:FIRST_ROWS] for name, values in data.items()})
    elif isinstance(data, (np.ndarray, list)):
        table = columns_of(data[:FIRST_ROWS])
    cells = {}
    for name in table.names:
        with suppress(BadFrame):
            cells[name] = table.take(name).slice(0, FIRST_ROWS).to_pylist()
    return cells


def is_dicts(data: Any) -> bool:
    """Whether this is a list of dicts, one a row.

    >>> is_dicts([{"anchor": "a"}]), is_dicts([]), is_dicts([("a", "b", "c")])
    (True, False, False)
    """
    return isinstance(data, (list, tuple)) and len(data) > 0 and all(isinstance(row, Mapping) for row in data)


def _of_pandas(data: Any) -> FrameColumns:
    if not hasattr(data, "columns"):
        raise BadFrame(f"read: got a pandas {type(data).__name__}, expected a DataFrame")
    if named := [name for name in data.index.names if name is not None and name not in data.columns]:
        data = data.reset_index(named)
    places = {name: place for place, name in enumerate(_check_distinct([str(name) for name in data.columns]))}
    return FrameColumns(list(places), len(data), lambda name: array_of(name, data.iloc[:, places[name]]), "pandas")


def _of_arrow(table: pa.Table, library: str) -> FrameColumns:
    return FrameColumns(_check_distinct(table.column_names), table.num_rows, table.column, library)


def _of_mapping(data: Mapping[Any, Any]) -> FrameColumns:
    columns = {str(name): values for name, values in data.items()}
    lengths = {name: len(values) for name, values in columns.items() if hasattr(values, "__len__")}
    if len(lengths) < len(columns) or len(set(lengths.values())) > 1:
        lengths_in_words = ", ".join(f"{name}: {lengths.get(name, 'none')}" for name in columns)
        raise BadFrame(f"read: got columns of lengths {lengths_in_words}, expected lists of equal length")
    return FrameColumns(list(columns), next(iter(lengths.values()), 0), lambda name: array_of(name, columns[name]), "")


def _of_array(data: np.ndarray) -> FrameColumns:
    if data.ndim != 2 or data.shape[1] not in WIDTHS:
        raise BadFrame(f"read: got an array of shape {data.shape}, expected (m, 3) or (m, 4)")
    names = WIDTHS[data.shape[1]]
    return FrameColumns(list(names), len(data), lambda name: array_of(name, data[:, names.index(name)]), "")


def _of_rows(data: Sequence[Any]) -> FrameColumns:
    """Triplets and quadruplets, cblearn's pair of triplets and answers, or dicts, whose columns are the fields of all
    of them."""
    if isinstance(data, tuple) and len(data) == 2 and all(isinstance(array, np.ndarray) for array in data):
        from stream_engine.api.answers import rows_of

        try:
            return _of_array(rows_of(None, data))
        except ValueError as error:
            raise BadFrame(f"read: got a pair of arrays, expected cblearn's triplets and answers: {error}") from None
    if is_dicts(data):
        names = list(dict.fromkeys(str(name) for row in data for name in row))
        return FrameColumns(names, len(data), lambda name: array_of(name, [row.get(name) for row in data]), "")
    rows = [_row_objects(number, row) for number, row in enumerate(data)]
    width = len(rows[0]) if rows else 3
    if (bad_row := next((number for number, row in enumerate(rows) if len(row) != width), None)) is not None:
        raise BadFrame(f"row {bad_row}: got {len(rows[bad_row])} objects, expected {width}, as in row 0")
    names = list(WIDTHS[width])
    return FrameColumns(names, len(rows), lambda name: array_of(name, [row[names.index(name)] for row in rows]), "")


def _row_objects(number: int, row: Any) -> tuple[Any, ...]:
    """The 3 or 4 objects of a row without names of columns."""
    if isinstance(row, Quadruplet):
        return (*row.near, *row.far)
    if isinstance(row, (Triplet, tuple, list, np.ndarray)) and len(row) in WIDTHS:
        return tuple(row)
    row_in_words = " ".join(str(row).split())[:60]
    raise BadFrame(f"row {number}: got {row_in_words} ({type(row).__name__}), expected a dict, or 3 or 4 objects")


def _check_distinct(names: list[str]) -> list[str]:
    if repeated := [name for position, name in enumerate(names) if name in names[:position]]:
        raise BadFrame(f"column {repeated[0]!r} occurs twice; the table has {', '.join(names)[:200]}")
    return names


NUMBERS = ("weight", "time", "n_near", "n_far")  # fields whose cells are numbers, not names


def array_of(name: str, values: Any) -> "pa.Array | pa.ChunkedArray":
    """A column as Arrow; NaN and None are missing. Names of mixed types become text; any other mixture raises
    `BadFrame` with the first row of another type."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if (encoded := _dictionary_encoded(values)) is not None:
        return encoded
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass  # values of several types are converted one by one
    cells = [_python_value(value) for value in values]
    lists = next((isinstance(value, list) for value in cells if value is not None), False)
    convert = _number if name in NUMBERS else _list if lists else _text
    return pa.array([None if value is None else convert(name, row, value) for row, value in enumerate(cells)])


def _dictionary_encoded(values: Any) -> "pa.DictionaryArray | None":
    """A pandas column of Python objects whose values are all text and few are distinct; None for other columns. Each
    distinct value is checked once: nothing else equals a text, so no value of another type is overlooked."""
    if str(getattr(values, "dtype", "")) != "object" or not hasattr(values, "factorize") or len(values) < FIRST_ROWS:
        return None
    if any(not isinstance(cell, str) and not missing(cell) for cell in values.iloc[:: len(values) // FIRST_ROWS]):
        return None  # lists cannot be hashed
    if (
        values.iloc[:FIRST_ROWS].nunique() > FIRST_ROWS // 2
        and values.iloc[: 8 * FIRST_ROWS].nunique() > 4 * FIRST_ROWS
    ):
        return None
    try:
        codes, distinct = values.factorize()
    except TypeError:
        return None
    if any(type(cell) is not str for cell in distinct):
        return None
    codes_array = pa.array(codes.astype(np.int32), mask=codes < 0)
    return pa.DictionaryArray.from_arrays(codes_array, pa.array(distinct, pa.string()))


def _python_value(value: Any) -> Any:
    """A cell as a Python value; None if it is missing."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return list(value)
    value = value.item() if isinstance(value, np.generic) else value
    return None if missing(value) else value


def missing(value: Any) -> bool:
    """Whether a cell is missing: None, NaN, NA of pandas, NaT.

    >>> missing(None), missing(float("nan")), missing(""), missing(0)
    (True, True, False, False)
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(value != value)


def _text(name: str, row: int, value: Any) -> str:
    """
    >>> _text("near", 0, 16), _text("near", 1, 16.0), _text("near", 2, "b")
    ('16', '16', 'b')
    """
    if (text := name_of(value)) is None:
        raise _wrong(name, row, value, "a name: text or an integer")
    return text


def name_of(value: Any) -> str | None:
    """A name as text, also of a whole number; None for anything else.

    >>> name_of("b"), name_of(np.int64(16)), name_of(16.0), name_of(1.5), name_of(True)
    ('b', '16', '16', None, None)
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str):
        return value
    is_whole = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value // 1
    return str(int(value)) if is_whole else None


def _list(name: str, row: int, value: Any) -> list[str | None]:
    if not isinstance(value, list):
        raise _wrong(name, row, value, "a list of names, as in previous rows")
    return [None if (cell := _python_value(item)) is None else _text(name, row, cell) for item in value]


def _number(name: str, row: int, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong(name, row, value, "a number, or nothing")
    return float(value)


def _wrong(name: str, row: int, value: Any, expected: str) -> BadFrame:
    return BadFrame(f"row {row}: {name}: got {repr(value)[:60]} ({type(value).__name__}), expected {expected}")
