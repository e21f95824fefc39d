"""Log lines on standard error or in a file: text for people, JSON for log collectors (structlog)."""

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, TextIO, cast

import structlog
from structlog.typing import EventDict, Processor

from stream_engine.data.rate_limit import RateLimitFilter
from stream_engine.data.standard_streams import LineWriter, TerminalCommands, printable

FORMATS = ("text", "json")
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class Output:
    """Where log lines go, one whole line at a time: standard error, or a file. What cannot be written is
    lost. `around` is entered for each line, so that progress bars can make room for it."""

    def __init__(self) -> None:
        self.around: Callable[[], AbstractContextManager[Any]] = nullcontext
        self._count_loss: Callable[[], object] = lambda: None
        self._path: str | None = None
        self._must_reopen = False  # whether the file is to be opened again
        self._file: LineWriter | None = None
        self._line, self._lock = "", threading.RLock()

    def open(self, path: str | None) -> None:
        """Write to a file from now on, to its end; None: to standard error. Raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK  # a pipe without a reader is not waited for
        with self._lock:
            new = None if path is None else LineWriter(os.open(path, flags, 0o640))
            if self._file is not None:
                os.close(self._file.descriptor)
            self._path, self._file, self._must_reopen = path, new, False

    def reopen(self) -> None:
        """Open the file again at the next line, because it was renamed. Safe in a handler of a signal."""
        self._must_reopen = True

    @contextmanager
    def losses_to(self, count: Callable[[], object]) -> Iterator[None]:
        """`count` is called for each line that is lost."""
        former, self._count_loss = self._count_loss, count
        try:
            yield
        finally:
            self._count_loss = former

    def write(self, text: str) -> int:
        """Write the complete lines so far."""
        with self._lock:
            lines, newline, self._line = (self._line + text).rpartition("\n")
            if newline and not self._write(lines + newline):
                self._count_loss()
        return len(text)

    def _write(self, lines: str) -> bool:
        if self._must_reopen:
            with suppress(OSError):  # the old file is still there, under its new name
                self.open(self._path)
        if self._file is not None:
            return self._file.write(lines.encode("utf-8", "backslashreplace"))
        try:
            with self.around():
                return TerminalCommands(sys.stderr).write(lines)
        except OSError:
            return False

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        """Whether a person reads it directly."""
        return self._file is None and sys.stderr.isatty()


OUTPUT = Output()


def configure(format: str = "text", level: str | None = None, file: str | None = None) -> None:
    """Set the format and the level of log lines, and the file that they are appended to (none: standard error). By
    default lines for people on a terminal are warnings and errors: progress bars and results say the rest; others are
    of level info.

    Libraries log from warning on, in the same format; kafka-python only at level debug, because the source itself logs
    once what it logs at every attempt to reach a broker. Raises OSError about the file.
    """
    OUTPUT.open(file)
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
            lambda logger, name, line: printable(str(line)),
        ]
    else:
        plain_traceback = structlog.dev.plain_traceback
        ending = [
            structlog.processors.format_exc_info,
            _printable_values,
            structlog.dev.ConsoleRenderer(colors=OUTPUT.isatty(), pad_event_to=0, exception_formatter=plain_traceback),
        ]
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
    set_level(level or ("warning" if format == "text" and sys.stderr.isatty() else "info"))


def _printable_values(logger: Any, name: str, line: EventDict) -> EventDict:
    """The texts of a line as a terminal may show them; other values are written as Python does."""
    return {key: printable(value) if isinstance(value, str) else value for key, value in line.items()}


def set_level(level: str) -> None:
    """Change the log level from now on."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]))
    logging.getLogger("kafka").setLevel(logging.WARNING if level == "debug" else logging.CRITICAL)
