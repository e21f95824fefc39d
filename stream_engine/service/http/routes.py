"""The application of a run: probes, metrics, exports, live answers, the live page, the manual, and with
`http.admin_token` /admin. `paths` declares each of these paths."""

from contextlib import ExitStack
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from structlog.typing import FilteringBoundLogger

from stream_engine.exports.models import table
from stream_engine.input.settings import BadSettings, HttpSettings
from stream_engine.report.object_files import BadObjects, ObjectListing, read_listing
from stream_engine.service.context import HttpContext
from stream_engine.service.http import manual_pages
from stream_engine.service.http.admin_routes import admin_routes
from stream_engine.service.http.built_files import BuiltFiles
from stream_engine.service.http.downloads import Downloads
from stream_engine.service.http.history import History
from stream_engine.service.http.listener import Listener, listen_on, warn_of_strangers
from stream_engine.service.http.live_answers import LiveAnswers
from stream_engine.service.http.live_metrics import LiveMetrics
from stream_engine.service.http.live_page import LivePage
from stream_engine.service.http.object_pictures import ObjectPictures
from stream_engine.service.http.paths import document
from stream_engine.service.http.refusals import Refusals
from stream_engine.service.http.tokens import TokenMiddleware


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
    pictures = _object_listing(settings.objects)
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


def _yes_or_why(why: str, yes: str) -> Response:
    return PlainTextResponse(f"{why}\n", 503) if why else PlainTextResponse(f"{yes}\n")


def _object_listing(path: str | None) -> ObjectListing | None:
    """The pictures and texts that `http.objects` names. Raises `BadSettings`."""
    try:
        return None if path is None else read_listing(Path(path))
    except (BadObjects, OSError) as error:
        raise BadSettings(f"http.objects: {error}") from None
