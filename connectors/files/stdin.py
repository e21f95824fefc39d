"""Standard input as a source: lines, CSV or an Arrow IPC stream, whatever comes until its end.

A pipe cannot be sought: each run's bytes (or rows) are new data, and their offsets go on from the stored position.
What a stopped run had taken from the pipe but not published is gone with the pipe; write a file for anything that must
survive. Invariant: `poll` returns within its timeout, however long the writer is silent.
"""

import io
import os
import queue
import select
import sys
import threading
from collections.abc import Mapping
from time import monotonic
from typing import Any, BinaryIO

from connectors import Position, Record, Source, SourceFailed, UnusableSource
from connectors.files.line_blocks import FRAMINGS, PLAIN_TEXT, Blocks, TextLayout, Unreadable
from connectors.files.readers import Sizes, text_record
from connectors.files.streams import PIECE, ByteStream
from connectors.files.tables import stream_rows

PARTITION = "-"
FORMATS = (*FRAMINGS, "arrow")


class Pipe(ByteStream, io.RawIOBase):
    """A stream of bytes, read past its buffer where it has a descriptor (a thread that waits in `os.read` holds no lock
    that the interpreter's end would need)."""

    def __init__(self, stream: BinaryIO):
        self._stream, self.ended = stream, False
        try:
            self._descriptor: int | None = stream.fileno()
        except (AttributeError, OSError):
            self._descriptor = None  # bytes in memory are always there

    def wait(self, timeout: float) -> bool:
        """True when reading would not wait."""
        return self._descriptor is None or bool(select.select([self._descriptor], [], [], max(0.0, timeout))[0])

    def _take(self, size: int) -> bytes:
        piece = self._stream.read(size) if self._descriptor is None else os.read(self._descriptor, size)
        self.ended = not piece
        self.trusted += len(piece)
        return piece

    def read(self, size: int = -1) -> bytes:
        """What is there now; `b""` when that is nothing."""
        return self._take(PIECE) if not self.ended and self.wait(0) else b""

    def readable(self) -> bool:
        """Whether it can be read: always."""
        return True

    def readinto(self, buffer: Any) -> int:
        """For readers that wait."""
        piece = self._take(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)


def StdinSource(
    rest: str,
    positions: Mapping[str, Position],
    *,
    format: str | None = None,
    stream: BinaryIO | None = None,
    block_bytes: int = Sizes().block_bytes,
    max_item_bytes: int = Sizes().max_item_bytes,
    layout: TextLayout = PLAIN_TEXT,
) -> Source:
    """Standard input (or `stream`) in the `format` "json" (unless told), "csv" or "arrow"; partition "-".

    Raises `UnusableSource`.
    """
    format = format or "json"
    if format not in FORMATS:
        raise UnusableSource(f"standard input can be {', '.join(FORMATS)}, not {format!r}")
    if stream is None:
        if sys.stdin is None:
            raise UnusableSource("standard input is closed")
        stream = sys.stdin.buffer
    start = positions.get(PARTITION, Position(0)).offset
    if format == "arrow":
        return StdinTable(stream, start)
    if not layout.is_utf8:
        raise UnusableSource(f"standard input is UTF-8, not {layout.encoding}; name a file, or pipe it through iconv")
    return StdinText(stream, start, format, Sizes(block_bytes, max_item_bytes), layout)


class _Stdin(Source):
    """What both kinds have in common: nothing is known about what is still to come."""

    _finished = False

    def finished(self) -> bool:
        return self._finished

    def ready(self) -> bool:
        return True

    def lag(self) -> dict[str, int]:
        return {}

    def close(self) -> None:
        """Standard input is not ours to close."""


class StdinText(_Stdin):
    """Lines or CSV records; offsets are bytes, the header's among them."""

    def __init__(self, stream: BinaryIO, start: int, format: str, sizes: Sizes, layout: TextLayout = PLAIN_TEXT):
        self._pipe, self._start, self._format = Pipe(stream), start, format
        self._blocks = Blocks(self._pipe, FRAMINGS[format], Position(0), *sizes, layout)

    def poll(self, timeout: float) -> list[Record]:
        """The next blocks of lines; `[]` if none come within `timeout` seconds."""
        until = monotonic() + timeout
        while not self._finished:
            ended = self._pipe.ended
            try:
                block = self._blocks.take(final=ended)
            except (Unreadable, OSError) as error:
                raise SourceFailed(f"standard input: {error}") from error
            if block:
                record, start = text_record(block, self._blocks, PARTITION, self._format), self._start
                return [record._replace(offset=start + block.offset, next_offset=start + block.next_offset, mark=0)]
            if self._blocks.starved and ended:
                self._finished = True
            elif monotonic() > until or (self._blocks.starved and not self._pipe.wait(until - monotonic())):
                break
        return []


class StdinTable(_Stdin):
    """The record batches of an Arrow IPC stream; a thread waits for them, two ahead."""

    def __init__(self, stream: BinaryIO, start: int):
        self._start = self._next_row = start
        self._failure = ""
        self._queue: queue.Queue = queue.Queue(2)
        threading.Thread(target=self._pump, args=(Pipe(stream),), name="stdin", daemon=True).start()

    def _pump(self, pipe: Pipe) -> None:
        try:
            for rows in stream_rows(io.BufferedReader(pipe)):
                self._queue.put(rows)
            self._queue.put(None)
        except (Unreadable, OSError) as error:  # raised by the thread that polls
            self._queue.put(error)

    def poll(self, timeout: float) -> list[Record]:
        """The next batches of rows; `[]` if none come within `timeout` seconds."""
        if self._finished:
            return []
        if self._failure:
            raise SourceFailed(self._failure)
        try:
            rows = self._queue.get(timeout=max(timeout, 1e-3))
        except queue.Empty:
            return []
        if isinstance(rows, Exception):
            self._failure = f"standard input: {rows}; {self._next_row - self._start:,} rows were read"
            raise SourceFailed(self._failure) from rows
        if rows is None:
            self._finished = True
            return []
        start, self._next_row = self._next_row, self._start + rows.next_offset
        return [Record(rows.batch, PARTITION, start, self._next_row, format="arrow", unit="row")]
