"""Signals while a program starts, before it has loaded what handles them. As process 1 of a container it would not get
them at all. Imports nothing that takes time."""

import os
import signal
import sys
from types import FrameType


def leave_at_once(number: int, frame: FrameType | None) -> None:
    """End the process with status 0: nothing was begun that a stop could finish."""
    try:
        os.write(
            2, f"stream-engine: stopped by {signal.Signals(number).name} before it had counted anything\n".encode()
        )
    finally:
        os._exit(0)


def _ignore(number: int, frame: FrameType | None) -> None:
    """Nothing can be reloaded or saved yet. Unlike SIG_IGN, child processes do not inherit it."""


def leave_when_asked() -> None:
    """Until other handlers are there, SIGTERM and SIGINT end the process at once with status 0; SIGHUP and SIGUSR1,
    which would kill it, do nothing. Signals that the caller ignores stay ignored (`nohup`)."""
    handlers = {
        signal.SIGTERM: leave_at_once,
        signal.SIGINT: leave_at_once,
        signal.SIGHUP: leave_if_terminal_is_gone,
        signal.SIGUSR1: _ignore,
    }
    for number, handler in handlers.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)
    _TERMINAL.append(_has_terminal())


def leave_if_terminal_is_gone(number: int, frame: FrameType | None) -> None:
    """End the process if SIGHUP says that its terminal was closed."""
    if terminal_is_gone():
        leave_at_once(number, frame)


_TERMINAL: list[bool] = []  # whether there was a terminal at the start


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def terminal_is_gone() -> bool:
    """Whether the terminal that the program was started from was closed."""
    return any(_TERMINAL) and not _has_terminal()


def open_missing_descriptors() -> None:
    """Open the null device as each standard stream that the caller has closed: a file that the program opens would get
    its number, and messages would be written into it."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdin = sys.stdin or os.fdopen(0)
    sys.stdout = sys.stdout or os.fdopen(1, "w")
    sys.stderr = sys.stderr or os.fdopen(2, "w")
