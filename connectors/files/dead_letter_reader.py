"""Dead letters of a folder read back: what `dead_letter_sink` has written before a position, oldest first.

A letter is named by the position at which its line begins. Segments that were moved away are passed over, and so is a
line that was cut. O(bytes); memory: one piece of a segment.
"""

import json
import os
from base64 import b64decode
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from connectors import DeadLetter
from connectors.disk import Disk
from connectors.files.dead_letter_sink import _SEGMENT_BITS, segment_name, segments_in

_PIECE = 8 << 20


class Kept(NamedTuple):
    """A letter and the position at which its line begins; `size` is that of the line."""

    at: int
    size: int
    letter: DeadLetter


class _Line(msgspec.Struct):
    partition: str
    offset: int
    index: int
    reason: str
    message: str
    value: str | None = None
    value_base64: str | None = None
    key: str | None = None
    key_base64: str | None = None


_LINES = msgspec.json.Decoder(_Line)


def letters_before(folder: str | os.PathLike[str], position: int, disk: Disk | None = None) -> Iterator[Kept]:
    """The letters before a position that are there."""
    disk = disk or Disk()
    for segment in segments_in(folder, disk):
        start = segment - 1 << _SEGMENT_BITS
        if start >= position:
            return
        path = os.path.join(os.fspath(folder), segment_name(segment))
        end = min(disk.size(path), position - start)
        for at, line in _lines(disk, path, end):
            letter = decode(line)
            if letter is not None:
                yield Kept(start + at, len(line) + 1, letter)


def _lines(disk: Disk, path: str, end: int) -> Iterator[tuple[int, bytes]]:
    """The whole lines of a file's first `end` bytes, each with its place."""
    at, rest = 0, b""
    for offset in range(0, end, _PIECE):
        *lines, rest = (rest + disk.read(path, offset, min(_PIECE, end - offset))).split(b"\n")
        for line in lines:
            yield at, line
            at += len(line) + 1


def decode(line: bytes) -> DeadLetter | None:
    """A line as the letter that it was; None for one that was damaged.

    >>> from connectors.files.dead_letter_sink import encode
    >>> letter = DeadLetter("t/0", 7, 0, "not_parseable", "no JSON", b"\\xff", b"k")
    >>> decode(encode(letter)) == letter
    True
    """
    try:
        told = _line(line)
        value, key = _bytes(told.value, told.value_base64), _bytes(told.key, told.key_base64)
    except (msgspec.MsgspecError, ValueError):
        return None
    return DeadLetter(told.partition, told.offset, told.index, told.reason, told.message, value or b"", key)


def _line(line: bytes) -> _Line:
    try:
        return _LINES.decode(line)
    except msgspec.MsgspecError:
        return msgspec.convert(json.loads(line), _Line)  # a path that is no UTF-8: a lone surrogate, which json takes


def _bytes(text: str | None, base64: str | None) -> bytes | None:
    if base64 is not None:
        return b64decode(base64)
    return None if text is None else text.encode()
