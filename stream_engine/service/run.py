"""One run, from opening the state to the last refit: the only owner of clock, signals, threads and worker processes.

Three phases: `open_run`, `consume`, and the refits of the final snapshot; then everything is closed.
"""

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

from stream_engine.data.available_memory import available
from stream_engine.data.version import installed_version
from stream_engine.service.consume import consume
from stream_engine.service.context import Context, Requests
from stream_engine.service.metrics import Metrics
from stream_engine.service.open_run import OpenRun, open_run
from stream_engine.service.progress_bars import Bars
from stream_engine.service.result_line import before, findings_of, result_line
from stream_engine.service.settings import BadSettings, Settings
from stream_engine.service.settings.loading import shown
from stream_engine.service.sources import prepared

_BESIDE = ("source", "state")  # logged under names of their own


def run(
    settings: Settings,
    progress: Bars | None = None,
    metrics: Metrics | None = None,
    log: FilteringBoundLogger | None = None,
    start_over: bool = False,
    say: Callable[[str], None] | None = None,
) -> float:
    """Consume, snapshot, refit and serve until the input ends or SIGTERM/SIGINT requests a stop.

    `start_over` removes the content of the state; `say` is called with one line that describes the outcome.

    Returns the seconds until the final snapshot was published, without its refits. Raises `BadSettings`,
    `connectors.UnusableSource`, `RunFailed`, `connectors.SourceFailed`, `StateInUse`, …
    """
    if not settings.state:
        raise BadSettings("state: not given; use --state DIR")
    if not settings.source and not settings.input.labels:
        raise BadSettings("source: not given; name a file, a glob, - or kafka://HOST:PORT/TOPIC")
    directory = Path(settings.state)
    settings, recognised = prepared(settings)
    started = time.monotonic()
    requests = Requests()
    with requests.from_signals(), _few_collections(), ExitStack() as stack:
        context = Context(metrics or Metrics(), log or structlog.get_logger(), requests)
        if recognised:
            context.log.info(recognised)
        opened = open_run(settings, directory, context, stack, start_over)
        began = before(opened)
        with _logged(opened):
            consume(opened, progress)
            seconds = time.monotonic() - started
            refits = opened.publishing.refits
            refits.finish(progress)
            if say:
                say(result_line(opened, began, refits.failed, findings_of(opened)))
    return seconds


@contextmanager
def _few_collections() -> Iterator[None]:
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
    return {**counts, "refused": sum(counters["rejected"].values())}


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
        "settings": _differing(shown(run.settings), shown(Settings())),
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
    found: dict[str, Any] = {}
    for key, value in given.items():
        dotted = f"{where}{key}"
        if isinstance(value, dict) and isinstance(default.get(key), dict):
            found |= _differing(value, default[key], f"{dotted}.")
        elif value != default.get(key) and dotted not in _BESIDE:
            found[dotted] = value
    return found
