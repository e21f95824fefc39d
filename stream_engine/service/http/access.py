"""Which requests are answered: those to this host, from no page of another site, with heads of limited size; and the
headers of all answers."""

import asyncio
import contextlib
import re
from collections.abc import Callable
from urllib.parse import unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stream_engine.service.http.hosts import Hosts
from stream_engine.service.http.refusals import Refusals
from stream_engine.service.http.tokens import PROBES

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


HEAD_BYTES = 16 << 10  # of a request line with its headers
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# what a form of any site can send without asking
_FORM_TYPES = frozenset({"text/plain", "application/x-www-form-urlencoded", "multipart/form-data"})
_ABSOLUTE = re.compile(rb"https?://([^/]*)(/.*)?", re.IGNORECASE)


MayChange = Callable[[str, str], bool]  # whether pages of an origin elsewhere may use a path


def another_site(method: str, headers: Headers, hosts: Hosts, foreign: bool) -> str:
    """Why a page of another site could have made a browser send this request, with the credentials that the browser
    keeps; "" where none could, or where nothing can be changed. `foreign`: the Origin is a page elsewhere that may."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if method in _SAFE:
        return ""
    media = headers.get("content-type", "").partition(";")[0].strip().lower()
    if method == "POST" and media in _FORM_TYPES:
        return f"Content-Type: got {media}, expected application/json"
    if foreign or site == "same-origin":
        return ""
    if site in ("cross-site", "same-site") or (origin is not None and not hosts.include_origin(origin, headers)):
        got = f"{origin} ({site})" if site else str(origin)
        return f"Origin: got {got[:100]}, expected this site; its names are [http] allowed_hosts"
    credentials = headers.get("authorization", "").lower().startswith("basic") or "cookie" in headers
    script = media == "application/json" or not {"origin", "sec-fetch-site", "x-requested-with"}.isdisjoint(headers)
    if method == "POST" and credentials and not script:
        return "expected Authorization: Bearer TOKEN, Content-Type: application/json, or a header X-Requested-With"
    return ""


def origin_form(scope: Scope) -> Scope:
    """The request as if its target were a path: one in absolute form, as for a proxy, names the host itself, which then
    counts instead of the Host header (RFC 9112, 3.2.2)."""
    absolute = _ABSOLUTE.fullmatch(scope["raw_path"])
    if absolute is None:
        return scope
    path = absolute[2] or b"/"
    headers = [(name, value) for name, value in scope["headers"] if name != b"host"]
    return {
        **scope,
        "raw_path": path,
        "path": unquote(path.decode("ascii")),
        "headers": [(b"host", absolute[1]), *headers],
    }


class RequestMiddleware:
    """The ASGI application `inner` for requests that name this server and that no other site has sent, its answers with
    `HEADERS`.

    A body is taken before the answer, whoever did not want it: a client that reads the answer first would send its next
    request on a connection that is about to close. Where it does not end in `BODY_REST_SECONDS` seconds, the answer
    says so.
    """

    def __init__(self, inner: ASGIApp, hosts: Hosts, refusals: Refusals, may_change: MayChange):
        self._inner, self._hosts, self._refusals, self._may_change = inner, hosts, refusals, may_change

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_more = True

        async def receive_some() -> Message:
            nonlocal has_more
            message = await receive()
            has_more = message.get("more_body", False)
            return message

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(BODY_REST_SECONDS):
                        while has_more:
                            await receive_some()
                if has_more or scope["state"].get("reserved"):
                    headers["Connection"] = "close"
            await send(message)

        scope = origin_form(scope)
        answer = self._refusal(scope) or self._inner
        try:
            await answer(scope, receive_some, send_with_headers)
        except asyncio.CancelledError:  # only the end of the server cancels, after it has cut the connection
            return

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        """What is answered to a request that is refused, or None."""
        fields = (scope["raw_path"], scope["query_string"], *(part for field in scope["headers"] for part in field))
        if (size := sum(map(len, fields)) + 4 * len(scope["headers"])) > HEAD_BYTES:
            self._refusals.tell("head", bytes=size)
            return PlainTextResponse(f"got a head of {size:,} bytes, expected at most {HEAD_BYTES:,}\n", 431)
        headers = Headers(scope=scope)
        host = headers.get("host")
        if host is not None and not self._hosts.include(host):  # only HTTP/1.0, which no browser speaks, may omit it
            self._refusals.tell("host", host=host[:100])
            return PlainTextResponse(
                "this server is not the host that was asked for; its names are its address and [http] allowed_hosts\n",
                421,
            )
        if scope["state"].get("reserved") and scope["path"] not in PROBES:
            return PlainTextResponse("all connections are in use; try again later\n", 503, {"Retry-After": "5"})
        foreign = self._may_change(scope["path"], headers.get("origin", ""))
        if why := another_site(scope["method"], headers, self._hosts, foreign):
            self._refusals.tell("origin", path=scope["path"][:100], why=why)
            return PlainTextResponse(f"{why}\n", 415 if why.startswith("Content-Type") else 403)
        return None


BODY_REST_SECONDS = 1.0  # seconds that what is left of a body may take before an answer
