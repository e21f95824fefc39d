"""What all parts of a run share: metrics, log, requests, heartbeat, and what was published.

`Requests`: to stop, or to take a snapshot soon.

`Heartbeat`: whether the main loop of a run is alive. It ticks at every poll and block, and during every known wait. A
loop that waits for a full disk or an unreachable broker ticks, so it is alive. A loop that hangs does not. Steps that
may take long (copying a large state, compiling code on first use) announce it and get more time, but never unlimited
time. Written by the main loop, read by any thread.

`PublishedState`: what a run has published so far, for HTTP, predictors, and refits about to start.

`HttpContext`: what the HTTP server reads of a run.
"""

import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import structlog
from structlog.typing import FilteringBoundLogger

from stream_engine.data.early_signals import leave_at_once, terminal_is_gone
from stream_engine.service.metrics import Metrics
from stream_engine.service.prediction_monitor import PredictionMonitor
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store


class PublishedState:
    """`newest` is the newest published snapshot with its artifacts; None before the first one."""

    def __init__(self, store: Store, monitor: PredictionMonitor, metrics: Metrics, log: FilteringBoundLogger):
        self._store, self._monitor, self._metrics, self._log = store, monitor, metrics, log
        self.newest: Published | None = None

    def set_newest(self, snapshot: Snapshot) -> None:
        """Make this snapshot, with its current artifacts, the newest."""
        self.newest = published = self._store.with_artifacts(snapshot)
        self._monitor.published(published)
        for kind, artifact in published.artifacts.items():
            self._metrics.refit_age.labels(kind).set(snapshot.sequence - artifact.sequence)

    def renew_artifacts(self) -> None:
        """Reload the artifacts, because a refit has published one."""
        if self.newest is not None:
            self.set_newest(self.newest.snapshot)

    def announce(self, snapshot: Snapshot) -> None:
        """Process a newly published snapshot: write the figures of predictions and the online embedding next to it,
        then serve it. Both files are for people and for the next run; no count depends on them."""
        figures = self._monitor.tell()
        artifact = self._monitor.online_artifact(snapshot)
        try:
            if figures["sampled"]:
                self._store.note("progressive", {"snapshot": snapshot.sequence, **figures})
            if artifact is not None:
                self._store.publish_artifact(artifact)
        except OSError as error:
            self._log.warning("could not write the figures of predictions", problem=str(error))
        self.set_newest(snapshot)


LONG = 900.0  # seconds that a step marked as long may take


class Heartbeat:
    """`after`: the number of seconds without a tick after which the loop counts as wedged."""

    def __init__(self, after: float = 60.0):
        self.after = after
        self._what = ""  # the current long step
        self.warm = False  # set once a block was learned; before that, code may need compiling
        self._ticked = time.monotonic()
        self.time = time.time()  # of the last tick, in seconds since the epoch

    def tick(self) -> None:
        """Record that the loop made progress."""
        self._ticked, self.time = time.monotonic(), time.time()

    @contextmanager
    def long(self, what: str) -> Iterator[None]:
        """Mark a step that may take longer than others."""
        self.tick()
        self._what = what
        try:
            yield
        finally:
            self.tick()
            self._what = ""

    def block(self) -> AbstractContextManager[None]:
        """Mark the decoding or learning of a block. The first block may take long because its code is compiled."""
        self.tick()
        return nullcontext() if self.warm else self.long("its first block, which compiles code")

    @property
    def compiling(self) -> bool:
        """Whether the first block is at work."""
        return bool(self._what) and not self.warm

    def wedged(self) -> str:
        """Why the loop counts as wedged, in one line; "" while it is alive."""
        silent = time.monotonic() - self._ticked
        what = self._what
        allowed = max(LONG, self.after) if what else self.after
        if silent <= allowed:
            return ""
        doing = f" in {what}" if what else ""
        return f"the loop has not ticked for {silent:.0f} s{doing}, expected within {allowed:g} s"


class Requests:
    """`stop`: a stop was requested; `snapshot`: why a snapshot was requested ("signal", "drift", "admin"), or "";
    `paused`: reading is paused; `refits`: kinds that were requested; `reload`: what SIGHUP asked for is not yet
    logged; `reloads`: called at SIGHUP, each may only set a flag."""

    def __init__(self) -> None:
        self.stop = False
        self.stopped_by = ""  # the signal that requested it
        self.snapshot = ""
        self.paused = False
        self.refits: set[str] = set()
        self.reload = False
        self.reloads: list[Callable[[], object]] = []

    @contextmanager
    def from_signals(self, nothing_begun: Callable[[], bool] = bool) -> Iterator[None]:
        """SIGTERM and SIGINT request a stop, SIGUSR1 a snapshot, SIGHUP a reload, or a stop if the terminal was closed;
        the previous handlers are restored afterwards.

        A program that `leave_at_once` may end is ended at a stop while `nothing_begun`.
        """

        def stop(number: int, frame: FrameType | None) -> None:
            self.stop, self.stopped_by = True, signal.Signals(number).name
            if before[number] is leave_at_once and nothing_begun():
                leave_at_once(number, frame)

        def snapshot(number: int, frame: FrameType | None) -> None:
            self.snapshot = "signal"

        def reload(number: int, frame: FrameType | None) -> None:
            if before[number] is not signal.SIG_IGN and terminal_is_gone():  # not under `nohup`
                self.stop, self.stopped_by = True, signal.Signals(number).name
            self.reload = True
            for each in self.reloads:
                each()

        handlers = {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGUSR1: snapshot, signal.SIGHUP: reload}
        before: dict[int, Any] = {number: signal.getsignal(number) for number in handlers}
        for number, handler in handlers.items():
            signal.signal(number, handler)
        try:
            yield
        finally:
            if before[signal.SIGTERM] is not leave_at_once:  # else the program is about to end
                for each, former in before.items():
                    signal.signal(each, former)


class RunFailed(RuntimeError):
    """The run cannot continue; what was read up to the last snapshot is kept. One line."""


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
    heartbeat: Heartbeat = field(default_factory=Heartbeat)
    requests: Requests = field(default_factory=Requests)
    running_refits: Callable[[], Collection[str]] = tuple
    failed_refits: Callable[[], Mapping[str, str]] = dict  # those whose last attempt failed -> why
    memory_for_exports: Callable[[], int | None] = lambda: None
    export_processes: set[int] = field(default_factory=set)  # the ids of those at work
    secrets_for_exports: Mapping[str, str] = field(default_factory=dict)  # environment of processes that read the state
