"""Tokens of requests; the probes need none."""

import base64
import binascii
import hmac
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from stream_engine.service.http.refusals import Refusals

PROBES = frozenset({"/healthz", "/readyz"})


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


def right_token(value: bytes, token: str) -> bool:
    """Whether it is the token; takes as long for a wrong one as for the right one."""
    return hmac.compare_digest(value, token.encode())


class TokenMiddleware:
    """The ASGI application `inner` for requests that show one of the tokens; the probes need none, and without tokens
    there is nothing to show."""

    def __init__(self, inner: ASGIApp, tokens: Collection[str], refusals: Refusals):
        self._inner, self._tokens, self._refusals = inner, tokens, refusals

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._inner
        if self._tokens and scope["path"] not in PROBES:
            shown = shown_token(Headers(scope=scope))
            if not any(right_token(shown, token) for token in self._tokens):
                self._refusals.tell("token", client=scope["client"] and scope["client"][0])
                ask = {"WWW-Authenticate": 'Bearer realm="stream-engine", Basic realm="stream-engine"'}
                answer = PlainTextResponse("a token is needed: Authorization: Bearer TOKEN\n", 401, ask)
        await answer(scope, receive, send)
