"""Log lines that may come in thousands are said once an interval for each kind, with how many there were meanwhile.

What strangers do (silent connections, broken requests) and what libraries repeat must not fill a disk.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable

INTERVAL = 60.0  # seconds between two lines of one kind
KINDS = 1000  # that are remembered


class Seldom:
    """Counts what happens by kind, and says when a line about it is due. Any thread may ask."""

    def __init__(self, interval: float = INTERVAL, clock: Callable[[], float] = time.monotonic):
        self._interval, self._clock = interval, clock
        self._kinds: dict[Hashable, tuple[float, int]] = {}  # kind -> when it was said, and how many came since
        self._lock = threading.Lock()

    def due(self, kind: Hashable) -> int:
        """How many of this kind there were since the last line, this one among them; 0 when no line is due.

        >>> seldom = Seldom(clock=iter([0.0, 1.0, 61.0]).__next__)
        >>> [seldom.due("silent") for _ in range(3)]
        [1, 0, 2]
        """
        now = self._clock()
        with self._lock:
            said, since = self._kinds.get(kind, (-float("inf"), 0))
            if now - said < self._interval:
                self._kinds[kind] = said, since + 1
                return 0
            if len(self._kinds) >= KINDS:
                self._kinds.clear()
            self._kinds[kind] = now, 0
            return since + 1


class SeldomFilter(logging.Filter):
    """For a handler of library loggers: one record of a kind (logger, level, message before its values are put in) an
    interval; the number of those left out follows in the next one."""

    def __init__(self, seldom: Seldom | None = None):
        super().__init__()
        self._seldom = seldom or Seldom()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written, with what it stands for. Lines of level debug are never held back."""
        if record.levelno <= logging.DEBUG:
            return True
        count = self._seldom.due((record.name, record.levelno, str(record.msg)))
        if count > 1:
            record.msg, record.args = f"{record.getMessage()} ({count} times since it was last said)", None
        return count > 0
