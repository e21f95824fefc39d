"""/healthz, /readyz and /metrics: small answers that never wait for anything else that is served."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route


class Probes:
    """`wedged()` and `ready()` are "" or why not; the text of the metrics is made once for all who ask together."""

    def __init__(self, registry: CollectorRegistry, ready: Callable[[], str], wedged: Callable[[], str]):
        self._registry, self._ready, self._wedged = registry, ready, wedged
        self._pool = ThreadPoolExecutor(1, "metrics")
        self._scrape: asyncio.Future[bytes] | None = None

    def routes(self) -> list[Route]:
        """What an application serves."""
        return [
            Route("/metrics", self._metrics),
            Route("/healthz", self._healthz),
            Route("/readyz", self._readyz),
        ]

    async def _healthz(self, request: Request) -> Response:
        return _yes_or_why(self._wedged(), "alive")

    async def _readyz(self, request: Request) -> Response:
        return _yes_or_why(self._wedged() or self._ready(), "ready")

    async def _metrics(self, request: Request) -> Response:
        if self._scrape is None:
            self._scrape = asyncio.get_running_loop().run_in_executor(self._pool, generate_latest, self._registry)
            self._scrape.add_done_callback(self._forget)
        return Response(await asyncio.shield(self._scrape), media_type=CONTENT_TYPE_LATEST)

    def _forget(self, done: asyncio.Future) -> None:
        self._scrape = None

    def close(self) -> None:
        """End the thread."""
        self._pool.shutdown()


def _yes_or_why(why: str, yes: str) -> Response:
    return PlainTextResponse(f"{why}\n", 503) if why else PlainTextResponse(f"{yes}\n")
