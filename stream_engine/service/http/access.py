"""Who may ask: the host that is asked for, the page that asks, the token, and headers that browsers obey; and what is
refused, counted.

The Host header is compared with what the listener is, so that a page elsewhere cannot read it through a name that was
bound to our address (DNS rebinding). Starlette's `TrustedHostMiddleware` cannot say "any IP address", which a listener
on all addresses needs: kubelets and Prometheus ask for the address of a pod. The probes need no token.
"""

import asyncio
import base64
import binascii
import contextlib
import hmac
import ipaddress
import re
import socket
from collections.abc import Callable, Collection
from urllib.parse import unquote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.typing import FilteringBoundLogger

from stream_engine.data.logs import RateLimit
from stream_engine.service.metrics import Metrics

PROBES = frozenset({"/healthz", "/readyz"})
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
REASONS = {  # why something is refused -> the log line; `Metrics.http_refused` has one series for each
    "full": "all connections are in use: new ones are refused",
    "descriptors": "no descriptors are left for new connections (ulimit -n)",
    "silent": "a connection that sent no whole request in time was closed",
    "gave_way": "all connections are in use: the longest silent one was closed for a new one",
    "slow_reader": "a reader that took next to nothing of its answer was cut",
    "host": "a request for a host that this server is not was refused; its names are [http] allowed_hosts",
    "origin": "a request that a page of another site could have sent was refused",
    "head": "a request with a head that is too long was refused",
    "token": "a request without the right token was refused",
    "busy": "a request was refused for a while: too many at once",
    "no_room": "an export was refused: no room for it",
}
_EVERYDAY = ("silent",)  # browsers leave connections open, and close them late: counted, and logged at level debug
_QUIET = ("gave_way",)
_MOST_DIGITS = 18
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Refusals:
    """Counts each refusal by its reason, and logs at most one line a minute for each."""

    def __init__(self, metrics: Metrics, log: FilteringBoundLogger):
        self._count, self._log, self._limit = metrics.http_refused, log, RateLimit()
        for reason in REASONS:
            self._count.labels(reason)

    def tell(self, reason: str, **details: object) -> None:
        """Something was refused for one of `REASONS`."""
        self._count.labels(reason).inc()
        if times := self._limit.due(reason):
            log = self._log
            say = log.debug if reason in _EVERYDAY else log.info if reason in _QUIET else log.warning
            say(REASONS[reason], times=times, **details)


def host_of(header: str) -> str:
    """The host of a Host header, without its port.

    >>> host_of("Example.org:80"), host_of("[::1]:9"), host_of("127.0.0.1")
    ('example.org', '::1', '127.0.0.1')
    """
    host, colon, port = header.rpartition(":")
    if not colon or not port.isdigit():
        host = header
    return host.strip("[]").rstrip(".").lower()


class Hosts:
    """The names of one listener: those of its address, and those that the settings allow (`*.example.org`, `*`)."""

    def __init__(self, bound_to: str, allowed: Collection[str]):
        self._allowed = {name.lower() for name in allowed}
        self._any_address = ipaddress.ip_address(bound_to).is_unspecified
        self._names = {*_LOOPBACK, bound_to.lower(), socket.gethostname().lower()}

    def include_origin(self, origin: str, headers: Headers) -> bool:
        """Whether an Origin is a page of this listener: by the Host that was asked for, by the one that a proxy names,
        or by a name in the settings. No page elsewhere can make a browser send another X-Forwarded-Host."""
        scheme, _, authority = origin.lower().partition("://")
        if scheme not in ("http", "https"):  # "null", or an extension
            return False
        usual = {"http": ":80", "https": ":443"}[scheme]
        names_asked = (headers.get("host", ""), headers.get("x-forwarded-host", ""))
        if authority.removesuffix(usual) in {each.strip().lower().removesuffix(usual) for each in names_asked if each}:
            return True
        return self._allows(host_of(authority))

    def _allows(self, host: str) -> bool:
        """Whether the settings name this host."""
        return host in self._allowed or any(n.startswith("*.") and host.endswith(n[1:]) for n in self._allowed)

    def include(self, header: str) -> bool:
        """Whether a Host header names this listener. An address cannot be rebound: one bound to all takes any."""
        host = host_of(header)
        if host in self._names or "*" in self._allowed or self._allows(host):
            return True
        return self._any_address and _is_address(host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def shown_token(headers: Headers) -> bytes:
    """The token that a request shows: `Authorization: Bearer TOKEN`, or as the password of `Basic`, which a browser
    asks a person for. Empty where there is none."""
    scheme, _, value = headers.get("authorization", "").strip().partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value.encode("latin-1")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return b""
    return b""


def right_token(got: bytes, token: str) -> bool:
    """Whether it is the token; takes as long for a wrong one as for the right one."""
    return hmac.compare_digest(got, token.encode())


class TokenMiddleware:
    """The ASGI application `inner` for requests that show one of the tokens; the probes need none, and without tokens
    there is nothing to show."""

    def __init__(self, inner: ASGIApp, tokens: Collection[str], refusals: Refusals):
        self._inner, self._tokens, self._refusals = inner, tokens, refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._inner
        if self._tokens and scope["path"] not in PROBES:
            got = shown_token(Headers(scope=scope))
            if not any(right_token(got, token) for token in self._tokens):
                self._refusals.tell("token", client=scope["client"] and scope["client"][0])
                ask = {"WWW-Authenticate": 'Bearer realm="stream-engine", Basic realm="stream-engine"'}
                answer = PlainTextResponse("a token is needed: Authorization: Bearer TOKEN\n", 401, ask)
        await answer(scope, receive, send)


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

    A body is taken before the answer, whoever did not want it: a client that reads the answer first would send its
    next request on a connection that is about to close. Where it does not end in `REST` seconds, the answer says so.
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
                    async with asyncio.timeout(REST):
                        while has_more:
                            await receive_some()
                if has_more or scope["state"].get("reserved"):
                    headers["Connection"] = "close"
            await send(message)

        scope = origin_form(scope)
        answer = self._refused(scope) or self._inner
        try:
            await answer(scope, receive_some, send_with_headers)
        except asyncio.CancelledError:  # only the end of the server cancels, after it has cut the connection
            return

    def _refused(self, scope: Scope) -> ASGIApp | None:
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


REST = 1.0  # seconds that what is left of a body may take before an answer
SECONDS = 15.0  # for any body; as long as a silent connection has
SLOWEST = 64 << 10  # bytes a second for what is larger


def whole_number(text: str) -> int | None:
    """The number that a query gives in decimal digits, None for anything else.

    >>> whole_number("12"), whole_number("\u00b2"), whole_number("9" * 5000)
    (12, None, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def is_raw(request: Request) -> bool:
    """Whether `?raw=1` asks for texts in CSV as they are, also those that a spreadsheet would run as formulas."""
    return request.query_params.get("raw") == "1"


class BadBody(ValueError):
    """A body that is not taken; `status` is that of the answer."""

    def __init__(self, status: int, why: str):
        super().__init__(why)
        self.status = status


async def body_of(request: Request, limit: int) -> bytes:
    """The body of a request. Raises `BadBody`: more than `limit` bytes (413), too slow (408), cut short (400)."""
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS + limit / SLOWEST):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise BadBody(413, f"got more than {limit:,} bytes, the maximum")
    except TimeoutError:
        raise BadBody(408, "the body did not come in time") from None
    except ClientDisconnect:
        raise BadBody(400, "the connection was closed") from None
    return bytes(body)
