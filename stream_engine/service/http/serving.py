"""The HTTP server of a run: the listener of `listen`, and the one of `http.admin_listen` where it is wanted."""

import socket
import ssl
from contextlib import ExitStack
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp
from structlog.typing import FilteringBoundLogger

from stream_engine.exports.models import table
from stream_engine.report.object_files import BadObjects, Listed, listed
from stream_engine.service.descriptors import connections_allowed, raised_limit
from stream_engine.service.http import manual_pages
from stream_engine.service.http.admin import admin
from stream_engine.service.http.connection import Patience
from stream_engine.service.http.export_builds import Builder
from stream_engine.service.http.export_cache import ExportCache
from stream_engine.service.http.export_routes import Exports
from stream_engine.service.http.gate import Gate, Hosts, Token, is_loopback
from stream_engine.service.http.listener import Limits, Listener, listening_socket, tls_context
from stream_engine.service.http.live_figures import LiveFigures
from stream_engine.service.http.live_history import History
from stream_engine.service.http.live_page import LivePage
from stream_engine.service.http.object_pictures import ObjectPictures
from stream_engine.service.http.probes import Probes
from stream_engine.service.http.refusals import Refusals
from stream_engine.service.http.seen import Seen
from stream_engine.service.settings import BadSettings, HttpSettings


def serve(
    seen: Seen, listen: str | None, settings: HttpSettings, log: FilteringBoundLogger, stack: ExitStack
) -> dict[str, Listener]:
    """Listeners by name, "http" and "admin", those that are asked for; `stack` closes them.

    Raises `OSError` for an address that cannot be had, `BadSettings` for TLS files that cannot be used.
    """
    tls = tls_context(settings.tls_certificate, settings.tls_key)
    wanted = {"http": listen, "admin": settings.admin_listen}
    sockets = {name: listening_socket(where) for name, where in wanted.items() if where}
    for each in sockets.values():
        stack.callback(each.close)
    if not sockets:
        return {}
    refusals = Refusals(seen.metrics, log)
    allowed = connections_allowed(settings.max_connections, len(sockets), raised_limit(), log)
    limits = Limits(allowed, Patience(settings.idle_timeout, settings.write_timeout))
    listeners = {}
    for name, listening in sockets.items():
        routes = {"http": _reading, "admin": _asking}[name](seen, settings, refusals, stack)
        application = _behind_gate(name, routes, listening, settings, refusals)
        listeners[name] = listener = Listener(application, listening, limits, refusals, tls, name)
        stack.callback(listener.close)
        seen.metrics.http_connections.labels(name).set_function(listener.connections)
        log.info("listening", address=listener.address, listener=name, tls=tls is not None)
    _warn(sockets, settings, tls, log)
    return listeners


def _reading(seen: Seen, settings: HttpSettings, refusals: Refusals, stack: ExitStack) -> list[BaseRoute]:
    """Routes of `listen`: all that can be read."""
    size = seen.metrics.export_cache_bytes

    def memory_for_one() -> int | None:
        left = seen.memory_for_exports()
        return None if left is None else left // settings.max_builds

    builder = Builder(
        seen.directory, settings.cache_bytes, memory_for_one, seen.secrets_for_exports, seen.export_processes
    )
    cache = ExportCache(builder, settings.cache_bytes, settings.max_builds, size.set)
    stack.callback(cache.close)

    async def progressive(request: Request) -> JSONResponse:
        return JSONResponse(seen.progressive())

    async def models(request: Request) -> JSONResponse:
        published = seen.published()
        return JSONResponse([] if published is None else await run_in_threadpool(table, published))

    exports = Exports(cache, seen.published, settings.max_downloads, refusals)
    pictures = _listed_objects(settings.objects)

    def figures() -> LiveFigures:
        shown = pictures is not None
        told = seen.ready, seen.running_refits, seen.published, seen.failed_refits
        return LiveFigures(seen.metrics, *told, shown, seen.progressive)

    history = History(figures().now)
    stack.callback(history.close)
    page = LivePage(
        cache, seen.published, figures(), history.so_far, settings.max_viewers, refusals, settings.show_workers
    )
    told = [Route("/progressive", progressive), Route("/models", models)]
    pages = [*page.routes(), *ObjectPictures(pictures).routes(), *manual_pages.routes()]
    return [*_probes(seen, stack), *told, *exports.routes(), *pages]


def _listed_objects(path: str | None) -> Listed | None:
    """The pictures and texts that `http.objects` names. Raises `BadSettings`."""
    try:
        return None if path is None else listed(Path(path))
    except (BadObjects, OSError) as error:
        raise BadSettings(f"http.objects: {error}") from None


def _asking(seen: Seen, settings: HttpSettings, refusals: Refusals, stack: ExitStack) -> list[BaseRoute]:
    """Routes of `http.admin_listen`: probes, metrics, and with a token what can be asked of the run."""
    routes: list[BaseRoute] = list(_probes(seen, stack))
    if settings.admin_token:
        actions = admin(seen.requests, seen.published, seen.running_refits)
        routes.append(Mount("/admin", Token(actions, [settings.admin_token], refusals)))
    return routes


def _probes(seen: Seen, stack: ExitStack) -> list[Route]:
    probes = Probes(seen.metrics.registry, seen.ready, seen.heartbeat.wedged)
    stack.callback(probes.close)
    return probes.routes()


def _behind_gate(
    name: str, routes: list[BaseRoute], listening: socket.socket, settings: HttpSettings, refusals: Refusals
) -> ASGIApp:
    """The application with all checks; on the admin listener its token opens what `http.token` does."""
    tokens = [settings.token] if settings.token else []
    if tokens and name == "admin" and settings.admin_token:
        tokens.append(settings.admin_token)
    hosts = Hosts(listening.getsockname()[0], settings.allowed_hosts)
    return Gate(Token(Starlette(routes=routes), tokens, refusals), hosts, refusals)


def _warn(
    sockets: dict[str, socket.socket], settings: HttpSettings, tls: ssl.SSLContext | None, log: FilteringBoundLogger
) -> None:
    """Say what strangers could do."""
    for name, listening in sockets.items():
        host = listening.getsockname()[0]
        if is_loopback(host):
            continue
        if not settings.token:
            log.warning("whoever reaches this address may read all exports; set [http] token", host=host, listener=name)
        elif tls is None:
            log.warning("tokens travel in clear text; set [http] tls_certificate and tls_key", host=host, listener=name)
