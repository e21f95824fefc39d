"""The stall watchdog: what has work and does not get on is said aloud, in a metric and a log line, and again when it
goes on. A partition is watched by itself, whatever the others do (a hanging transaction, one without a leader), and so is
what holds the whole stream up (a disk or a dead-letter topic that does not take what must be kept)."""

import time
from collections.abc import Mapping

from connectors import Position, Source
from stream_engine.service.metrics import Metrics


class Stalls:
    """`after` is how many seconds something may stand still, and how often it is then said."""

    def __init__(self, after: float, metrics: Metrics, log):
        self._after, self._metrics, self._log = after, metrics, log
        self._moved: dict[
            str, tuple[Position | None, float]
        ] = {}  # partition -> where and when it was last seen to move
        self._spoken: dict[str, float] = {}  # what stands still -> when that was last said

    def look(self, source: Source, positions: Mapping[str, Position]) -> None:
        """Lag of every partition of a source, and those that have some and did not move."""
        now, lags = time.monotonic(), source.lag()
        moving = {
            partition
            for partition, lag in lags.items()
            if not lag or partition not in self._moved or self._moved[partition][0] != positions.get(partition)
        }
        if getattr(source, "one_by_one", False) and any(lags[partition] for partition in moving):
            moving = set(lags)  # the others wait for their turn
        for partition, lag in lags.items():
            self._metrics.lag.labels(partition).set(lag)
            if partition in moving:
                self._moved[partition] = positions.get(partition), now
                self.goes_on(partition)
            else:
                at, since = self._moved[partition]
                self.stands(partition, since, lag=lag, at=at.offset if at else None)
        self._metrics.stalled.set(bool(self._spoken))
        if hasattr(source, "lag_seconds"):
            for partition, seconds in source.lag_seconds().items():
                self._metrics.lag_seconds.labels(partition).set(seconds)

    def stands(self, what: str, since: float, **known: object) -> None:
        """`what` has stood still since then: said when that is too long."""
        now = time.monotonic()
        if now - max(since, self._spoken.get(what, 0.0)) > self._after:
            self._spoken[what] = now
            self._metrics.stalls.inc()
            self._metrics.stalled.set(1)
            self._log.error("stalled: no progress", where=what, seconds=round(now - since), **known)

    def goes_on(self, what: str) -> None:
        """`what` moves, or has nothing to do."""
        if self._spoken.pop(what, None):
            self._metrics.stalled.set(bool(self._spoken))
            self._log.info("no longer stalled", where=what)
