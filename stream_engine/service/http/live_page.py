"""`/`: the report of the newest snapshot as a live page, with live figures as server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from stream_engine.exports import NothingToExport
from stream_engine.input.settings import HttpSettings
from stream_engine.report import page
from stream_engine.service.context import HttpContext
from stream_engine.service.http.built_files import BuiltFiles, NotNow, fingerprint, later, send_file
from stream_engine.service.http.history import History
from stream_engine.service.http.live_metrics import LiveMetrics
from stream_engine.service.http.make_export import FIGURES, FORMATS_OF_PAGES, PAGE
from stream_engine.service.http.refusals import Refusals
from stream_engine.state.published import Published

MESSAGE_SECONDS = 1.0  # seconds between two messages to a viewer
MAX_VIEWERS = 200  # beyond it 503


# The page is made like an export: in a process of its own, once for all viewers, and only while there are viewers. The
# live figures are read off the metrics once a second, once for all; a viewer costs one connection and a short message.
# Nothing waits for a viewer: one that does not read is cut like any slow reader (`listener`).
class LivePage:
    """The routes; `figures` says what moves, `history` how it did."""

    def __init__(
        self,
        context: HttpContext,
        files: BuiltFiles,
        figures: LiveMetrics,
        history: History,
        refusals: Refusals,
        settings: HttpSettings,
    ):
        self._format = FORMATS_OF_PAGES[settings.show_workers]
        self._files, self._newest, self._figures, self._history_kept = files, context.published, figures, history
        self._refusals = refusals
        self._viewers = 0
        self._message = b""
        self._message_ready = asyncio.Condition()
        self._pulse: asyncio.Task[None] | None = None
        self._ready = ""  # the fingerprint of the newest page that is made

    def routes(self) -> list[Route]:
        return [
            Route("/", self._shell),
            Route("/page", self._body),
            Route("/figures/{name}", self._figure),
            Route("/live", self._live),
            Route("/history", self._history),
        ]

    async def _shell(self, request: Request) -> Response:
        """The shell of the page: it says what it waits for, and fetches the rest."""
        headers = {
            "Content-Security-Policy": f"{page.shell_policy()}; frame-ancestors 'none'",
            "Cache-Control": "no-store",
        }
        return HTMLResponse(page.shell(), headers=headers)

    async def _body(self, request: Request) -> Response:
        return await self._file(request, PAGE, "page.html")

    async def _figure(self, request: Request) -> Response:
        return await self._file(request, FIGURES, request.path_params["name"])

    async def _file(self, request: Request, part: str, name: str) -> Response:
        return await send_file(self._files, self._newest(), (part, self._format), name, request, self._refusals)

    async def _history(self, request: Request) -> Response:
        return JSONResponse(self._history_kept.so_far(), headers={"Cache-Control": "no-store"})

    async def _live(self, request: Request) -> Response:
        if self._viewers >= MAX_VIEWERS:
            return later(NotNow(f"{MAX_VIEWERS} viewers are looking", "busy"), self._refusals)
        return StreamingResponse(self._messages(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _messages(self) -> AsyncIterator[bytes]:
        self._viewers += 1
        try:
            if self._pulse is None or self._pulse.done():
                self._pulse = asyncio.create_task(self._beat())
            yield b"retry: 2000\n\n" + self._message
            while True:
                async with self._message_ready:
                    await self._message_ready.wait()
                yield self._message
        finally:
            self._viewers -= 1

    async def _beat(self) -> None:
        """Read off what moves once a second while somebody looks; have the page made when there is a newer snapshot."""
        making: asyncio.Task[None] | None = None
        while self._viewers:
            newest = self._newest()
            fingerprint_of_newest = fingerprint(newest) if newest else ""
            if newest and fingerprint_of_newest != self._ready and (making is None or making.done()):
                making = asyncio.create_task(self._make(newest, fingerprint_of_newest))
            message: dict[str, Any] = self._figures.now() | {"page": self._ready or None}
            self._message = b"data: " + json.dumps(message, separators=(",", ":")).encode() + b"\n\n"
            async with self._message_ready:
                self._message_ready.notify_all()
            await asyncio.sleep(MESSAGE_SECONDS)
        self._message = b""

    async def _make(self, newest: Published, wanted_fingerprint: str) -> None:
        try:
            await self._files.of(newest, PAGE, self._format)
            self._ready = wanted_fingerprint
        except (NothingToExport, NotNow) as error:
            self._refusals.tell("busy", why=f"the page: {error}")
            await asyncio.sleep(5 * MESSAGE_SECONDS)
