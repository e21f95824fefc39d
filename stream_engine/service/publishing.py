"""Snapshots and refits of a run, and what happens after either is published."""

import time
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from connectors import Source
from stream_engine.data import available_memory
from stream_engine.data.signatures import in_environment
from stream_engine.input.settings import Settings
from stream_engine.input.settings.refit_params import params_of
from stream_engine.input.sources import ends
from stream_engine.service.context import Context, RunFailed
from stream_engine.service.learning import Learning
from stream_engine.service.memory import Memory
from stream_engine.service.published_state import PublishedState
from stream_engine.service.refit_schedule import RefitSchedule
from stream_engine.service.refit_workers import RefitProcesses
from stream_engine.service.result_sender import ResultSender
from stream_engine.service.snapshot_publisher import Publication, SnapshotPublisher
from stream_engine.service.source_health import POLL_SECONDS, SourceHealth
from stream_engine.state.store import Store


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
        self.learning.monitor.renew()
        requested, requests.snapshot = requests.snapshot, ""
        reason = self.publisher.due(requested)
        if reason and self.publisher.may_try():
            self._take(reason)
        elif reason and reason == requested:
            requests.snapshot = requested

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

    def _take(self, why: str, last: bool = False) -> None:
        """Start to publish the current state, after the previous publication has ended; `last`: nothing follows."""
        self.learning.join()
        self._finish()
        self.wait_for_memory("snapshot", self.publisher.size)  # the counts are copied
        self.publisher.take(why, last)

    def _finish(self) -> None:
        self.publisher.wait()
        self.collect()

    def take_final(self) -> None:
        """Take the final snapshot if anything changed or there is none yet. Raises `RunFailed` if it cannot be
        written."""
        self.learning.monitor.end()
        self._finish()
        if self.publisher.has_changed() or self.published.newest is None:
            self._take("end", last=True)
            self._finish()
        if self.publisher.problem:
            raise RunFailed(
                f"{self.directory}: could not write the final snapshot: {self.publisher.problem}; the next run will "
                "read again what was read after the previous snapshot"
            )

    def wait_for_memory(self, what: str, n_bytes: int) -> None:
        """Near the memory limit, wait until this many bytes are available, or until nothing is running that could
        release memory."""

        def under_way() -> list[str]:
            return (["snapshot"] if self.publisher.busy() else []) + self.refits.running()

        def pause(since: float) -> bool:
            time.sleep(POLL_SECONDS)
            self.collect()
            self.health.held_up("memory", since)
            return not self.context.requests.stop

        self.memory.wait(what, n_bytes, under_way, pause, self.refits.cancel)


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
    params = {kind: params_of(settings, kind) for kind in settings.refits.all_kinds}
    secrets = in_environment(store.signing)
    workers = RefitProcesses(store.directory, settings.refits.seed, params, secrets)
    export_processes: set[int] = set()
    budget = available_memory.limit_in_bytes(settings.memory_gb)
    memory = Memory(budget, context.metrics, context.log, lambda: [*workers.processes(), *tuple(export_processes)])
    publisher = SnapshotPublisher(
        learning.engine, store, settings.snapshot, learning.dead_letters, learning.monitor, health, context
    )
    stack.callback(publisher.close)
    params_for = partial(params_of, settings)
    refits = RefitSchedule(settings.refits, workers, published, memory, context, params_for, ends(settings))
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
