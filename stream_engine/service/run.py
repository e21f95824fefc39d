"""One run, from opening the state to the last refit: the only owner of clock, signals, threads and worker processes.

Three phases: `open_run`, `consume`, and the refits of the final snapshot; then everything is given back.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import structlog
from structlog.typing import FilteringBoundLogger

from stream_engine.service.consume import consume
from stream_engine.service.metrics import Metrics
from stream_engine.service.open_run import open_run
from stream_engine.service.progress_bars import Bars
from stream_engine.service.recognise import with_recognised
from stream_engine.service.requests import Requests
from stream_engine.service.result_line import before, findings_of, result_line
from stream_engine.service.runnable import check_runnable
from stream_engine.service.settings import BadSettings, Settings
from stream_engine.service.start_and_end import told


def run(
    settings: Settings,
    progress: Bars | None = None,
    metrics: Metrics | None = None,
    log: FilteringBoundLogger | None = None,
    start_over: bool = False,
    say: Callable[[str], None] | None = None,
) -> float:
    """Consume, snapshot, refit, serve, until the input ends or SIGTERM/SIGINT asks to stop; `start_over` removes
    what the state held, and `say` is told in one line what the run came to.

    Returns the seconds until the final snapshot was published; the refits of it are not in them. Raises `BadSettings`,
    `connectors.UnusableSource`, `RunFailed`, `connectors.SourceFailed`, `StateInUse`, …
    """
    if not settings.state:
        raise BadSettings("state: not given; say --state DIR")
    if not settings.source and not settings.input.labels:
        raise BadSettings("source: none given; name a file, a glob, - or kafka://HOST:PORT/TOPIC")
    check_runnable(settings)
    directory = Path(settings.state)
    settings, recognised = with_recognised(settings)
    started = time.monotonic()
    requests = Requests()
    with requests.from_signals(), _few_collections(), ExitStack() as stack:
        metrics = metrics or Metrics()
        log = log or structlog.get_logger()
        if recognised:
            log.info(recognised)
        opened = open_run(settings, directory, requests, stack, metrics, log, start_over)
        began = before(opened)
        with told(opened):
            consume(opened, progress)
            seconds = time.monotonic() - started
            opened.refits.finish(progress)
            if say:
                say(result_line(opened, began, opened.refits.failed, findings_of(opened)))
    return seconds


@contextmanager
def _few_collections() -> Iterator[None]:
    """Collect garbage seldom: messages are many small objects and never cycles, a third less time an event."""
    thresholds = gc.get_threshold()
    gc.set_threshold(100_000, 50, 1000)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
