"""Texts beside a table, which may say what was asked or what answers mean: lines above it, names of files and sheets,
and other sheets."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import PurePath

from msgspec import structs

from connectors import SourceFailed, UnusableSource
from connectors.files.workbooks import Sheet
from stream_engine.formats.record_columns import Beside
from stream_engine.input.first_records import first_of_files, paths_of
from stream_engine.input.settings import Settings

MAX_LENGTH = 2000  # characters of a text


def names_and_sheets(settings: Settings) -> tuple[Beside, ...]:
    """The names of the files, and of their sheets; and what stands in other sheets."""
    texts: list[Beside] = []
    for path in paths_of(settings):
        texts.append(Beside("name", f"the name of the file {PurePath(path).name}", PurePath(path).stem))
        if path.casefold().endswith(".xlsx"):
            texts += _of_workbook(path)
    return _shortened(texts)


def lines_above(settings: Settings) -> tuple[Beside, ...]:
    """The lines that these settings skip."""
    skipped, texts = settings.input.skip_rows, list[Beside]()
    whole = structs.replace(settings, input=structs.replace(settings.input, skip_rows=0, header=False))
    for record in first_of_files(whole) if skipped else ():
        if record.format == "csv":
            lines = bytes(record.value[: MAX_LENGTH * 4]).decode("utf-8", "replace").splitlines()[:skipped]
            stripped = [line.strip(' ,;\t"') for line in lines]
            texts += [Beside("line", f"line {number}", line) for number, line in enumerate(stripped, 1) if line]
    return _shortened(texts)


def _shortened(texts: Iterable[Beside]) -> tuple[Beside, ...]:
    return tuple(dict.fromkeys(text._replace(text=text.text[:MAX_LENGTH]) for text in texts))


def _of_workbook(path: str) -> Iterator[Beside]:
    """The name of the sheet that is read, and what stands in the others."""
    try:
        with closing(Sheet(path)) as sheet:
            yield Beside("name", f"the name of the sheet {sheet.title}", sheet.title)
            for title, rows in sheet.others():
                of_key: dict[str, list[str]] = {}
                for row in filter(any, islice(rows, MAX_ROWS_OF_SHEET)):
                    of_key.setdefault(row[0] or next(reversed(of_key), ""), []).append(" ".join(filter(None, row)))
                lines = [", ".join(texts) for texts in of_key.values()]
                for text in (*lines, ", ".join(lines)):
                    yield Beside("sheet", f"the sheet {title}", text)
    except (UnusableSource, SourceFailed, OSError, ValueError):
        return  # the run itself reports the problem


MAX_ROWS_OF_SHEET = 40
