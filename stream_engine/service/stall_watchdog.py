"""The stall watchdog: what has work and makes no progress sets a metric and is logged, and again when it goes on.

Each partition is judged by itself, whatever the others do (one with a hanging transaction, one without a leader), and
so is what holds the whole stream up (a disk or a dead-letter topic that does not take what must be kept).
"""

import time
from collections.abc import Mapping
from typing import NamedTuple

from structlog.typing import FilteringBoundLogger

from connectors import Position, Source
from stream_engine.service.metrics import Metrics


class _Moved(NamedTuple):
    """Where a partition was when it was last seen to move (or to have nothing to do), and when that was."""

    position: Position | None
    time: float


class StallWatchdog:
    """`after` is how many seconds something may stand still, and how often it is then logged."""

    def __init__(self, after: float, metrics: Metrics, log: FilteringBoundLogger):
        self.after, self._metrics, self._log = after, metrics, log
        self._moved: dict[str, _Moved] = {}  # by partition
        self._logged: dict[str, float] = {}  # what stands still -> when that was last logged

    def look(self, source: Source, positions: Mapping[str, Position]) -> int:
        """Lag of every partition of a source, and those that have some and did not move. Returns how many there are."""
        now, lags = time.monotonic(), source.lag()
        moving = {
            partition
            for partition, lag in lags.items()
            if not lag or partition not in self._moved or self._moved[partition].position != positions.get(partition)
        }
        if source.one_by_one and any(lags[partition] for partition in moving):
            moving = set(lags)  # the others wait for their turn
        for partition, lag in lags.items():
            self._metrics.lag.set(partition, lag)
            if partition in moving:
                self._moved[partition] = _Moved(positions.get(partition), now)
                self.goes_on(partition)
            else:
                position, since = self._moved[partition]
                self.stands(partition, since, lag=lag, at=position.offset if position else None)
        self._metrics.stalled.set(bool(self._logged))
        for partition, seconds in source.lag_seconds().items():
            self._metrics.lag_seconds.set(partition, seconds)
        return len(lags)

    def forget(self) -> None:
        """Whatever moved when: from now on all start afresh."""
        self._moved.clear()

    def stands(self, what: str, since: float, **details: object) -> None:
        """`what` has stood still since then: logged when that is too long."""
        now = time.monotonic()
        if now - max(since, self._logged.get(what, 0.0)) > self.after:
            self._logged[what] = now
            self._metrics.stalls.inc()
            self._metrics.stalled.set(1)
            self._log.error("stalled: no progress", where=what, seconds=round(now - since), **details)

    def goes_on(self, what: str) -> None:
        """`what` moves, or has nothing to do."""
        if self._logged.pop(what, None):
            self._metrics.stalled.set(bool(self._logged))
            self._log.info("no longer stalled", where=what)
