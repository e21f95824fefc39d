"""Whether the sources of a run can be reached and get on, also while the stream waits for a disk or a broker.

Work beside the loop (a snapshot, a flush of dead letters) is waited for here, so that lag, stalls and readiness go on
being told, however slow the disk is.
"""

import time
from concurrent.futures import Future, wait

from connectors import Source
from stream_engine.service.heartbeat import Heartbeat
from stream_engine.service.metrics import Metrics
from stream_engine.service.requests import Requests
from stream_engine.service.stall_watchdog import StallWatchdog
from stream_engine.state.engine import Engine

POLL_SECONDS = 0.2
MANY = 100  # partitions: with more, lag and stalls are looked at once in `MANY_SECONDS`, not at every poll
MANY_SECONDS = 2.0


class SourceHealth:
    """Readiness, lag and stalls of the sources that were added; lag is told of those that were polled."""

    def __init__(
        self,
        engine: Engine,
        watchdog: StallWatchdog,
        metrics: Metrics,
        requests: Requests,
        heartbeat: Heartbeat | None = None,
    ):
        self._engine, self.watchdog, self._metrics, self._requests = engine, watchdog, metrics, requests
        self.heartbeat = heartbeat or Heartbeat()
        self._sources: list[tuple[str, Source]] = []  # all that are open, each with what it was named by
        self._polled: list[Source] = []
        self._look_at: dict[Source, float] = {}  # of those with many partitions: when to look next

    def add(self, uri: str, source: Source) -> None:
        """A source that was opened."""
        self._sources.append((uri, source))

    def polled(self, source: Source) -> None:
        """A source is read from now on: whether it gets on is told."""
        if source not in self._polled:
            self._polled.append(source)

    def not_ready(self) -> str:
        """Why the run is not ready; "" when it is."""
        if self._requests.stop:
            return "stopping"
        if self._requests.paused:
            return "paused by POST /admin/pause"
        away = [uri for uri, source in self._sources if not source.ready()]
        return f"source not reachable: {', '.join(away)}" if away else ""

    def look(self, source: Source) -> None:
        """Tell lag, stalls and readiness as they are now; of many partitions as they were a moment ago."""
        now = time.monotonic()
        if now >= self._look_at.get(source, 0.0) and self.watchdog.look(source, self._engine.positions) > MANY:
            self._look_at[source] = now + MANY_SECONDS
        self._metrics.ready.set(not self.not_ready())

    def held_up(self, what: str, since: float) -> None:
        """Called now and then while the stream waits for `what`, which has taken nothing since then."""
        self.heartbeat.tick()
        for source in self._polled:
            self.look(source)
        self.watchdog.stands(what, since)

    def paused(self) -> None:
        """Called now and then while the stream is held on purpose: nothing of it counts as a stall."""
        self.heartbeat.tick()
        self.watchdog.forget()
        self._metrics.ready.set(0)

    def goes_on(self, what: str) -> None:
        """The stream does not wait for `what` any more."""
        self.watchdog.goes_on(what)

    def wait_for(self, what: str, future: Future) -> None:
        """Wait for work beside the loop, however slow the disk is, without losing sight of lag and readiness."""
        began = time.monotonic()
        while not wait([future], POLL_SECONDS).done:
            self.held_up(what, began)
        self.goes_on(what)
