"""Contents as bytes: npz (default), parquet or csv. Equal contents give equal bytes.

Documents are JSON in every format. npz holds an export's arrays, with `names` where ids refer to them; csv and parquet
hold tables with names instead of ids, and single figures in NAME.scalars.json.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from stream_engine.data.packed_names import pack_names
from stream_engine.data.spreadsheet_cells import shown_table
from stream_engine.exports import TABLES, Content
from stream_engine.exports.array_types import SCALARS, Array
from stream_engine.exports.declarations import declared

Writer: TypeAlias = Callable[[BinaryIO], None]  # writes one file from its beginning to its end


FORMATS = ("npz", "parquet", "csv")
MEDIA_TYPES = {
    ".json": "application/json",
    ".csv": "text/csv",
    ".npz": "application/octet-stream",
    ".parquet": "application/vnd.apache.parquet",
}


CELLS_AT_ONCE = 1 << 20  # of a table, which may have a column an object, that are turned into text at a time: 20 MB
MAX_NAME_BYTES = 1 << 28  # of a fixed-width array of names: one long name makes all of them long


class NameColumn:
    """A column of names, kept as ids until it is written; -1 is an empty cell."""

    def __init__(self, ids: np.ndarray, names: Sequence[str]):
        self.ids, self.names = np.asarray(ids), names

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self):
        return (self.names[i] if i >= 0 else None for i in self.ids.tolist())


def names_array(key: str, names: Sequence[str]) -> dict[str, np.ndarray]:
    """The names under `key`, as texts of one width; as KEY_utf8 and KEY_offsets where that would be too large, or lose
    the end of a name (numpy drops zero characters there).

    >>> names_array("names", ["a", "bc"])["names"].tolist()
    ['a', 'bc']
    >>> sorted(names_array("names", ["a\\x00"]))
    ['names_offsets', 'names_utf8']
    """
    width = max(map(len, names), default=0)
    if 4 * width * len(names) <= MAX_NAME_BYTES and not any(name.endswith("\0") for name in names):
        return {key: np.array(names, np.str_)}
    return {f"{key}_{part}": array for part, array in pack_names(names).items()}


def merges(linkage: np.ndarray, leaves: Sequence[str]) -> Mapping[str, Any]:
    """Columns of a dendrogram in scipy's format (m - 1, 4) over named leaves: a row a merge. What it joins is an object
    by its name; or an earlier merge, and then the name is empty and `left_merge` or `right_merge`, 0 for an object,
    says which."""
    m, nodes = len(leaves), np.asarray(linkage)[:, :2].astype(np.int64)
    columns: dict[str, Any] = {"merge": np.arange(1, len(nodes) + 1)}
    for side, children in zip(("left", "right"), nodes.T):
        columns[side] = [leaves[node] if node < m else "" for node in children.tolist()]
        columns[f"{side}_merge"] = np.where(children < m, 0, children - m + 1)
    return columns | {"height": linkage[:, 2], "objects": linkage[:, 3].astype(np.int64)}


def writers(name: str, content: Content, format: str, objects: Sequence[str], raw: bool = False) -> dict[str, Writer]:
    """{file name: what writes it} of one content; `objects` are the snapshot's. `raw`: texts in CSV are written as they
    are, also those that a spreadsheet would run as formulas."""
    kind = format if format in ("csv", "parquet") else "csv"
    files: dict[str, Writer] = {
        f"{table}.{kind}": partial(_table, columns, kind, raw) for table, columns in content.tables.items()
    }
    if content.value is not None:
        files[f"{name}.json"] = partial(_json, content.value)
    elif format == "npz":
        files[f"{name}.npz"] = partial(_npz, with_names(name, content, objects))
    else:
        tables, scalars = by_table(name, content, objects)
        files |= {f"{table}.{kind}": partial(_table, columns, kind, raw) for table, columns in tables.items()}
        if scalars:
            files[f"{name}.{SCALARS}.json"] = partial(_json, {key: _figure(array) for key, array in scalars.items()})
    return files


def with_names(name: str, content: Content, objects: Sequence[str]) -> dict[str, np.ndarray]:
    """The arrays, and `names` (of a subset `subset_names` too) where any of them is about objects."""
    declarations = [entry for key in content.arrays if (entry := declared(_export(name), key))]
    arrays = dict(content.arrays)
    if any(entry.names_objects for entry in declarations) and "names" not in arrays:
        arrays |= names_array("names", objects if content.objects is None else content.objects)
        if content.subset is not None:
            arrays |= names_array("subset_names", content.subset)
    return arrays


def by_table(
    name: str, content: Content, objects: Sequence[str]
) -> tuple[dict[str, dict[str, Any]], dict[str, np.ndarray]]:
    """The arrays as {table: {column: values}}, without those that tables made by hand have; and the single figures."""
    names = objects if content.objects is None else content.objects
    about = {"n": names, "s": names if content.subset is None else content.subset}
    if "classes" in content.arrays:
        about["y"] = content.arrays["classes"].tolist()
    tables: dict[str, dict[str, Any]] = {}
    scalars = {}
    for key, array in content.arrays.items():
        entry = declared(_export(name), key) or _undeclared(array, len(names))
        if entry.table == SCALARS or array.ndim == 0:
            scalars[key] = array
        elif entry.within not in content.tables:
            part = key if entry.table is None else entry.table
            table = tables.setdefault(f"{name}.{part}" if part else name, {})
            table |= _columns(key, array, entry, about)
    return tables, scalars


def _export(name: str) -> str:
    return TABLES.get(name, name.split(".")[0])


def _undeclared(array: np.ndarray, n: int) -> Array:
    """An array of somebody's own: a square one of n is over the objects."""
    return Array("n, n" if array.shape == (n, n) else "", array.dtype.kind, "")


def _columns(key: str, array: np.ndarray, entry: Array, about: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """An array as columns, that of the objects first where its first axis runs over them."""
    first, second = (*entry.axes(array.ndim), "", "")[:2]
    columns: dict[str, Any] = {_head(about["n"]): list(about[first])} if first in ("n", "s") else {}
    of = about.get({"ids": "n", "classes": "y"}.get(entry.values, ""))
    if array.ndim == 1 and first == "s" and entry.values == "ids":
        return columns
    if array.ndim == 1:
        return columns | {key: array if of is None else NameColumn(array, of)}
    heads: Sequence[str] = entry.columns or tuple(
        f"{key}_{'_'.join(map(str, at))}" for at in np.ndindex(array.shape[1:])
    )
    if array.ndim == 2 and second in about:
        heads = about[second]
    for head, column in zip(heads, array.reshape(len(array), len(heads)).T, strict=True):
        columns[head] = column if of is None else NameColumn(column, of)
    return columns


def _head(names: Sequence[str]) -> str:
    """What the column of objects is called: `object`, with a line before it where an object has this very name."""
    head = "object"
    while head in names:
        head = f"_{head}"
    return head


def _json(value: Any, file: BinaryIO) -> None:
    file.write(json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n")


def _figure(array: np.ndarray) -> Any:
    """A figure, or a few; null for what is no number."""
    if array.dtype.kind != "f":
        return array.tolist()
    values = array.astype(object)
    values[~np.isfinite(array)] = None
    return values.tolist()


def _npz(arrays: Mapping[str, np.ndarray], file: BinaryIO) -> None:
    # numpy writes the zip entries with a fixed date: equal arrays, equal bytes
    np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's types take any name for its own `allow_pickle`


def _table(columns: Mapping[str, Any], format: str, raw: bool, file: BinaryIO) -> None:
    table = arrow_table(columns)
    if format == "csv":
        from pyarrow import csv

        table = table if raw else shown_table(table)
        rows = max(1, CELLS_AT_ONCE // table.num_columns)
        csv.write_csv(table, file, csv.WriteOptions(quoting_style="needed", batch_size=rows))
    else:
        from pyarrow import parquet

        parquet.write_table(table, file, store_schema=False)  # names are texts to whoever reads it


def arrow_table(columns: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    return pa.Table.from_arrays([cells(values) for values in columns.values()], names=list(columns))


def cells(values: Any):
    """A column. Names stay ids beside one list of names until they are written."""
    import pyarrow as pa

    if not isinstance(values, NameColumn):
        return pa.array(values)
    ids = pa.array(values.ids.astype(np.int32), mask=np.asarray(values.ids) < 0)
    return pa.DictionaryArray.from_arrays(ids, pa.array(list(values.names), pa.string()))
