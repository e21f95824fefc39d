"""Log lines on standard error: text for people, JSON for collectors (structlog)."""

import logging
import sys

import structlog

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def configure(format: str = "text", level: str = "info") -> None:
    """Set how and from which level on lines are written. Client libraries speak from warning on."""
    common = [structlog.contextvars.merge_contextvars, structlog.processors.add_log_level,
              structlog.processors.TimeStamper(fmt="iso", utc=True), structlog.processors.StackInfoRenderer()]
    if format == "json":
        ending = [structlog.processors.dict_tracebacks, structlog.processors.JSONRenderer(ensure_ascii=False)]
    else:
        ending = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), pad_event_to=0)]
    structlog.configure(processors=[*common, *ending], cache_logger_on_first_use=False,
                        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
                        logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    logging.basicConfig(stream=sys.stderr, force=True, level=logging.WARNING,
                        format="%(asctime)s [%(levelname)s] %(name)s: %(message)s")
