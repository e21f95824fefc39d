"""/snapshot and /export/<name>: files of the newest snapshot and its artifacts, sent from disk.

Each file has an ETag that follows from its content: who has it is told so (304). Ranges are served, so that a broken
download goes on where it was. More than a few at once are told to come back (503, Retry-After).
"""

from collections.abc import Callable
from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from stream_engine import exports
from stream_engine.exports.files import FORMATS, MEDIA_TYPES
from stream_engine.service.http.export_builds import NoRoom, SnapshotGone, Stopped
from stream_engine.service.http.export_cache import Busy, Entry, ExportCache
from stream_engine.service.http.refusals import Refusals
from stream_engine.state.published import Published

_RETRY_SECONDS = 5
_REVALIDATE = "no-cache"  # a client may keep it, and asks each time whether it still holds


class _File(FileResponse):
    chunk_size = 256 << 10  # a quarter of the loop's turns that starlette's 64 KB take


class Exports:
    """The routes; `published()` is the newest, or None; at most `most` downloads at once."""

    def __init__(self, cache: ExportCache, published: Callable[[], Published | None], most: int, refusals: Refusals):
        self._cache, self._published, self._most, self._refusals = cache, published, most, refusals
        self._sending = 0

    def routes(self) -> list[Route]:
        """What an application serves."""
        return [
            Route("/snapshot", _Endpoint(self, "summary.json"), methods=["GET"]),
            Route("/export/{name}", _Endpoint(self), methods=["GET"]),
        ]

    async def send(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for a file."""
        answer: Response | None = None
        self._sending += 1
        try:
            if self._sending > self._most:
                raise Busy(f"{self._most} exports are being sent")
            await self._send(name, scope, receive, send)
        except exports.NothingToExport as error:
            answer = PlainTextResponse(f"{error}\n", 404)
        except (Busy, SnapshotGone, Stopped) as error:
            answer = self._later("busy", str(error) or "stopping")
        except NoRoom as error:
            answer = self._later("no_room", str(error))
        finally:
            self._sending -= 1
        if answer:
            await answer(scope, receive, send)

    async def _send(self, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        newest = self._published()
        what, format = exports.export_of(name)
        if newest is None or not what or what in exports.ON_REQUEST or format not in FORMATS:
            raise exports.NothingToExport(f"no such export: {name}" if newest else "nothing is published yet")
        async with self._cache.served(newest, what, format) as entry:
            if name not in entry.etags:
                raise exports.NothingToExport(f"no such export: {name}; there are {', '.join(entry.etags)}")
            await _answer(entry, name, Request(scope))(scope, receive, send)

    def _later(self, reason: str, why: str) -> Response:
        self._refusals.tell(reason, why=why)
        return PlainTextResponse(f"{why}; try again later\n", 503, {"Retry-After": str(_RETRY_SECONDS)})


class _Endpoint:
    """The ASGI application of a route, whose file has this name or the one in the path."""

    def __init__(self, exports: Exports, name: str = ""):
        self._exports, self._name = exports, name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._exports.send(self._name or scope["path_params"]["name"], scope, receive, send)


def _answer(entry: Entry, name: str, request: Request) -> Response:
    headers = {"ETag": entry.etags[name], "Cache-Control": _REVALIDATE}
    known = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    if entry.etags[name] in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return _File(entry.folder / name, headers=headers, media_type=MEDIA_TYPES[PurePosixPath(name).suffix])
