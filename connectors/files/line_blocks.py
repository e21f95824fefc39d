"""Split a byte stream of lines (JSON) or CSV records into blocks of whole items, with the position after each.

The blocks from an offset depend only on the bytes from there on, not on how they arrived or where reading began.
Memory is limited by `max_item_bytes` and one piece of the stream.
"""

import codecs
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple
from zlib import crc32

import numpy as np

from connectors import Position, UnusableSource
from connectors.files.streams import ByteStream, Plain
from stream_engine.data.csv_grammar import (
    COMMA,
    column_names,
    delimiter_of,
    first_record_end,
    header_end,
    is_header,
    last_record_end,
    likely_delimiter,
    mark_end,
    marked,
    numbered_names,
)

UTF8 = ("utf-8", "utf-8-sig", "ascii")
NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "space": " ", "comma": ",", "semicolon": ";", "bar": "|", "pipe": "|"}


class TextLayout(NamedTuple):
    """`delimiter` of a table (none: found in its header), `encoding` (none: UTF-8, or UTF-16 with its mark), whether
    the first line is a `header` (else columns are called 1, 2, 3, ...), and how many lines stand before it."""

    delimiter: str | None = None
    encoding: str | None = None
    header: bool = True
    skip_rows: int = 0

    @property
    def is_utf8(self) -> bool:
        """Whether bytes are told to be UTF-8, or nothing is told."""
        return self.encoding is None or self.encoding in UTF8


PLAIN_TEXT = TextLayout()


def text_layout(
    delimiter: str | None = None, encoding: str | None = None, header: bool = True, skip_rows: int = 0
) -> TextLayout:
    """The checked layout. Raises `UnusableSource` for a delimiter or an encoding that cannot be.

    >>> text_layout("tab", "Latin1"), text_layout().is_utf8
    (TextLayout(delimiter='\\t', encoding='iso8859-1', header=True, skip_rows=0), True)
    """
    if delimiter is not None:
        delimiter = NAMED_DELIMITERS.get(delimiter, delimiter)
        if len(delimiter) != 1 or not delimiter.isascii() or delimiter.isalnum() or delimiter in '"\r\n\0':
            raise UnusableSource(
                f"delimiter: got {delimiter!r}, expected one character such as , ; | tab or space (no letter, digit "
                "or quote)"
            )
    if encoding is not None:
        try:
            codec = codecs.lookup(encoding)
        except (LookupError, ValueError):
            codec = None
        if codec is None or not getattr(codec, "_is_text_encoding", True):
            raise UnusableSource(f"encoding: got {encoding!r}, expected one such as utf-8, latin-1, cp1252 or utf-16")
        encoding = codec.name
    if skip_rows < 0:
        raise UnusableSource(f"skip_rows: got {skip_rows}, expected a number of lines, 0 or more")
    return TextLayout(delimiter, encoding, header, skip_rows)


MARK_BYTES = 4096  # the mark of a position in a file that is followed is the CRC-32 of up to this many first bytes
MAX_SHOWN_BYTES = 1 << 20  # of an item that is too long
PIECE_BYTES = 1 << 16  # bytes that are looked at for line ends at a time
MAX_BLOCK_LINES = 1 << 18  # of a block: what is held of one that is refused may be a kilobyte


def _last_line(buffer: bytearray, size: int, width: int = 0) -> int:
    return buffer.rfind(b"\n", 0, size) + 1


def _first_line(buffer: bytearray, size: int, width: int = 0) -> int:
    return buffer.find(b"\n", 0, size) + 1


def _lines_in(buffer: bytearray, size: int) -> int:
    """How many lines end in the first `size` bytes; a piece at a time, which stays in the processor's cache."""
    return sum(
        int(np.count_nonzero(np.frombuffer(buffer, np.uint8, min(PIECE_BYTES, size - at), at) == 10))
        for at in range(0, size, PIECE_BYTES)
    )


class Framing(NamedTuple):
    """Where whole items end: the last end and the first one that the first `size` bytes are sure of, 0 when there is
    none; `width` is how many columns the header has."""

    last: Callable[[bytearray, int, int], int]
    first: Callable[[bytearray, int, int], int]
    header: bool


FRAMINGS = {
    "json": Framing(_last_line, _first_line, False),
    "csv": Framing(last_record_end, first_record_end, True),
}


class Block(NamedTuple):
    """Whole items (`problem` empty), or one item that could not be delivered whole."""

    value: bytes
    offset: int
    next_offset: int
    problem: str = ""
    too_large: bool = False  # the cause of the problem


class Replaced(Exception):
    """The stream is not the one that the position was taken in: cut short, or begun with other bytes."""

    def __init__(self, there: int | None):
        self.there = there  # bytes that are there, when it is shorter
        super().__init__(there)


class Unreadable(Exception):
    """The bytes are no table of lines at all."""


class Blocks:
    """Reads a stream from a position on. After `take` gave None, `starved` says that the stream had no more."""

    def __init__(
        self,
        stream: ByteStream,
        framing: Framing,
        position: Position,
        block_bytes: int,
        max_item_bytes: int,
        layout: TextLayout = PLAIN_TEXT,
        whole: bool = False,
    ):
        """With `whole` the mark of a position is the CRC-32 of all bytes before it, so that an edited line is noticed;
        else of the first ones, so that they alone are read again. Either is taken for what was read."""
        self._whole_marks, self._crc, self._doubtful = whole, 0, False
        self.stream, self.framing, self._position, self._layout = stream, framing, position, layout
        self._limit, self._window = max_item_bytes, min(block_bytes, max_item_bytes)
        self._buffer = bytearray()
        self.at = 0  # offset of the buffer's first byte
        self.head, self.header = b"", b""
        self.width = 0  # how many columns the header has; 0 where there is none, or none was read yet
        self.starved = self._final = self._within_item = False
        self._opening, self._blocks = self._open(), self._read()

    def mark(self, offset: int) -> int:
        """The check value that belongs to a position at `offset`: of whole marks, the end of the last block."""
        if self._whole_marks and offset == self.at:
            return self._crc
        return crc32(self.head[: min(MARK_BYTES, offset)])

    def take(self, final: bool) -> Block | None:
        """The next block, or None: nothing yet. `final`: the stream's end is the file's, so that an unterminated last
        line is a line. Raises `Replaced`, `OSError`; nothing comes after that."""
        self._final = final
        for _ in self._opening:
            return None
        return next(self._blocks, None)

    def check(self) -> None:
        """Get to the position in a stream that is at its end where the file is, but only begin to unpack a compressed
        one. Raises `Replaced`, `OSError`."""
        self._final = True
        for _ in self._opening:
            if self.starved or not isinstance(self.stream, Plain):
                return

    def unread(self) -> int:
        """Bytes not handed out yet; of a compressed stream, compressed bytes not looked at yet."""
        return self.stream.unread() + (len(self._buffer) if isinstance(self.stream, Plain) else 0)

    def close(self) -> None:
        """Close the stream; nothing comes any more."""
        self._blocks = iter(())  # the generator holds this object, which would wait for the garbage collector
        self.stream.close()

    # -- the buffer ----------------------------------------------------------------------------------------------

    def _fill(self, size: int) -> None:
        while len(self._buffer) < size and (piece := self.stream.read()):
            self._buffer += piece
            if len(self.head) < MARK_BYTES:
                self.head += piece[: MARK_BYTES - len(self.head)]
        self.starved = len(self._buffer) < size
        if self.starved and self.stream.damage:
            del self._buffer[max(0, self.stream.trusted - self.at) :]

    def _ended(self) -> bool:
        return self._final and self.starved and not self.stream.damage

    def _cut(self, end: int, problem: str = "") -> Block:
        with memoryview(self._buffer) as view:
            block = Block(bytes(view[: min(end, MAX_SHOWN_BYTES) if problem else end]), self.at, self.at + end, problem)
        self._drop(end)
        return block

    def _drop(self, size: int) -> None:
        if self._whole_marks or self._doubtful:
            with memoryview(self._buffer) as view:
                self._crc = crc32(view[:size], self._crc)
        del self._buffer[:size]
        self.at += size

    # -- getting to the position: each step yields where the stream has no more yet ------------------------------

    def _open(self) -> Iterator[None]:
        yield from self._begin()
        yield from self._skip_rows()
        if self.framing.header:
            yield from self._read_header()
        yield from self._catch_up()

    def _begin(self) -> Iterator[None]:
        """The first bytes: are they the ones the position was taken after? Then the byte order mark."""
        checked = min(MARK_BYTES, self._position.offset)
        while True:
            self._fill(MARK_BYTES)
            if self._buffer or self._ended():
                if len(self._buffer) < checked and not self.stream.damage:
                    raise Replaced(len(self._buffer))
                if checked and len(self._buffer) >= checked and crc32(self.head[:checked]) != self._position.mark:
                    if checked == self._position.offset:
                        raise Replaced(None)
                    self._doubtful = True  # the mark may be that of all bytes
                if len(self._buffer) >= 3 or self._ended() or not BOM_UTF8.startswith(bytes(self._buffer)):
                    break
            yield
        if self._buffer.startswith(BOM_UTF8):
            self._drop(3)

    def _skip_rows(self) -> Iterator[None]:
        """Pass over the lines before the header, if there are such."""
        to_skip = self._layout.skip_rows
        while to_skip:
            self._fill(MARK_BYTES)
            end = self._buffer.find(b"\n") + 1
            to_skip -= bool(end)
            self._drop(end or len(self._buffer))
            if not end and self.starved:
                if self._ended():
                    return
                yield

    def _read_header(self) -> Iterator[None]:
        """The first record of a CSV file: its names."""
        size, most, marked_by = MARK_BYTES, min(self._limit, MAX_SHOWN_BYTES), 0
        while True:
            self._fill(size)
            while self._buffer.startswith((b"\n", b"\r")):
                self._drop(1)
            if self._buffer.startswith(b"sep=") and (end := mark_end(self._buffer)):
                marked_by = delimiter_of(bytes(self._buffer[:end]))
                self._drop(end)
                continue
            asked_delimiter = self._layout.delimiter  # or what the mark said, or what the header looks like
            delimiter = (
                ord(asked_delimiter) if asked_delimiter is not None else marked_by or likely_delimiter(self._buffer)
            )
            end = header_end(self._buffer, delimiter)
            if end or len(self._buffer) > most or self._ended():
                break
            if self.starved:
                yield
            else:
                size *= 2
        if self._ended():
            end = end or len(self._buffer)
            if not end:
                return
        line = bytes(self._buffer[: min(end or MAX_SHOWN_BYTES, MAX_SHOWN_BYTES)]).rstrip(b"\r\n")
        if end > MAX_SHOWN_BYTES or (not end and len(self._buffer) > MAX_SHOWN_BYTES and line.count(b'"') % 2 == 0):
            n_bytes = f"{end:,}" if end else f"more than {MAX_SHOWN_BYTES:,}"
            raise Unreadable(
                f"the header line holds {n_bytes} bytes, expected {MAX_SHOWN_BYTES:,} at most; it begins {line[:60]!r}"
            )
        if re.search(rb"\r(?!\n)", line):
            raise Unreadable("its lines end with CR alone; convert it first: tr '\\r' '\\n'")
        if not end or end > self._limit or not is_header(line, delimiter):
            raise Unreadable(f"the header line does not end, or a quote in it does not close; it begins {line[:60]!r}")
        header = numbered_names(line, delimiter) if not self._layout.header else bytes(self._buffer[:end])
        self.header = marked(header, delimiter)
        try:
            self.width = len(column_names(self.header, errors="replace"))
        except ValueError as error:
            raise Unreadable(f"the header line cannot be read: {error}; it begins {line[:60]!r}") from None
        if delimiter != COMMA:
            self.framing = Framing(
                partial(last_record_end, delimiter=delimiter), partial(first_record_end, delimiter=delimiter), True
            )
        if self._layout.header:
            self._drop(end)

    def _catch_up(self) -> Iterator[None]:
        """Pass over what was read before, a piece at a time."""
        goal = self._position.offset - 1  # the last byte of it says whether an item ended there
        while self.at < goal:
            if not (self._buffer or self._whole_marks or self._doubtful):
                self.at += self.stream.jump(goal - self.at)
            self._fill(1)
            self._drop(min(len(self._buffer), goal - self.at))
            if self.at < goal:
                if self.starved and not self.stream.damage:
                    raise Replaced(self.at)
                yield
        if self.at > goal:
            return
        while not self._buffer:
            self._fill(1)
            if not self._buffer:
                if not self.stream.damage:
                    raise Replaced(self.at)
                yield
        self._within_item = self._buffer[:1] != b"\n"
        self._drop(1)
        if self._doubtful and self._crc != self._position.mark:
            raise Replaced(None)
        self._doubtful = False

    # -- blocks: None where the stream has no more yet -----------------------------------------------------------

    def _read(self) -> Iterator[Block | None]:
        """Block by block; a window that holds no whole item is widened until it holds just one. No item is looked at
        beyond the limit, however much has arrived."""
        if self._within_item:
            yield from self._remaining_blocks()
        while True:
            self._fill(self._window)
            end, size = self.framing.last(self._buffer, min(self._window, len(self._buffer)), self.width), self._window
            if end > MAX_BLOCK_LINES and _lines_in(self._buffer, end) > MAX_BLOCK_LINES:
                feeds = np.flatnonzero(np.frombuffer(bytes(self._buffer), np.uint8) == 10)
                end = self.framing.last(self._buffer, int(feeds[MAX_BLOCK_LINES - 1]) + 1, self.width) or end
            while not end and not self.starved and size <= self._limit:
                size = min(2 * size, self._limit + 1)
                self._fill(size)
                end = self.framing.first(self._buffer, min(len(self._buffer), self._limit + 1), self.width)
            if end and end <= self._limit:
                yield self._cut(end)
            elif len(self._buffer) <= self._limit:
                yield self._cut(len(self._buffer)) if self._buffer and self._ended() else None
            elif line := _first_line(self._buffer, self._limit):  # a quote that does not close costs its line
                yield self._cut(line, f"a quoted field in this line is not closed within {self._limit:,} bytes")
            else:
                yield from self._pass_over("")

    def _remaining_blocks(self) -> Iterator[Block | None]:
        """An unterminated last line was read as it was, and has grown since: what was added is no item of its own."""
        problem = (
            f"the rest of a line whose beginning, before byte {self.at:,}, was read when the file "
            "ended there; not a complete item"
        )
        size = self._window
        while True:
            self._fill(size)
            end = _first_line(self._buffer, self._limit)
            if end or len(self._buffer) > self._limit or self._ended():
                break
            if self.starved:
                yield None
            else:
                size = min(2 * size, self._limit + 1)
        if not end and len(self._buffer) > self._limit:
            yield from self._pass_over(problem)
        elif self._buffer[: (end := end or len(self._buffer))].strip():
            yield self._cut(end, problem)
        else:
            self._drop(end)

    def _pass_over(self, problem: str) -> Iterator[Block | None]:
        """An endless line, of which the first bytes are kept."""
        start, shown, end = self.at, bytearray(), 0
        while True:
            self._fill(self._window)
            end = _first_line(self._buffer, len(self._buffer))
            shown += self._buffer[: min(end or len(self._buffer), MAX_SHOWN_BYTES - len(shown))]
            self._drop(end or len(self._buffer))
            if end or self._ended():
                break
            yield None
        size = self.at - start
        shown_problem = problem or f"an item of {size:,} bytes; the limit is {self._limit:,}"
        yield Block(bytes(shown), start, self.at, shown_problem, too_large=not problem)
