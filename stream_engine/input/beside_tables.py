"""Texts beside a table, which may say what was asked or what answers mean: lines above it, names of files and sheets,
other sheets, and code books in files beside it."""

import csv
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice, takewhile
from pathlib import Path, PurePath

from msgspec import structs

from connectors import SourceFailed, UnusableSource
from connectors.files.workbooks import Sheet
from stream_engine.formats.record_columns import Beside
from stream_engine.formats.vocabulary import words_of
from stream_engine.input.first_records import first_columns, first_of_files, paths_of
from stream_engine.input.settings import Settings

MAX_LINES_ABOVE = 4  # of a table, with its header
MAX_LENGTH = 2000  # characters of a text


def names_and_sheets(settings: Settings) -> tuple[Beside, ...]:
    """The names of the files, and of their sheets; and what stands in other sheets, and in code books beside them."""
    texts: list[Beside] = []
    paths = paths_of(settings)
    for folder in dict.fromkeys(PurePath(path).parent for path in paths):
        texts += _of_code_books(Path(folder), {*paths}, settings)
    for path in paths:
        texts.append(Beside("name", f"the name of the file {PurePath(path).name}", PurePath(path).stem))
        if path.casefold().endswith(".xlsx"):
            texts += _of_workbook(path)
    return _shortened(texts)


def lines_around(settings: Settings) -> tuple[Beside, ...]:
    """The lines that these settings skip, and those below a table that are no rows."""
    skipped, texts = settings.input.skip_rows, list[Beside]()
    whole = structs.replace(settings, input=structs.replace(settings.input, skip_rows=0, header=False))
    for record in first_of_files(whole):
        if record.format != "csv":
            continue
        lines = bytes(record.value[: MAX_LENGTH * 4]).decode("utf-8", "replace").splitlines()[:skipped]
        stripped = [line.strip(' ,;\t"') for line in lines]
        texts += [Beside("line", f"line {number}", line) for number, line in enumerate(stripped, 1) if line]
        below = bytes(record.value[-MAX_LENGTH:]).decode("utf-8", "replace").splitlines()[1:]
        below = [*takewhile(_is_no_row, reversed(below))][::-1]
        text = ", ".join(line for each in below if (line := each.strip(' ,;\t"')))
        texts += [Beside("line", "a line below the table", text)] if text else []
    return _shortened(texts)


def _is_no_row(line: str) -> bool:
    """Whether a line has a text in its first cell alone, with several words, or none."""
    first, *others = re.split(r"[,;\t]", line.strip(' ,;\t"'))
    return not any(others) and (not first or len(words_of(first)) > 1 or first.endswith(":"))


def _shortened(texts: Iterable[Beside]) -> tuple[Beside, ...]:
    return tuple(dict.fromkeys(text._replace(text=text.text[:MAX_LENGTH]) for text in texts))


def _of_workbook(path: str) -> Iterator[Beside]:
    """The name of the sheet that is read, and what stands in the others."""
    try:
        with closing(Sheet(path)) as sheet:
            yield Beside("name", f"the name of the sheet {sheet.title}", sheet.title)
            for title, rows in islice(sheet.sheets(), 1, None):
                for text in _by_first_cell(islice(rows, MAX_ROWS_OF_SHEET)):
                    yield Beside("sheet", f"the sheet {title}", text)
    except (UnusableSource, SourceFailed, OSError, ValueError):
        return  # the run itself reports the problem


def _by_first_cell(rows: Iterable[list[str]]) -> list[str]:
    """The rows of a table as texts, one for each value of their first cell, and one of all; an empty cell means the
    value above it."""
    of_key: dict[str, list[str]] = {}
    for row in filter(any, rows):
        of_key.setdefault(row[0] or next(reversed(of_key), ""), []).append(" ".join(filter(None, row)))
    lines = [", ".join(texts) for texts in of_key.values()]
    return [*lines, ", ".join(lines)]


_BOOKS = frozenset(
    words_of(
        "codebook codes codeplan dictionary datadictionary readme legend legende leyenda legenda "
        "kodierung kodierplan kodebuch variablen liesmich lisezmoi codage dictionnaire leeme codigos diccionario "
        "leggimi"
    )
)
MAX_FILES_BESIDE, MAX_BYTES_BESIDE = 100, 100_000
_TABLES = {".csv": ",", ".tsv": "\t"}


def _of_code_books(folder: Path, answers: set[str], settings: Settings) -> Iterator[Beside]:
    """What stands in small files beside the answers that are called like code books: a table by its first cells, or
    line by line. A table with the columns of the answers holds others."""
    try:
        beside = sorted(path for path in islice(folder.iterdir(), MAX_FILES_BESIDE) if _BOOKS & {*words_of(path.stem)})
        for path in beside:
            if str(path) in answers or not path.is_file() or path.stat().st_size > MAX_BYTES_BESIDE:
                continue
            if path.suffix.casefold() == ".xlsx":
                with closing(Sheet(str(path))) as sheet:
                    for _, rows in sheet.sheets():
                        for text in _by_first_cell(islice(rows, MAX_ROWS_OF_SHEET)):
                            yield Beside("file", f"the file {path.name} beside it", text)
            if path.suffix.casefold() not in (*_TABLES, ".txt", ".md", ".json", ""):
                continue
            lines = path.read_text("utf-8-sig", "replace").splitlines()
            if sign := _TABLES.get(path.suffix.casefold()):
                sign = ";" if sign == "," and lines and lines[0].count(";") > lines[0].count(",") else sign
                table = [*csv.reader(lines, delimiter=sign)]
                names = {*first_columns(settings)}
                if any(len(names.intersection(row)) > 2 for row in table[:MAX_LINES_ABOVE]):
                    continue
                lines = _by_first_cell(table)
            for text in filter(None, map(str.strip, lines)):
                yield Beside("file", f"the file {path.name} beside it", text)
    except (UnusableSource, SourceFailed, OSError, ValueError, csv.Error):
        return  # it is no source


MAX_ROWS_OF_SHEET = 40
