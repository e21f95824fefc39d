"""The columns of a delta: what the counting job on Spark writes for each part of a batch, and the engine reads.

All parts go through one shuffle, which has one schema; so the columns of the files mean something else in every part.
This is the one place that says what. The files are a format between a job and an engine (`FORMAT` in
connectors/spark_deltas.py): another meaning of a column is another format.

>>> COLUMNS["triplet_counts"]["n_hi"]
'n'
"""

from collections.abc import Mapping
from typing import Any

# in Spark's words; the first nine are the key of a row, m and n are summed
SCHEMA = (
    "part string, a string, b string, c string, d string, at long, nth long, value binary, key binary, m long, n long"
)
KEY = ("part", "a", "b", "c", "d", "at", "nth", "value", "key")
SUMMED = ("m", "n")
COUNTS = ("adds3", "adds4", "triplet_counts", "quadruplet_counts")  # parts that are states of these accumulators

# part -> what is meant -> the column of the files. Objects are names. A column that a part does not name is null there,
# a sum zero.
_PAIRS = {"i": "a", "j": "b", "w": "m"}
COLUMNS: Mapping[str, Mapping[str, str]] = {
    "adds3": _PAIRS,
    "adds4": _PAIRS,
    "triplet_counts": {"anchor": "a", "lo": "b", "hi": "c", "n_lo": "m", "n_hi": "n"},
    "quadruplet_counts": {"i": "a", "j": "b", "k": "c", "l": "d", "n_lo": "m", "n_hi": "n"},
    "counters": {"counter": "a", "kind": "b", "count": "m"},
    "labels": {"object": "a", "label": "b", "partition": "c", "offset": "at", "order": "nth", "count": "m"},
    "rejected": {
        "partition": "a",
        "reason": "b",
        "message": "c",
        "offset": "at",
        "event_index": "nth",
        "value": "value",
        "key": "key",
        "count": "m",
    },
}


def objects_of(part: str) -> list[str]:
    """The columns of a part of counts that hold names of objects, by their meaning.

    >>> objects_of("adds3"), objects_of("triplet_counts")
    (['i', 'j'], ['anchor', 'lo', 'hi'])
    """
    return [meaning for meaning, column in COLUMNS[part].items() if column not in SUMMED]


def sums_of(part: str) -> list[str]:
    """The columns of a part that are summed over the tasks, by their meaning.

    >>> sums_of("adds3"), sums_of("triplet_counts")
    (['w'], ['n_lo', 'n_hi'])
    """
    return [meaning for meaning, column in COLUMNS[part].items() if column in SUMMED]


def table_of(part: str, columns: Mapping[str, Any]) -> Any:
    """Columns by their meaning as a `pyarrow.Table` of `SCHEMA`; absent ones are null, absent sums zero."""
    import pyarrow as pa

    size = len(next(iter(columns.values()), ()))
    types = {"string": pa.string(), "long": pa.int64(), "binary": pa.binary()}
    given = {COLUMNS[part][meaning]: values for meaning, values in columns.items()}
    arrays = {}
    for name, kind in (column.split() for column in SCHEMA.split(", ")):
        if name == "part":
            arrays[name] = pa.array([part] * size, types[kind])
        elif name in given:
            arrays[name] = pa.array(given[name], types[kind])
        else:
            arrays[name] = pa.array([0] * size, types[kind]) if name in SUMMED else pa.nulls(size, types[kind])
    return pa.table(arrays)


def rows_of(part: str, table: Any, *meanings: str) -> list[tuple]:
    """The rows of a part as tuples of the columns that these meanings have; none when the part is missing."""
    if table is None:
        return []
    return list(zip(*(table.column(COLUMNS[part][meaning]).to_pylist() for meaning in meanings), strict=True))
