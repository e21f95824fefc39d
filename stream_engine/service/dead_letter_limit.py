"""The size limit of the folder of dead letters: the oldest segments are removed."""

import os
from collections.abc import Mapping, MutableMapping
from typing import Any

from connectors.files.dead_letters import DeadLetterFile, segment_name, segment_of, segments_in

_CHUNK_BYTES = 8 << 20


def limit_folder(
    file: DeadLetterFile, keep_bytes: int, sinks: MutableMapping[str, Any], counts: MutableMapping[str, int]
) -> tuple[dict[str, int], int]:
    """Record in `sinks` which segments exceed the limit: their files, the number of their dead letters, and the
    bytes that remain. The decision is the same before and after a crash. Raises `OSError`."""
    disk, folder, first = file.disk, segment_of(sinks.get("file", 0)), sinks.get("removed_before", 1)
    paths = {n: os.path.join(file.directory, segment_name(n)) for n in segments_in(file.directory, disk) if n >= first}
    sizes = {segment: disk.size(path) for segment, path in paths.items()}
    total, removed_letters = sum(sizes.values()), {}
    for segment, size in sizes.items():
        if not keep_bytes or total <= keep_bytes or segment >= folder:
            break
        total -= size
        letters = sum(disk.read(paths[segment], at, _CHUNK_BYTES).count(b"\n") for at in range(0, size, _CHUNK_BYTES))
        removed_letters[paths[segment]] = letters
        sinks["removed_before"] = segment + 1
        counts["removed"] = counts.get("removed", 0) + letters
        counts["removed_bytes"] = counts.get("removed_bytes", 0) + size
    return removed_letters, total


def remove_segments(file: DeadLetterFile, sinks: Mapping[str, Any]) -> None:
    """Remove the segments that a durable snapshot counts as removed, if they still exist. Raises `OSError`."""
    first_kept = sinks.get("removed_before", 1)
    for segment in segments_in(file.directory, file.disk) if first_kept > 1 else []:
        if segment < first_kept:
            file.disk.remove(os.path.join(file.directory, segment_name(segment)))
