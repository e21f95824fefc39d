"""Log lines on standard error: text for people, JSON for collectors (structlog)."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TextIO, cast

import structlog
from structlog.typing import Processor


class Output:
    """Standard error, a whole line at a time: `around` is entered for each, so that who draws on the terminal can get
    out of its way."""

    def __init__(self) -> None:
        self.around: Callable[[], AbstractContextManager[Any]] = nullcontext
        self._line = ""

    def write(self, text: str) -> int:
        """Write what is whole by now."""
        lines, newline, self._line = (self._line + text).rpartition("\n")
        if newline:
            with self.around():
                sys.stderr.write(lines + newline)
        return len(text)

    def flush(self) -> None:
        sys.stderr.flush()

    def isatty(self) -> bool:
        return sys.stderr.isatty()


OUTPUT = Output()
FORMATS = ("text", "json")
# lines that may come in thousands (what strangers do, what libraries repeat) are written once an interval for each kind
INTERVAL = 60.0  # seconds between two lines of one kind
KINDS = 1000  # that are remembered
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(format: str = "text", level: str = "info") -> None:
    """Set how and from which level on lines are written.

    Libraries log from warning on, in the same format; kafka-python only at level debug: what it logs at every attempt
    to reach a broker, the source says once.
    """
    common: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    if format == "json":
        plain = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)  # which may hold passwords
        ending: list[Processor] = [
            structlog.processors.ExceptionRenderer(plain),
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ]
    else:
        ending = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0)]
    structlog.configure(
        processors=[*common, *ending],
        cache_logger_on_first_use=False,
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, OUTPUT)),
    )
    handler = logging.StreamHandler(cast(TextIO, OUTPUT))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *common],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *ending],
        )
    )
    handler.addFilter(RateLimitFilter())
    logging.basicConfig(handlers=[handler], force=True, level=logging.WARNING)
    set_level(level)


def set_level(level: str) -> None:
    """From which level on lines are written, from now on."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]))
    logging.getLogger("kafka").setLevel(logging.WARNING if level == "debug" else logging.CRITICAL)


class RateLimit:
    """Counts what happens by kind, and says when a line about it is due. Any thread may ask."""

    def __init__(self, interval: float = INTERVAL, clock: Callable[[], float] = time.monotonic):
        self._interval, self._clock = interval, clock
        self._kinds: dict[Hashable, tuple[float, int]] = {}  # kind -> when it was said, and how many came since
        self._lock = threading.Lock()

    def due(self, kind: Hashable) -> int:
        """How many of this kind there were since the last line, this one among them; 0 when no line is due.

        >>> limit = RateLimit(clock=iter([0.0, 1.0, 61.0]).__next__)
        >>> [limit.due("silent") for _ in range(3)]
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


class RateLimitFilter(logging.Filter):
    """For a handler of library loggers: one record of a kind (logger, level, message before its values are put in) an
    interval; the number of those left out follows in the next one."""

    def __init__(self, limit: RateLimit | None = None):
        super().__init__()
        self._limit = limit or RateLimit()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written, with what it stands for. Lines of level debug are never held back."""
        if record.levelno <= logging.DEBUG:
            return True
        count = self._limit.due((record.name, record.levelno, str(record.msg)))
        if count > 1:
            record.msg, record.args = f"{record.getMessage()} ({count} times since it was last said)", None
        return count > 0
