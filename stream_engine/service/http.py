"""Read-only HTTP over what is published: /metrics /healthz /readyz /snapshot /progressive /export/<name>.

Bound to the loopback address unless told otherwise.
"""

import socket
import threading
import time
from collections.abc import Callable
from pathlib import PurePosixPath

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from stream_engine import exports
from stream_engine.exports.files import FORMATS, MEDIA_TYPES, encode
from stream_engine.state.published import Published


def app(
    registry: CollectorRegistry,
    ready: Callable[[], str],
    published: Callable[[], Published | None],
    progressive: Callable[[], dict] = dict,
) -> Starlette:
    """The ASGI application. `ready()` is "" or why not; `published()` the newest published files, or None;
    `progressive()` how predictions went so far."""
    cache: dict[tuple[str, ...], dict[str, bytes]] = {}

    def metrics(request: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    def healthz(request: Request) -> Response:
        return PlainTextResponse("alive\n")

    def readyz(request: Request) -> Response:
        why = ready()
        return PlainTextResponse(why + "\n", 503) if why else PlainTextResponse("ready\n")

    def snapshot(request: Request) -> Response:
        return file("summary.json")

    def predictions(request: Request) -> Response:
        return JSONResponse(progressive())

    def export(request: Request) -> Response:
        return file(request.path_params["name"])

    def file(name: str) -> Response:
        newest = published()
        path = PurePosixPath(name)
        what, format = exports.TABLES.get(path.stem, path.stem.split(".")[0]), path.suffix.removeprefix(".")
        if newest is None or what not in exports.EXPORTS or what in exports.ON_REQUEST or format not in FORMATS:
            return PlainTextResponse(f"no such export: {name}\n" if newest else "nothing is published yet\n", 404)
        # CSV tables stand beside any format; ask for npz where only they are wanted, to make one thing once.
        try:
            files = _files(cache, newest, what, format)
        except exports.NothingToExport as error:
            return PlainTextResponse(f"{error}\n", 404)
        except ValueError as error:  # too large for this machine's memory
            return PlainTextResponse(f"{error}\n", 503)
        if name not in files:
            return PlainTextResponse(f"no such export: {name}; there are {', '.join(files)}\n", 404)
        headers = {"ETag": f'"{newest.snapshot.digest}"'}
        return Response(files[name], media_type=MEDIA_TYPES[path.suffix], headers=headers)

    return Starlette(
        routes=[
            Route("/metrics", metrics),
            Route("/healthz", healthz),
            Route("/readyz", readyz),
            Route("/snapshot", snapshot),
            Route("/progressive", predictions),
            Route("/export/{name}", export),
        ]
    )


def _files(
    cache: dict[tuple[str, ...], dict[str, bytes]], published: Published, what: str, format: str
) -> dict[str, bytes]:
    """The files of one export; the last few are kept, so that a dashboard that asks again costs nothing."""
    key = (published.snapshot.digest, *(artifact.digest for artifact in published.artifacts.values()), what, format)
    if key not in cache:
        while len(cache) >= 4:
            cache.pop(next(iter(cache)), None)
        files: dict[str, bytes] = {}
        for name, content in exports.contents(what, published).items():
            files |= encode(name, content, format, published.snapshot.objects)
        cache[key] = files
    return cache[key]


class Server:
    """The application served from a thread; `address` is where, port 0 having been replaced by a free one."""

    def __init__(self, application: Starlette, listen: str):
        host, _, port = listen.rpartition(":")
        try:
            self._socket = socket.create_server(
                (host.strip("[]") or "127.0.0.1", int(port)),
                reuse_port=False,
                family=socket.AF_INET6 if ":" in host else socket.AF_INET,
            )
        except (OSError, ValueError) as error:
            raise OSError(f"cannot listen on {listen}: {error}; expected HOST:PORT, free and ours") from None
        config = uvicorn.Config(
            application, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="http", daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)
        where = self._socket.getsockname()
        self.address = f"{where[0]}:{where[1]}"

    def close(self) -> None:
        """Stop serving; waits for it at most a few seconds."""
        self._server.should_exit = True
        self._thread.join(5)
        self._socket.close()
