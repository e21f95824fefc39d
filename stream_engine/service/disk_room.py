"""Room on the disk of a state for its snapshots."""

import shutil

from structlog.typing import FilteringBoundLogger

from stream_engine.service.metrics import Metrics
from stream_engine.state.store import Store


class DiskRoom:
    """Watches the disk of one state; logs once when it is too full, and once when there is room again.

    The disk must have room for the snapshots to keep and for the one being written: available are the free space and
    the space of the kept snapshots; required is (keep + 1) times the newest one.
    """

    def __init__(self, store: Store, keep: int, metrics: Metrics, log: FilteringBoundLogger):
        self._store, self._keep, self._metrics, self._log = store, keep, metrics, log
        self._is_short = False

    def look(self) -> None:
        """Update the available and the required space."""
        sizes = self._sizes()
        try:
            room = shutil.disk_usage(self._store.directory).free + sum(sizes)
        except OSError:
            return  # publishing reports the problem
        required = (self._keep + 1) * (sizes[-1] if sizes else 0)
        self._metrics.disk_room.set(room)
        self._metrics.disk_needed.set(required)
        if (room < required) != self._is_short:
            self._is_short = room < required
            log = self._log.warning if self._is_short else self._log.info
            log(
                "too little disk space for snapshots; free some, or keep fewer snapshots (--keep)"
                if self._is_short
                else "enough disk space for snapshots again",
                room=room,
                needed=required,
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
