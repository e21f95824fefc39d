"""Contents as bytes: npz (default), parquet, csv or json. Equal contents give equal bytes.

JSON documents are JSON in every format. In csv and parquet a content whose arrays are equally long columns is one
table; an (n, n) matrix is a table with a column per object; anything else is one table per array, named after it.
"""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO, TypeAlias

import numpy as np

from stream_engine.exports import Content, json_text

Writer: TypeAlias = Callable[[BinaryIO], None]  # writes one file from its beginning to its end

FORMATS = ("npz", "parquet", "csv", "json")
MEDIA_TYPES = {
    ".json": "application/json",
    ".csv": "text/csv",
    ".npz": "application/octet-stream",
    ".parquet": "application/vnd.apache.parquet",
}


def writers(name: str, content: Content, format: str, objects: Sequence[str]) -> dict[str, Writer]:
    """{file name: what writes it} of one content."""
    if content.value is not None:
        return {f"{name}.json": partial(_pieces, json_text.of_value(content.value))}
    files: dict[str, Writer] = {
        f"{table}.csv": partial(_table, columns, "csv") for table, columns in content.tables.items()
    }
    if format == "npz":
        files[f"{name}.npz"] = partial(_npz, content.arrays)
    elif format == "json":
        files[f"{name}.json"] = partial(_pieces, json_text.of_arrays(content.arrays))
    else:
        for table, columns in _tables(
            name, content.arrays, objects if content.objects is None else content.objects
        ).items():
            files.setdefault(f"{table}.{format}", partial(_table, columns, format))
    return files


def encode(name: str, content: Content, format: str, objects: Sequence[str]) -> dict[str, bytes]:
    """{file name: bytes} of one content."""
    files = {}
    for file, write in writers(name, content, format, objects).items():
        buffer = io.BytesIO()
        write(buffer)
        files[file] = buffer.getvalue()
    return files


def _pieces(pieces: Iterator[bytes], file: BinaryIO) -> None:
    for piece in pieces:
        file.write(piece)


def _npz(arrays: Mapping[str, np.ndarray], file: BinaryIO) -> None:
    # numpy writes the zip entries with a fixed date: equal arrays, equal bytes
    np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's types take any name for its own `allow_pickle`


def _tables(name: str, arrays: Mapping[str, np.ndarray], objects: Sequence[str]) -> dict[str, dict[str, Any]]:
    shapes = {array.shape for array in arrays.values()}
    if len(shapes) == 1 and len(next(iter(shapes))) == 1:
        return {name: dict(arrays)}
    return {
        name if len(arrays) == 1 else f"{name}.{key}": _columns(key, array, objects) for key, array in arrays.items()
    }


def _columns(key: str, array: np.ndarray, objects: Sequence[str]) -> dict[str, Any]:
    if array.ndim == 2 and array.shape[0] == array.shape[1] == len(objects):
        return {"object": list(objects), **dict(zip(objects, array.T))}
    if array.ndim == 2:
        return {f"{key}_{i}": column for i, column in enumerate(array.T)}
    return {key: array.reshape(-1)}


def _table(columns: Mapping[str, Any], format: str, file: BinaryIO) -> None:
    import pyarrow as pa

    table = pa.Table.from_arrays([pa.array(values) for values in columns.values()], names=list(columns))
    if format == "csv":
        from pyarrow import csv

        csv.write_csv(table, file, csv.WriteOptions(quoting_style="needed"))
    else:
        from pyarrow import parquet

        parquet.write_table(table, file)
