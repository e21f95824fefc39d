"""What all parts of a run share: metrics, log, requests and heartbeat; and what the HTTP server reads of a run."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from structlog.typing import FilteringBoundLogger

from stream_engine.service.heartbeat import Heartbeat
from stream_engine.service.metrics import Metrics
from stream_engine.service.requests import Requests
from stream_engine.state.published import Published


class RunFailed(RuntimeError):
    """The run cannot continue; its state is that of the last snapshot. One line."""


@dataclass(frozen=True, slots=True)
class Context:
    """The metrics, the log, the pending requests, and the heartbeat of the main loop."""

    metrics: Metrics = field(default_factory=Metrics)
    log: FilteringBoundLogger = field(default_factory=structlog.get_logger)
    requests: Requests = field(default_factory=Requests)
    heartbeat: Heartbeat = field(default_factory=Heartbeat)


@dataclass(frozen=True)
class HttpContext:
    """What the server reads of a run. All of it may be asked from another thread."""

    directory: Path
    metrics: Metrics
    published: Callable[[], Published | None]
    ready: Callable[[], str] = str  # "" or why not
    progressive: Callable[[], dict] = dict
    snapshot_due: Callable[[], float | None] = lambda: None  # seconds until the next snapshot; None: not by time
    heartbeat: Heartbeat = field(default_factory=Heartbeat)
    requests: Requests = field(default_factory=Requests)
    running_refits: Callable[[], Collection[str]] = tuple
    failed_refits: Callable[[], Mapping[str, str]] = dict  # refit -> why its last attempt failed
    memory_for_exports: Callable[[], int | None] = lambda: None
    export_processes: set[int] = field(default_factory=set)  # ids of the running ones
    secrets_for_exports: Mapping[str, str] = field(default_factory=dict)  # environment of processes that read the state
