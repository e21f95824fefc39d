"""What all parts of a run share: where they tell what goes on, and what they are asked.

What is asked of a run while it is under way: to stop, or to take a snapshot soon.

Whether the loop of a run is alive: it ticks at every poll and block, and while it waits for what it knows.

A loop that waits for a full disk or a broker away ticks, and is alive. One that hangs, or turns in a circle, does not.
Steps that may rightly take long (the copy of a large state, code that is compiled on first use) say so and get more
time, never an unlimited one. Written by the loop, read by any thread.
"""

import signal
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from types import FrameType

import structlog
from structlog.typing import FilteringBoundLogger

from stream_engine.service.metrics import Metrics

LONG = 900.0  # seconds that a step may take which says that it is a long one


class Heartbeat:
    """`after` is how many seconds the loop may go without a tick."""

    def __init__(self, after: float = 60.0):
        self.after = after
        self._what = ""  # the long step that is being taken
        self.warm = False  # set once a first block was learned: until then code may have to be compiled
        self._ticked = time.monotonic()
        self.time = time.time()  # of the last tick, in seconds since the epoch

    def tick(self) -> None:
        """The loop goes on."""
        self._ticked, self.time = time.monotonic(), time.time()

    @contextmanager
    def long(self, what: str) -> Iterator[None]:
        """A step that may take longer than others."""
        self.tick()
        self._what = what
        try:
            yield
        finally:
            self.tick()
            self._what = ""

    def block(self) -> AbstractContextManager[None]:
        """A block that is decoded or learned: the first may take long, code is compiled for it."""
        self.tick()
        return nullcontext() if self.warm else self.long("its first block, for which code is compiled")

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
    """`stop` once someone asked to stop; `snapshot` says why someone wants a snapshot ("signal", "drift", "admin"), or
    is ""; `paused` while nothing is to be read; `refits` are kinds that someone wants."""

    def __init__(self) -> None:
        self.stop = False
        self.stopped_by = ""  # the signal that asked to
        self.snapshot = ""
        self.paused = False
        self.refits: set[str] = set()

    @contextmanager
    def from_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT ask to stop, SIGUSR1 for a snapshot; afterwards they do what they did before."""

        def stop(number: int, frame: FrameType | None) -> None:
            self.stop, self.stopped_by = True, signal.Signals(number).name

        def snapshot(number: int, frame: FrameType | None) -> None:
            self.snapshot = "signal"

        handlers = {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGUSR1: snapshot}
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class RunFailed(RuntimeError):
    """The run cannot go on; what was read up to the last snapshot is kept. One line."""


@dataclass(frozen=True, slots=True)
class Context:
    """The metrics, the log, what is asked of the run, and the heartbeat of its loop."""

    metrics: Metrics = field(default_factory=Metrics)
    log: FilteringBoundLogger = field(default_factory=structlog.get_logger)
    requests: Requests = field(default_factory=Requests)
    heartbeat: Heartbeat = field(default_factory=Heartbeat)
