"""Log lines on standard error: text for people, JSON for collectors (structlog)."""

import logging
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TextIO, cast

import structlog
from structlog.typing import Processor

from stream_engine.service.seldom import SeldomFilter


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
    handler.addFilter(SeldomFilter())
    logging.basicConfig(handlers=[handler], force=True, level=logging.WARNING)
    set_level(level)


def set_level(level: str) -> None:
    """From which level on lines are written, from now on."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]))
    logging.getLogger("kafka").setLevel(logging.WARNING if level == "debug" else logging.CRITICAL)
