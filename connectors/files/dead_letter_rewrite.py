"""A folder of dead letters without some of them: those that stay are written again, into segments after all others.

Until somebody relies on the position after them nothing has changed: who opens the folder at the old position cuts the
new segments off. The old ones are removed by whoever relies on the new position.
"""

import os
from collections.abc import Callable, Iterable
from typing import NamedTuple

from connectors.disk import Disk
from connectors.files.dead_letter_parts import parts_before
from connectors.files.dead_letter_sink import _SEGMENT_BITS, SEGMENT_BYTES, segment_name, segments_in


class Rewritten(NamedTuple):
    """`position` is after the letters that stay; they begin with segment `first`; `dropped` of them did not stay;
    `moved` says of each place that was asked for where it is now."""

    position: int
    first: int
    dropped: int
    moved: dict[int, int]


def rewritten(
    folder: str | os.PathLike[str],
    position: int,
    drop: Callable[[bytes], bool],
    disk: Disk,
    segment_bytes: int = SEGMENT_BYTES,
    places: Iterable[int] = (),
) -> Rewritten:
    """Leave out the letters (lines) before a position that `drop` is true of; nothing is written where there is none.
    `places` are positions between letters that somebody remembers.

    Durable when it returns. O(bytes), one segment in memory. Raises `FileNotFoundError` as `parts_before`, `OSError`.
    """
    parts = parts_before(folder, position, disk)
    dropped = sum(drop(line) for name, size in parts for line in _lines(disk, folder, name, size))
    if not dropped:
        return Rewritten(position, 1, 0, {place: place for place in places})
    first = segment = max([*segments_in(folder, disk), (position >> _SEGMENT_BITS) + 1]) + 1
    stay: list[bytes] = []
    length = 0
    asked, moved = sorted(set(places)), {}
    for name, size in parts:
        at = int(name.removesuffix(".jsonl")) - 1 << _SEGMENT_BITS
        for line in _lines(disk, folder, name, size):
            while asked and at >= asked[0]:
                moved[asked.pop(0)] = (segment - 1 << _SEGMENT_BITS) + length
            at += len(line)
            if drop(line):
                continue
            if length >= segment_bytes:
                _write(disk, folder, segment, stay)
                segment, stay, length = segment + 1, [], 0
            stay.append(line)
            length += len(line)
    if stay:
        _write(disk, folder, segment, stay)
        disk.fsync_dir(folder)
    end = (segment - 1 << _SEGMENT_BITS) + length
    return Rewritten(end, first, dropped, moved | dict.fromkeys(asked, end))


def _write(disk: Disk, folder: str | os.PathLike[str], segment: int, lines: list[bytes]) -> None:
    path = os.path.join(os.fspath(folder), segment_name(segment))
    disk.write_new(path, lines)
    disk.fsync(path)


def _lines(disk: Disk, folder: str | os.PathLike[str], name: str, size: int) -> list[bytes]:
    return disk.read(os.path.join(os.fspath(folder), name), 0, size).splitlines(keepends=True)
