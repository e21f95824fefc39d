"""Files as a source: text, Parquet, Arrow, plain or compressed, one or a glob, read to their ends or followed.

A partition is the absolute path of a file; offsets are decompressed bytes in text and rows in tables. Files are read in
the order of their names or, if followed, in turns.
"""

import os
import struct
from collections.abc import Mapping
from time import monotonic

from connectors import Position, Record, Source, SourceFailed, UnusableSource
from connectors.files import check_readable, expand
from connectors.files.line_blocks import PLAIN_TEXT, TextLayout
from connectors.files.readers import Kind, Reader, Sizes, kind_of, open_reader, partition_of
from connectors.files.tables import whole_mark

GZIP_SAYS = struct.Struct("<II")  # the last bytes: CRC-32 and size of what the last member holds, mostly the only one


def FileSource(
    pattern: str,
    positions: Mapping[str, Position],
    *,
    format: str | None = None,
    follow: bool = False,
    block_bytes: int = Sizes().block_bytes,
    max_item_bytes: int = Sizes().max_item_bytes,
    layout: TextLayout = PLAIN_TEXT,
    count_copies: bool = False,
) -> Source:
    """The files that the path or glob `rest` names, at their positions; partitions are absolute paths.

    `format` ("json", "csv", "parquet", "arrow") overrides the suffix. Without `follow` each file is read to its end,
    its last line also without a newline, and a file that is shorter than its position or begins otherwise is a
    `SourceFailed`. With it (plain text files only) the source waits for more, see connectors/files/follow.py. One
    record holds about `block_bytes` of whole items; an item over `max_item_bytes` becomes a record with a `problem`.
    `layout` says of text what its first line does not. A file that holds what one of another name held, known by its
    position, is refused unless `count_copies`.
    Raises `UnusableSource` when it cannot work as asked.
    """
    sizes = Sizes(block_bytes, max_item_bytes)
    if min(sizes) < 1:
        raise UnusableSource(f"block_bytes={block_bytes} and max_item_bytes={max_item_bytes} must be at least 1")
    if follow:
        from connectors.files.follow import FollowedFiles

        return FollowedFiles(pattern, positions, format, sizes, layout)
    paths = expand(pattern)
    if not paths:
        raise UnusableSource(f"{pattern}: no file matches")
    for path in paths:
        check_readable(path)
        if not count_copies and (read := copied_from(path, positions)):
            raise UnusableSource(
                f"{path} is a copy of {read}, which this state has read; nothing was read. Omit it, "
                "read everything again with --start-over, or set input.count_copies"
            )
    return Files([(path, kind_of(path, format, layout)) for path in paths], positions, sizes)


def copied_from(path: str, positions: Mapping[str, Position]) -> str:
    """The partition that an unread file is a copy of, byte for byte; "" where there is none. Reads the file only where
    one of its size, or a Parquet file, was read to its end; of a gzip file its last bytes, which say what is in it."""
    if partition_of(path) in positions:
        return ""
    size = os.path.getsize(path)
    if os.path.splitext(path)[1].lower() == ".gz" and size >= GZIP_SAYS.size:
        with open(path, "rb") as file:
            file.seek(-GZIP_SAYS.size, os.SEEK_END)
            check, unpacked = GZIP_SAYS.unpack(file.read())
        texts = {(position.mark, position.offset % 2**32): name for name, position in positions.items()}
        return texts.get((check, unpacked), "") if unpacked else ""
    marks = {}
    for name, position in positions.items():
        if name.startswith("/") and size and (position.offset == size or name.lower().endswith(".parquet")):
            marks[position.mark] = name
    if not marks:
        return ""
    with open(path, "rb") as file:
        return marks.get(whole_mark(file), "")


class Files(Source):
    """Files read one after the other to their ends; at most one is open."""

    one_by_one = True

    def __init__(self, files: list[tuple[str, Kind]], positions: Mapping[str, Position], sizes: Sizes):
        self._waiting = [(path, kind, positions.get(partition_of(path), Position(0))) for path, kind in files]
        self._sizes = sizes
        self._reader: Reader | None = None
        self._checked = len(files) == 1  # one file is checked when it is opened
        self._failure: SourceFailed | None = None
        self._notices: list[str] = []
        self._done: list[str] = []  # partitions

    def poll(self, timeout: float) -> list[Record]:
        """One record, or none when passing over what was read before takes longer than `timeout` seconds."""
        if self._failure:
            raise self._failure
        until = monotonic() + timeout
        try:
            self._check()
            while not self.finished():
                if record := self._read():
                    return [record]
                if monotonic() > until:
                    break
        except SourceFailed as failure:
            self._failure = failure
            raise
        return []

    def _check(self) -> None:
        """Nothing is read from any file when one of them was replaced."""
        if not self._checked:
            for path, kind, position in self._waiting:
                if position.offset:
                    reader = open_reader(path, kind, position, self._sizes)
                    try:
                        reader.check()
                    finally:
                        reader.close()
            self._checked = True

    def _read(self) -> Record | None:
        if self._reader is None:
            self._reader = open_reader(*self._waiting[0], self._sizes)
        record = self._reader.read()
        self._notices += self._reader.notices()
        if self._reader.done:
            self._reader.close()
            self._reader = None
            self._done.append(partition_of(self._waiting.pop(0)[0]))
        return record

    def finished(self) -> bool:
        return not self._waiting

    def ready(self) -> bool:
        return self._failure is None

    def lag(self) -> dict[str, int]:
        """Unread decompressed bytes or rows; of compressed text, unread compressed bytes. What is not known is not in
        it: the rows of an Arrow file, or of a table that has not been opened yet."""
        unread = dict.fromkeys(self._done, 0)
        for path, kind, position in self._waiting[self._reader is not None :]:
            if kind.is_text and os.path.exists(path):
                size = os.path.getsize(path)
                unread[partition_of(path)] = size if kind.compression else max(0, size - position.offset)
        if self._reader is not None and (unread_bytes := self._reader.lag()) is not None:
            unread[partition_of(self._waiting[0][0])] = unread_bytes
        return unread

    def notices(self) -> list[str]:
        notices, self._notices = self._notices, []
        return notices

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self._waiting.clear()
