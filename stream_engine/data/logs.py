"""Log lines on standard error or in a file: text for people, JSON for log collectors (structlog).

Progress bars on a terminal (tqdm); silent anywhere else.
"""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

import structlog
from structlog.typing import EventDict, Processor

from stream_engine.data.standard_streams import LineWriter, TerminalCommands, printable


class Output:
    """Where log lines go, one whole line at a time: standard error, or a file. What cannot be written is
    lost. `around` is entered for each line, so that progress bars can make room for it."""

    def __init__(self) -> None:
        self.around: Callable[[], AbstractContextManager[Any]] = nullcontext
        self._lost: Callable[[], object] = lambda: None
        self._path: str | None = None
        self._renamed = False  # whether the file is to be opened again
        self._file: LineWriter | None = None
        self._line, self._lock = "", threading.RLock()

    def open(self, path: str | None) -> None:
        """Write to a file from now on, to its end; None: to standard error. Raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK  # a pipe without a reader is not waited for
        with self._lock:
            new = None if path is None else LineWriter(os.open(path, flags, 0o640))
            if self._file is not None:
                os.close(self._file.descriptor)
            self._path, self._file, self._renamed = path, new, False

    def reopen(self) -> None:
        """Open the file again at the next line, because it was renamed. Safe in a handler of a signal."""
        self._renamed = True

    @contextmanager
    def losses_to(self, count: Callable[[], object]) -> Iterator[None]:
        """`count` is called for each line that is lost."""
        before, self._lost = self._lost, count
        try:
            yield
        finally:
            self._lost = before

    def write(self, text: str) -> int:
        """Write the complete lines so far."""
        with self._lock:
            lines, newline, self._line = (self._line + text).rpartition("\n")
            if newline and not self._write(lines + newline):
                self._lost()
        return len(text)

    def _write(self, lines: str) -> bool:
        if self._renamed:
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
FORMATS = ("text", "json")
# lines that may come in thousands (hostile requests, repeated library messages) are written once per interval and kind
INTERVAL = 60.0  # seconds between two lines of one kind
KINDS = 1000  # that are remembered
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


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


class RateLimit:
    """Counts events by kind and tells when a log line about them is due. Thread-safe."""

    def __init__(self, interval: float = INTERVAL, clock: Callable[[], float] = time.monotonic):
        self._interval, self._clock = interval, clock
        self._kinds: dict[Hashable, tuple[float, int]] = {}  # kind -> when it was said, and how many came since
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


if TYPE_CHECKING:
    from tqdm import tqdm


class Bars:
    """One bar for reading, then one for each running refit, on a terminal or in a notebook; each is shown once it has
    lasted `delay` seconds."""

    def __init__(self, stream=None, delay: float = 0.0):
        self._stream, self._delay = TerminalCommands(stream or sys.stderr), delay
        self._on = self._stream.isatty() or "ipykernel" in sys.modules
        self._bars: dict[str, tqdm] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error) -> None:
        for bar in self._bars.values():
            bar.close()
        OUTPUT.around = nullcontext

    def _bar(self, name: str, **more) -> "tqdm":
        if name not in self._bars:
            from tqdm import tqdm

            if self._on:  # a line of the log is written where the bars are, and these below it again
                OUTPUT.around = lambda: tqdm.external_write_mode(file=self._stream)
            more |= {"file": self._stream, "disable": not self._on, "delay": self._delay, "dynamic_ncols": True}
            self._bars[name] = tqdm(desc=name, **more)
        return self._bars[name]

    def taken(self, comparisons: int) -> None:
        """Show the number of comparisons read so far."""
        bar = self._bar("comparisons", unit="", unit_scale=True)
        bar.update(comparisons - bar.n)

    def sent(self, events: int) -> None:
        """Add to the number of events sent."""
        self._bar("events sent", unit="", unit_scale=True).update(events)

    def refits(self, running: dict[str, dict[str, Any]]) -> None:
        """Show the progress of each running refit."""
        for kind, reported in running.items():
            figures = {name: value for name, value in reported.items() if name not in ("done", "total")}
            self.show(kind, reported.get("done", 0), reported.get("total", 1), figures)

    def show(self, name: str, done: float, total: float, figures: dict[str, Any]) -> None:
        """Show the progress of one task."""
        bar = self._bar(name, total=total)
        bar.total = total
        bar.set_postfix({k: f"{v:.3g}" if isinstance(v, float) else v for k, v in figures.items()}, refresh=False)
        bar.update(done - bar.n)
