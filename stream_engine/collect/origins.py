"""Pages of other sites that may ask and answer here (CORS, as the Fetch standard has it): exact origins, none unless
they are named. The owner's paths are never among what they reach.
"""

import re
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stream_engine.input.settings import BadSettings

OPEN = {"/questions": "GET", "/answers": "POST", "/consent": "POST"}
MEDIA = "/media/"
REMEMBERED = 600  # seconds for which a browser need not ask again whether it may ask
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9_-]+(\.[a-z0-9_-]+)*)(:[0-9]{1,5})?")


def checked_origin(text: str) -> str:
    """An origin as browsers write it. Raises `BadSettings`.

    >>> checked_origin("https://Lab.example:8443"), checked_origin("http://lab.example:80")
    ('https://lab.example:8443', 'http://lab.example')
    """
    origin = text.lower()
    if not _ORIGIN.fullmatch(origin):
        raise BadSettings(f"--allow-origin: got {text!r}, expected http(s)://HOST or http(s)://HOST:PORT, no path")
    usual = ":80" if origin.startswith("http:") else ":443"
    return origin.removesuffix(usual)


class Origins:
    """The application `inner`, whose paths for participants pages of these origins may use."""

    def __init__(self, inner: ASGIApp, allowed: Collection[str]):
        self._inner, self._allowed = inner, frozenset(allowed)

    def allow(self, path: str, origin: str) -> bool:
        """Whether pages of this origin may use this path."""
        return origin in self._allowed and (path in OPEN or path.startswith(MEDIA))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if not self._allowed or not (path in OPEN or path.startswith(MEDIA)):
            await self._inner(scope, receive, send)
            return
        asked = Headers(scope=scope)
        origin = asked.get("origin", "")
        fine = self.allow(path, origin)
        if scope["method"] == "OPTIONS" and "access-control-request-method" in asked:
            answer = _preflight(path, asked["access-control-request-method"], origin if fine else "")
            await answer(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.add_vary_header("Origin")
                if fine:
                    headers["Access-Control-Allow-Origin"] = origin
                    headers["Access-Control-Expose-Headers"] = "Retry-After"
                if path.startswith(MEDIA):  # a picture in a page says no origin
                    headers["Cross-Origin-Resource-Policy"] = "cross-origin"
            await send(message)

        await self._inner(scope, receive, send_with_headers)


def _preflight(path: str, method: str, origin: str) -> Response:
    """What a browser asks before it sends JSON to another site; `origin`: "" for one that may not."""
    allowed = OPEN.get(path, "GET")
    if not origin or method != allowed:
        why = f"{method[:20]}: expected {allowed}" if origin else "this origin is not in --allow-origin"
        return PlainTextResponse(f"{why}\n", 403, {"Vary": "Origin"})
    headers = {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": allowed,
        "Access-Control-Allow-Headers": "content-type",
        "Access-Control-Max-Age": str(REMEMBERED),
        "Vary": "Origin",
    }
    return Response(status_code=204, headers=headers)
