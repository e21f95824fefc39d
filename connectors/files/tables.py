"""Tables read in batches: Parquet row groups and Arrow IPC record batches, with the row after each.

The batches from a row on hold exactly the rows from there on, in order; none is empty or longer than `MAX_ROWS`. An IPC
file is read as the stream that it contains, so that a truncated one gives every whole batch.
"""

import os
from collections.abc import Generator, Iterator
from itertools import chain, count
from mmap import ACCESS_READ, mmap
from typing import Any, BinaryIO, NamedTuple
from zlib import crc32

from connectors import Position
from connectors.arrow_headers import batches_of
from connectors.files.line_blocks import MARK_BYTES, Replaced, Unreadable
from connectors.files.streams import PIECE

MAX_ROWS = 1 << 20
MAX_WIDTH = 100  # columns of an array
MAX_UNPACKED = 1 << 30  # bytes that a compressed record batch may hold
_MAGIC = b"ARROW1"
_Piece = tuple[int, Any, int]  # first row, batch, mark after it
_END = b"\xff\xff\xff\xff\0\0\0\0"


class Rows(NamedTuple):
    """A `pyarrow.RecordBatch` and its rows' place in the file."""

    batch: Any
    offset: int
    next_offset: int
    mark: int = 0  # the check value of what lies before `next_offset`


class Table(NamedTuple):
    """An open table: `mark` identifies its beginning, `rows` is None where they are only known at the end."""

    mark: int
    rows: int | None
    batches: Generator[Rows]
    file: BinaryIO
    notices: list[str]  # about the file, filled while it is read


def open_table(path: str, kind: str, position: Position) -> Table:
    """Open a "parquet" or "arrow" file at a row.

    Raises `Replaced`, `Unreadable` (also from `batches`, after the last whole batch), `OSError`.
    """
    file = open(path, "rb")  # noqa: SIM115 -- returned open
    try:
        opened = {"parquet": _parquet, "npy": _npy}.get(kind, _arrow)
        notices: list[str] = []
        mark, whole, rows, pieces = opened(file, position.offset, notices)
        expected = None if position.mark in (mark, whole) or not position.offset else position.mark
        if expected is not None and whole is not None:
            raise Replaced(None)
        if position.offset and rows is not None and rows < position.offset:
            raise Replaced(rows)
        return Table(mark, rows, _rows_from(pieces, position.offset, rows, expected), file, notices)
    except BaseException:
        file.close()
        raise


def whole_mark(file: BinaryIO) -> int:
    """The CRC-32 of all bytes of a file, some 2 GB a second."""
    file.seek(0)
    check = 0
    while piece := file.read(PIECE):
        check = crc32(piece, check)
    return check


def _rows_from(pieces: Iterator[_Piece], start: int, rows: int | None, expected: int | None = None) -> Generator[Rows]:
    """Slices of at most `MAX_ROWS` of the rows from `start` on. Raises `Replaced` when what lies before `start` has
    another check value than `expected`."""
    end = rows or 0
    for first, batch, mark in _readable(pieces):
        end = first + batch.num_rows
        if expected is not None and end >= start:
            if mark != expected:
                raise Replaced(None)
            expected = None
        for row in range(max(start, first), end, MAX_ROWS):
            size = min(MAX_ROWS, end - row)
            yield Rows(batch.slice(row - first, size), row, row + size, mark)
    if end < start:
        raise Replaced(end)


def _readable(pieces: Iterator[_Piece]) -> Iterator[_Piece]:
    """The same pieces; whatever pyarrow raises becomes an `Unreadable` of one line."""
    import pyarrow

    try:
        yield from pieces
    except (pyarrow.ArrowException, OSError) as error:
        raise Unreadable(_line(error)) from error


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _parquet(file: BinaryIO, start: int, notices: list[str]) -> tuple[int, int, int, Iterator[_Piece]]:
    import pyarrow
    from pyarrow import parquet

    size = os.fstat(file.fileno()).st_size
    if size < 12:
        raise Unreadable(f"{size} bytes are not a Parquet file, which has at least 12")
    try:
        opened = parquet.ParquetFile(file)
        rows = opened.metadata.num_rows
        columns = (opened.schema.column(number) for number in range(len(opened.schema)))
        texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        opened = parquet.ParquetFile(
            file, read_dictionary=texts
        )  # what a text stands for a million times, is held once
    except UnicodeDecodeError as error:
        raise _nameless(error) from error
    except (pyarrow.ArrowException, OSError) as error:
        raise Unreadable(f"not a Parquet file: {_line(error)}") from error
    file.seek(size - 8)
    length = int.from_bytes(file.read(4), "little")  # the footer: schema, row counts, places, statistics
    file.seek(max(0, size - 8 - length))
    footer, whole = crc32(file.read(length)), whole_mark(file)
    return footer, whole, rows, _row_groups(opened, start, whole)


def _npy(file: BinaryIO, start: int, notices: list[str]) -> tuple[int, int, int, Iterator[_Piece]]:
    """An array of NumPy with a row for each answer; its columns are called 1, 2, 3."""
    import numpy as np
    import pyarrow

    try:
        rows = np.load(file, allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise Unreadable(f"not an array of NumPy: {_line(error)}") from error
    if rows.ndim != 2 or rows.dtype.kind not in "iuUf" or rows.shape[1] > MAX_WIDTH:
        raise Unreadable(
            f"got an array of shape {rows.shape} and type {rows.dtype}, expected two dimensions and numbers: a row for "
            "each answer; next: save it so with numpy.save"
        )
    names = [str(number) for number in range(1, rows.shape[1] + 1)]
    whole = whole_mark(file)
    batch = pyarrow.record_batch([pyarrow.array(np.ascontiguousarray(column)) for column in rows.T], names)
    return whole, whole, len(rows), iter([(0, batch, whole)])


def _nameless(error: UnicodeDecodeError) -> Unreadable:
    return Unreadable(f"a column has a name that is not UTF-8 ({error.object[:60]!r}); rename it")


def _row_groups(opened: Any, start: int, mark: int) -> Iterator[_Piece]:
    first = 0
    for group in range(opened.num_row_groups):
        rows = opened.metadata.row_group(group).num_rows
        if first + rows <= start:
            first += rows
            continue
        for batch in opened.iter_batches(batch_size=MAX_ROWS, row_groups=[group]):
            yield first, batch, mark
            first += batch.num_rows


def _arrow(file: BinaryIO, start: int, notices: list[str]) -> tuple[int, None, None, Iterator[_Piece]]:
    import pyarrow

    head = file.read(len(_MAGIC))
    if not head:
        raise Unreadable("0 bytes are not an Arrow IPC file or stream, which begins with its schema")
    in_file = head.startswith(_MAGIC)
    _check_batches(file, 8 if in_file else 0)
    file.seek(8 if in_file else 0)
    pieces = _messages(file, in_file, notices)
    try:
        first = next(pieces, None)
    except (pyarrow.ArrowException, OSError) as error:
        raise Unreadable(_line(error)) from error
    end = file.tell()
    file.seek(0)
    mark = crc32(file.read(min(MARK_BYTES, end)))  # no more than a file that was cut after its first batch holds
    file.seek(end)
    return mark, None, None, chain([first] if first else [], pieces)


def _check_batches(file: BinaryIO, begin: int) -> None:
    """Raise `Unreadable` for a batch that is small in the file and too large to be unpacked."""
    batches = batches_of(memoryview(mmap(file.fileno(), 0, access=ACCESS_READ))[begin:])
    for number in count(1):
        try:
            batch = next(batches, None)
        except ValueError:  # damage, of which the reader tells when it comes there
            return
        if batch is None:
            return
        if batch.is_compressed and batch.size > MAX_UNPACKED:
            raise Unreadable(
                f"its record batch {number} is compressed and holds {batch.size:,} bytes; the limit is "
                f"{MAX_UNPACKED:,}: write it in smaller batches; nothing was read"
            )


class _Before:
    """The CRC-32 of the bytes of a file before a place, in ascending order of places."""

    def __init__(self, file: BinaryIO):
        self._descriptor, self._at, self._check = file.fileno(), 0, 0

    def __call__(self, place: int) -> int:
        while self._at < place and (piece := os.pread(self._descriptor, min(PIECE, place - self._at), self._at)):
            self._check, self._at = crc32(piece, self._check), self._at + len(piece)
        return self._check


def _messages(file: BinaryIO, in_file: bool, notices: list[str]) -> Iterator[_Piece]:
    """`(first row, batch, check value of all bytes to its end)`; `in_file`: inside an IPC file, else a file of its
    own."""
    from pyarrow import ipc

    first, before = 0, _Before(file)
    with ipc.open_stream(file) as reader:
        try:
            _ = reader.schema.names
        except UnicodeDecodeError as error:
            raise _nameless(error) from error
        for batch in reader:
            yield first, batch, before(file.tell())
            first += batch.num_rows
    file.seek(-len(_MAGIC if in_file else _END), os.SEEK_END)
    end = file.read()
    if in_file and end != _MAGIC:
        raise OSError("a truncated Arrow IPC file: its footer is missing")
    if not in_file and end != _END:
        notices.append(f"the Arrow stream ends after {first:,} rows without an end mark; was its writer interrupted?")
