"""A table of an export as rows by name: what topics and files get that hold the newest results."""

import json
import math
from typing import Any

from stream_engine.exports import EVERY_QUESTION, TABLES, NothingToExport, all_exports, contents
from stream_engine.exports.files import arrow_table, by_table
from stream_engine.state.published import Published


class NoSuchTable(ValueError):
    """No export has a table of this name whose rows have names; the message says which are meant."""


def check_table(table: str) -> str:
    """The export that makes the table.

    >>> check_table("objects"), check_table("cluster_answer")
    ('objects', 'clusters')

    Raises
    ------
    NoSuchTable
        For a name that no export has, and for exports of every question.
    """
    what = TABLES.get(table, table.split(".")[0])
    if what not in all_exports() or what in EVERY_QUESTION:
        raise NoSuchTable(f"got table {table!r}, expected that of an export with a row a name, as objects or models")
    return what


def rows(published: Published, table: str) -> dict[bytes, bytes]:
    """The rows of a table, as JSON objects without blanks, by the text in the first column.

    Parameters
    ----------
    published : Published
        A snapshot and its artifacts.
    table : str
        Name of a CSV file of the exports, without suffix.

    Returns
    -------
    dict of bytes to bytes
        UTF-8; missing values and numbers that are not finite are null. O(rows x columns).

    Raises
    ------
    NothingToExport
        If the state has no such results yet.
    NoSuchTable
        If the first column does not name rows: two of them have the same text.
    """
    what = check_table(table)
    for name, content in contents(what, published).items():
        tables = dict(content.tables)
        if content.value is None:
            tables |= by_table(name, content, published.snapshot.objects)[0]
        if table in tables:
            return _by_first_column(table, arrow_table(tables[table]))
    raise NothingToExport(f"{what}: there is no table {table!r} in this state")


def _by_first_column(table: str, arrow_table: Any) -> dict[bytes, bytes]:
    first = arrow_table.column_names[0]
    rows_by_key = {str(row[first]).encode(): _row_json(row) for row in arrow_table.to_pylist()}
    if len(rows_by_key) < arrow_table.num_rows:
        raise NoSuchTable(f"table {table!r}: two rows have the same {first}, so they have no names")
    return rows_by_key


def _row_json(row: dict[str, Any]) -> bytes:
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
    return json.dumps(finite, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
