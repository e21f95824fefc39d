"""A limit on log lines of one kind, for kinds that may come in thousands: hostile requests, repeated library
messages."""

import logging
import threading
import time
from collections.abc import Callable, Hashable

# lines that may come in thousands (hostile requests, repeated library messages) are written once per interval and kind
INTERVAL = 60.0  # seconds between two lines of one kind
KINDS = 1000  # remembered at a time


class RateLimit:
    """Counts events by kind and tells when a log line about them is due. Thread-safe."""

    def __init__(self, interval: float = INTERVAL, clock: Callable[[], float] = time.monotonic):
        self._interval, self._clock = interval, clock
        self._kinds: dict[Hashable, tuple[float, int]] = {}  # kind -> time of its last line, and events since
        self._lock = threading.Lock()

    def due(self, kind: Hashable) -> int:
        """The number of events of this kind since the last line, including this one; 0 if no line is due.

        >>> limit = RateLimit(clock=iter([0.0, 1.0, 61.0]).__next__)
        >>> [limit.due("silent") for _ in range(3)]
        [1, 0, 2]
        """
        now = self._clock()
        with self._lock:
            last_time, since = self._kinds.get(kind, (-float("inf"), 0))
            if now - last_time < self._interval:
                self._kinds[kind] = last_time, since + 1
                return 0
            if len(self._kinds) >= KINDS:
                self._kinds.clear()
            self._kinds[kind] = now, 0
            return since + 1


class RateLimitFilter(logging.Filter):
    """A filter for library loggers: one record of a kind (logger, level, unformatted message) per interval; the next
    record has the number of suppressed ones."""

    def __init__(self, limit: RateLimit | None = None):
        super().__init__()
        self._limit = limit or RateLimit()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write the record, with the number of records it stands for. Lines of level debug are never
        suppressed."""
        if record.levelno <= logging.DEBUG:
            return True
        count = self._limit.due((record.name, record.levelno, str(record.msg)))
        if count > 1:
            record.msg, record.args = f"{record.getMessage()} ({count} times since the last line)", None
        return count > 0
