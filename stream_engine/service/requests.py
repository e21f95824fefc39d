"""Requests to a running process: to stop, or to take a snapshot soon."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Requests:
    """`stop`: a stop was requested; `snapshot`: why a snapshot was requested ("signal", "drift", "admin"), or "";
    `paused`: reading is paused; `refits`: kinds that were requested."""

    def __init__(self) -> None:
        self.stop = False
        self.stopped_by = ""  # the signal that requested it
        self.snapshot = ""
        self.paused = False
        self.refits: set[str] = set()

    @contextmanager
    def from_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT request a stop, SIGUSR1 a snapshot; the previous handlers are restored afterwards."""

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
    """The run cannot continue; what was read up to the last snapshot is kept. One line."""
