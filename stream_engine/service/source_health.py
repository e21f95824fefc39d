"""Whether the sources of a run are reachable and make progress, even while the stream waits for a disk or a broker."""

import math
import time
from collections.abc import Mapping
from concurrent.futures import Future, wait

from connectors import Position, Source
from stream_engine.service.context import Context
from stream_engine.state.engine import Engine

STALL_SECONDS = 300.0  # without progress, until something counts as stalled; also between two log lines about it
POLL_SECONDS = 0.2
MANY_PARTITIONS = 100  # partitions: above, lag and stalls are updated every `MANY_SECONDS`, not at every poll
MANY_SECONDS = 2.0


class SourceHealth:
    """Readiness, lag and stalls of the added sources; lag only of polled ones.

    A stall (work without progress) sets a metric and is logged, and so is its end. Each partition is checked separately
    (one may have a hanging transaction or no leader), and so is whatever blocks the whole stream (a disk that accepts
    no data). The main loop waits here for work in other threads (a snapshot, a flush of dead letters), so that lag,
    stalls and readiness stay current however slow the disk is.
    """

    def __init__(self, engine: Engine, context: Context):
        self._engine, self._context = engine, context
        self._metrics = context.metrics
        self._sources: list[tuple[str, Source]] = []  # all open sources with their URIs
        self._polled_sources: list[Source] = []
        self._look_at: dict[Source, float] = {}  # time of the next update of sources with many partitions
        self._last_progress: dict[
            str, tuple[Position | None, float]
        ] = {}  # position and time of the last progress of each partition
        self._stalled_since: dict[str, float] = {}  # what is stalled -> when that was last logged

    def add(self, uri: str, source: Source) -> None:
        self._sources.append((uri, source))

    def starting(self) -> None:
        """Say that lag is not known, until the first block is learned, for which code may be compiled: what is in
        memory is neither counted nor unread."""
        for partition in self._last_progress:
            self._metrics.lag.set(partition, math.nan)

    def polled(self, source: Source) -> None:
        """Monitor the progress of a source that is read from now on."""
        if source not in self._polled_sources:
            self._polled_sources.append(source)

    def not_ready(self) -> str:
        """Why the run is not ready; "" if it is."""
        if self._context.requests.stop:
            return "stopping"
        if self._context.requests.paused:
            return "paused by POST /admin/pause"
        reasons = [(uri, source.away()) for uri, source in self._sources if not source.ready()]
        away = [f"{uri} ({reason})" if reason else uri for uri, reason in reasons]
        return f"source not reachable: {', '.join(away)}" if away else ""

    def look(self, source: Source) -> None:
        """Update lag, stalls and readiness; less often if there are many partitions."""
        now = time.monotonic()
        if now >= self._look_at.get(source, 0.0):
            lags = source.lag()
            self._look_at[source] = now + MANY_SECONDS * (len(lags) > MANY_PARTITIONS)
            self._update(source, lags, self._engine.positions, now)
        self._metrics.ready.set(not self.not_ready())

    def _update(self, source: Source, lags: Mapping[str, int], positions: Mapping[str, Position], now: float) -> None:
        """Update the lag of every partition, and detect those with lag that did not move."""
        moving = {
            partition
            for partition, lag in lags.items()
            if not lag
            or partition not in self._last_progress
            or self._last_progress[partition][0] != positions.get(partition)
        }
        if source.one_by_one and any(lags[partition] for partition in moving):
            moving = set(lags)  # the others wait for their turn
        for partition, lag in lags.items():
            self._metrics.lag.set(partition, lag)
            if partition in moving:
                self._last_progress[partition] = positions.get(partition), now
                self.goes_on(partition)
            else:
                position, since = self._last_progress[partition]
                self._check_stall(partition, since, lag=lag, at=position.offset if position else None)
        self._metrics.stalled.set(bool(self._stalled_since))
        for partition, seconds in source.lag_seconds().items():
            self._metrics.lag_seconds.set(partition, seconds)

    def _check_stall(self, subject: str, since: float, **details: object) -> None:
        """Log that `subject` has made no progress since `since`, if that is too long."""
        now = time.monotonic()
        if now - max(since, self._stalled_since.get(subject, 0.0)) > STALL_SECONDS:
            self._stalled_since[subject] = now
            self._metrics.stalls.inc()
            self._metrics.stalled.set(1)
            self._context.log.error("stalled: no progress", where=subject, seconds=round(now - since), **details)

    def goes_on(self, subject: str) -> None:
        """`subject` makes progress, has nothing to do, or no longer blocks the stream."""
        if self._stalled_since.pop(subject, None):
            self._metrics.stalled.set(bool(self._stalled_since))
            self._context.log.info("no longer stalled", where=subject)

    def held_up(self, subject: str, since: float) -> None:
        """Called repeatedly while the stream waits for `subject`, which has accepted nothing since `since`."""
        self._context.heartbeat.tick()
        for source in self._polled_sources:
            self.look(source)
        self._check_stall(subject, since)

    def paused(self) -> None:
        """Called repeatedly while the stream is paused on purpose: nothing counts as a stall."""
        self._context.heartbeat.tick()
        self._last_progress.clear()
        self._metrics.ready.set(0)

    def wait_for(self, subject: str, future: Future) -> None:
        """Wait for work in another thread, and keep lag and readiness current meanwhile."""
        began = time.monotonic()
        while not wait([future], POLL_SECONDS).done:
            self.held_up(subject, began)
        self.goes_on(subject)
