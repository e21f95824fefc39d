"""What is asked of a run while it is under way: to stop, or to take a snapshot soon."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


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
