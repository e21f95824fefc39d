"""One run, from opening the state to the last refit: the only owner of clock, signals, threads and worker processes."""

import gc
import getpass
import os
import platform
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import structlog
from structlog.typing import FilteringBoundLogger

from stream_engine.data import installed_version
from stream_engine.data.available_memory import available
from stream_engine.data.compiled import nothing_is_compiled
from stream_engine.data.logs import OUTPUT
from stream_engine.data.progress_bars import Bars
from stream_engine.formats.reading import DOUBTFUL_ROWS, excluding, in_doubt
from stream_engine.input.layout_inference import prepare
from stream_engine.input.settings import BadSettings, Settings
from stream_engine.input.settings.loading import plain_settings
from stream_engine.input.tried_readings import examples
from stream_engine.input.where_checks import useless_filters
from stream_engine.service import refit_workers
from stream_engine.service.context import Context
from stream_engine.service.main_loop import consume
from stream_engine.service.memory import one_heap
from stream_engine.service.metrics import Metrics
from stream_engine.service.open_run import OpenRun, open_run
from stream_engine.service.requests import Requests
from stream_engine.service.result_line import cautions, counters_of, findings_of, result_line, warned
from stream_engine.service.result_sender import check_publish
from stream_engine.state.store import Store

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
    command: str = "",
    exclude: Callable[[], None] | None = None,
) -> float:
    """Consume, snapshot, refit and serve until the input ends or SIGTERM/SIGINT requests a stop.

    `start_over` removes the content of the state; `say` is called with one line that describes the outcome, and
    `meanwhile` when the refits of the final snapshot run and after each but the last, with the kinds that still run.
    If there are events, `exclude` is called after the refits, to exclude participants from what `say` is told; by
    then the state is free. `command` is the command to repeat with more options if the input can be read in two ways;
    by default `run`.

    Returns the seconds until the final snapshot was published, without its refits. Raises `BadSettings`,
    `connectors.UnusableSource`, `RunFailed`, `connectors.SourceFailed`, `StateInUse`, …
    """
    if not settings.state:
        raise BadSettings("state: not given; use --state DIR")
    if not settings.source and not settings.input.labels:
        raise BadSettings("source: not given; name a file, a glob, - or kafka://HOST:PORT/TOPIC")
    check_publish(settings.publish, settings.kafka)
    if settings.http.tls_certificate is not None:  # before anything is read
        from stream_engine.service.http.certificate import Certificate

        Certificate(settings.http.tls_certificate, settings.http.tls_key)
    directory = Path(settings.state)
    one_heap()
    with _rare_gc(), ExitStack() as stack:
        if settings.refits.all_kinds:
            stack.callback(refit_workers.ORIGIN.close)
            refit_workers.ORIGIN.begin()
        compiles = nothing_is_compiled()  # before the first line is read, by a kernel
        prepared = prepare(settings, command)
        useless = [] if prepared.problem else useless_filters(prepared.settings, settings)
        began_at = time.monotonic()
        requests = Requests()
        requests.reloads.append(OUTPUT.reopen)
        context = Context(metrics or Metrics(), log or structlog.get_logger(), requests)
        stack.enter_context(OUTPUT.losses_to(context.metrics.log_lines_lost.inc))
        if compiles:
            context.log.info("compiling", note="once after an installation or an update; 15 to 20 s of a processor")
        open_state = open_run(settings, directory, context, stack, start_over, prepared)
        stack.enter_context(requests.from_signals(lambda: _nothing_begun(open_state)))
        if command:  # of a page of these files, which has the warnings, too
            Store(directory).note(DOUBTFUL_ROWS, {"texts": in_doubt(prepared.evidence)})
        if prepared.line:
            context.log.info(prepared.line)
            for exclusion in excluding(prepared.evidence):
                context.log.info(f"{exclusion.topic} excluded", by=exclusion.choice, because=exclusion.why)
        counters_before = counters_of(open_state)
        with (
            open_state.service_manager.watching(context.heartbeat.wedged, lambda: _status(open_state)),
            _log_start_and_end(open_state),
        ):
            consume(open_state, progress)
            open_state.service_manager.stopping()
            seconds = time.monotonic() - began_at
            refits = open_state.publishing.refits
            if not command or open_state.learning.engine.counters["events"]:  # no page is made of nothing
                refits.finish(progress, meanwhile)
            open_state.publishing.results.finish()
    if exclude and open_state.learning.engine.counters["events"]:
        exclude()
        open_state.publishing.published.renew_artifacts()
    if say:
        counters = open_state.learning.engine.counters
        if counters["events"] > counters_before.events and not DEADLY & counters["rejected"].keys():
            read_as = [prepared.line] if prepared.line else []
            for line in (*read_as, *(f"for example: {answer}" for answer in examples(open_state.settings))):
                say(line)
        findings_now = findings_of(open_state, command)
        for text in (*useless, *in_doubt(prepared.evidence), *cautions(open_state), *warned(findings_now)):
            say(f"warning: {text}")
        say(result_line(open_state, counters_before, refits.failed, findings_now))
    return seconds


def _nothing_begun(run: OpenRun) -> bool:
    """Whether a stop has nothing to save, and would only wait for the first block, for which code is compiled. Its
    records, which are not learned, then crashed nothing."""
    if not run.context.heartbeat.compiling or run.publishing.publisher.has_changed():
        return False
    run.learning.in_flight.give_up()
    return True


def _status(run: OpenRun) -> str:
    """One line for `systemctl status`."""
    newest, counters = run.publishing.published.newest, run.learning.engine.counters
    snapshot = f"snapshot {newest.snapshot.sequence}" if newest else "no snapshot yet"
    if run.context.heartbeat.compiling:
        return f"starting: compiling, once; {snapshot}"
    why = "paused" if run.context.requests.paused else run.health.not_ready()
    return f"{counters['comparisons']:,} comparisons, {snapshot}" + (f"; not ready: {why}" if why else "")


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
def _log_start_and_end(run: OpenRun) -> Iterator[None]:
    began, counts_before = time.monotonic(), _counts(run)
    run.context.log.info("run started", **_start(run))
    why = "stop requested"
    try:
        yield
        why = run.context.requests.stopped_by or "the input ended"
    except BaseException as error:
        why = f"{type(error).__name__}: {error}"
        raise
    finally:
        increases = {name: n - counts_before[name] for name, n in _counts(run).items()}
        seconds = round(time.monotonic() - began, 1)
        run.context.log.info("run ended", why=why, seconds=seconds, **increases, snapshot=run.learning.engine.sequence)


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
        "settings": _non_default(plain_settings(run.settings), plain_settings(Settings())),
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


def _non_default(values: Mapping[str, Any], default: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """The settings that differ from the defaults, by dotted key; `values` no longer holds any secrets.

    >>> _non_default({"follow": True, "snapshot": {"every": 5, "keep": 3}}, {"snapshot": {"every": 9, "keep": 3}})
    {'follow': True, 'snapshot.every': 5}
    """
    non_default: dict[str, Any] = {}
    for key, value in values.items():
        key_path = f"{where}{key}"
        if isinstance(value, dict) and isinstance(default.get(key), dict):
            non_default |= _non_default(value, default[key], f"{key_path}.")
        elif value != default.get(key) and key_path not in _LOGGED_SEPARATELY:
            non_default[key_path] = value
    return non_default
