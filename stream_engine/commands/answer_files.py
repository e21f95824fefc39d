"""Questions with what a model answers, as a file."""

import csv
import io
from typing import Any

import msgspec

OUT = (".jsonl", ".csv", ".parquet")


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
