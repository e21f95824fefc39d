"""Requests to a run: to stop, to take a snapshot, to pause, to refit, to reload; from signals and from HTTP."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from stream_engine.data.early_signals import leave_at_once, terminal_is_gone


class Requests:
    """`stop`: a stop was requested; `snapshot`: why a snapshot was requested ("signal", "drift", "admin"), or "";
    `paused`: reading is paused; `refits`: kinds that were requested; `reload`: a SIGHUP was not yet logged; `reloads`:
    called at SIGHUP, each may only set a flag."""

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
            if former_handlers[number] is leave_at_once and nothing_begun():
                leave_at_once(number, frame)

        def snapshot(number: int, frame: FrameType | None) -> None:
            self.snapshot = "signal"

        def reload(number: int, frame: FrameType | None) -> None:
            if former_handlers[number] is not signal.SIG_IGN and terminal_is_gone():  # not under `nohup`
                self.stop, self.stopped_by = True, signal.Signals(number).name
            self.reload = True
            for reload_action in self.reloads:
                reload_action()

        handlers = {signal.SIGTERM: stop, signal.SIGINT: stop, signal.SIGUSR1: snapshot, signal.SIGHUP: reload}
        former_handlers: dict[int, Any] = {number: signal.getsignal(number) for number in handlers}
        for number, handler in handlers.items():
            signal.signal(number, handler)
        try:
            yield
        finally:
            if former_handlers[signal.SIGTERM] is not leave_at_once:  # else the program is about to end
                for reload_action, former in former_handlers.items():
                    signal.signal(reload_action, former)
