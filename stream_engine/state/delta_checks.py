"""Whether the tables of a delta hold what `delta_columns` says: before their names become objects and their sums
counts.

A delta is a file like others: what made it may have been another program, or nobody. `check_tables` raises `ValueError`
with one line, which `spark_deltas.decode` makes a failure of the source: nothing of the batch is counted, and reading
goes on there once it is restored. What parts have to do with each other is checked there. O(rows).
"""

from collections.abc import Mapping
from typing import Any

from stream_engine.data.array_checks import LARGEST_COUNT
from stream_engine.data.comparisons import MAX_NAME_BYTES
from stream_engine.state.delta_columns import COLUMNS, COUNTS, SCHEMA, objects_of

_TYPE_OF = {column.split()[0]: column.split()[1] for column in SCHEMA.split(", ")}
_ARROW = {"string": "string", "long": "int64", "binary": "binary"}
_MAY_BE_NULL = {("labels", "label"), ("rejected", "key")}  # a label taken back; a letter without a key


def check_tables(tables: Mapping[str, Any]) -> None:
    """Raise `ValueError` unless every part is known, has its columns in their types, and values that can be."""
    for part, table in tables.items():
        if part not in COLUMNS:
            raise ValueError(f"part {part[:80]!r}: expected one of {', '.join(COLUMNS)}")
        for meaning, column in COLUMNS[part].items():
            _check_column(part, meaning, column, table)
        for meaning in objects_of(part) if part in COUNTS else ("object",) if part == "labels" else ():
            _check_names(f"{part}: {meaning}", table.column(COLUMNS[part][meaning]))


def _check_column(part: str, meaning: str, name: str, table: Any) -> None:
    import pyarrow.compute as pc

    if table.column_names.count(name) != 1:
        raise ValueError(f"{part}: column {name}: got {table.column_names.count(name)} of them, expected one")
    column = table.column(name)
    column.validate(full=True)
    if str(column.type) != _ARROW[_TYPE_OF[name]] or (column.null_count and (part, meaning) not in _MAY_BE_NULL):
        raise ValueError(
            f"{part}: column {name}: got {column.type} with {column.null_count} nulls, expected "
            f"{_ARROW[_TYPE_OF[name]]}"
        )
    if _TYPE_OF[name] == "long" and len(column):
        low, high = pc.min_max(column).as_py().values()
        least = -LARGEST_COUNT if meaning == "w" else 0
        if low < least or high > LARGEST_COUNT:
            raise ValueError(f"{part}: column {name}: got {low} to {high}, expected {least} to {LARGEST_COUNT}")


def _check_names(what: str, column: Any) -> None:
    import pyarrow.compute as pc

    if len(column):
        low, high = pc.min_max(pc.binary_length(column)).as_py().values()
        if low < 1 or high > MAX_NAME_BYTES:
            raise ValueError(f"{what}: names of {low} to {high} bytes, expected 1 to {MAX_NAME_BYTES}")
