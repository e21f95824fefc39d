"""POST /admin/{snapshot,pause,resume,refit,log-level}: requests, which the loop acts on between two records."""

from collections.abc import Collection

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from stream_engine.data import logs
from stream_engine.refits import REFITS
from stream_engine.service.context import HttpContext

ACCEPTED = 202  # it will be done


def admin_routes(context: HttpContext) -> list[Route]:
    requests = context.requests

    async def snapshot(request: Request) -> Response:
        requests.snapshot = "admin"
        newest = context.published()
        return JSONResponse({"asked": "snapshot", "newest": newest.snapshot.sequence if newest else None}, ACCEPTED)

    async def pause(request: Request) -> Response:
        requests.paused = True
        return JSONResponse({"paused": True})

    async def resume(request: Request) -> Response:
        requests.paused = False
        return JSONResponse({"paused": False})

    async def refit(request: Request) -> Response:
        kind, newest = request.query_params.get("kind", ""), context.published()
        if kind not in REFITS:
            return _wrong_value("kind", kind, REFITS)
        if newest is None:
            return PlainTextResponse("nothing is published yet; POST /admin/snapshot makes a snapshot\n", 409)
        if kind in context.running_refits():
            return PlainTextResponse(f"{kind} is running; its artifact will come\n", 409)
        requests.refits.add(kind)
        return JSONResponse({"asked": "refit", "kind": kind, "snapshot": newest.snapshot.sequence}, ACCEPTED)

    async def log_level(request: Request) -> Response:
        level = request.query_params.get("level", "")
        if level not in logs.LEVELS:
            return _wrong_value("level", level, logs.LEVELS)
        logs.set_level(level)
        return JSONResponse({"level": level})

    actions = {"snapshot": snapshot, "pause": pause, "resume": resume, "refit": refit, "log-level": log_level}
    return [Route(f"/{name}", action, methods=["POST"]) for name, action in actions.items()]


def _wrong_value(parameter: str, value: str, expected: Collection[str]) -> Response:
    return PlainTextResponse(
        f"{parameter}: got {value[:100]!r}, expected ?{parameter}= one of {', '.join(expected)}\n", 400
    )
