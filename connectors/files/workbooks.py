"""The first sheet of an Excel workbook (.xlsx) as the bytes of a CSV file: one row per line. Needs openpyxl.

Cells are text as a person would see it: integers without decimals, dates as 2024-05-01 12:00:00, true and false. Rows
have the fields of the header, the first row that is not empty; empty rows stay, so line numbers are row numbers.
"""

import csv
import io
import os
import re
import zipfile
from collections.abc import Iterator
from typing import Any

from connectors import UnusableSource
from connectors.files.streams import PIECE, ByteStream

MAX_SEARCHED = 1 << 28  # bytes of a sheet that are searched
_HIDDEN = re.compile(rb"""<row\b[^>]*\shidden=["'](?:1|true)["']""")
_NO_VALUE = re.compile(rb"</f>\s*(?:<v\s*/>|<v></v>)?\s*</c>")
FORMULAS = (
    "some formulas have no values, as a program writes them, and are read as empty: open and save it in a spreadsheet"
)


class Sheet(ByteStream):
    """The rows of a sheet as bytes of CSV."""

    other_sheets = ""  # that are not read, in words
    formulas = ""  # that have no values, in words

    def __init__(self, path: str, skip_rows: int = 0):
        self._size, self._unread = os.path.getsize(path), True
        self._file = open(path, "rb")  # noqa: SIM115 -- closed with the stream
        try:
            self._book = _workbook(self._file, path)
            if others := [repr(sheet.title) for sheet in self._book.worksheets[1:] if _has_cells(sheet)]:
                self.other_sheets = f"only the first sheet, {self.title!r}, is read; not read: {', '.join(others)}"
            n_hidden, n_empty = _counts(self._book.worksheets[0], path, _HIDDEN, _NO_VALUE)
            self.formulas = FORMULAS if n_empty else ""
            hidden = (
                f"{n_hidden:,} rows are hidden (by a filter?), and are read: to leave them out, copy the visible ones "
                "into a file of their own"
            )
            notices = (self.other_sheets, self.formulas, hidden if n_hidden else "")
            self.notice = "; ".join(filter(None, notices))
            self._lines = _lines(self._book.worksheets[0].iter_rows(values_only=True), skip_rows)
        except BaseException:
            self._file.close()
            raise

    def read(self) -> bytes:
        """The next rows as CSV; empty at the end."""
        out, size = [], 0
        for line in self._lines:
            out.append(line)
            size += len(line)
            if size >= PIECE:
                break
        else:
            self._unread = False
        self.trusted += size
        return b"".join(out)

    def unread(self) -> int:
        """Bytes of the workbook until its end is reached: how many rows they hold is not known."""
        return self._size if self._unread else 0

    @property
    def title(self) -> str:
        """The name of the sheet that is read."""
        return str(self._book.worksheets[0].title)

    def sheets(self) -> Iterator[tuple[str, Iterator[list[str]]]]:
        """The names of all sheets, and their rows as texts."""
        for sheet in self._book.worksheets:
            yield str(sheet.title), ([_text(cell) for cell in row] for row in sheet.iter_rows(values_only=True))

    def close(self) -> None:
        self._book.close()
        self._file.close()


def _workbook(file: Any, path: str) -> Any:
    """The workbook. Raises `UnusableSource` without openpyxl, OSError for what is none."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise UnusableSource(
            f"{path}: reading .xlsx needs openpyxl: pip install openpyxl, or save the sheet as CSV"
        ) from None
    try:
        book = load_workbook(file, read_only=True, data_only=True)
    except Exception as error:  # whatever a damaged archive makes of it
        raise OSError(
            f"not a workbook that can be read: {str(error).splitlines()[0] if str(error) else error!r}"
        ) from None
    if not book.worksheets:
        raise OSError("a workbook without a sheet of cells")
    return book


def _has_cells(sheet: Any) -> bool:
    """Whether a sheet has a cell with something in it; one that is damaged counts, too: it is not read."""
    try:
        return any(value is not None for row in sheet.iter_rows(values_only=True) for value in row)
    except Exception:  # whatever a damaged archive makes of it
        return True


def _counts(sheet: Any, path: str, *patterns: re.Pattern[bytes]) -> list[int]:
    """How often each is in the text of a sheet: what openpyxl does not say of a workbook that it only reads."""
    found, size, rest = [0] * len(patterns), 0, b""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(sheet._worksheet_path) as rows:
            while (piece := rows.read(PIECE)) and (size := size + len(piece)) <= MAX_SEARCHED:
                text = rest + piece
                end = text.rfind(b">") + 1
                found = [n + len(pattern.findall(text[:end])) for n, pattern in zip(found, patterns)]
                rest = text[end:]
    except Exception:  # whatever a damaged archive makes of it: reading it says so
        return [0] * len(patterns)
    return found


def _lines(rows: Iterator[tuple[Any, ...]], skip_rows: int) -> Iterator[bytes]:
    """Each row as a line; empty cells at its end are excluded beyond the width of the header."""
    width = None
    for number, row in enumerate(rows):
        cells = [_text(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        if not cells:
            yield b"\n"
            continue
        if width is None and number >= skip_rows:
            width = len(cells)
        cells += [""] * ((width or 0) - len(cells))
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(cells)
        yield line.getvalue().encode("utf-8", "replace")


def _text(value: Any) -> str:
    """A cell as text.

    >>> from datetime import datetime
    >>> [_text(value) for value in (None, 16.0, 1.5, 7, True, "a", datetime(2024, 5, 1, 12))]
    ['', '16', '1.5', '7', 'true', 'a', '2024-05-01 12:00:00']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return str(value)
