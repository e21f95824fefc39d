"""A batch of a Spark counting job as the engine learns it: counts by name become states of accumulators.

A delta is a file that another program may have made: `check_tables` checks columns, types, nulls, names and ranges, and
totals against counters. The meaning of the columns is part of the format (`FORMAT` in connectors/spark_deltas.py).

>>> COLUMNS["triplet_counts"]["n_hi"]
'n'
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from connectors import DeadLetter, Record, SourceFailed
from stream_engine.data.array_checks import LARGEST_COUNT
from stream_engine.data.comparisons import MAX_NAME_BYTES, DecodedEvents, ExternalCounts, Label, Rejected, empty_batch
from stream_engine.data.hashing import mix64
from stream_engine.data.triplet_columns import canonical_counts, columns_from_rows, net_vote

# in Spark's words; the first nine are the key of a row, m and n are summed
# All parts go through one shuffle, which has one schema: the columns mean something else in every part.
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
HOLD = COUNTS  # the accumulators that deltas have counts for
Tables = Mapping[str, Any]  # part -> pyarrow.Table; a part without rows may be missing
States = Mapping[str, Mapping[str, np.ndarray]]  # accumulator -> its canonical state
_TYPE_OF = {column.split()[0]: column.split()[1] for column in SCHEMA.split(", ")}
_ARROW = {"string": "string", "long": "int64", "binary": "binary"}
_MAY_BE_NULL = {("labels", "label"), ("rejected", "key")}  # a label taken back; a letter without a key


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
    values_of = {COLUMNS[part][meaning]: values for meaning, values in columns.items()}
    arrays = {}
    for name, kind in (column.split() for column in SCHEMA.split(", ")):
        if name == "part":
            arrays[name] = pa.array([part] * size, types[kind])
        elif name in values_of:
            arrays[name] = pa.array(values_of[name], types[kind])
        else:
            arrays[name] = pa.array([0] * size, types[kind]) if name in SUMMED else pa.nulls(size, types[kind])
    return pa.table(arrays)


def rows_of(part: str, table: Any, *meanings: str) -> list[tuple]:
    """The rows of a part as tuples of the columns that these meanings have; none when the part is missing."""
    if table is None:
        return []
    return list(zip(*(table.column(COLUMNS[part][meaning]).to_pylist() for meaning in meanings), strict=True))


# Objects are numbered in the order of their names, and each part becomes the state of its accumulator, which is merged.
# The guard gets the net vote of every key once, weighted, in the order of keys (triplets by (lo, hi, anchor), then
# quadruplets, by name): it never sees an arrival order inside a batch. Labels come in the order of their partitions.
# Comparisons are counted and W is their sum, so lost or repeated rows are noticed. O(rows log rows).
def decode(record: Record) -> tuple[DecodedEvents, list[DeadLetter]]:
    """The counts of a batch, and what the job refused with its places.

    Raises `SourceFailed` for rows of no delta, or not all of one.
    """
    import pyarrow as pa

    try:
        check_tables(record.value)
        return _decode(record.value)
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, pa.ArrowException) as error:
        if isinstance(error, pa.ArrowMemoryError):
            raise
        problem = " ".join(str(error).split())
        raise SourceFailed(
            f"{record.partition}: batch={record.offset} is not a complete delta: {problem}; restore it and run again: "
            "reading resumes there"
        ) from error


def _decode(tables: Tables) -> tuple[DecodedEvents, list[DeadLetter]]:
    names, ids = _names_and_ids(tables)
    states = {part: _state(part, ids[part], _sums(part, tables.get(part)), len(names)) for part in HOLD}
    counters = _counters(tables.get("counters"))
    totals = {name: sum(kinds.values()) for name, kinds in counters.items()}
    letters = _dead_letters(tables.get("rejected"))
    _check(states, len(names), counters, _refused(tables.get("rejected")))
    counted = ExternalCounts(
        states,
        net_votes(states),
        totals.get("records", 0),
        totals.get("triplets", 0),
        totals.get("quadruplets", 0),
        totals.get("labels", 0),
    )
    nothing = empty_batch(len(names))
    return DecodedEvents(
        names,
        *nothing[:3],
        _labels(tables.get("labels")),
        counters.get("kinds", {}),
        [Rejected(letter.event_index, 0, letter.reason, letter.message, letter.value) for letter in letters],
        totals.get("filtered", 0),
        totals.get("empty", 0),
        frozenset(counters.get("unknown_fields", ())),
        counted=counted,
    ), letters


def _names_and_ids(tables: Tables) -> tuple[list[str], dict[str, list[np.ndarray]]]:
    """The names of all counts, sorted, and the columns of ids of each part."""
    import pyarrow as pa
    import pyarrow.compute as pc

    coded = {part: _coded(part, tables[part]) for part in HOLD if part in tables}
    names = sorted({name for columns in coded.values() for column in columns for name in column.dictionary.to_pylist()})
    sorted_names = pa.array(names, pa.string())
    ids: dict[str, list[np.ndarray]] = {part: [np.empty(0, np.int64)] * len(objects_of(part)) for part in HOLD}
    for part, columns in coded.items():
        ids[part] = [
            pc.index_in(column.dictionary, sorted_names)
            .to_numpy(zero_copy_only=False)
            .astype(np.int64)[column.indices.to_numpy(zero_copy_only=False)]
            for column in columns
        ]
    return names, ids


def _coded(part: str, table: Any) -> list[Any]:
    """The columns of a part that hold names, as Arrow dictionaries."""
    import pyarrow as pa

    columns = {COLUMNS[part][meaning]: table.column(COLUMNS[part][meaning]) for meaning in objects_of(part)}
    for name, column in columns.items():
        if column.type != pa.string() or column.null_count:
            raise ValueError(f"{part}: column {name}: got {column.type} with {column.null_count} nulls, expected names")
    return [column.combine_chunks().dictionary_encode() for column in columns.values()]


def _sums(part: str, table: Any) -> list[np.ndarray]:
    """The columns of a part that were summed over the tasks."""
    names = [COLUMNS[part][meaning] for meaning in sums_of(part)]
    if table is None:
        return [np.empty(0, np.int64) for _ in names]
    for name in names:
        column = table.column(name)
        if str(column.type) != "int64" or column.null_count:
            raise ValueError(f"column {name}: got {column.type} with {column.null_count} nulls, expected int64 without")
    return [table.column(name).to_numpy() for name in names]


def _check(
    states: States,
    n: int,
    counters: Mapping[str, Mapping[str, int]],
    refused: Mapping[str, int],
) -> None:
    """Raise `ValueError` where a part does not agree with the others: see the module."""
    t, q = states["triplet_counts"], states["quadruplet_counts"]
    sizes = np.diff(t["start"])
    lo, hi, anchor = np.repeat(t["lo"], sizes), np.repeat(t["hi"], sizes), t["anchor"]
    first = np.zeros(len(anchor), bool)
    first[t["start"][:-1]] = True
    if not ((lo < hi) & (lo != anchor) & (hi != anchor) & (first | (np.diff(anchor, prepend=-1) > 0))).all():
        raise ValueError("triplet_counts: a key twice, or lo, hi, anchor that are no question")
    if not (
        (q["i"] < q["j"]) & (q["k"] < q["l"]) & ((q["i"] < q["k"]) | ((q["i"] == q["k"]) & (q["j"] < q["l"])))
    ).all():
        raise ValueError("quadruplet_counts: i, j, k, l that are no question")
    for part, counts in (("triplets", t), ("quadruplets", q)):
        n_lo, n_hi = counts["n_lo"].astype(np.int64), counts["n_hi"].astype(np.int64)
        if not ((n_lo >= 0) & (n_hi >= 0) & (n_lo + n_hi > 0)).all():
            raise ValueError(f"{part[:-1]}_counts: a count below 0, or none in a row")
        expected = counters.get(part, {}).get("", 0)
        if n_lo.sum() + n_hi.sum() != expected:
            raise ValueError(
                f"{part}: got {n_lo.sum() + n_hi.sum()} in the counts, expected {expected} by the counters"
            )
    three = _sum_of(net_vote(t["n_lo"], t["n_hi"]), _mixed(anchor, lo, n) - _mixed(anchor, hi, n))
    four = (
        three + _sum_of(net_vote(q["n_lo"], q["n_hi"]), _mixed(q["i"], q["j"], n) - _mixed(q["k"], q["l"], n))
    ) % 2**64
    for part, expected in (("adds3", three), ("adds4", four)):
        if not (states[part]["i"] < states[part]["j"]).all():
            raise ValueError(f"{part}: i, j that are no pair in order")
        if _sum_of(states[part]["w"], _mixed(states[part]["i"], states[part]["j"], n)) != expected:
            raise ValueError(f"{part}: is not the AddS of the counts")
    if refused != counters.get("rejected", {}):
        raise ValueError(f"rejected: got {refused}, expected {counters.get('rejected', {})} by the counters")


def _refused(table: Any) -> dict[str, int]:
    """How many were refused, by reason."""
    refused: Counter[str] = Counter()
    for reason, n in rows_of("rejected", table, "reason", "count"):
        refused[reason] += n
    return dict(refused)


def _mixed(i: np.ndarray, j: np.ndarray, n: int) -> np.ndarray:
    """(m,) uint64: a random-looking number for each unordered pair."""
    return mix64(np.minimum(i, j).astype(np.uint64) * np.uint64(n) + np.maximum(i, j).astype(np.uint64))


def _sum_of(w: np.ndarray, numbers: np.ndarray) -> int:
    """sum w_e numbers_e modulo 2^64."""
    return int(np.sum(w.astype(np.uint64) * numbers, dtype=np.uint64))


def _state(part: str, ids: list[np.ndarray], sums: list[np.ndarray], n: int) -> dict[str, np.ndarray]:
    """The canonical state of an accumulator; every key has one row."""
    if part == "triplet_counts":
        (anchor, lo, hi), (n_lo, n_hi) = ids, sums
        columns = columns_from_rows(anchor, lo, hi, n_lo, n_hi, n)._asdict()
        return {name: array for name, array in columns.items() if name != "n_objects"}
    order = np.lexsort(ids[::-1])
    keys = dict(zip(objects_of(part), (column[order].astype(np.int32) for column in ids)))
    if part == "quadruplet_counts":
        n_lo, n_hi = sums
        return keys | dict(zip(("n_lo", "n_hi"), canonical_counts(n_lo[order], n_hi[order])))
    w = sums[0][order]
    return {name: column[w != 0] for name, column in (keys | {"w": w}).items()}


def net_votes(states: States) -> np.ndarray:
    """(r, 4) int32 rows near_i, near_j, far_i, far_j: each key in the direction of its net vote; ties are excluded.

    >>> state = columns_from_rows([0, 0], [1, 1], [2, 3], [1, 2], [3, 2], 4)._asdict()
    >>> none = dict.fromkeys("ijkl", np.empty(0, np.int32)) | {"n_lo": np.empty(0, int), "n_hi": np.empty(0, int)}
    >>> net_votes({"triplet_counts": state, "quadruplet_counts": none}).tolist()
    [[0, 2, 0, 1]]
    """
    t, q = states["triplet_counts"], states["quadruplet_counts"]
    sizes = np.diff(t["start"])
    lo, hi, anchor = np.repeat(t["lo"], sizes), np.repeat(t["hi"], sizes), t["anchor"]
    first, second = np.stack([anchor, lo], 1), np.stack([anchor, hi], 1)
    first = np.concatenate([first, np.stack([q["i"], q["j"]], 1)])
    second = np.concatenate([second, np.stack([q["k"], q["l"]], 1)])
    net = np.concatenate([net_vote(part["n_lo"], part["n_hi"]).astype(np.int64) for part in (t, q)])
    rows = np.where((net > 0)[:, None], np.hstack([first, second]), np.hstack([second, first])).astype(np.int32)
    return rows[net != 0]


def _counters(table: Any) -> dict[str, dict[str, int]]:
    counters: dict[str, dict[str, int]] = {}
    for name, kind, n in sorted(rows_of("counters", table, "counter", "kind", "count")):
        counters.setdefault(name, {})[kind] = n
    return counters


def _labels(table: Any) -> list[Label]:
    """In the order of partitions, and inside one in the order of the stream."""
    rows = rows_of("labels", table, "partition", "offset", "order", "object", "label")
    return [Label(name, label) for _, _, _, name, label in _in_stream_order(rows)]


def _dead_letters(table: Any) -> list[DeadLetter]:
    rows = rows_of("rejected", table, *DeadLetter._fields)
    return [DeadLetter(*row) for row in _in_stream_order(rows)]


def _in_stream_order(rows: Iterable[tuple]) -> list[tuple]:
    """Rows that begin with a partition, an offset and a place inside the record."""
    return sorted(rows, key=lambda row: row[:3])


# ---- what a file may hold


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
