"""Who is who: the owner by a token, participants by the key in their link, all made from one secret of the study.

The secret lies in DIR/collect/secret (0600) and is never shown. A participant's key is HMAC(secret, "participant", his
code), so links need no list; his completion code likewise.

Who may ask for what: rates of addresses and workers, sizes of bodies, keys of participants, the owner's token.

The owner shows his token as `Authorization: Bearer`, as the password of `Basic`, or once in the link /owner?token=...,
which leaves it in a cookie of this site. Participants never need it.

Pages of other sites that may ask and answer here (CORS, as the Fetch standard has it): exact origins, none unless
they are named. The owner's paths are never among what they reach.
"""

import hashlib
import hmac
import os
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from connectors.disk import Disk, write_whole
from stream_engine.collect.sessions import Rejection, check_worker
from stream_engine.collect.study import Study
from stream_engine.service.http.access import BadBody, body_of, right_token, shown_token
from stream_engine.service.settings import BadSettings

_PEOPLE = 100_000  # whose rates are remembered


class Access:
    """Keys of a study in the folder `folder`, whose secret is made when there is none. Raises OSError."""

    def __init__(self, folder: Path):
        path = folder / "secret"
        if not path.exists():
            write_whole(Disk(), path, lambda made: _private(made, secrets.token_hex(32)))
        path.chmod(0o600)  # one that was restored from a backup has lost it
        self._secret = path.read_text("ascii").strip().encode()
        self.study = self._mac("study", "")[:6]  # ids of questions begin with it
        self.owner = self._mac("owner", "")[:32]

    def key(self, worker: str) -> str:
        """The key in the link of a participant."""
        return self._mac("participant", worker)[:16]

    def is_key_of(self, worker: str, key: str) -> bool:
        """Whether it is; takes as long for a wrong one."""
        return hmac.compare_digest(key.encode(), self.key(worker).encode())

    def completion_code(self, worker: str) -> str:
        """What a participant shows for his pay."""
        return self._mac("completed", worker)[:8].upper()

    def link(self, base: str, worker: str, parameter: str) -> str:
        """Where a participant begins."""
        return f"{base}/ask?{quote(parameter)}={quote(worker)}&key={self.key(worker)}"

    def _mac(self, what: str, of: str) -> str:
        return hmac.new(self._secret, f"{what}\0{of}".encode(), hashlib.sha256).hexdigest()


def _private(path: str | os.PathLike[str], text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)


class Rates:
    """Token buckets: so many a second for each key, twenty seconds' worth at once. Those unseen for long go first."""

    def __init__(self, a_second: float, clock: Callable[[], float] = time.monotonic):
        self._rate, self._most, self._clock = a_second, max(20.0 * a_second, 1.0), clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allowed(self, key: str) -> bool:
        """Whether one more is allowed now; it counts then.

        >>> rates = Rates(0.1, iter([0.0, 0.0, 0.0, 10.0]).__next__)
        >>> [rates.allowed("a") for _ in range(4)]
        [True, True, False, True]
        """
        now = self._clock()
        left, before = self._left.pop(key, (self._most, now))
        left = min(left + (now - before) * self._rate, self._most)
        fine = left >= 1.0
        self._left[key] = (left - fine, now)
        if len(self._left) > _PEOPLE:
            self._left.popitem(last=False)
        return fine


def client_behind(forwarded: str, peer: str) -> str:
    """The address that a reverse proxy saw: the last one that it wrote behind the others.

    >>> client_behind("6.6.6.6, 10.0.0.7", "127.0.0.1"), client_behind("", "127.0.0.1")
    ('10.0.0.7', '127.0.0.1')
    """
    last = forwarded.rpartition(",")[2].strip()
    return last if re.fullmatch(r"[0-9A-Fa-f:.]{2,45}", last) else peer


COOKIE = "stream_engine_owner"


class Gatekeeper:
    """Of one study; `behind_proxy`: addresses are those that the proxy in front has seen."""

    def __init__(self, study: Study, access: Access, behind_proxy: bool):
        self._access, self._behind_proxy = access, behind_proxy
        self._invited_only, self.body_bytes = study.access.invited_only, study.access.body_bytes
        self._workers = Rates(study.access.requests_a_second)
        self._addresses = Rates(study.access.requests_a_second_from_address)
        self._new = Rates(study.access.new_people_a_minute / 60.0)

    def address(self, request: Request) -> None:
        """Raises `Rejection` where an address asks too much."""
        client = request.client.host if request.client else ""
        if self._behind_proxy:
            client = client_behind(request.headers.get("x-forwarded-for", ""), client)
        if not self._addresses.allowed(client):
            raise Rejection("too_many", "too many requests from this address; wait a moment")

    def base(self, request: Request, prefix: str) -> str:
        """How this site is called from outside; a proxy says it in X-Forwarded-Proto, -Host and -Prefix."""
        said = request.headers if self._behind_proxy else {}
        scheme, host = (
            said.get("x-forwarded-proto", request.url.scheme),
            said.get("x-forwarded-host", request.url.netloc),
        )
        return f"{scheme}://{host}{said.get('x-forwarded-prefix', prefix).rstrip('/')}"

    def worker(self, worker: Any, key: str, known: Callable[[str], bool]) -> str:
        """The code of a participant who may take part. Raises `Rejection`."""
        code = check_worker(worker)
        if self._invited_only and not self._access.is_key_of(code, key):
            raise Rejection("stranger", "this study is for invited participants only: use the link that you received")
        if not self._workers.allowed(code):
            raise Rejection("too_many", "too many requests from this participant; wait a moment")
        if not known(code) and not self._new.allowed(""):
            raise Rejection("too_many", "too many participants are starting; try again in a minute")
        return code

    async def body(self, request: Request, most: int | None = None) -> bytes:
        """What was posted, up to the limit. Raises `Rejection`."""
        try:
            return await body_of(request, most or self.body_bytes)
        except BadBody as error:
            raise Rejection("too_large" if error.status == 413 else "not_json", str(error)) from None

    def is_owner(self, request: Request) -> bool:
        """Whether a request shows the owner's token."""
        shown = shown_token(request.headers) or request.cookies.get(COOKIE, "").encode()
        return right_token(shown, self._access.owner)

    async def enter(self, request: Request) -> Response:
        """GET /owner?token=...: leave the token in a cookie, and go to the live page."""
        if not right_token(request.query_params.get("token", "").encode(), self._access.owner):
            return self.not_the_owner()
        answer = RedirectResponse("./", 303)
        safe = self.base(request, "").startswith("https:")
        answer.set_cookie(COOKIE, self._access.owner, httponly=True, samesite="strict", secure=safe, path="/")
        return answer

    def not_the_owner(self) -> Response:
        """401, for which a browser asks for a password."""
        ask = {"WWW-Authenticate": 'Bearer realm="stream-engine", Basic realm="stream-engine"'}
        return PlainTextResponse("the token of the study's owner is required\n", 401, ask)


def refusal(error: Rejection) -> Response:
    """A refusal as JSON."""
    more = {"Retry-After": "2"} if error.status in (429, 503) else None
    return JSONResponse({"refused": error.reason, "why": str(error)}, error.status, more)


OPEN = {"/questions": "GET", "/answers": "POST", "/consent": "POST"}
MEDIA = "/media/"
REMEMBERED = 600  # seconds for which a browser need not ask again whether it may ask
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9_-]+(\.[a-z0-9_-]+)*)(:[0-9]{1,5})?")


def checked_origin(given: str) -> str:
    """An origin as browsers write it. Raises `BadSettings`.

    >>> checked_origin("https://Lab.example:8443"), checked_origin("http://lab.example:80")
    ('https://lab.example:8443', 'http://lab.example')
    """
    origin = given.lower()
    if not _ORIGIN.fullmatch(origin):
        raise BadSettings(f"--allow-origin: got {given!r}, expected http(s)://HOST or http(s)://HOST:PORT, no path")
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
