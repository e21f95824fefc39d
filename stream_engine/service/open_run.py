"""Opening a run: lock the state directory, restore its newest intact snapshot, and open input, learning and
publishing."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from connectors import Position, Source, split_uri
from stream_engine.data import available_memory
from stream_engine.data.comparisons import Quadruplet, Triplet
from stream_engine.data.descriptors import raised_limit
from stream_engine.data.signatures import in_environment
from stream_engine.input.decoding import RecordDecoder
from stream_engine.input.in_flight import InFlight
from stream_engine.input.settings import Settings
from stream_engine.input.settings.loading import signing_of
from stream_engine.input.sources import event_options, source
from stream_engine.input.stored_options import PreparedSettings
from stream_engine.service.context import Context, HttpContext
from stream_engine.service.dead_letters import folder_of
from stream_engine.service.learning import Learning, open_learning
from stream_engine.service.partition_share import partition_numbers
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.service.published_state import PublishedState
from stream_engine.service.publishing import Publisher, open_publishing
from stream_engine.service.resumed import restore_engine, resume
from stream_engine.service.source_health import SourceHealth
from stream_engine.service.stages import DecodeStage, cpus
from stream_engine.service.systemd import ServiceManager
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Lock, Store


@dataclass(frozen=True, slots=True)
class InputStage:
    """The sources, the decoders, and the stage in which they run; `following`: the sources do not end, so they are
    read in turn."""

    sources: list[Source]
    ingest: RecordDecoder
    decoding: DecodeStage
    following: bool


def open_reading(
    settings: Settings,
    positions: Mapping[str, Position],
    in_flight: InFlight,
    health: SourceHealth,
    stack: ExitStack,
) -> InputStage:
    """Open the sources at the positions of the state, and the decoding thread; `stack` closes them."""
    sources = []
    for uri in settings.source:
        opened_source = source(settings, uri, positions)
        stack.callback(opened_source.close)
        health.add(uri, opened_source)
        sources.append(opened_source)
    ingest = RecordDecoder(event_options(settings), settings.input.format, in_flight)
    # one by one until it is known which record crashes the process
    decoding = DecodeStage(ingest.blocks, in_thread=cpus() > 1 and not in_flight.suspects_of_crash)
    stack.callback(decoding.close)
    following = settings.follow or any(split_uri(uri)[0] == "kafka" for uri in settings.source)
    return InputStage(sources, ingest, decoding, following)


@dataclass(frozen=True, slots=True)
class OpenRun:
    """One process that owns one state directory."""

    settings: Settings
    directory: Path
    reading: InputStage
    learning: Learning
    publishing: Publisher
    health: SourceHealth
    context: Context
    service_manager: ServiceManager


def open_run(
    settings: Settings,
    directory: Path,
    context: Context,
    stack: ExitStack,
    start_over: bool = False,
    prepared: PreparedSettings | None = None,
) -> OpenRun:
    """Open everything at the positions of the newest intact snapshot, or with `start_over` at the beginning, with all
    published files removed; `stack` closes it. `prepared` is how the input is read without options.

    Raises `BadSettings`, `RunFailed`, `StateInUse`, `connectors.UnusableSource`, …
    """
    raised_limit()
    service_manager = ServiceManager()
    service_manager.tell(STATUS="starting")
    log, metrics = context.log, context.metrics
    stack.callback(Lock(directory, "stop that run first, or give this one a --state of its own").release)
    available_memory.give(available_memory.limit_in_bytes(settings.memory_gb))
    stack.callback(available_memory.give, None)
    store = _store(settings, directory, context)
    engine, newest, settings = resume(settings, store, stack, log, start_over, prepared)
    metrics.loop_ticked.set_function(lambda: context.heartbeat.time)
    health = SourceHealth(engine, context)
    in_flight = _in_flight(settings, directory, engine, context, stack)
    monitor, published_state = _open_monitor(settings, store, newest, engine, context, stack)
    learning = open_learning(settings, directory, engine, monitor, in_flight, health, context, stack)
    reading = open_reading(settings, engine.positions, in_flight, health, stack)
    publishing = open_publishing(settings, store, published_state, learning, reading.sources, health, context, stack)
    metrics.expect(partition_numbers(settings, engine.positions), settings.refits.all_kinds)
    memory = publishing.memory
    http_context = HttpContext(
        directory=directory,
        metrics=metrics,
        published=lambda: published_state.newest,
        ready=health.not_ready,
        progressive=lambda: monitor.figures,
        snapshot_due=publishing.publisher.seconds_until_due,
        heartbeat=context.heartbeat,
        requests=context.requests,
        running_refits=lambda: tuple(publishing.workers.running),
        failed_refits=lambda: dict(publishing.refits.failed),
        memory_for_exports=lambda: memory.for_export() if memory.is_given else None,
        export_processes=publishing.export_processes,
        secrets_for_exports=in_environment(store.signing),
    )
    if settings.listen is not None:
        from stream_engine.service.http.routes import serve_run  # a web framework only where something is served

        listener = serve_run(http_context, settings.listen, settings.http, log, stack)
        context.requests.reloads.append(listener.renew_certificate)
    keep_bytes = settings.dead_letters_keep_bytes or "all"
    log.info("dead letters", folder=str(folder_of(settings, directory)), keep_bytes=keep_bytes)
    return OpenRun(settings, directory, reading, learning, publishing, health, context, service_manager)


def _store(settings: Settings, directory: Path, context: Context) -> Store:
    """The published files. Raises `BadKey`."""
    return Store(
        directory,
        signing=signing_of(settings),
        tell=lambda problem: context.log.warning("file skipped", problem=problem),
    )


def _in_flight(settings: Settings, directory: Path, engine: Engine, context: Context, stack: ExitStack) -> InFlight:
    """The note of records being processed. If there are suspects, kernels are compiled now, so that no record is blamed
    for the time of compiling."""
    in_flight = InFlight(directory, engine.positions)
    stack.callback(in_flight.close)
    if in_flight.died_at:
        context.log.warning("the previous process crashed while processing records", at=in_flight.died_at)
    if in_flight.suspects_of_crash:
        restore_engine(settings, None).learn_many([Triplet("a", "b", "c"), Quadruplet(("a", "b"), ("c", "d"))])
    return in_flight


def _open_monitor(
    settings: Settings, store: Store, newest: Snapshot | None, engine: Engine, context: Context, stack: ExitStack
) -> tuple[PredictionMonitor, PublishedState]:
    """The predictors, and the state that is served, both at the newest snapshot."""
    online = None
    if settings.online.enabled:
        from stream_engine.embedding.online_predictor import KIND, Online

        online = Online(seed=settings.refits.seed)
        if newest and (artifact := store.latest_artifact(KIND, newest.sequence, len(newest.objects))):
            online.resume(artifact)
    monitor = PredictionMonitor(settings.drift, context.metrics, context.log, online, settings.features)
    stack.callback(monitor.close)
    published_state = PublishedState(store, monitor, context.metrics, context.log)
    if newest:
        context.metrics.start_from(engine.counters)
        context.metrics.start_at(newest.sequence, store.snapshot_path(newest.sequence).stat())
        context.metrics.objects.set(len(engine.objects))
        context.metrics.labels.set(len(engine.labels))
        monitor.serve(newest)
        published_state.set_newest(newest)
    return monitor, published_state
