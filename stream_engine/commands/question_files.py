"""Files of questions, which of two pairs is more alike, and the same with what a model answers.

A question is an object of JSON lines, or a row of a CSV, Parquet or Arrow file. Its fields: `anchor`, `left`, `right`
(or `anchor`, `near`, `far`, as in events, or `anchor` and two that are `shown`, as `ask` writes them), or two pairs,
`near` and `far` of two names each (CSV: `near_i`, `near_j`, `far_i`, `far_j`, or `a|b`). Other fields are passed on. A
name is text or a whole number, its decimal text.
"""

import csv
import gzip
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from stream_engine.prediction.questions import BadQuestion, names_of

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".parquet", ".arrow", ".feather")
OUT = (".jsonl", ".csv", ".parquet")


class Questions(NamedTuple):
    """The questions of files in their order."""

    rows: list[dict[str, Any]]  # the fields as they were given
    names: list[tuple[str, str, str, str]]  # i, j, k, l of each: is d(i, j) < d(k, l)?


def read(paths: Sequence[str], columns: Mapping[str, str]) -> Questions:
    """The questions of files ("-": JSON lines of standard input). `columns`: field -> its name there. Raises
    `BadQuestion`."""
    found = Questions([], [])
    for path in paths:
        for where, row in _rows(path):
            if not isinstance(row, dict):
                raise BadQuestion(f"{where}: got {str(row)[:40]}, expected an object with anchor, left, right")
            found.rows.append(row)
            named = {**row, **{field: row.get(there) for field, there in columns.items()}}
            found.names.append(names_of(named, where))
    return found


def _rows(path: str) -> Iterator[tuple[str, Any]]:
    """(where it stands, its fields) of every question in a file."""
    plain = path.removesuffix(".gz")
    suffix = ".jsonl" if path == "-" else Path(plain).suffix
    if suffix not in SUFFIXES:
        raise BadQuestion(f"{path}: got a name ending in {suffix!r}, expected one of {', '.join(SUFFIXES)} (or .gz)")
    try:
        content = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise BadQuestion(f"{path}: cannot be read: {error.strerror}") from None
    if plain != path:
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise BadQuestion(f"{path}: not gzip: {error}") from None
    if suffix in (".parquet", ".arrow", ".feather"):
        yield from ((f"{path} row {n}", row) for n, row in enumerate(_table(path, content, suffix), 1))
        return
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadQuestion(f"{path}: byte {error.start} is not UTF-8; expected text") from None
    if suffix == ".csv":
        reader = csv.DictReader(io.StringIO(text))
        try:
            for row in reader:
                if None in row or None in row.values():
                    raise BadQuestion(
                        f"{path} line {reader.line_num}: expected {len(reader.fieldnames or ())} fields, as in the "
                        "header"
                    )
                yield f"{path} line {reader.line_num}", row
        except csv.Error as error:
            raise BadQuestion(f"{path} line {reader.line_num}: not CSV: {error}") from None
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield f"{path} line {number}", msgspec.json.decode(line)
            except msgspec.DecodeError as error:
                raise BadQuestion(f"{path} line {number}: not JSON: {error}") from None


def _table(path: str, content: bytes, suffix: str) -> list[dict[str, Any]]:
    import pyarrow as pa
    from pyarrow import feather, parquet

    try:
        whole = (parquet if suffix == ".parquet" else feather).read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError) as error:
        raise BadQuestion(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None
    return whole.to_pylist()


def written(rows: list[dict[str, Any]], suffix: str) -> bytes:
    """The questions with their answers as a file of that suffix; a missing value is null, in CSV empty."""
    if suffix == ".jsonl":
        encode = msgspec.json.Encoder().encode
        return b"".join(encode(row) + b"\n" for row in rows)
    fields = list(dict.fromkeys(field for row in rows for field in row))
    if suffix == ".csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, fields, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({field: _cell(value) for field, value in row.items()} for row in rows)
        return text.getvalue().encode()
    import pyarrow as pa
    from pyarrow import parquet

    buffer = io.BytesIO()
    columns = {field: [row.get(field) for row in rows] for field in fields}
    columns = {field: _of_one_kind(values) for field, values in columns.items()}
    parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    return "|".join(map(str, value)) if isinstance(value, list) else value


def _of_one_kind(values: list[Any]) -> list[Any]:
    """Values of a column as text where they are of several kinds, which a column of Parquet cannot be."""
    kinds = {type(value) for value in values if value is not None}
    return values if len(kinds) <= 1 else [None if value is None else str(value) for value in values]
