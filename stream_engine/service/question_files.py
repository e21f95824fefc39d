"""Files of questions, read like files of events: the same formats, text layouts and column names.

A file of answers is also a file of questions (see `stream_engine.evaluation.questions`). Files are read as a whole,
with about 2 kB of memory per question.
"""

import csv
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import structs

from connectors import Record, SourceFailed, UnusableSource, split_uri
from connectors.files.readers import LineNumbers, place
from stream_engine.data.csv_grammar import WHOLE, column_names, delimiter_of, rows_of
from stream_engine.evaluation.questions import Asking, BadQuestion, Questions
from stream_engine.formats.json_places import ERRORS, places_of
from stream_engine.service.settings import Settings
from stream_engine.service.sources import event_options, prepared, source, text_layout_of


def read(settings: Settings) -> Questions:
    """The questions in the sources of these settings. Raises `BadQuestion` (no file, or hardly any row is a
    question), and what a run with these settings would raise before it reads."""
    settings = structs.replace(settings, follow=False)
    if odd := [uri for uri in settings.source if split_uri(uri)[0] not in ("file", "stdin")]:
        raise BadQuestion(f"{odd[0]}: expected files of questions, or - for standard input")
    try:
        settings, _ = prepared(settings)
        asking, lines = Asking(event_options(settings)), LineNumbers(settings.input.format, text_layout_of(settings))
        for uri in settings.source:
            opened = source(settings, uri, {})
            try:
                while not opened.finished():
                    for record in opened.poll(1.0):
                        _add(record, asking, lines, settings.input.format)
            finally:
                opened.close()
        lines.close()
    except (SourceFailed, UnusableSource) as error:
        raise BadQuestion(str(error)) from None
    return asking.questions()


def _add(record: Record, asking: Asking, lines: LineNumbers, format: str | None) -> None:
    kind = format or record.format
    asking.text = kind == "csv"
    where = record.partition
    if record.problem:
        asking.refuse(record.problem, place(where, record.offset, lines))
        return
    for at, row in (_rows_of_csv if kind == "csv" else _rows_of_table if kind == "arrow" else _rows_of_json)(record):
        told = _place(record, at, lines)
        if isinstance(row, str):
            asking.refuse(row, told)
        else:
            asking.add(row, told)


def _place(record: Record, at: int, lines: LineNumbers) -> str:
    if record.unit == "row":
        return f"{record.partition} row {record.offset + at + 1:,}"
    return place(record.partition, record.offset + at, lines)


def _rows_of_csv(record: Record) -> Iterator[tuple[int, dict[str, str] | str]]:
    """(start, cells by name or error message) of every row."""
    try:
        names = [name.strip() for name in column_names(record.header)]
    except ValueError as error:
        told = (
            "is not UTF-8; specify its encoding, for example --encoding latin-1"
            if isinstance(error, UnicodeError)
            else error
        )
        raise BadQuestion(f"{record.partition}: the header {told}") from None
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise BadQuestion(f"{record.partition}: column {twice[0]!r} occurs twice")
    delimiter, value = delimiter_of(record.header), bytes(record.value)
    rows = rows_of(value, len(names), delimiter)
    for start, end, state, fields in zip(*(each.tolist() for each in (rows.start, rows.end, rows.state, rows.fields))):
        if state != WHOLE:
            yield start, f"the row has {fields} fields, or an unclosed quote; the header has {len(names)}"
            continue
        try:
            cells = next(csv.reader([value[start:end].decode()], delimiter=chr(delimiter)), [])
        except UnicodeDecodeError:
            yield start, "the row is not UTF-8; specify its encoding, for example --encoding latin-1"
        except csv.Error as error:
            yield start, f"not CSV: {error}"
        else:
            yield start, dict(zip(names, (cell.strip(" \t") for cell in cells)))


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
