"""What the HTTP server sees of a run; apart from the server, which a run without a listener does not load."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stream_engine.service.heartbeat import Heartbeat
from stream_engine.service.metrics import Metrics
from stream_engine.service.requests import Requests
from stream_engine.service.settings import Settings
from stream_engine.state.published import Published


@dataclass(frozen=True)
class Seen:
    """All of it may be asked from another thread."""

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


def is_asked_for(settings: Settings) -> bool:
    """Do the settings ask for a listener, or for files of TLS that have to be looked at?"""
    http = settings.http
    return any(each is not None for each in (settings.listen, http.admin_listen, http.tls_certificate, http.tls_key))
