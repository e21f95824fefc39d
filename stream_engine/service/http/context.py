"""What the HTTP server reads of a run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stream_engine.service.context import Heartbeat, Requests

if TYPE_CHECKING:  # processes that make exports import this room, and need none of it
    from stream_engine.service.metrics import Metrics
    from stream_engine.state.published import Published


@dataclass(frozen=True)
class HttpContext:
    """What the server reads of a run. All of it may be asked from another thread."""

    directory: Path
    metrics: Metrics
    published: Callable[[], Published | None]
    ready: Callable[[], str] = str  # "" or why not
    progressive: Callable[[], dict] = dict
    heartbeat: Heartbeat = field(default_factory=Heartbeat)
    requests: Requests = field(default_factory=Requests)
    running_refits: Callable[[], Collection[str]] = tuple
    failed_refits: Callable[[], Mapping[str, str]] = dict  # those whose last attempt failed -> why
    memory_for_exports: Callable[[], int | None] = lambda: None
    export_processes: set[int] = field(default_factory=set)  # the ids of those at work
    secrets_for_exports: Mapping[str, str] = field(default_factory=dict)  # environment of processes that read the state
