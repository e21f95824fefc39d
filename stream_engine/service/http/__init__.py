"""HTTP over what is published: probes, metrics, exports, the live page, and what is asked of a run.

    requests ─▶ listener (limits, time-outs) ─▶ access (host, token) ─▶ routes ─▶ built_files ─▶ make_export

The door of this room: `serve` for a run; other rooms import nothing else of it, except `listener` and `access` for a
server of their own. A run without a listener loads no web framework.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from stream_engine.service.http.context import HttpContext

if TYPE_CHECKING:  # processes that make exports import this room, and need none of it
    from structlog.typing import FilteringBoundLogger

    from stream_engine.service.settings import Settings

__all__ = ["HttpContext", "serve"]


def serve(context: HttpContext, settings: Settings, log: FilteringBoundLogger, stack: ExitStack) -> None:
    """Listen where the settings ask for it, until `stack` closes. Raises `OSError`, `BadSettings`."""
    if settings.listen is not None:
        from stream_engine.service.http.routes import serve_run

        serve_run(context, settings.listen, settings.http, log, stack)
