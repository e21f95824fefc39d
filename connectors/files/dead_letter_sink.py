"""Dead letters in a directory: one JSON object a line, in segments 000001.jsonl, 000002.jsonl, ...

Invariant: the letters up to a position that `flush` returned survive a crash, and whoever opens the directory at that
position finds just those: what was written later is cut off, so that a replay that writes it again repeats nothing.
Position = (segment - 1) * 2^40 + length of that segment; 0 is an empty directory. Old segments may be moved away.
O(bytes). Keys of a line: partition, offset, index, reason, message, value (value_base64 unless it is UTF-8), and key
(key_base64) where the record had one.
"""

import json
import os
import re
from base64 import b64encode

from connectors import DeadLetter, SinkUnavailable, UnusableSource
from connectors.disk import Disk, make_folders

SEGMENT_BYTES = 256 << 20
WRITE_BYTES = 1 << 20  # that may wait in memory
_SEGMENT_BITS = 40


class DeadLetterFile:
    """A `Sink`. `position` is what `flush` returned for the snapshot that is resumed.

    Raises `UnusableSource` when the directory holds less than that; with `accept_lost` it goes on in a new segment, and
    `lost` says what is missing. A line goes to the next segment once this one has
    reached `segment_bytes`, which depends on the letters alone: a replay writes the same bytes to the same places.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        position: int = 0,
        *,
        disk: Disk | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        accept_lost: bool = False,
    ):
        self._directory, self._disk, self._segment_bytes = os.fspath(directory), disk or Disk(), segment_bytes
        self._segment, self._length = (position >> _SEGMENT_BITS) + 1, position & ((1 << _SEGMENT_BITS) - 1)
        self._waiting: list[tuple[int, bytes]] = []  # (segment, line), to be written
        self._waiting_bytes = 0
        self._written = self._segment, self._length  # where writing has got to
        self._torn = False  # a write failed and may have left a part behind
        self._unsynced: dict[str, None] = {}  # segments written to since they were synced, in order
        self._named = False  # a segment was made since the directory was synced
        self._lost = ""  # why nothing can be promised any more
        self._accept_lost, self.lost = accept_lost, ""  # what is missing, where that was accepted
        try:
            self._cut_back()
        except OSError as error:
            raise UnusableSource(f"{self._directory}: dead letters cannot be kept there: {error.strerror}") from error

    def _path(self, segment: int) -> str:
        return os.path.join(self._directory, segment_name(segment))

    def _cut_back(self) -> None:
        """Leave what lies before the position and nothing else."""
        segments = self._segments()
        size = self._disk.size(self._path(self._segment)) if self._segment in segments else 0
        if size < self._length:
            self.lost = (
                f"{self._path(self._segment)} holds {size:,} bytes, the snapshot relies on "
                f"{self._length:,}: dead letters are lost"
            )
            if not self._accept_lost:
                raise UnusableSource(
                    f"{self.lost}. Restore the file, resume from an older snapshot, or go on without them: "
                    "run --accept-lost-dead-letters"
                )
            # whole letters stay; until a snapshot relies on the next segment, opening finds the same loss
            if size:
                self._disk.truncate(self._path(self._segment), self._whole_lines(size))
            self._segment, self._length, size = self._segment + 1, 0, 0
            self._written = self._segment, 0
        for segment in reversed(segments):
            if segment > self._segment or (segment == self._segment and not self._length):
                self._disk.remove(self._path(segment))
        if size > self._length > 0:
            self._disk.truncate(self._path(self._segment), self._length)

    def _whole_lines(self, size: int) -> int:
        """Where the last whole line of the segment ends, which holds `size` bytes."""
        while size:
            piece = max(0, size - WRITE_BYTES)
            found = self._disk.read(self._path(self._segment), piece, size - piece).rfind(b"\n")
            if found >= 0:
                return piece + found + 1
            size = piece
        return 0

    def _segments(self) -> list[int]:
        return segments_in(self._directory, self._disk)

    def append(self, letters: list[DeadLetter]) -> None:
        """Take letters; they are written in large pieces. Raises `SinkUnavailable`: they are kept, and tried again."""
        for letter in letters:
            line = encode(letter)
            if self._length >= self._segment_bytes:
                self._segment, self._length = self._segment + 1, 0
            self._waiting.append((self._segment, line))
            self._waiting_bytes += len(line)
            self._length += len(line)
        if self._waiting_bytes >= WRITE_BYTES:
            self._write()

    def begin_segment(self) -> None:
        """The letters from here on go to a segment of their own, so that the one before can be removed."""
        if self._length:
            self._segment, self._length = self._segment + 1, 0

    def flush(self) -> int:
        """Write and sync all letters, and the names of new segments; the position after them.

        Raises `SinkUnavailable` while they cannot be written. An error while syncing is an `OSError` for good: the
        system may have dropped what it could not write, and only reading on from a snapshot brings it back.
        """
        self._write()
        if self._lost:
            raise OSError(self._lost)
        try:
            for path in self._unsynced:
                self._disk.fsync(path)
            if self._named:
                self._disk.fsync_dir(self._directory)
        except OSError as error:
            self._lost = (
                f"{self._directory}: dead letters could not be made durable: {error.strerror}. Restart to go "
                "on from the last snapshot"
            )
            raise OSError(self._lost) from error
        self._unsynced.clear()
        self._named = False
        return (self._segment - 1 << _SEGMENT_BITS) + self._length

    def _write(self) -> None:
        try:
            while self._waiting:
                self._write_to(self._waiting[0][0])
        except OSError as error:
            raise SinkUnavailable(
                f"{self._directory}: {self._waiting_bytes:,} bytes of dead letters cannot be "
                f"written: {error.strerror}; they are kept in memory"
            ) from error

    def _write_to(self, segment: int) -> None:
        """All waiting lines of one segment."""
        path = self._path(segment)
        length = self._written[1] if segment == self._written[0] else 0
        if self._torn and self._disk.exists(path):
            self._disk.truncate(path, length)
        if not length:
            make_folders(self._disk, self._directory)
            self._named = True
        lines = [line for of, line in self._waiting if of == segment]
        self._torn = True
        self._disk.append(path, lines)
        self._torn = False
        self._unsynced[path] = None
        size = sum(map(len, lines))
        self._written = segment, length + size
        self._waiting_bytes -= size
        del self._waiting[: len(lines)]

    def close(self) -> None:
        """Letters since the last `flush` belong to records after it; they are written when those are read again."""


def segment_name(segment: int) -> str:
    """The file of a segment."""
    return f"{segment:06d}.jsonl"


def segment_of(position: int) -> int:
    """The segment that a position lies in."""
    return (position >> _SEGMENT_BITS) + 1


def segments_in(directory: str | os.PathLike[str], disk: Disk) -> list[int]:
    """The numbers of the segments in a directory, ascending; none where there is no such directory."""
    if not disk.exists(directory):
        return []
    matches = (re.fullmatch(r"(\d{6,})\.jsonl", name) for name in disk.listdir(directory))
    return sorted(int(match[1]) for match in matches if match)


def encode(letter: DeadLetter) -> bytes:
    """A dead letter as a line.

    >>> encode(DeadLetter("f.jsonl", 7, 0, "not_parseable", "no JSON", b"{")).decode().strip()
    '{"partition":"f.jsonl","offset":7,"index":0,"reason":"not_parseable","message":"no JSON","value":"{"}'
    """
    fields = {
        "partition": letter.partition,
        "offset": letter.offset,
        "index": letter.event_index,
        "reason": letter.reason,
        "message": letter.message,
    } | _bytes_as_text("value", letter.value)
    if letter.key is not None:
        fields |= _bytes_as_text("key", letter.key)
    line = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    return line.encode("utf-8", "backslashreplace") + b"\n"  # a lone surrogate becomes its JSON escape


def _bytes_as_text(name: str, value: bytes) -> dict[str, str]:
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(value).decode()}
