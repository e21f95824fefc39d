"""The first records of the sources of a run, from which its layout is inferred."""

from collections import deque
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Any

from connectors import STORES, Position, Record, SourceFailed, UnusableSource, split_uri
from connectors.files import expand
from connectors.files.readers import Sizes, kind_of, open_reader
from connectors.files.workbooks import Sheet
from stream_engine.data.csv_grammar import delimiter_of
from stream_engine.formats.options import UnusableOptions
from stream_engine.formats.record_columns import Records, records_of
from stream_engine.formats.trial_filters import MAX_RECORD_KINDS
from stream_engine.formats.unusable_rows import marks, may_mark
from stream_engine.input.record_rows import rows_of_record
from stream_engine.input.settings import Settings
from stream_engine.input.sources import source, text_layout_of

MAX_ROWS = 2000
MAX_FILES = 50
_BLOCK_SIZES = Sizes(1 << 20)


def first_records(settings: Settings) -> Records:
    """The first rows of a run's files, as columns; files that cannot be read are skipped."""
    columns: dict[str, list[Any]] = {}
    size, cut, commas = 0, 0, False
    for record in first_of_files(settings):
        try:
            commas |= record.format == "csv" and delimiter_of(record.header) != ord(",")
            for _, row in islice(rows_of_record(record, record.format), MAX_ROWS - size):
                if isinstance(row, dict):
                    for name, cell in row.items():
                        columns.setdefault(name, [None] * size).append(cell)
                    size += 1
                    for cells in columns.values():
                        cells.extend([None] * (size - len(cells)))
                else:
                    cut += 1
        except (UnusableOptions, ValueError, RecursionError):
            continue  # the run itself reports the problem
        if size >= MAX_ROWS:
            break
    return records_of(columns, commas)._replace(cut=cut)


MAX_LATER_ROWS = 200_000  # in which marks are looked for
MAX_SAMPLED = 1000  # of the rows around those that have one
N_BESIDE = 40  # rows before and after such a row, mostly of the same participant


def with_later_marks(settings: Settings, records: Records) -> Records:
    """The first rows, and after them those around the first one with each mark that they lack: practice, or not to be
    used. Other rows of a long file are not looked at. O(rows) if a column may hold such marks, else O(1)."""
    seen = {name: {*column.texts} for name, column in records.columns.items() if may_mark(name)}
    if records.size < MAX_ROWS or not seen:
        return records
    rows: list[dict[str, Any]] = []
    before, n_after = deque[dict[str, Any]](maxlen=N_BESIDE), 0
    for row in islice(all_rows(settings), records.size, MAX_LATER_ROWS):
        new = {name: text for name in seen if (text := str(row.get(name) or "").strip()) not in seen[name]}
        for name, text in new.items():
            if len(seen[name]) <= MAX_RECORD_KINDS:
                seen[name].add(text)
                n_after = N_BESIDE + 1 if marks(name, text) else n_after
        if n_after:
            rows += [*before, row]
            before.clear()
            n_after -= 1
        else:
            before.append(row)
        if len(rows) >= MAX_SAMPLED:
            break
    later = records_of({name: [row.get(name) for row in rows] for name in records.columns})
    columns = {
        name: column._replace(values=[*column.values, *later.columns[name].values])
        for name, column in records.columns.items()
        if rows and name in later.columns
    }
    return records._replace(columns=columns, size=records.size + len(rows), n_later=len(rows)) if rows else records


def paths_of(settings: Settings) -> list[str]:
    """The first of the files."""
    sources = [glob for scheme, glob in map(split_uri, settings.source) if scheme == "file"]
    return [path for glob in sources for path in expand(glob)][:MAX_FILES]


def all_rows(settings: Settings) -> Iterator[dict[str, Any]]:
    """The rows of all files."""
    for path in paths_of(settings):
        try:
            kind = kind_of(path, settings.input.format, text_layout_of(settings))
            with closing(open_reader(path, kind, Position(0), _BLOCK_SIZES)) as reader:
                while (record := reader.read()) is not None:
                    if not record.problem:
                        yield from (row for _, row in rows_of_record(record, record.format) if isinstance(row, dict))
        except (SourceFailed, UnusableSource, UnusableOptions, OSError, ValueError, RecursionError):
            continue  # the run itself reports the problem


def first_columns(settings: Settings) -> list[str]:
    """The names of the columns, or of the fields of the first events."""
    return list(first_records(settings).columns)


def first_of_files(settings: Settings) -> Iterator[Record]:
    """The first block of each of the first files."""
    for uri in settings.source:
        if split_uri(uri)[0] in STORES:
            yield from _first_of_store(settings, uri)
    for path in paths_of(settings):
        try:
            kind = kind_of(path, settings.input.format, text_layout_of(settings))
            reader = open_reader(path, kind, Position(0), _BLOCK_SIZES)
        except (SourceFailed, UnusableSource, OSError, ValueError):
            continue
        try:
            record = reader.read()
            if record is not None and not record.problem:
                yield _shortened(record)
        except (SourceFailed, OSError, ValueError):
            continue
        finally:
            reader.close()


def not_read(settings: Settings) -> str:
    """What is not read of workbooks, in words: formulas without values, other sheets."""
    for path in (path for path in paths_of(settings) if path.casefold().endswith(".xlsx")):
        try:
            with closing(Sheet(path)) as sheet:
                if sheet.formulas:
                    return sheet.formulas
                if sheet.other_sheets:
                    return f"{sheet.other_sheets}: save the sheet of the answers as a file"
        except (UnusableSource, SourceFailed, OSError, ValueError):
            continue  # the run itself reports the problem
    return ""


def _shortened(record: Record) -> Record:
    return record._replace(value=record.value.slice(0, MAX_ROWS)) if record.format == "arrow" else record


def _first_of_store(settings: Settings, uri: str) -> Iterator[Record]:
    """The first block of the first object."""
    with closing(source(settings, uri, {})) as store:
        try:
            while not store.finished():
                for record in store.poll(1.0):
                    if not record.problem:
                        yield _shortened(record)
                    return
        except SourceFailed:
            return  # the run itself reports the problem
