"""Whether the disk has room for the snapshots that are to be kept and for the one that is being written.

The room is what is free and what the kept snapshots take already; (keep + 1) times the newest one is needed.
"""

import shutil

from structlog.typing import FilteringBoundLogger

from stream_engine.service.metrics import Metrics
from stream_engine.state.store import Store


class DiskRoom:
    """Looks at the disk of one state; says once that it is too full, and once that it is no more."""

    def __init__(self, store: Store, keep: int, metrics: Metrics, log: FilteringBoundLogger):
        self._store, self._keep, self._metrics, self._log = store, keep, metrics, log
        self._short = False

    def look(self) -> None:
        """Tell the room and the need as they are now."""
        sizes = self._sizes()
        try:
            room = shutil.disk_usage(self._store.directory).free + sum(sizes)
        except OSError:
            return  # publishing will say what is wrong
        needed = (self._keep + 1) * (sizes[-1] if sizes else 0)
        self._metrics.disk_room.set(room)
        self._metrics.disk_needed.set(needed)
        if (room < needed) != self._short:
            self._short = room < needed
            say = self._log.warning if self._short else self._log.info
            say(
                "the disk has too little room for snapshots; free some, or keep fewer (--keep)"
                if self._short
                else "the disk has room for snapshots again",
                room=room,
                needed=needed,
                keep=self._keep,
            )

    def _sizes(self) -> list[int]:
        sizes = []
        for sequence in self._store.sequences():
            try:
                sizes.append(self._store.disk.size(self._store.snapshot_path(sequence)))
            except OSError:  # pruned meanwhile
                continue
        return sizes
