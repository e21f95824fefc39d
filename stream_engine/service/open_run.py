"""The first phase of a run: take the state directory, restore the newest whole snapshot, open everything else.

What is opened is given back by an `ExitStack` in the opposite order, however the run ends.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog
from structlog.typing import FilteringBoundLogger

from connectors import Position, Sink, Source, split_uri
from connectors.files.line_numbers import LineNumbers
from connectors.files.paths import named_twice
from stream_engine.data import available_memory, mapped_arrays
from stream_engine.data.comparisons import Quadruplet, Triplet
from stream_engine.data.signatures import in_environment
from stream_engine.guard.stored_states import FORMER
from stream_engine.service import ingest, wiring
from stream_engine.service.dead_letters import DeadLetters, count_lost
from stream_engine.service.descriptors import raised_limit
from stream_engine.service.heartbeat import Heartbeat
from stream_engine.service.http import HttpContext, serve
from stream_engine.service.in_flight import InFlight
from stream_engine.service.made_with import agreed_options, with_options_of
from stream_engine.service.memory import Memory
from stream_engine.service.metrics import Metrics
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.service.published_state import PublishedState
from stream_engine.service.refit_schedule import RefitSchedule
from stream_engine.service.refit_workers import Workers
from stream_engine.service.requests import Requests
from stream_engine.service.run_failed import RunFailed
from stream_engine.service.settings import BadSettings, Settings, params_of
from stream_engine.service.share import partition_numbers
from stream_engine.service.snapshot_publisher import SnapshotPublisher
from stream_engine.service.source_health import SourceHealth
from stream_engine.service.stages import Ahead, Judging, cpus
from stream_engine.service.stall_watchdog import StallWatchdog
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Lock, Store


@dataclass(frozen=True, slots=True)
class OpenRun:
    """One process that owns one state directory, with all that it works with."""

    settings: Settings
    directory: Path
    engine: Engine
    sources: list[Source]
    ingest: ingest.Ingest
    ahead: Ahead
    judging: Judging
    in_flight: InFlight
    dead_letters: DeadLetters
    health: SourceHealth
    monitor: PredictionMonitor
    publisher: SnapshotPublisher
    published: PublishedState
    refits: RefitSchedule
    memory: Memory
    requests: Requests
    heartbeat: Heartbeat
    metrics: Metrics
    log: FilteringBoundLogger


def open_run(
    settings: Settings,
    directory: Path,
    requests: Requests,
    stack: ExitStack,
    metrics: Metrics | None = None,
    log: FilteringBoundLogger | None = None,
    start_over: bool = False,
) -> OpenRun:
    """Everything open, at the positions of the newest whole snapshot, or with `start_over` at the beginning, all that
    was published removed; `stack` gives it back.

    Raises `BadSettings`, `RunFailed`, `StateInUse`, `connectors.UnusableSource`, …
    """
    raised_limit()
    metrics = metrics or Metrics()
    log = log or structlog.get_logger()
    stack.callback(Lock(directory).release)
    signing = wiring.signing(settings)
    store = Store(directory, signing=signing, tell=lambda problem: log.warning("passed over", problem=problem))
    params = {kind: params_of(settings, kind) for kind in settings.refits.wanted if settings.refits.enabled}
    workers = Workers(directory, settings.refits.seed, params, in_environment(signing))
    exporting: set[int] = set()  # processes
    memory = _memory(settings, lambda: [*workers.processes(), *tuple(exporting)], stack, metrics, log)
    if start_over:
        _start_over(store, log)
    newest, engine = _restored(settings, store, stack, log)
    read_before = any(not name.startswith("labels:") for name in engine.positions)
    if read_before:
        settings = with_options_of(settings, engine.counters["input"])
    engine.counters["input"] = agreed_options(settings, engine.counters["input"], read_before)
    monitor, published = _monitored(settings, store, newest, engine, stack, metrics, log)
    watchdog = StallWatchdog(settings.input.stall_after, metrics, log)
    heartbeat = Heartbeat()
    metrics.loop_ticked.set_function(lambda: heartbeat.time)
    health = SourceHealth(engine, watchdog, metrics, requests, heartbeat)
    sinks = _closing(wiring.sinks(settings, directory, engine.sinks), stack)
    lines = LineNumbers(settings.input.format, wiring.text_layout_of(settings))
    stack.callback(lines.close)
    dead_letters = DeadLetters(
        sinks,
        settings.input.max_reject_ratio,
        health,
        requests,
        log,
        settings.dead_letters_keep_bytes,
        lines,
    )
    dead_letters.published(engine.sinks)
    publisher = SnapshotPublisher(engine, store, settings.snapshot, dead_letters, monitor, health, metrics, log)
    stack.callback(publisher.close)
    count_lost(engine, sinks, log)
    if settings.input.labels:
        _learn_labels(settings.input.labels, settings.input.labels_columns, engine, dead_letters, log)
        metrics.follow(engine.counters)
    sources = _open_sources(settings, engine.positions, health, stack)
    metrics.expect(partition_numbers(settings, engine.positions), settings.refits.wanted)
    in_flight = _in_flight(settings, directory, engine, stack, log)
    reading, ahead, judging = _stages(settings, engine, in_flight, stack)
    asked_params, at_end = partial(params_of, settings), wiring.ends(settings)
    refits = RefitSchedule(
        settings.refits, workers, published, requests, metrics, log, memory, heartbeat, asked_params, at_end
    )
    stack.callback(refits.close)
    context = HttpContext(
        directory=directory,
        metrics=metrics,
        published=lambda: published.newest,
        ready=health.not_ready,
        progressive=lambda: monitor.figures,
        heartbeat=heartbeat,
        requests=requests,
        running_refits=lambda: tuple(workers.running),
        failed_refits=lambda: dict(refits.failed),
        memory_for_exports=lambda: memory.for_export() if memory.is_given else None,
        export_processes=exporting,
        secrets_for_exports=in_environment(signing),
    )
    serve(context, settings, log, stack)
    _say_where_letters_go(settings, directory, log)
    return OpenRun(
        settings=settings,
        directory=directory,
        engine=engine,
        sources=sources,
        ingest=reading,
        ahead=ahead,
        judging=judging,
        in_flight=in_flight,
        dead_letters=dead_letters,
        health=health,
        monitor=monitor,
        publisher=publisher,
        published=published,
        refits=refits,
        memory=memory,
        requests=requests,
        heartbeat=heartbeat,
        metrics=metrics,
        log=log,
    )


def _memory(
    settings: Settings,
    processes: Callable[[], list[int]],
    stack: ExitStack,
    metrics: Metrics,
    log: FilteringBoundLogger,
) -> Memory:
    """What the run and its other `processes` may take; given for as long as it is open."""
    budget = available_memory.limit_in_bytes(settings.memory_gb)
    available_memory.give(budget)
    stack.callback(available_memory.give, None)
    return Memory(budget, metrics, log, processes)


def _monitored(
    settings: Settings,
    store: Store,
    newest: Snapshot | None,
    engine: Engine,
    stack: ExitStack,
    metrics: Metrics,
    log: FilteringBoundLogger,
) -> tuple[PredictionMonitor, PublishedState]:
    """What predicts, and what is served, both at the newest snapshot."""
    monitor = PredictionMonitor(settings.drift, metrics, log, wiring.online(settings, store, newest))
    stack.callback(monitor.close)
    published = PublishedState(store, monitor, metrics, log)
    if newest:
        metrics.start_from(engine.counters)
        monitor.serve(newest)
        published.serve(newest)
    return monitor, published


def _stages(
    settings: Settings, engine: Engine, in_flight: InFlight, stack: ExitStack
) -> tuple[ingest.Ingest, Ahead, Judging]:
    """What decodes, and the two threads: decoding ahead, and judging beside it."""
    reading = ingest.Ingest(wiring.event_options(settings), settings.input.format, in_flight)
    beside = cpus() > 1 and not in_flight.suspected  # one by one until it is known which record kills the process
    ahead, judging = Ahead(reading.blocks, beside), Judging(engine, beside)
    stack.callback(judging.close)
    stack.callback(ahead.close)
    return reading, ahead, judging


def _start_over(store: Store, log: FilteringBoundLogger) -> None:
    """Remove what was published, the newest snapshot first: what is left after a crash is the state of before it."""
    numbers = store.sequences()
    for sequence in reversed(numbers):
        store.disk.remove(store.snapshot_path(sequence))
    for kind in store.kinds():
        for sequence in store.artifact_sequences(kind):
            store.disk.remove(store.artifact_path(kind, sequence))
    log.warning("started over: what the state held is removed", snapshots=numbers)


def _restored(
    settings: Settings, store: Store, stack: ExitStack, log: FilteringBoundLogger
) -> tuple[Snapshot | None, Engine]:
    """The newest whole snapshot, if there is one, and the engine that goes on from it, its large arrays kept where the
    settings say."""
    allocation = mapped_arrays.IN_MEMORY
    if settings.counts.on_disk_above:
        allocation = mapped_arrays.on_disk(store.directory / "scratch", settings.counts.on_disk_above)
        stack.callback(allocation.close)
    engines: list[Engine] = []
    newest = _newest_snapshot(store, log, lambda each: engines.append(wiring.restored(settings, each, allocation)))
    engine = engines[-1] if engines else wiring.restored(settings, None, allocation)
    if newest and newest.ignored:
        log.warning(
            "statistics of an older version are not read",
            names=", ".join(newest.ignored),
            instead="stream-engine refit reliability, export workers",
        )
    if newest and newest.settings["guard"] in FORMER:
        what = "the comparisons that it kept; counts and everything else are unchanged"
        log.info("the partial order was made with a former policy", policy=newest.settings["guard"], resumes_from=what)
    kept, wanted = engine.accumulators.keys(), set(wiring.accumulators_in_use(settings, None))
    for name in sorted(wiring.LATER & set(settings.accumulators) - kept):
        because = "of a state made without them" if name in wanted else "of a setting, or of deltas, which hold counts"
        log.info(f"no {name.replace('_', ' ')} are kept", because=because)
    return newest, engine


def _say_where_letters_go(settings: Settings, directory: Path, log: FilteringBoundLogger) -> None:
    log.info(
        "dead letters",
        folder=str(wiring.letters_folder(settings, directory)),
        keep_bytes=settings.dead_letters_keep_bytes or "all",
    )


def _newest_snapshot(store: Store, log: FilteringBoundLogger, restore: Callable[[Snapshot], object]) -> Snapshot | None:
    """The newest whole snapshot that can be restored. Raises `RunFailed` when there are some and all are damaged."""
    latest = store.latest(restore)
    for problem in latest.damaged:
        log.error("snapshot damaged, using the one before it", problem=problem)
    if latest.damaged and latest.snapshot is None:
        raise RunFailed(
            f"{store.directory}: every snapshot is damaged ({latest.damaged[0]}); restore one from a copy, "
            "or start anew with another --state"
        )
    return latest.snapshot


def _in_flight(
    settings: Settings, directory: Path, engine: Engine, stack: ExitStack, log: FilteringBoundLogger
) -> InFlight:
    """The note of what is at work. Where there are suspects, what is compiled on first use is compiled now: no record
    is to be blamed for the time that takes."""
    in_flight = InFlight(directory, engine.positions)
    stack.callback(in_flight.close)
    if in_flight.died_at:
        log.warning("the process before this one died at work", at=in_flight.died_at)
    if in_flight.suspected:
        wiring.restored(settings, None).learn_many([Triplet("a", "b", "c"), Quadruplet(("a", "b"), ("c", "d"))])
    return in_flight


def _closing(sinks: Mapping[str, Sink], stack: ExitStack) -> Mapping[str, Sink]:
    for sink in sinks.values():
        stack.callback(sink.close)
    return sinks


def _open_sources(
    settings: Settings, positions: Mapping[str, Position], health: SourceHealth, stack: ExitStack
) -> list[Source]:
    if twice := named_twice(rest for scheme, rest in map(split_uri, settings.source) if scheme == "file"):
        raise BadSettings(f"source: {twice}: named by two sources, its events would count twice; name it once")
    sources = []
    for uri in settings.source:
        source = wiring.source(settings, uri, positions)
        stack.callback(source.close)
        health.add(uri, source)
        sources.append(source)
    return sources


def _learn_labels(
    path: str,
    columns_of: Mapping[str, str],
    engine: Engine,
    dead_letters: DeadLetters,
    log: FilteringBoundLogger,
) -> None:
    """Learn the file of labels, unless the state has read this very content of it."""
    columns = {field: tuple(names.split("|")) for field, names in columns_of.items()}
    partition = f"labels:{os.path.abspath(path)}"
    blocks, position = ingest.read_labels(path, columns)
    read_before = engine.positions.get(partition)
    if read_before == position:
        return
    if read_before:
        log.info("labels file changed, reading it again", file=path)
    for block in blocks:
        block = block._replace(records=[record._replace(partition=partition) for record in block.records])
        dead_letters.keep(block, engine.sequence)
        engine.learn(block.decoded, {partition: position}, block.counts().total())
