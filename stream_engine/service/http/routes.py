"""What a run serves: probes, metrics, exports, live answers, the live page, the manual; and with `http.admin_token`
what can be asked of it. `paths` declares each of these paths.

/object and /object/picture: the picture and the text of one object, for the live page; /object without
a name says which objects have a picture.

What is served is what the folder or the table listed at the start, looked up by the object's name: no part of a request
is ever a path. A picture is opened as one of `KINDS`, made small and sent as a JPEG, whatever the file is called, so
that nothing in it can be anything else to a browser.

POST /admin/{snapshot,pause,resume,refit,log-level} leave a request, which the loop acts on between two records; the
answer says what was asked for.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from stream_engine import exports
from stream_engine.data import logs
from stream_engine.exports.files import FORMATS
from stream_engine.exports.models import table
from stream_engine.input.settings import BadSettings, HttpSettings
from stream_engine.refits import REFITS
from stream_engine.report.object_files import BadObjects, ObjectListing, read_listing, small_jpeg
from stream_engine.service.context import HttpContext
from stream_engine.service.http import manual_pages
from stream_engine.service.http.access import Refusals, TokenMiddleware, is_raw
from stream_engine.service.http.built_files import BuiltFiles, NotNow, later, send_file
from stream_engine.service.http.listener import Listener, listen_on, warn_of_strangers
from stream_engine.service.http.live_answers import LiveAnswers
from stream_engine.service.http.live_page import History, LiveMetrics, LivePage
from stream_engine.service.http.make_export import RAW
from stream_engine.service.http.paths import document

ASKED = 202  # it will be done


def admin_routes(context: HttpContext) -> list[Route]:
    """The routes below /admin."""
    requests = context.requests

    async def snapshot(request: Request) -> Response:
        requests.snapshot = "admin"
        newest = context.published()
        return JSONResponse({"asked": "snapshot", "newest": newest.snapshot.sequence if newest else None}, ASKED)

    async def pause(request: Request) -> Response:
        requests.paused = True
        return JSONResponse({"paused": True})

    async def resume(request: Request) -> Response:
        requests.paused = False
        return JSONResponse({"paused": False})

    async def refit(request: Request) -> Response:
        kind, newest = request.query_params.get("kind", ""), context.published()
        if kind not in REFITS:
            return _wrong("kind", kind, REFITS)
        if newest is None:
            return PlainTextResponse("nothing is published yet; POST /admin/snapshot makes a snapshot\n", 409)
        if kind in context.running_refits():
            return PlainTextResponse(f"{kind} is running; its artifact will come\n", 409)
        requests.refits.add(kind)
        return JSONResponse({"asked": "refit", "kind": kind, "snapshot": newest.snapshot.sequence}, ASKED)

    async def log_level(request: Request) -> Response:
        level = request.query_params.get("level", "")
        if level not in logs.LEVELS:
            return _wrong("level", level, logs.LEVELS)
        logs.set_level(level)
        return JSONResponse({"level": level})

    actions = {"snapshot": snapshot, "pause": pause, "resume": resume, "refit": refit, "log-level": log_level}
    return [Route(f"/{name}", action, methods=["POST"]) for name, action in actions.items()]


def _wrong(what: str, got: str, known: Collection[str]) -> Response:
    return PlainTextResponse(f"{what}: got {got[:100]!r}, expected ?{what}= one of {', '.join(known)}\n", 400)


KEPT = 2000  # small pictures in memory, of some 5 KB each
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, max-age=600",
}


class ObjectPictures:
    """The routes; `listed` is what there is, None where the run was told of no objects."""

    def __init__(self, listed: ObjectListing | None):
        self._listed = listed
        self._small: OrderedDict[Path, bytes] = OrderedDict()  # the last used at the end
        self._one = asyncio.Lock()  # one picture is made at a time: they cost the engine's process

    def routes(self) -> list[Route]:
        """What an application serves; nothing where no objects were listed."""
        if self._listed is None:
            return []
        return [Route("/object", self._about), Route("/object/picture", self._picture)]

    async def _about(self, request: Request) -> Response:
        listing = self._listed or ObjectListing({}, {})
        name = request.query_params.get("name")
        if name is None:
            return JSONResponse({"pictures": list(listing.pictures)}, headers=_HEADERS)
        about = {"picture": name in listing.pictures, "text": listing.texts.get(name, "")}
        return JSONResponse(about, headers=_HEADERS)

    async def _picture(self, request: Request) -> Response:
        path = self._listed and self._listed.pictures.get(request.query_params.get("name", ""))
        if not path:
            return PlainTextResponse("no picture of such an object\n", 404, _HEADERS)
        async with self._one:
            content = self._small.pop(path, None)
            if content is None:
                try:
                    content = await run_in_threadpool(small_jpeg, path)
                except BadObjects as error:
                    return PlainTextResponse(f"{error}\n", 404, _HEADERS)
            self._small[path] = content
            if len(self._small) > KEPT:
                self._small.popitem(last=False)
        return Response(content, headers=_HEADERS, media_type="image/jpeg")


def serve_run(
    context: HttpContext, listen: str, settings: HttpSettings, log: FilteringBoundLogger, stack: ExitStack
) -> Listener:
    """The listener of a run; `stack` closes it. Raises as `listen_on` does, and `BadSettings` for `http.objects`."""
    refusals = Refusals(context.metrics, log)
    tokens = [token for token in (settings.token, settings.admin_token) if token]
    readable = Starlette(routes=_readable(context, settings, refusals, stack))
    routes: list[BaseRoute] = [Mount("/", TokenMiddleware(readable, tokens if settings.token else [], refusals))]
    if settings.admin_token:
        actions = Starlette(routes=admin_routes(context))
        routes.insert(0, Mount("/admin", TokenMiddleware(actions, [settings.admin_token], refusals)))
    listener = listen_on(Starlette(routes=routes), listen, settings, refusals, log, stack)
    warn_of_strangers(listener, settings, log)
    return listener


def _readable(context: HttpContext, settings: HttpSettings, refusals: Refusals, stack: ExitStack) -> list[BaseRoute]:
    """Everything that can be read."""

    async def healthz(request: Request) -> Response:
        return _yes_or_why(context.heartbeat.wedged(), "alive")

    async def readyz(request: Request) -> Response:
        return _yes_or_why(context.heartbeat.wedged() or context.ready(), "ready")

    async def metrics(request: Request) -> Response:
        text = await run_in_threadpool(generate_latest, context.metrics.registry)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    async def progressive(request: Request) -> Response:
        return JSONResponse(context.progressive())

    async def models(request: Request) -> Response:
        published = context.published()
        return JSONResponse([] if published is None else await run_in_threadpool(table, published))

    async def openapi(request: Request) -> Response:
        return JSONResponse(document(admin=bool(settings.admin_token)))

    files = BuiltFiles(context)
    stack.callback(files.close)
    pictures = _listed_objects(settings.objects)
    history = History(LiveMetrics(context, pictures is not None).now)
    stack.callback(history.close)
    page = LivePage(context, files, LiveMetrics(context, pictures is not None), history, refusals, settings)
    summary = Downloads(context, files, refusals, "summary.json")
    return [
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/metrics", metrics),
        Route("/progressive", progressive),
        Route("/models", models),
        Route("/snapshot", summary, methods=["GET"]),
        Route("/export/{name}", Downloads(context, files, refusals), methods=["GET"]),
        Route("/openapi.json", openapi),
        *LiveAnswers(context, refusals).routes(),
        *page.routes(),
        *ObjectPictures(pictures).routes(),
        *manual_pages.routes(),
    ]


MOST_DOWNLOADS = 32  # of a route, being sent or waited for; beyond it 503


class Downloads:
    """The ASGI application of a route: a file of the newest snapshot, of this name or of the one in the path."""

    def __init__(self, context: HttpContext, files: BuiltFiles, refusals: Refusals, name: str = ""):
        self._context, self._files, self._refusals = context, files, refusals
        self._name, self._now = name, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._now += 1
        try:
            answer = await self._answer(self._name or scope["path_params"]["name"], Request(scope))
            await answer(scope, receive, send)
        finally:
            self._now -= 1

    async def _answer(self, name: str, request: Request) -> Response:
        if self._now > MOST_DOWNLOADS:
            return later(NotNow(f"{MOST_DOWNLOADS} exports are being sent", "busy"), self._refusals)
        what, format = key = exports.export_of(name)
        if not what or what in exports.ON_REQUEST or format not in FORMATS:
            return PlainTextResponse(f"no such export: {name}\n", 404)
        if is_raw(request):
            key = what, format + RAW
        return await send_file(self._files, self._context.published(), key, name, request, self._refusals)


def _yes_or_why(why: str, yes: str) -> Response:
    return PlainTextResponse(f"{why}\n", 503) if why else PlainTextResponse(f"{yes}\n")


def _listed_objects(path: str | None) -> ObjectListing | None:
    """The pictures and texts that `http.objects` names. Raises `BadSettings`."""
    try:
        return None if path is None else read_listing(Path(path))
    except (BadObjects, OSError) as error:
        raise BadSettings(f"http.objects: {error}") from None
