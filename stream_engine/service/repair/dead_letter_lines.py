"""The lines of a folder of dead letters up to the position that a snapshot relies on."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

SEGMENT_BITS = 40  # of a position: the length of its segment


class Segment(NamedTuple):
    """A file of letters and how many of its bytes lie before the position."""

    number: int
    path: Path
    size: int
    wanted: int


def segments(folder: str | os.PathLike[str], position: int) -> list[Segment]:
    """The segments that a position relies on, oldest first; older ones may have been moved away, the last one is always
    among them."""
    last, length = (position >> SEGMENT_BITS) + 1, position & ((1 << SEGMENT_BITS) - 1)
    path = Path(folder)
    names = os.listdir(path) if path.is_dir() else []
    there = sorted(int(match[1]) for name in names if (match := re.fullmatch(r"(\d{6,})\.jsonl", name)))
    found = []
    for number in sorted({*(number for number in there if number < last), *([last] if length else [])}):
        file = path / f"{number:06d}.jsonl"
        size = file.stat().st_size if file.exists() else 0
        found.append(Segment(number, file, size, length if number == last else size))
    return found


def lines(segment: Segment) -> Iterator[bytes]:
    """The lines of a segment before the position, each with its newline. O(bytes)."""
    left = segment.wanted
    with segment.path.open("rb") as file:
        while left > 0 and (line := file.readline()):
            yield line[:left]
            left -= len(line)


def replayed(segment: Segment, marks: Mapping[str, int]) -> Iterator[tuple[bytes, bool]]:
    """The lines of a segment, each with whether it was counted by a replay: `marks` has, by reason, the position up to
    which letters were replayed."""
    at = segment.number - 1 << SEGMENT_BITS
    for line in lines(segment):
        yield line, bool(marks) and at < marks.get(_reason(line), 0)
        at += len(line)


def _reason(line: bytes) -> Any:
    try:
        return json.loads(line).get("reason")
    except (ValueError, AttributeError):
        return None
