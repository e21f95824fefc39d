"""Standard input as a source: each run's bytes are new data, whose offsets continue those of the stored position.

What a stopped run had read but not published is lost with the pipe; use a file for data that must survive. `poll`
returns within its timeout, however long the writer is silent.
"""

import os
import select
import sys
from collections.abc import Mapping
from time import monotonic
from typing import BinaryIO

from connectors import Position, Record, Source, SourceFailed, UnusableSource
from connectors.files.line_blocks import FRAMINGS, PLAIN_TEXT, Blocks, TextLayout, Unreadable
from connectors.files.readers import Sizes, text_record
from connectors.files.streams import PIECE, ByteStream

PARTITION = "-"


class Pipe(ByteStream):
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

    def read(self) -> bytes:
        """What is there now; `b""` when that is nothing."""
        if self.ended or not self.wait(0):
            return b""
        piece = self._stream.read(PIECE) if self._descriptor is None else os.read(self._descriptor, PIECE)
        self.ended = not piece
        self.trusted += len(piece)
        return piece


class StdinSource(Source):
    """Standard input (or `stream`) in the `format` "json" (unless told) or "csv"; partition "-". Offsets are bytes, the
    header's among them; nothing is known about what is still to come. Raises `UnusableSource`."""

    def __init__(
        self,
        location: str,
        positions: Mapping[str, Position],
        *,
        format: str | None = None,
        stream: BinaryIO | None = None,
        block_bytes: int = Sizes().block_bytes,
        max_item_bytes: int = Sizes().max_item_bytes,
        layout: TextLayout = PLAIN_TEXT,
    ):
        self._format = format or "json"
        if self._format not in FRAMINGS:
            raise UnusableSource(f"standard input can be {' or '.join(FRAMINGS)}, not {format!r}; name a file")
        if stream is None and sys.stdin is None:
            raise UnusableSource("standard input is closed")
        if not layout.is_utf8:
            raise UnusableSource(
                f"standard input is UTF-8, not {layout.encoding}; name a file, or pipe it through iconv"
            )
        self._pipe = Pipe(stream or sys.stdin.buffer)
        self._start, self._finished = positions.get(PARTITION, Position(0)).offset, False
        sizes = Sizes(block_bytes, max_item_bytes)
        self._blocks = Blocks(self._pipe, FRAMINGS[self._format], Position(0), *sizes, layout)

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

    def finished(self) -> bool:
        return self._finished

    def ready(self) -> bool:
        return True

    def lag(self) -> dict[str, int]:
        return {}

    def close(self) -> None:
        """Standard input is not ours to close."""
