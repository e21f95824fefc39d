"""The rows of one record, as dicts, whatever its format: to look at some of them, not for counting."""

import csv
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

import msgspec

from connectors import Record
from stream_engine.data.csv_grammar import WHOLE, column_names, delimiter_of, rows_of
from stream_engine.formats.encodings import encoding_in_words
from stream_engine.formats.json_places import ERRORS, places_of
from stream_engine.formats.options import NOT_UTF8, UnreadableHeader


def rows_of_record(record: Record, format: str) -> Iterator[tuple[int, Any]]:
    """(offset, fields by name or the problem) of every row. Raises `UnreadableHeader`."""
    return {"csv": _rows_of_csv, "arrow": _rows_of_table}.get(format, _rows_of_json)(record)


def _rows_of_csv(record: Record) -> Iterator[tuple[int, dict[str, str] | str]]:
    """(offset, cells by name or the problem) of every row."""
    try:
        names = [name.strip() for name in column_names(record.header)]
    except ValueError as error:
        is_encoding = isinstance(error, UnicodeError)
        problem = f"is not UTF-8; specify {encoding_in_words(record.header)}" if is_encoding else error
        raise UnreadableHeader(f"{record.partition}: the header {problem}") from None
    if repeated_names := [name for place, name in enumerate(names) if name and name in names[:place]]:
        raise UnreadableHeader(f"{record.partition}: column {repeated_names[0]!r} occurs twice")
    delimiter, value = delimiter_of(record.header), bytes(record.value)
    rows = rows_of(value, len(names), delimiter)
    for begin, end, state, fields in zip(
        *(column.tolist() for column in (rows.start, rows.end, rows.state, rows.fields))
    ):
        if state != WHOLE:
            yield begin, f"the row has {fields} fields, or an unclosed quote; the header has {len(names)}"
            continue
        try:
            cells = next(csv.reader([value[begin:end].decode()], delimiter=chr(delimiter)), [])
        except UnicodeDecodeError:
            yield begin, f"the row is {NOT_UTF8}"
        except csv.Error as error:
            yield begin, f"not CSV: {error}"
        else:
            yield begin, dict(zip(names, (cell.strip(" \t") for cell in cells)))


def _rows_of_table(record: Record) -> Iterator[tuple[int, dict[str, Any]]]:
    yield from enumerate(record.value.to_pylist())


def _rows_of_json(record: Record) -> Iterator[tuple[int, Any]]:
    value = bytes(record.value)
    places = places_of(value)
    for begin, end in zip(places.begins.tolist(), places.ends.tolist(), strict=True):
        try:
            yield begin, msgspec.json.decode(value[begin:end].removeprefix(BOM_UTF8))
        except ERRORS as error:
            yield begin, "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else f"not JSON: {error}"
