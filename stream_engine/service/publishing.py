"""Snapshots and refits of a run, and what happens after either is published.

Snapshots are copied between two records, then encoded, hashed and synced in another thread. Only one publication at a
time, so that the content of a snapshot never depends on the speed of the disk.

The disk must have room for the snapshots to keep and for the one being written: available are the free space and the
space of the kept snapshots; required is (keep + 1) times the newest one.
"""

import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from structlog.typing import FilteringBoundLogger

from connectors import Position, SinkUnavailable, Source
from stream_engine.data import available_memory
from stream_engine.data.signatures import in_environment
from stream_engine.input.settings import Settings, SnapshotSettings
from stream_engine.input.settings.loading import params_of
from stream_engine.input.sources import ends
from stream_engine.service.context import Context, PublishedState, RunFailed
from stream_engine.service.dead_letters import DeadLetters
from stream_engine.service.learning import Learning
from stream_engine.service.memory import Memory
from stream_engine.service.metrics import Metrics
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.service.refit_schedule import RefitSchedule
from stream_engine.service.refit_workers import RefitProcesses
from stream_engine.service.result_sender import ResultSender
from stream_engine.service.source_health import POLL_SECONDS, SourceHealth
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store


class DiskRoom:
    """Watches the disk of one state; logs once when it is too full, and once when there is room again."""

    def __init__(self, store: Store, keep: int, metrics: Metrics, log: FilteringBoundLogger):
        self._store, self._keep, self._metrics, self._log = store, keep, metrics, log
        self._short = False

    def look(self) -> None:
        """Update the available and the required space."""
        sizes = self._sizes()
        try:
            room = shutil.disk_usage(self._store.directory).free + sum(sizes)
        except OSError:
            return  # publishing reports the problem
        n_bytes = (self._keep + 1) * (sizes[-1] if sizes else 0)
        self._metrics.disk_room.set(room)
        self._metrics.disk_needed.set(n_bytes)
        if (room < n_bytes) != self._short:
            self._short = room < n_bytes
            say = self._log.warning if self._short else self._log.info
            say(
                "too little disk space for snapshots; free some, or keep fewer snapshots (--keep)"
                if self._short
                else "enough disk space for snapshots again",
                room=room,
                needed=n_bytes,
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


GROWTH = 1 / 4  # share of the last snapshot's comparisons: then all snapshots together cost five times the last
LEAST_GROWTH = 10_000_000  # comparisons: a few seconds of work, which the interval covers
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
    return max(LEAST_GROWTH, int(GROWTH * n_accepted)) if every is None else every


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
        self._taken = self._now()
        self.size = 0  # bytes of the last snapshot published by this run
        self.problem: Exception | None = None  # why the last snapshot was not published

    def _now(self) -> _SnapshotMark:
        return _SnapshotMark(
            self._engine.counters["comparisons"], dict(self._engine.positions), time.monotonic(), self._n_actions()
        )

    def _n_actions(self) -> int:
        return len(self._engine.history)

    def changed(self) -> bool:
        """Whether anything was read, or done to the state, since the last snapshot."""
        return self._engine.positions != self._taken.positions or self._n_actions() != self._taken.n_actions

    def due(self, asked: str) -> str:
        """Why a snapshot is due now, "" if none is: `asked` (the reason of a request), "comparisons" or "interval".
        Nothing is due without a change since the last one; this is checked last, because it looks at every position."""
        due, every, interval = asked, self._settings.every, self._settings.interval
        enough = comparisons_until_next(every, self._taken.comparisons)
        if not due and enough and self._engine.counters["comparisons"] - self._taken.comparisons >= enough:
            due = "comparisons"
        if not due and interval and time.monotonic() - self._taken.time >= interval:
            due = "interval"
        return due if due and self.changed() else ""

    def may_try(self) -> bool:
        """False for a while after a publication failed."""
        return time.monotonic() >= self._retry_at

    def take(self, why: str) -> None:
        """Copy the state and start to publish it; the previous publication must have been collected."""
        started = time.monotonic()
        try:
            self._room.look()
            self._dead_letters.flush(self._pool, self._engine.sinks, self._engine.counters["dead_letters"])
        except (SinkUnavailable, OSError) as error:
            return self._failed(error)
        while self._store.is_occupied(self._engine.sequence + 1):
            self._engine.sequence += 1
        with self._heartbeat.long("the copy of the state"):
            counts, whole = self._engine.capture()
            self._monitor.serve(counts)
        self._taken = self._now()
        self._metrics.pause_seconds.observe(time.monotonic() - started)
        self._log.debug("snapshot", sequence=counts.sequence, why=why)
        self._publishing = self._pool.submit(self._publish, whole, started)
        return None

    def _publish(self, whole: Callable[[], Snapshot], started: float) -> Publication:
        snapshot, size = self._store.publish(whole())
        self._store.prune(self._settings.keep, snapshot.sequence)
        self._dead_letters.published(snapshot.counters["sinks"])
        return Publication(snapshot, size, time.monotonic() - started)

    def _failed(self, error: Exception) -> None:
        self._metrics.snapshot_failures.inc()
        self._log.error(
            "snapshot not published; the previous one remains valid", problem=str(error), retry_seconds=RETRY_SECONDS
        )
        self._taken = self._taken._replace(positions={})  # so that the next is due even if nothing more arrives
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self.problem = error

    def busy(self) -> bool:
        """Whether a snapshot is being published."""
        return self._publishing is not None and not self._publishing.done()

    def wait(self) -> None:
        """Wait until nothing is being published."""
        if self._publishing:
            self._health.wait_for("snapshot", self._publishing)

    def collect(self) -> Publication | None:
        """The publication that succeeded since the last call, if any; never waits."""
        if self._publishing is None or not self._publishing.done():
            return None
        ended, self._publishing = self._publishing, None
        error = ended.exception()
        if isinstance(error, OSError):
            self._failed(error)
            return None
        publication = ended.result()
        self.problem = None
        self.size = publication.size
        self._metrics.snapshot_sequence.set(publication.snapshot.sequence)
        self._metrics.snapshot_time.set_to_current_time()
        self._metrics.snapshot_bytes.set(publication.size)
        self._metrics.publish_seconds.observe(publication.seconds)
        return publication

    def close(self) -> None:
        """Wait for the thread."""
        self._pool.shutdown()


@dataclass(frozen=True, slots=True)
class Publisher:
    """The snapshot publisher, the published state, the refits, and the memory budget that they share."""

    publisher: SnapshotPublisher
    published: PublishedState
    refits: RefitSchedule
    results: ResultSender
    workers: RefitProcesses
    export_processes: set[int]
    memory: Memory
    learning: Learning
    sources: list[Source]
    health: SourceHealth
    directory: Path
    context: Context

    def between_records(self) -> None:
        """Process publications and refits that ended, and take a snapshot if one is due."""
        requests = self.context.requests
        self.collect()
        asked, requests.snapshot = requests.snapshot, ""
        why = self.publisher.due(asked)
        if why and self.publisher.may_try():
            self._take(why)
        elif why and why == asked:
            requests.snapshot = asked

    def collect(self) -> None:
        """Process publications and refits that ended in other threads and processes."""
        if publication := self.publisher.collect():
            self._announce(publication)
        self.refits.collect()
        self.results.collect()

    def _announce(self, publication: Publication) -> None:
        """Do everything that had to wait until this snapshot was durable."""
        snapshot, size, seconds = publication
        self.published.announce(snapshot)
        for source in self.sources:
            source.published(snapshot.positions)
        self.context.log.info(
            "snapshot published",
            sequence=snapshot.sequence,
            comparisons=snapshot.counters["comparisons"],
            objects=len(snapshot.objects),
            bytes=size,
            seconds=round(seconds, 3),
        )
        self.refits.start_due()

    def _take(self, why: str) -> None:
        """Start to publish the current state, after the previous publication has ended."""
        self.learning.join()
        self._finish()
        self.wait_for_memory("snapshot", self.publisher.size)  # the counts are copied
        self.publisher.take(why)

    def _finish(self) -> None:
        self.publisher.wait()
        self.collect()

    def take_final(self) -> None:
        """Take the final snapshot if anything changed or there is none yet. Raises `RunFailed` if it cannot be
        written."""
        self.learning.monitor.end()
        self._finish()
        if self.publisher.changed() or self.published.newest is None:
            self._take("end")
            self._finish()
        if self.publisher.problem:
            raise RunFailed(
                f"{self.directory}: could not write the final snapshot: {self.publisher.problem}; the next run will "
                "read again what was read after the previous snapshot"
            )

    def wait_for_memory(self, what: str, needed: int) -> None:
        """Near the memory limit, wait until this many bytes are available, or until nothing is running that could
        release memory."""

        def under_way() -> list[str]:
            return (["snapshot"] if self.publisher.busy() else []) + self.refits.running()

        def pause(since: float) -> bool:
            time.sleep(POLL_SECONDS)
            self.collect()
            self.health.held_up("memory", since)
            return not self.context.requests.stop

        self.memory.wait(what, needed, under_way, pause, self.refits.cancel)


def open_publishing(
    settings: Settings,
    store: Store,
    published: PublishedState,
    learning: Learning,
    sources: list[Source],
    health: SourceHealth,
    context: Context,
    stack: ExitStack,
) -> Publisher:
    """Open the publishing thread and the schedule of refits; `stack` closes them."""
    params = {kind: params_of(settings, kind) for kind in settings.refits.wanted}
    secrets = in_environment(store.signing)
    workers = RefitProcesses(store.directory, settings.refits.seed, params, secrets)
    export_processes: set[int] = set()
    budget = available_memory.limit_in_bytes(settings.memory_gb)
    memory = Memory(budget, context.metrics, context.log, lambda: [*workers.processes(), *tuple(export_processes)])
    publisher = SnapshotPublisher(
        learning.engine, store, settings.snapshot, learning.dead_letters, learning.monitor, health, context
    )
    stack.callback(publisher.close)
    asked_params = partial(params_of, settings)
    refits = RefitSchedule(settings.refits, workers, published, memory, context, asked_params, ends(settings))
    stack.callback(refits.close)
    results = ResultSender(settings.publish, settings.kafka, store.directory, published, context, secrets)
    stack.callback(results.close)
    return Publisher(
        publisher,
        published,
        refits,
        results,
        workers,
        export_processes,
        memory,
        learning,
        sources,
        health,
        store.directory,
        context,
    )
