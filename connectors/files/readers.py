"""One file, opened at a position and read to its end: lines and CSV records in blocks, tables in batches of rows.

Reading from a position gives exactly the rest of the file in which the position was taken; a different or damaged file
under the same name raises `SourceFailed`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from connectors import Position, Record, SourceFailed, UnusableSource
from connectors.files.documents import Document
from connectors.files.line_blocks import FRAMINGS, PLAIN_TEXT, Block, Blocks, Replaced, TextLayout, Unreadable
from connectors.files.streams import CODECS, ByteStream, Plain, as_utf8, open_stream
from connectors.files.tables import open_table

KINDS = {
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".xlsx": "csv",
    ".parquet": "parquet",
    ".npy": "npy",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".avro": "avro",
}
SHEET = ".xlsx"  # a workbook is read as a CSV file that is packed otherwise
WORKBOOKS = {
    b"PK\x03\x04": "a workbook (or another ZIP archive)",
    b"\xd0\xcf\x11\xe0": "a workbook of Excel 97 to 2003",
}
AVRO = ".avro"  # and an Avro file as one of JSON lines


class Kind(NamedTuple):
    """What a file is: "json", "csv", "parquet" or "arrow", the suffix of its compression or nothing, how its text is
    laid out, and whether it may be one document."""

    name: str
    compression: str
    layout: TextLayout = PLAIN_TEXT
    is_document: bool = False

    @property
    def is_text(self) -> bool:
        """Whether files of this kind are lines of text."""
        return self.name in FRAMINGS


class Sizes(NamedTuple):
    """About how much one record holds, and how long an item may be."""

    block_bytes: int = 8 << 20
    max_item_bytes: int = 64 << 20


def kind_of(path: str, format: str | None, layout: TextLayout = PLAIN_TEXT) -> Kind:
    """What the suffixes say, the inner one overridden by `format`. Raises `UnusableSource`.

    >>> kind_of("a/b.csv.GZ", None)[:2], kind_of("log.txt.zst", "json")[:2], kind_of("b.tsv", None).layout.delimiter
    (('csv', '.gz'), ('json', '.zst'), '\\t')
    """
    if format is not None and format not in KINDS.values():
        raise UnusableSource(f"unknown format {format!r}; known: {', '.join(dict.fromkeys(KINDS.values()))}")
    stem, suffix = os.path.splitext(path.lower())
    compression = suffix if suffix in CODECS else ""
    suffix = os.path.splitext(stem)[1] if compression else suffix
    name = format or KINDS.get(suffix)
    if suffix == ".txt" and name == "csv" and not format and not compression and _begins_as_json(path):
        name, suffix = "json", ".json"
    if suffix == SHEET and not compression:
        name, compression, layout = "csv", SHEET, layout._replace(delimiter=",", encoding=None)
    if name == "avro" and not compression:
        name, compression = "json", AVRO
    if name is None:
        raise UnusableSource(
            f"{path}: no format is known by the suffix {suffix!r}; known: {' '.join(KINDS)}, those of text "
            f"also with {' or '.join(CODECS)}; {_STEPS.get(suffix, _STEPS[''])}"
        )
    if compression and name not in FRAMINGS:
        raise UnusableSource(f"{path}: only text files can be compressed as a whole; decompress it first")
    if suffix == ".tsv" and layout.delimiter is None:
        layout = layout._replace(delimiter="\t")
    return Kind(name, compression, layout, name == "json" and suffix == ".json")


_STEPS = {  # what to do with a file whose format is not known, by its suffix
    "": "or name the format; or export the answers as CSV or Excel",
    **dict.fromkeys((".zip", ".7z", ".rar", ".tar", ".tgz"), "unpack it, and name the files of answers"),
    **dict.fromkeys((".xls", ".ods", ".numbers"), "save the sheet of the answers as .xlsx or CSV"),
    **dict.fromkeys((".npz", ".mat", ".h5"), "save one array of it with numpy.save as .npy, or a table as CSV"),
    ".rds": "in R, write.csv(readRDS('FILE.rds'), 'FILE.csv', row.names = FALSE)",
    ".sav": "in pandas, pandas.read_spss('FILE.sav').to_csv('FILE.csv', index=False)",
}


def _begins_as_json(path: str) -> bool:
    """Whether a file of text holds JSON, as JATOS writes its results."""
    try:
        with open(path, "rb") as file:
            begin = file.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
    except OSError:
        return False
    return begin[:1] == b"{" or (begin[:1] == b"[" and begin[1:].lstrip()[:1] in (b"{", b"["))


def partition_of(path: str) -> str:
    """The absolute path as text; bytes of it that are not UTF-8 are written as escapes."""
    return os.fsencode(os.path.abspath(path)).decode("utf-8", "backslashreplace")


def replaced(path: str, there: int | None, position: Position, unit: str) -> SourceFailed:
    """What to say when a file is not the one that the snapshot had read."""
    change = f"it has {there:,} {unit}s" if there is not None else "its content has changed"
    return SourceFailed(
        f"{path} was replaced or truncated since the snapshot: {change}, but the snapshot has read "
        f"{position.offset:,} {unit}s; nothing was read. To read everything again, use --start-over or another --state"
    )


@contextmanager
def failures_of(path: str, position: Position, unit: str) -> Iterator[None]:
    """What goes wrong with a file's bytes inside the block becomes a `SourceFailed` of one line."""
    try:
        yield
    except Replaced as error:
        raise replaced(path, error.there, position, unit) from None
    except Unreadable as error:
        raise SourceFailed(f"{path}: {error}") from error
    except OSError as error:
        raise SourceFailed(
            f"{path}: {error.strerror or error}; restore the file and run again: reading resumes where it stopped"
        ) from error


class TextReader:
    """A file of lines or CSV records, in blocks. `read` gives None for "not yet"; `done`: the file is at its end."""

    def __init__(self, path: str, kind: Kind, position: Position, sizes: Sizes):
        self._path, self._kind, self._position = path, kind, position
        self._partition, self.done = partition_of(path), False
        with self._failures():
            stream, framing = opened_text(path, kind), FRAMINGS[kind.name]
            self._blocks = Blocks(stream, framing, position, *sizes, kind.layout, whole=True)

    def _failures(self):
        return failures_of(self._path, self._position, "byte")

    def check(self) -> None:
        """Raises `SourceFailed` when what was read, or of a compressed file its first bytes, is not there any more."""
        with self._failures():
            size = os.stat(self._path).st_size
            if isinstance(self._blocks.stream, Plain) and size < self._position.offset:
                raise Replaced(size)
            self._blocks.check()

    def read(self) -> Record | None:
        """The next block of lines; None where there is none now."""
        blocks = self._blocks
        with self._failures():
            block = blocks.take(final=True)
            if not block and blocks.starved and blocks.stream.damage:
                raise Unreadable(
                    f"{blocks.stream.damage}; its whole lines before decompressed byte {blocks.at:,} were "
                    "read. Restore the file and run again: reading resumes there"
                )
        if block:
            return text_record(block, blocks, self._partition, self._kind.name)
        self.done = blocks.starved
        return None

    def lag(self) -> int:
        """Unread bytes; of a compressed file, compressed ones."""
        return self._blocks.unread()

    def notices(self) -> list[str]:
        """Messages since the last call."""
        notice, self._blocks.stream.notice = self._blocks.stream.notice, ""
        return [f"{self._path}: {notice}"] if notice else []

    def close(self) -> None:
        self._blocks.close()


def opened_text(path: str, kind: Kind) -> ByteStream:
    """The text of a file as UTF-8. Raises `OSError`, `Unreadable`, `UnusableSource`."""
    if kind.compression == SHEET:
        from connectors.files.workbooks import Sheet

        return Sheet(path, kind.layout.skip_rows)
    if kind.compression == AVRO:
        from connectors.avro import Container

        return Container(path)
    if not kind.compression:
        with open(path, "rb") as file:
            begin = file.read(4)
        if begin in WORKBOOKS:
            raise Unreadable(f"got {WORKBOOKS[begin]}, expected text; name it with the suffix .xlsx, or save it as CSV")
    stream = as_utf8(open_stream(path, kind.compression), kind.layout.encoding)
    return Document(stream) if kind.is_document else stream


def text_record(block: Block, blocks: Blocks, partition: str, format: str) -> Record:
    """A block of a partition that begins where its stream does."""
    return Record(
        block.value,
        partition,
        block.offset,
        block.next_offset,
        blocks.mark(block.next_offset),
        format,
        "byte",
        blocks.header,
        problem=block.problem,
        too_large=block.too_large,
    )


class TableReader:
    """A Parquet or Arrow file, in batches of rows; see `TextReader`."""

    def __init__(self, path: str, kind: Kind, position: Position, sizes: Sizes):
        self._path, self._position, self._partition, self.done = path, position, partition_of(path), False
        self._next_row = position.offset
        with self._failures():
            self._table = open_table(path, kind.name, position)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        with failures_of(self._path, self._position, "row"):
            try:
                yield
            except Unreadable as error:
                if not self._next_row:
                    raise
                raise Unreadable(
                    f"{error}; its first {self._next_row:,} rows were read. Restore the file and run again: "
                    "reading resumes there"
                ) from error

    def check(self) -> None:
        """Opening it has checked what there is to check."""

    def read(self) -> Record | None:
        """The next batch of rows; None at the end."""
        with self._failures():
            rows = next(self._table.batches, None)
        if rows is None:
            self.done = True
            return None
        self._next_row = rows.next_offset
        return Record(rows.batch, self._partition, rows.offset, rows.next_offset, rows.mark, "arrow", "row")

    def lag(self) -> int | None:
        """Rows that are not read yet."""
        return None if self._table.rows is None else self._table.rows - self._next_row

    def notices(self) -> list[str]:
        """Messages since the last call."""
        notices, self._table.notices[:] = self._table.notices[:], []
        return [f"{self._path}: {notice}" for notice in notices]

    def close(self) -> None:
        self._table.batches.close()
        self._table.file.close()


Reader = TextReader | TableReader


def open_reader(path: str, kind: Kind, position: Position, sizes: Sizes) -> Reader:
    """The reader for a file of that kind. Raises `SourceFailed`."""
    return (TextReader if kind.is_text else TableReader)(path, kind, position, sizes)


class LineNumbers:
    """The numbers of lines in files, counted from 1 as editors do."""

    def __init__(self, format: str | None = None, layout: TextLayout = PLAIN_TEXT):
        self._format, self._layout = format, layout
        self._open: dict[str, _Counted] = {}

    def at(self, partition: str, offset: int) -> int | None:
        """The line of a file in which this byte stands; None of what is no text file, or is not there any more."""
        if not partition.startswith("/"):
            return None
        try:
            if partition not in self._open or self._open[partition].at > offset:
                self._close(partition)
                kind = kind_of(partition, self._format, self._layout)
                if not kind.is_text:
                    return None
                self._open[partition] = _Counted(opened_text(partition, kind))
            return self._open[partition].line_at(offset)
        except (OSError, UnusableSource, SourceFailed):
            return None

    def _close(self, partition: str) -> None:
        if partition in self._open:
            self._open.pop(partition).stream.close()

    def close(self) -> None:
        for partition in list(self._open):
            self._close(partition)


class _Counted:
    """A stream and the lines that end in it before `at`, the beginning of the piece that was read last."""

    def __init__(self, stream: ByteStream):
        self.stream, self.at, self.lines, self._piece = stream, 0, 0, b""

    def line_at(self, offset: int) -> int | None:
        """The number, from 1, of the line at a byte; None beyond the end. Offsets must not fall."""
        while self.at + len(self._piece) <= offset:
            self.lines += self._piece.count(b"\n")
            self.at += len(self._piece)
            self._piece = self.stream.read()
            if not self._piece:
                return None
        return self.lines + self._piece.count(b"\n", 0, offset - self.at) + 1


def place(partition: str, offset: int, lines: LineNumbers) -> str:
    """Where something stands, for people: FILE line N, or PARTITION@OFFSET where there are no lines."""
    line = lines.at(partition, offset)
    return f"{partition}@{offset}" if line is None else f"{partition} line {line:,}"
