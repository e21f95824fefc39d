"""Dead letters in a folder: one JSON object per line, in segments 000001.jsonl, 000002.jsonl, ...

The dead letters before a position that `flush` returned survive a crash, and opening the folder at that position finds
exactly those: what was written later is truncated, so that records read again repeat no dead letter.
"""

import json
import os
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from connectors import DeadLetter, SinkUnavailable, UnusableSource
from connectors.disk import Disk, Path, make_folders, write_whole

SEGMENT_BYTES = 256 << 20
WRITE_BYTES = 1 << 20  # that may wait in memory
_SEGMENT_BITS = 40
_PIECE = 8 << 20
_CRC = b',"crc":"'  # cannot stand inside a JSON string, where a quote has a backslash


class DeadLetterFile:
    """Where rejected events are written; those appended before `flush` returned survive a crash. `position` is what
    `flush` returned for the snapshot that is resumed.

    If the folder has less than that, `lost` says what is missing, and writing continues in a new segment. A line goes
    to the next segment once the current one has reached `segment_bytes`, which depends only on the dead letters:
    records that are read again give the same bytes in the same places. Raises `UnusableSource`.
    """

    def __init__(
        self, directory: Path, position: int = 0, *, disk: Disk | None = None, segment_bytes: int = SEGMENT_BYTES
    ):
        self.directory, self.disk, self._segment_bytes = os.fspath(directory), disk or Disk(), segment_bytes
        self._segment, self._length = segment_of(position), _length_of(position)
        self._waiting: list[tuple[int, bytes]] = []  # (segment, line), to be written
        self._waiting_bytes = 0
        self._written = self._segment, self._length  # position reached by writing
        self._torn = False  # a write failed and may have left a part behind
        self._unsynced: dict[str, None] = {}  # segments written to since they were synced, in order
        self._named = False  # a segment was made since the directory was synced
        self._failed = ""  # why durability can no longer be guaranteed
        self.lost = ""
        try:
            self._cut_back()
            if not self._length:
                self._segment = self._free(self._segment)
                self._written = self._segment, 0
        except OSError as error:
            raise UnusableSource(f"{self.directory}: cannot write dead letters there: {error.strerror}") from error

    def _path(self, segment: int) -> str:
        return os.path.join(self.directory, segment_name(segment))

    def _free(self, segment: int) -> int:
        """The first number from `segment` on whose name no folder, pipe or the like has."""
        while self.disk.exists(self._path(segment)) and not self.disk.is_file(self._path(segment)):
            segment += 1
        return segment

    def _cut_back(self) -> None:
        """Leave what lies before the position and nothing else."""
        segments = segments_in(self.directory, self.disk)
        size = self.disk.size(self._path(self._segment)) if self._segment in segments else 0
        if size < self._length:
            self.lost = (
                f"{self._path(self._segment)} holds {size:,} bytes, the snapshot relies on {self._length:,}: "
                "dead letters are lost"
            )
            # whole letters stay; until a snapshot relies on the next segment, opening finds the same loss
            if size:
                self.disk.truncate(self._path(self._segment), self._whole_lines(size))
            self._segment, self._length, size = self._segment + 1, 0, 0
            self._written = self._segment, 0
        for segment in reversed(segments):
            if segment > self._segment or (segment == self._segment and not self._length):
                self.disk.remove(self._path(segment))
        if size > self._length > 0:
            self.disk.truncate(self._path(self._segment), self._length)

    def _whole_lines(self, size: int) -> int:
        """Where the last whole line of the segment ends, which holds `size` bytes."""
        *_, end = [0, *(at + len(line) for at, line in _lines(self.disk, self._path(self._segment), size))]
        return end

    def append(self, letters: list[DeadLetter]) -> None:
        """Take letters; they are written in large pieces. Raises `SinkUnavailable`: they are kept, and tried again."""
        for letter in letters:
            line = encode(letter)
            if self._length >= self._segment_bytes:
                self._segment, self._length = self._free(self._segment + 1), 0
            self._waiting.append((self._segment, line))
            self._waiting_bytes += len(line)
            self._length += len(line)
        if self._waiting_bytes >= WRITE_BYTES:
            self._write()

    def flush(self) -> int:
        """Write and sync all letters, and the names of new segments; the position after them.

        Raises `SinkUnavailable` while they cannot be written. An error while syncing is an `OSError` for good: the
        system may have dropped what it could not write, and only resuming from a snapshot brings it back.
        """
        self._write()
        if self._failed:
            raise OSError(self._failed)
        try:
            for path in self._unsynced:
                self.disk.fsync(path)
            if self._named:
                self.disk.fsync_dir(self.directory)
        except OSError as error:
            self._failed = (
                f"{self.directory}: dead letters could not be made durable: {error.strerror}. Restart to resume from "
                "the last snapshot"
            )
            raise OSError(self._failed) from error
        self._unsynced.clear()
        self._named = False
        return (self._segment - 1 << _SEGMENT_BITS) + self._length

    def _write(self) -> None:
        try:
            while self._waiting:
                self._write_to(self._waiting[0][0])
        except OSError as error:
            raise SinkUnavailable(
                f"{self.directory}: {self._waiting_bytes:,} bytes of dead letters cannot be "
                f"written: {error.strerror}; they are kept in memory"
            ) from error

    def _write_to(self, segment: int) -> None:
        """All waiting lines of one segment."""
        path = self._path(segment)
        length = self._written[1] if segment == self._written[0] else 0
        if self._torn and self.disk.exists(path):
            self.disk.truncate(path, length)
        if not length:
            make_folders(self.disk, self.directory)
            self._named = True
        lines = [line for of, line in self._waiting if of == segment]
        self._torn = True
        self.disk.append(path, lines)
        self._torn = False
        self._unsynced[path] = None
        size = sum(map(len, lines))
        self._written = segment, length + size
        self._waiting_bytes -= size
        del self._waiting[: len(lines)]


# ---- segments and positions


def segment_name(segment: int) -> str:
    """The file of a segment."""
    return f"{segment:06d}.jsonl"


def segment_of(position: int) -> int:
    """The segment that a position lies in."""
    return (position >> _SEGMENT_BITS) + 1


def _length_of(position: int) -> int:
    return position & ((1 << _SEGMENT_BITS) - 1)


def segments_in(directory: Path, disk: Disk) -> list[int]:
    """The numbers of the segments in a directory, ascending; none where there is no such directory. What has such a
    name and is no file is skipped."""
    if not disk.exists(directory):
        return []
    matches = (re.fullmatch(r"(\d{6,})\.jsonl", name) for name in disk.listdir(directory))
    segments = (match for match in matches if match and disk.is_file(os.path.join(os.fspath(directory), match[0])))
    return sorted(int(match[1]) for match in segments)


class Part(NamedTuple):
    """The first `size` bytes of a segment: those before a position."""

    name: str
    size: int


def parts_before(folder: Path, position: int, disk: Disk) -> list[Part]:
    """The segments before a position, the last one up to it: what a copy of a state must hold.

    Raises `FileNotFoundError` where the last one is missing or holds less; old ones may have been moved away.
    """
    last, length = segment_of(position), _length_of(position)
    parts = []
    for segment in segments_in(folder, disk):
        if segment < last or (segment == last and length):
            size = disk.size(os.path.join(os.fspath(folder), segment_name(segment)))
            parts.append(Part(segment_name(segment), min(size, length) if segment == last else size))
    if length and (not parts or parts[-1] != (segment_name(last), length)):
        n_bytes = parts[-1].size if parts and parts[-1].name == segment_name(last) else 0
        raise FileNotFoundError(
            f"{os.path.join(os.fspath(folder), segment_name(last))} holds {n_bytes:,} bytes, the snapshot relies on "
            f"{length:,}; name the folder of its dead letters with --dead-letters"
        )
    return parts


# ---- reading


# A position is (segment - 1) * 2^40 + the length of that segment; 0 is an empty folder. Old segments may be moved away.
# Keys of a line: partition, offset, index, reason, message, value (value_base64 unless it is UTF-8), key (key_base64)
# if the record had one, and crc: CRC-32 of the bytes of the line before it. A line of spaces is a deleted dead letter.
class StoredLine(NamedTuple):
    """A line and the position at which it begins; `letter` is None where it is damaged. `size` is in bytes."""

    at: int
    size: int
    letter: DeadLetter | None


def letters_before(folder: Path, position: int, disk: Disk | None = None) -> Iterator[StoredLine]:
    """The letters before a position that are there, oldest first. O(bytes), one piece of a segment in memory."""
    disk = disk or Disk()
    for segment in segments_in(folder, disk):
        start = segment - 1 << _SEGMENT_BITS
        if start >= position:
            return
        path = os.path.join(os.fspath(folder), segment_name(segment))
        for at, line in _lines(disk, path, min(disk.size(path), position - start)):
            if line.strip(b" \n"):
                yield StoredLine(start + at, len(line), decode(line))


def _lines(disk: Disk, path: str, end: int) -> Iterator[tuple[int, bytes]]:
    """The whole lines of a file's first `end` bytes, each with its place."""
    at, partial_line = 0, b""
    for offset in range(0, end, _PIECE):
        *lines, partial_line = (partial_line + disk.read(path, offset, min(_PIECE, end - offset))).split(b"\n")
        for line in lines:
            yield at, line + b"\n"
            at += len(line) + 1


class CheckedSegment(NamedTuple):
    """What `check_folder` found: `problem` is "" where all is well; `behind` are bytes after the position."""

    name: str
    letters: int
    unchecked: int  # of these letters: written by version 0.1.0, without a checksum
    behind: int
    problem: str


def check_folder(folder: Path, position: int) -> list[CheckedSegment]:
    """Check every letter before a position: lengths, checksums and fields. O(bytes)."""
    disk, last = Disk(), segment_of(position)
    there = [segment for segment in segments_in(folder, disk) if segment <= last]
    wanted = {*range(there[0] if there else last, last), *([last] if _length_of(position) else [])}
    return [_check_segment(folder, segment, position, disk) for segment in sorted(wanted)]


def _check_segment(folder: Path, segment: int, position: int, disk: Disk) -> CheckedSegment:
    name = segment_name(segment)
    path = os.path.join(os.fspath(folder), name)
    if not disk.exists(path):
        return CheckedSegment(name, 0, 0, 0, "missing; lost, but the newest snapshot needs it")
    if not disk.is_file(path):  # the writer has passed it over as well
        return CheckedSegment(name, 0, 0, 0, "")
    size = disk.size(path)
    end = _length_of(position) if segment == segment_of(position) else size
    if size < end:
        return CheckedSegment(name, 0, 0, 0, f"holds {size:,} bytes, the newest snapshot relies on {end:,}: lost")
    number = letters = unchecked = whole = 0
    problem = ""
    for number, (at, line) in enumerate(_lines(disk, path, end), 1):
        whole = at + len(line)
        if not line.strip(b" \n"):
            continue
        letters += 1
        unchecked += _CRC not in line
        if not problem and decode(line) is None:
            problem = f"line {number} is damaged: not a dead letter, or modified"
    if not problem and whole != end:
        problem = f"line {number + 1} is truncated"
    return CheckedSegment(name, letters, unchecked, size - end, problem)


# ---- deleting


def overwrite(folder: Path, chosen: Callable[[DeadLetter | bytes], bool], disk: Disk) -> int:
    """Replace every letter that `chosen` is true of by spaces, so that no position changes; how many there were.

    A damaged line is given as its bytes. Durable when it returns, each segment whole or not at all; nothing may be
    written to the folder meanwhile. O(bytes), one segment in memory. Raises `OSError`.
    """
    replaced = 0
    for segment in segments_in(folder, disk):
        path = os.path.join(os.fspath(folder), segment_name(segment))
        lines = disk.read(path).split(b"\n")
        hits = [n for n, line in enumerate(lines) if line.strip(b" ") and chosen(decode(line) or line)]
        for n in hits:
            lines[n] = b" " * len(lines[n])
        if hits:
            write_whole(disk, path, [b"\n".join(lines)])
            replaced += len(hits)
    return replaced


# ---- lines


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    partition: str
    offset: int
    index: int
    reason: str
    message: str
    value: str | None = None
    value_base64: str | None = None
    key: str | None = None
    key_base64: str | None = None
    crc: str | None = None


_LINES = msgspec.json.Decoder(_Line)


def encode(letter: DeadLetter) -> bytes:
    """A dead letter as a line.

    >>> encode(DeadLetter("f", 7, 0, "incomplete", "cut", b"{")).decode().strip()
    '{"partition":"f","offset":7,"index":0,"reason":"incomplete","message":"cut","value":"{","crc":"79cf4594"}'
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
    text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    line = text[:-1].encode("utf-8", "backslashreplace")  # a lone surrogate becomes its JSON escape
    return line + _CRC + _checksum(line) + b'"}\n'


def decode(line: bytes) -> DeadLetter | None:
    """A line as the letter that it was; None for one that was damaged.

    >>> letter = DeadLetter("t/0", 7, 0, "not_parseable", "no JSON", b"\\xff", b"k")
    >>> decode(encode(letter)) == letter, decode(encode(letter).replace(b"t/0", b"t/1"))
    (True, None)
    """
    try:
        fields = _fields(line)
        value, key = _bytes(fields.value, fields.value_base64), _bytes(fields.key, fields.key_base64)
    except (msgspec.MsgspecError, ValueError):
        return None
    if value is None or (fields.crc is not None and _checksum(line.rpartition(_CRC)[0]) != fields.crc.encode()):
        return None
    return DeadLetter(fields.partition, fields.offset, fields.index, fields.reason, fields.message, value, key)


def _fields(line: bytes) -> _Line:
    try:
        return _LINES.decode(line)
    except msgspec.MsgspecError:
        return msgspec.convert(json.loads(line), _Line)  # a path that is no UTF-8: a lone surrogate, which json takes


def _checksum(line: bytes) -> bytes:
    return b"%08x" % zlib.crc32(line)


def _bytes_as_text(name: str, value: bytes) -> dict[str, str]:
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": b64encode(value).decode()}


def _bytes(text: str | None, base64: str | None) -> bytes | None:
    if base64 is not None:
        return b64decode(base64, validate=True)
    return None if text is None else text.encode()
