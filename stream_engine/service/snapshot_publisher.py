"""Takes snapshots of an engine when they are due, and publishes them: copied between two records, then encoded, hashed
and synced in another thread. One publication at a time, so the content of a snapshot never depends on the speed of the
disk."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from connectors import Position, SinkUnavailable
from stream_engine.input.settings import SnapshotSettings
from stream_engine.service.context import Context
from stream_engine.service.dead_letters import DeadLetters
from stream_engine.service.disk_room import DiskRoom
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.service.source_health import SourceHealth
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store

GROWTH = 1 / 4  # share of the last snapshot's comparisons: then all snapshots together cost five times the last
MIN_GROWTH = 10_000_000  # comparisons: a few seconds of work, which the interval covers
RETRY_SECONDS = 10.0  # between attempts to publish while the disk fails


class Publication(NamedTuple):
    """A durable snapshot, its size in bytes, and the seconds from its start until now."""

    snapshot: Snapshot
    size: int
    seconds: float


class _SnapshotMark(NamedTuple):
    """The engine's progress at the last snapshot, and the time of that snapshot."""

    comparisons: int
    positions: dict[str, Position]
    time: float
    n_actions: int  # in its history


def comparisons_until_next(every: int | None, n_accepted: int) -> int:
    """The number of comparisons after a snapshot of `n_accepted` comparisons until the next one is due; 0: none.

    >>> comparisons_until_next(None, 0), comparisons_until_next(None, 10**9), comparisons_until_next(10, 10**9)
    (10000000, 250000000, 10)
    """
    return max(MIN_GROWTH, int(GROWTH * n_accepted)) if every is None else every


class SnapshotPublisher:
    """Takes snapshots of one engine when they are due, and publishes them in one store."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        settings: SnapshotSettings,
        dead_letters: DeadLetters,
        monitor: PredictionMonitor,
        health: SourceHealth,
        context: Context,
    ):
        self._engine, self._store = engine, store
        self._settings = settings
        self._dead_letters, self._monitor, self._health = dead_letters, monitor, health
        self._metrics, self._log, self._heartbeat = context.metrics, context.log, context.heartbeat
        self._pool = ThreadPoolExecutor(1, "publish")
        self._room = DiskRoom(store, settings.keep, context.metrics, context.log)
        self._room.look()
        self._publishing: Future[Publication] | None = None
        self._retry_at = 0.0
        self._last_mark = self._now()
        self.size = 0  # bytes of the last snapshot published by this run
        self.problem: Exception | None = None  # why the last snapshot was not published

    def _now(self) -> _SnapshotMark:
        return _SnapshotMark(
            self._engine.counters["comparisons"], dict(self._engine.positions), time.monotonic(), self._n_actions()
        )

    def _n_actions(self) -> int:
        return len(self._engine.history)

    def has_changed(self) -> bool:
        """Whether anything was read, or done to the state, since the last snapshot."""
        return self._engine.positions != self._last_mark.positions or self._n_actions() != self._last_mark.n_actions

    def due(self, requested: str) -> str:
        """Why a snapshot is due now, "" if none is: `requested` (the reason of a request), "comparisons" or "interval".
        Nothing is due without a change since the last one; this is checked last, because it looks at every position."""
        reason, every, interval = requested, self._settings.every, self._settings.interval
        growth = comparisons_until_next(every, self._last_mark.comparisons)
        if not reason and growth and self._engine.counters["comparisons"] - self._last_mark.comparisons >= growth:
            reason = "comparisons"
        if not reason and interval and time.monotonic() - self._last_mark.time >= interval:
            reason = "interval"
        return reason if reason and self.has_changed() else ""

    def seconds_until_due(self) -> float | None:
        """Seconds until the interval ends, after which something new makes a snapshot due; None without an interval."""
        interval = self._settings.interval
        return max(self._last_mark.time + interval - time.monotonic(), 0.0) if interval else None

    def may_try(self) -> bool:
        """False for a while after a publication failed."""
        return time.monotonic() >= self._retry_at

    def take(self, why: str, last: bool = False) -> None:
        """Copy the state and start to publish it; the previous publication must have been collected. `last`: the engine
        learns nothing afterwards."""
        began = time.monotonic()
        try:
            self._room.look()
            self._dead_letters.flush(self._pool, self._engine.sinks, self._engine.counters["dead_letters"])
        except (SinkUnavailable, OSError) as error:
            return self._note_failure(error)
        while self._store.is_occupied(self._engine.sequence + 1):
            self._engine.sequence += 1
        with self._heartbeat.long("the copy of the state"):
            counts, make_snapshot = self._engine.capture(last)
            self._monitor.serve(counts)
        self._last_mark = self._now()
        self._metrics.pause_seconds.observe(time.monotonic() - began)
        self._log.debug("snapshot", sequence=counts.sequence, why=why)
        self._publishing = self._pool.submit(self._publish, make_snapshot, began)
        return None

    def _publish(self, make_snapshot: Callable[[], Snapshot], began: float) -> Publication:
        snapshot, size = self._store.publish(make_snapshot())
        self._store.prune(self._settings.keep, snapshot.sequence)
        self._dead_letters.after_publishing(snapshot.counters["sinks"])
        return Publication(snapshot, size, time.monotonic() - began)

    def _note_failure(self, error: Exception) -> None:
        self._metrics.snapshot_failures.inc()
        self._log.error(
            "snapshot not published; the previous one remains valid", problem=str(error), retry_seconds=RETRY_SECONDS
        )
        self._last_mark = self._last_mark._replace(positions={})  # so that the next is due even if nothing more arrives
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self.problem = error

    def busy(self) -> bool:
        return self._publishing is not None and not self._publishing.done()

    def wait(self) -> None:
        """Wait until nothing is being published."""
        if self._publishing:
            self._health.wait_for("snapshot", self._publishing)

    def collect(self) -> Publication | None:
        """The publication that succeeded since the last call, if any; never waits."""
        if self._publishing is None or not self._publishing.done():
            return None
        publication_future, self._publishing = self._publishing, None
        error = publication_future.exception()
        if isinstance(error, OSError):
            self._note_failure(error)
            return None
        publication = publication_future.result()
        self.problem = None
        self.size = publication.size
        self._metrics.snapshot_sequence.set(publication.snapshot.sequence)
        self._metrics.snapshot_time.set_to_current_time()
        self._metrics.snapshot_bytes.set(publication.size)
        self._metrics.publish_seconds.observe(publication.seconds)
        return publication

    def close(self) -> None:
        self._pool.shutdown()
