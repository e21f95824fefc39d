"""Input that is small and stands for something large: each attack as the bytes that a stranger would send.

`MESSAGES` are values of Kafka messages by the name of the attack, made in little memory.
"""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import zstandard

EVENT = b'{"anchor": "a", "near": "b", "far": "c"}'
BILLION = 10**9


def _stream(table: pa.Table, compression: str | None) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
    return sink.getvalue()


def _coded(names: list[str], rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array(names))


def dictionary_rows(rows: int = 50_000_000, compression: str = "zstd") -> bytes:
    """Three dictionary columns of one name each, and millions of rows of one byte, which compression makes nothing."""
    columns = {name: _coded([value], rows) for name, value in (("anchor", "a"), ("near", "b"), ("far", "c"))}
    return _stream(pa.table(columns), compression)


def dictionary_texts(rows: int = 900_000, size: int = 1_000_000) -> bytes:
    """Fewer rows than a message may have, each of which stands for a text of a megabyte."""
    columns = {"anchor": _coded(["a" * size], rows), "near": _coded(["b"], rows), "far": _coded(["c"], rows)}
    return _stream(pa.table(columns), "zstd")


def dictionary_lists(rows: int = 900_000, entries: int = 10_000) -> bytes:
    """As many rows of which each is a ranking of 10,000 objects as text (which is no list), written once."""
    ranked = "|".join(map(str, range(entries)))
    columns = {
        "type": _coded(["ranking"], rows),
        "anchor": _coded(["anchor"], rows),
        "ranked": _coded([ranked], rows),
    }
    return _stream(pa.table(columns), "zstd")


def runs(rows: int = BILLION) -> bytes:
    """One run that stands for a billion rows."""
    column = pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array(["a"]))
    return _stream(pa.table({"anchor": column, "near": column, "far": column}), None)


def views(rows: int = 900_000, size: int = 1_000_000) -> bytes:
    """Views of one list of a million names, as many as a message may have rows."""
    flat = pa.array(np.zeros(size, np.int8))
    sizes = pa.array(np.full(rows, size, np.int32))
    view = pa.ListViewArray.from_arrays(pa.array(np.zeros(rows, np.int32)), sizes, flat)
    table = pa.table({"type": _coded(["ranking"], rows), "anchor": _coded(["a"], rows), "ranked": view})
    return _stream(table, "zstd")


def nulls(rows: int = 1, entries: int = BILLION) -> bytes:
    """One row that is a list of a billion nulls, which take no bytes at all."""
    lists = pa.FixedSizeListArray.from_arrays(pa.nulls(rows * entries), entries)
    return _stream(pa.table({"anchor": pa.array(["a"] * rows), "ranked": lists}), None)


def long_array(elements: int = 15_000_000) -> bytes:
    """A JSON array of tens of millions of numbers, none of them an event."""
    return b"[" + b"0," * elements + b"0]"


def many_lines(lines: int = 15_000_000) -> bytes:
    """As many lines that are no events."""
    return b"0\n" * lines


def deep(depth: int = 4_000_000) -> bytes:
    """An event with arrays in arrays, millions deep."""
    return b'{"anchor": ' + b"[" * depth + b"]" * depth + b', "near": "b", "far": "c"}'


def digits(number: int = 1_000_000) -> bytes:
    """An event that names an integer of a million digits."""
    return b'{"anchor": ' + b"7" * number + b', "near": "b", "far": "c"}'


def ranking(objects: int = 10_000) -> bytes:
    """The longest ranking that is valid: 50 million comparisons in one short event."""
    return json.dumps({"type": "ranking", "anchor": "anchor", "ranked": list(range(objects))}).encode()


_ALL = (dictionary_rows, dictionary_texts, dictionary_lists, runs, views, nulls, long_array, many_lines, deep, digits)
MESSAGES: dict[str, Callable[[], bytes]] = {make.__name__: make for make in _ALL}


def write_zstd_window(path: Path, window_log: int = 31) -> None:
    """A zstd frame that asks its reader for a window of two gigabytes."""
    parameters = zstandard.ZstdCompressionParameters(window_log=window_log, enable_ldm=True)
    with path.open("wb") as file, zstandard.ZstdCompressor(compression_params=parameters).stream_writer(file) as writer:
        writer.write(EVENT + b"\n")


def write_arrow(path: Path, rows: int = 1_000_000_000) -> None:
    """One record batch of a billion rows in some hundred kilobytes."""
    column = pa.array(np.zeros(rows, np.int8))
    table = pa.table({"anchor": column, "near": column, "far": column})
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch)
