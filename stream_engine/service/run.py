"""One run, from opening the state to the last refit: the only owner of clock, signals, threads and worker processes.

Three phases: `open_run`, `consume`, and the refits of the final snapshot; then everything is closed.

`consume` is the main loop: read records, count comparisons, take snapshots, until the input ends or a stop is
requested.

    poll -> decode -> dead letters -> predict -> learn

One record after the other; snapshots are taken between records. Decoding runs ahead of this thread and the guard behind
it (`learning`). A snapshot pauses the loop only for the copy; whatever depends on its publication (acknowledging to the
source, refits, HTTP) waits until it is durable.
"""

import gc
import getpass
import os
import platform
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import structlog
from structlog.typing import FilteringBoundLogger

from connectors import Source, SourceFailed
from stream_engine.data import installed_version
from stream_engine.data.available_memory import available
from stream_engine.data.compiled import import_numba
from stream_engine.data.logs import OUTPUT, Bars
from stream_engine.formats.options import UnusableOptions
from stream_engine.formats.reading import excluding
from stream_engine.input.layout_inference import examples, prepared
from stream_engine.input.settings import BadSettings, Settings
from stream_engine.input.settings.loading import plain_settings
from stream_engine.input.sources import block_bytes
from stream_engine.service.context import Context, Requests, RunFailed
from stream_engine.service.learning import take_loss
from stream_engine.service.memory import one_heap
from stream_engine.service.metrics import Metrics
from stream_engine.service.open_run import OpenRun, open_run
from stream_engine.service.result_line import before, cautions, findings_of, result_line
from stream_engine.service.result_sender import check_publish
from stream_engine.service.source_health import POLL_SECONDS
from stream_engine.state.object_index import waiting


def consume(run: OpenRun, progress: Bars | None = None) -> None:
    """Read the file of labels, and until the sources are finished or a stop is requested; then take the final snapshot.

    If a source fails, everything before the failure is counted and included in the snapshot. Raises
    `connectors.SourceFailed`, `RunFailed`.
    """
    learning = run.learning
    try:
        with run.context.heartbeat.long("the file of labels"):
            learning.start(run.settings)
        failure = _read_on(run, progress)
        if not failure and not run.context.requests.stop:
            learning.dead_letters.check_something_was_right(learning.engine.sequence)
        run.publishing.take_final()
    except BaseException as error:
        run.reading.ahead.close()  # or it would note what it is at work on
        if isinstance(error, (MemoryError, OSError, UnusableOptions, SourceFailed, RunFailed)):
            learning.in_flight.clear()
        raise
    if without_comparison := waiting(learning.engine.labels, learning.engine.objects):
        run.context.log.warning(
            "labels of objects without comparisons are kept for later",
            n=len(without_comparison),
            first=without_comparison[:3],
        )
    if failure:
        raise failure


def _read_on(run: OpenRun, progress: Bars | None) -> SourceFailed | None:
    """Process the input until the sources are finished, one of them fails, or a stop is requested."""
    reading, requests = run.reading, run.context.requests
    unfinished, failure = list(reading.sources), None
    try:
        while unfinished and not requests.stop:
            if requests.reload:
                _log_reload(run)
            if requests.paused:
                _stay_paused(run, progress)
                continue
            for source in list(unfinished) if reading.following else unfinished[:1]:
                _poll(run, source, POLL_SECONDS / (len(unfinished) if reading.following else 1), progress)
                if source.finished():
                    unfinished.remove(source)
    except SourceFailed as error:
        failure = error
    _learn_down_to(run, 0, progress)
    reading.ahead.close()
    run.learning.in_flight.clear()  # what was decoded and is not learned, because someone asked to stop
    return failure


def _log_reload(run: OpenRun) -> None:
    """Say that SIGHUP had its effect: the next log line opens the file, and the listener has read its certificate."""
    run.context.requests.reload = False
    run.context.log.info("reloaded", what="log file, TLS certificate")
    run.service_manager.reloaded()


def _stay_paused(run: OpenRun, progress: Bars | None) -> None:
    """Wait briefly without reading, because the run is paused; publications and refits are still processed."""
    _learn_down_to(run, 0, progress)
    paused = run.context.metrics.paused
    paused.set(1)
    run.health.paused()
    run.publishing.between_records()
    time.sleep(POLL_SECONDS)
    paused.set(run.context.requests.paused)


def _poll(run: OpenRun, source: Source, timeout: float, progress: Bars | None) -> None:
    """Process what a source has now."""
    reading, engine, metrics, memory = run.reading, run.learning.engine, run.context.metrics, run.publishing.memory
    run.context.heartbeat.tick()
    run.publishing.wait_for_memory("poll", 0)
    reading.ingest.block_bytes = memory.block_bytes(block_bytes(run.settings.snapshot.every))
    run.health.polled(source)
    started = time.monotonic()
    records = source.poll(0.0 if reading.ahead.polls else timeout)
    metrics.poll_seconds.inc(time.monotonic() - started)
    metrics.commits_refused.inc(source.refused_commits())
    for notice in source.notices():
        run.context.log.warning(notice)
    opened, losses = source.opened(), source.losses()
    if opened or losses:
        _learn_down_to(run, 0, progress)  # a starting point comes behind what was read before
    engine.positions |= opened  # starting points that the source chose belong to the state like those read
    metrics.expect(opened)
    for loss in losses:
        take_loss(engine, loss)
        metrics.follow(engine.counters)
    if records and not run.context.requests.stop:
        reading.ahead.give(records)
        _learn_down_to(run, reading.ahead.most_waiting() if memory.left() > 0 else 0, progress, join=False)
    else:
        _learn_down_to(run, 0, progress)
    run.publishing.between_records()
    run.health.look(source)


def _learn_down_to(run: OpenRun, polls: int, progress: Bars | None, join: bool = True) -> None:
    """Learn records until at most `polls` polls are waiting or a stop is requested; with `join`, also wait for the
    guard."""
    ahead, heartbeat, metrics = run.reading.ahead, run.context.heartbeat, run.context.metrics
    in_record = False  # a record of which a part was learned
    while ahead.polls > polls and (in_record or not run.context.requests.stop):
        before = ahead.seconds
        with heartbeat.block():
            block = ahead.take()
        metrics.decode_seconds.inc(ahead.seconds - before)
        if block is None:
            continue
        in_record = block.more
        with heartbeat.block():
            run.learning.learn(block)
            if not heartbeat.warm:
                run.learning.join()
        heartbeat.warm = True
        if progress:
            progress.taken(run.learning.engine.counters["comparisons"])
        if not in_record:
            run.publishing.between_records()
    if join:
        run.learning.join()


DEADLY = {"process_died", "decoder_failed"}  # events that are not decoded again, to show what was read
_LOGGED_SEPARATELY = ("source", "state")  # logged under names of their own


def run(
    settings: Settings,
    progress: Bars | None = None,
    metrics: Metrics | None = None,
    log: FilteringBoundLogger | None = None,
    start_over: bool = False,
    say: Callable[[str], None] | None = None,
    meanwhile: Callable[[list[str]], None] | None = None,
    typed: str = "",
) -> float:
    """Consume, snapshot, refit and serve until the input ends or SIGTERM/SIGINT requests a stop.

    `start_over` removes the content of the state; `say` is called with one line that describes the outcome, and
    `meanwhile` when the refits of the final snapshot run and after each but the last, with the kinds that still run.
    `typed` is the command to repeat with more options if the input can be read in two ways; by default `run`.

    Returns the seconds until the final snapshot was published, without its refits. Raises `BadSettings`,
    `connectors.UnusableSource`, `RunFailed`, `connectors.SourceFailed`, `StateInUse`, …
    """
    if not settings.state:
        raise BadSettings("state: not given; use --state DIR")
    if not settings.source and not settings.input.labels:
        raise BadSettings("source: not given; name a file, a glob, - or kafka://HOST:PORT/TOPIC")
    check_publish(settings.publish, settings.kafka)
    if settings.http.tls_certificate is not None:  # before anything is read
        from stream_engine.service.http.listener import Certificate

        Certificate(settings.http.tls_certificate, settings.http.tls_key)
    directory = Path(settings.state)
    one_heap()
    compiles = _nothing_is_compiled()  # before the first line is read, by a kernel
    inferred = prepared(settings, typed)
    started = time.monotonic()
    requests = Requests()
    requests.reloads.append(OUTPUT.reopen)
    with _rare_gc(), ExitStack() as stack:
        context = Context(metrics or Metrics(), log or structlog.get_logger(), requests)
        stack.enter_context(OUTPUT.losses_to(context.metrics.log_lines_lost.inc))
        if compiles:
            context.log.info("compiling", note="once after an installation or an update; 15 to 20 s of a processor")
        opened = open_run(settings, directory, context, stack, start_over, inferred)
        stack.enter_context(requests.from_signals(lambda: _nothing_begun(opened)))
        if inferred.said:
            context.log.info(inferred.said)
            for excluded in excluding(inferred.evidence):
                context.log.info(f"{excluded.topic} excluded", by=excluded.choice, because=excluded.why)
        began = before(opened)
        with opened.service_manager.watching(context.heartbeat.wedged, lambda: _status(opened)), _logged(opened):
            consume(opened, progress)
            opened.service_manager.stopping()
            seconds = time.monotonic() - started
            refits = opened.publishing.refits
            refits.finish(progress, meanwhile)
            opened.publishing.results.finish()
            if say:
                counters = opened.learning.engine.counters
                if counters["events"] > began.events and not DEADLY & counters["rejected"].keys():
                    for each in examples(opened.settings):
                        say(f"for example: {each}")
                for each in cautions(opened):
                    say(f"warning: {each}")
                say(result_line(opened, began, refits.failed, findings_of(opened)))
    return seconds


def _nothing_begun(run: OpenRun) -> bool:
    """Whether a stop has nothing to save, and would only wait for the first block, for which code is compiled. Its
    records, which are not learned, then crashed nothing."""
    if not run.context.heartbeat.compiling or run.publishing.publisher.changed():
        return False
    run.learning.in_flight.give_up()
    return True


def _status(run: OpenRun) -> str:
    """One line for `systemctl status`."""
    newest, counters = run.publishing.published.newest, run.learning.engine.counters
    snapshot = f"snapshot {newest.snapshot.sequence}" if newest else "no snapshot yet"
    why = "paused" if run.context.requests.paused else run.health.not_ready()
    return f"{counters['comparisons']:,} comparisons, {snapshot}" + (f"; not ready: {why}" if why else "")


def _nothing_is_compiled() -> bool:
    """Whether this run compiles the kernels, as the first one: that takes most of the time of a short run."""
    import_numba()
    return import_module("stream_engine.data.kernel_cache").is_empty()


@contextmanager
def _rare_gc() -> Iterator[None]:
    """Collect garbage rarely: messages are many small objects without cycles. A third less time per event."""
    thresholds = gc.get_threshold()
    gc.set_threshold(100_000, 50, 1000)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


@contextmanager
def _logged(run: OpenRun) -> Iterator[None]:
    """Log the start and the end of a run, however it ends."""
    began, before = time.monotonic(), _counts(run)
    run.context.log.info("run started", **_start(run))
    why = "stop requested"
    try:
        yield
        why = run.context.requests.stopped_by or "the input ended"
    except BaseException as error:
        why = f"{type(error).__name__}: {error}"
        raise
    finally:
        gained = {name: n - before[name] for name, n in _counts(run).items()}
        seconds = round(time.monotonic() - began, 1)
        run.context.log.info("run ended", why=why, seconds=seconds, **gained, snapshot=run.learning.engine.sequence)


def _counts(run: OpenRun) -> dict[str, int]:
    counters = run.learning.engine.counters
    counts = {name: counters[name] for name in ("records", "events", "comparisons")}
    return {**counts, "rejected": sum(counters["rejected"].values())}


def _start(run: OpenRun) -> dict[str, Any]:
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "version": installed_version(),
        "python": platform.python_version(),
        "pid": os.getpid(),
        "user": _user(),
        "host": platform.node(),
        "state": str(run.directory),
        "snapshot": run.learning.engine.sequence,
        "sources": list(run.settings.source),
        "share": run.settings.input.shard,
        "settings": _differing(plain_settings(run.settings), plain_settings(Settings())),
        "descriptors": "unlimited" if descriptors == resource.RLIM_INFINITY else descriptors,
        "free_memory_gb": round((available() or 0) / 1e9, 1),
        "cpus": len(os.sched_getaffinity(0)),
    }


def _user() -> str:
    """The user's name, or number if it has no name (in a container)."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _differing(given: Mapping[str, Any], default: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The settings that differ from the defaults, by dotted key; `given` no longer holds any secrets.

    >>> _differing({"follow": True, "snapshot": {"every": 5, "keep": 3}}, {"snapshot": {"every": 9, "keep": 3}})
    {'follow': True, 'snapshot.every': 5}
    """
    differing: dict[str, Any] = {}
    for key, value in given.items():
        dotted = f"{where}{key}"
        if isinstance(value, dict) and isinstance(default.get(key), dict):
            differing |= _differing(value, default[key], f"{dotted}.")
        elif value != default.get(key) and dotted not in _LOGGED_SEPARATELY:
            differing[dotted] = value
    return differing
