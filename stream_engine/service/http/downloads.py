"""Files of the newest snapshot as downloads."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from stream_engine import exports
from stream_engine.exports.files import FORMATS
from stream_engine.service.context import HttpContext
from stream_engine.service.http.built_files import BuiltFiles, NotNow, later, send_file
from stream_engine.service.http.make_export import RAW
from stream_engine.service.http.refusals import Refusals
from stream_engine.service.http.request_values import is_raw

MAX_DOWNLOADS = 32  # of a route, being sent or waited for; beyond it 503


class Downloads:
    """The ASGI application of a route: a file of the newest snapshot, of this name or of the one in the path."""

    def __init__(self, context: HttpContext, files: BuiltFiles, refusals: Refusals, name: str = ""):
        self._context, self._files, self._refusals = context, files, refusals
        self._name, self._n_running = name, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._n_running += 1
        try:
            answer = await self._answer(self._name or scope["path_params"]["name"], Request(scope))
            await answer(scope, receive, send)
        finally:
            self._n_running -= 1

    async def _answer(self, name: str, request: Request) -> Response:
        if self._n_running > MAX_DOWNLOADS:
            return later(NotNow(f"{MAX_DOWNLOADS} exports are being sent", "busy"), self._refusals)
        what, format = key = exports.export_of(name)
        if not what or what in exports.ON_REQUEST or format not in FORMATS:
            return PlainTextResponse(f"no such export: {name}\n", 404)
        if is_raw(request):
            key = what, format + RAW
        return await send_file(self._files, self._context.published(), key, name, request, self._refusals)
