"""Whether the sources of a run can be reached and get on, also while the stream waits for a disk or a broker.

What has work and makes no progress sets a metric and is logged, and again when it goes on. Each partition is judged by
itself, whatever the others do (one with a hanging transaction, one without a leader), and so is what holds the whole
stream up (a disk or a dead-letter topic that does not take what must be kept). Work beside the loop (a snapshot, a
flush of dead letters) is waited for here, so that lag, stalls and readiness go on being told, however slow the disk is.
"""

import time
from collections.abc import Mapping
from concurrent.futures import Future, wait

from connectors import Position, Source
from stream_engine.service.context import Context
from stream_engine.state.engine import Engine

POLL_SECONDS = 0.2
MANY = 100  # partitions: with more, lag and stalls are looked at once in `MANY_SECONDS`, not at every poll
MANY_SECONDS = 2.0


class SourceHealth:
    """Readiness, lag and stalls of the sources that were added; lag is told of those that were polled. `stall_after` is
    how many seconds something may stand still, and how often it is then logged."""

    def __init__(self, engine: Engine, stall_after: float, context: Context):
        self._engine, self._stall_after, self._context = engine, stall_after, context
        self._metrics = context.metrics
        self._sources: list[tuple[str, Source]] = []  # all that are open, each with what it was named by
        self._polled: list[Source] = []
        self._look_at: dict[Source, float] = {}  # of those with many partitions: when to look next
        self._moved: dict[
            str, tuple[Position | None, float]
        ] = {}  # where and when each partition was last seen to move
        self._logged: dict[str, float] = {}  # what stands still -> when that was last logged

    def add(self, uri: str, source: Source) -> None:
        """A source that was opened."""
        self._sources.append((uri, source))

    def polled(self, source: Source) -> None:
        """A source is read from now on: whether it gets on is told."""
        if source not in self._polled:
            self._polled.append(source)

    def not_ready(self) -> str:
        """Why the run is not ready; "" when it is."""
        if self._context.requests.stop:
            return "stopping"
        if self._context.requests.paused:
            return "paused by POST /admin/pause"
        away = [uri for uri, source in self._sources if not source.ready()]
        return f"source not reachable: {', '.join(away)}" if away else ""

    def look(self, source: Source) -> None:
        """Tell lag, stalls and readiness as they are now; of many partitions as they were a moment ago."""
        now = time.monotonic()
        if now >= self._look_at.get(source, 0.0):
            lags = source.lag()
            self._look_at[source] = now + MANY_SECONDS * (len(lags) > MANY)
            self._tell(source, lags, self._engine.positions, now)
        self._metrics.ready.set(not self.not_ready())

    def _tell(self, source: Source, lags: Mapping[str, int], positions: Mapping[str, Position], now: float) -> None:
        """Lag of every partition, and those that have some and did not move."""
        moving = {
            partition
            for partition, lag in lags.items()
            if not lag or partition not in self._moved or self._moved[partition][0] != positions.get(partition)
        }
        if source.one_by_one and any(lags[partition] for partition in moving):
            moving = set(lags)  # the others wait for their turn
        for partition, lag in lags.items():
            self._metrics.lag.set(partition, lag)
            if partition in moving:
                self._moved[partition] = positions.get(partition), now
                self.goes_on(partition)
            else:
                position, since = self._moved[partition]
                self._stands(partition, since, lag=lag, at=position.offset if position else None)
        self._metrics.stalled.set(bool(self._logged))
        for partition, seconds in source.lag_seconds().items():
            self._metrics.lag_seconds.set(partition, seconds)

    def _stands(self, what: str, since: float, **details: object) -> None:
        """`what` has stood still since then: logged when that is too long."""
        now = time.monotonic()
        if now - max(since, self._logged.get(what, 0.0)) > self._stall_after:
            self._logged[what] = now
            self._metrics.stalls.inc()
            self._metrics.stalled.set(1)
            self._context.log.error("stalled: no progress", where=what, seconds=round(now - since), **details)

    def goes_on(self, what: str) -> None:
        """`what` moves, or has nothing to do, or the stream does not wait for it any more."""
        if self._logged.pop(what, None):
            self._metrics.stalled.set(bool(self._logged))
            self._context.log.info("no longer stalled", where=what)

    def held_up(self, what: str, since: float) -> None:
        """Called now and then while the stream waits for `what`, which has taken nothing since then."""
        self._context.heartbeat.tick()
        for source in self._polled:
            self.look(source)
        self._stands(what, since)

    def paused(self) -> None:
        """Called now and then while the stream is held on purpose: nothing of it counts as a stall."""
        self._context.heartbeat.tick()
        self._moved.clear()
        self._metrics.ready.set(0)

    def wait_for(self, what: str, future: Future) -> None:
        """Wait for work beside the loop, however slow the disk is, without losing sight of lag and readiness."""
        began = time.monotonic()
        while not wait([future], POLL_SECONDS).done:
            self.held_up(what, began)
        self.goes_on(what)
