"""Which bytes of a folder of dead letters lie before a position: what a copy of a state must hold.

Segments only grow, and are cut back to positions of published snapshots at most, so these bytes stay what they are.
"""

import os
from typing import NamedTuple

from connectors.disk import Disk
from connectors.files.dead_letter_sink import _SEGMENT_BITS, segment_name, segments_in


class Part(NamedTuple):
    """The first `size` bytes of a segment."""

    name: str
    size: int


def parts_before(folder: str | os.PathLike[str], position: int, disk: Disk) -> list[Part]:
    """The segments before a position, the last one up to it; old ones may have been moved away.

    Raises `FileNotFoundError` where the last one is missing or holds less.
    """
    last, length = (position >> _SEGMENT_BITS) + 1, position & ((1 << _SEGMENT_BITS) - 1)
    parts = []
    for segment in segments_in(folder, disk):
        if segment < last or (segment == last and length):
            size = disk.size(os.path.join(os.fspath(folder), segment_name(segment)))
            parts.append(Part(segment_name(segment), min(size, length) if segment == last else size))
    if length and (not parts or parts[-1] != (segment_name(last), length)):
        held = parts[-1].size if parts and parts[-1].name == segment_name(last) else 0
        raise FileNotFoundError(
            f"{os.path.join(os.fspath(folder), segment_name(last))} holds {held:,} bytes, the snapshot relies on "
            f"{length:,}; name the folder of its dead letters with --dead-letters"
        )
    return parts
