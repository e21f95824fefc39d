"""What stands before every application: the host that is asked for, the token, and headers that browsers obey.

The Host header is compared with what the listener is, so that a page elsewhere cannot read it through a name that was
bound to our address (DNS rebinding). The probes need no token: they say nothing but yes or no.
"""

import asyncio
import base64
import binascii
import hmac
import ipaddress
import socket
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stream_engine.service.http.refusals import Refusals

PROBES = frozenset({"/healthz", "/readyz"})
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    return ipaddress.ip_address(host).is_loopback


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

    def ours(self, header: str) -> bool:
        """Whether a Host header names this listener. An address cannot be rebound: one bound to all takes any."""
        host = host_of(header)
        if host in self._names or host in self._allowed or "*" in self._allowed:
            return True
        if any(name.startswith("*.") and host.endswith(name[1:]) for name in self._allowed):
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


def right_token(shown: bytes, tokens: Collection[str]) -> bool:
    """Whether it is one of the tokens; takes as long for a wrong one as for the right one."""
    return sum(hmac.compare_digest(shown, token.encode()) for token in tokens) > 0


class Token:
    """The ASGI application `inner` for who shows one of the tokens; the probes need none, and without tokens there is
    nothing to show."""

    def __init__(self, inner: ASGIApp, tokens: Collection[str], refusals: Refusals):
        self._inner, self._tokens, self._refusals = inner, tokens, refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._inner
        if self._tokens and scope["path"] not in PROBES:
            shown = shown_token(Headers(scope=scope))
            if not right_token(shown, self._tokens):
                self._refusals.tell("token", client=scope["client"] and scope["client"][0])
                ask = {"WWW-Authenticate": 'Bearer realm="stream-engine", Basic realm="stream-engine"'}
                answer = PlainTextResponse("a token is needed: Authorization: Bearer TOKEN\n", 401, ask)
        await answer(scope, receive, send)


class Gate:
    """The ASGI application `inner` for who asks for one of our names, its answers with headers that browsers obey."""

    def __init__(self, inner: ASGIApp, hosts: Hosts, refusals: Refusals):
        self._inner, self._hosts, self._refusals = inner, hosts, refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer, host = self._inner, Headers(scope=scope).get("host")
        if host is not None and not self._hosts.ours(host):  # only HTTP/1.0, which no browser speaks, may leave it out
            self._refusals.tell("host", host=host[:100])
            answer = PlainTextResponse(
                "this server is not the host that was asked for; its names are its address and [http] allowed_hosts\n",
                421,
            )
        try:
            await answer(scope, receive, send_with_headers)
        except asyncio.CancelledError:  # only the end of the server cancels, after it has cut the connection
            return
