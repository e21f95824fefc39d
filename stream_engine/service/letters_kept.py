"""How long dead letters stay: the oldest segments of their folder go when it grows over its limits.

Invariant: a removal is decided and counted in one snapshot and carried out once that is durable, by this process or by
the next one; so what is counted as removed is exactly what is. A segment that the position of any kept snapshot lies in
stays, and so do those behind it. Ages are those of the segments' files: a segment is as old as its last letter.
"""

import os
import time
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from structlog.typing import FilteringBoundLogger

from connectors.disk import Disk
from connectors.files.dead_letter_sink import DeadLetterFile, segment_name, segment_of, segments_in
from stream_engine.data.container import Corrupt
from stream_engine.service.metrics import Metrics
from stream_engine.state.store import Store

DAY = 86_400.0
_PIECE = 8 << 20


class LettersKept:
    """The limits of one folder, (bytes, days), where 0 is no limit; `keep` snapshots are kept in the store."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        store: Store,
        limits: tuple[int, float],
        keep: int,
        metrics: Metrics,
        log: FilteringBoundLogger,
        clock: Callable[[], float] = time.time,
    ):
        self._folder, self._store, self._disk, self._keep = os.fspath(folder), store, store.disk, keep
        self._bytes, self._seconds = limits[0], limits[1] * DAY
        self._metrics, self._log, self._clock = metrics, log, clock
        self._since: tuple[int, float] = (0, 0.0)  # the segment that is written, and a time at which it was there
        self._segments: dict[int, int] = {}  # snapshot -> the segment that its position lies in

    def decide(self, sink: DeadLetterFile, remembered: MutableMapping[str, Any], counts: MutableMapping[str, int]):
        """After a flush: what is to go is noted in what the next snapshot remembers, and added to the engine's `counts`
        of letters that are there no more. Raises `OSError`."""
        here = segment_of(remembered.get("file", 0))
        first = remembered.get("removed_before", 1)
        sizes = {n: self._disk.size(self._path(n)) for n in segments_in(self._folder, self._disk) if n >= first}
        self._begin_segments_in_time(sink, here, here in sizes)
        total = sum(sizes.values())
        for segment in sorted(sizes):
            if segment >= here or not self._too_much(segment, total) or segment >= self._needed():
                break
            letters = _lines(self._disk, self._path(segment))
            remembered["removed_before"] = segment + 1
            total -= sizes[segment]
            for what, n in (("removed", letters), ("removed_bytes", sizes[segment])):
                counts[what] = counts.get(what, 0) + n
            self._log.warning(
                "dead letters over their limits are removed with the next snapshot",
                segment=self._path(segment),
                letters=letters,
                bytes=sizes[segment],
            )
        self._metrics.letters_bytes.set(total)

    def carry_out(self, remembered: Mapping[str, Any]) -> None:
        """Remove what a durable snapshot counts as removed, as far as it is there still. Raises `OSError`."""
        before = remembered.get("removed_before", 1)
        for segment in segments_in(self._folder, self._disk) if before > 1 else []:
            if segment < before:
                self._disk.remove(self._path(segment))

    def _path(self, segment: int) -> str:
        return os.path.join(self._folder, segment_name(segment))

    def _too_much(self, segment: int, total: int) -> bool:
        if self._bytes and total > self._bytes:
            return True
        return bool(self._seconds) and self._clock() - self._disk.modified(self._path(segment)) > self._seconds

    def _begin_segments_in_time(self, sink: DeadLetterFile, here: int, there: bool) -> None:
        """With a limit of age, no segment is written to for much longer than a day: only whole ones can go."""
        if not self._seconds:
            return
        if self._since[0] != here:
            self._since = here, self._disk.modified(self._path(here)) if there else self._clock()
        if self._clock() - self._since[1] > min(DAY, self._seconds):
            sink.begin_segment()

    def _needed(self) -> int:
        """The first segment that a kept snapshot relies on; one that awaits its removal does not count, so that the
        same is decided before and after a crash."""
        kept = self._store.sequences()[-self._keep :]
        for sequence in kept:
            if sequence not in self._segments:
                try:
                    sinks = self._store.read(sequence).counters.get("sinks", {})
                    self._segments[sequence] = segment_of(sinks.get("file", 0))
                except (Corrupt, OSError):
                    continue  # nobody can resume from it
        return min((self._segments[n] for n in kept if n in self._segments), default=1)


def _lines(disk: Disk, path: str) -> int:
    size = disk.size(path)
    return sum(disk.read(path, at, _PIECE).count(b"\n") for at in range(0, size, _PIECE))
