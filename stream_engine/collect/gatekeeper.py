"""Who may ask for what: rates of addresses and participants, sizes of bodies, keys of participants, the owner's token.

The owner shows the token as `Authorization: Bearer`, as the password of `Basic`, or once in the link /owner?token=...,
which stores it in a cookie of this site. Participants never need it.
"""

import re
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response

from stream_engine.collect.accepted_answers import Rejection, check_worker
from stream_engine.collect.access import Access
from stream_engine.collect.study import Study
from stream_engine.service.http.request_values import BadBody, body_of
from stream_engine.service.http.tokens import right_token, shown_token

_MAX_REMEMBERED = 100_000  # whose rates are remembered


class Rates:
    """Token buckets: so many a second for each key, twenty seconds' worth at once. Those unseen for long go first."""

    def __init__(self, a_second: float, clock: Callable[[], float] = time.monotonic):
        self._rate, self._most, self._clock = a_second, max(20.0 * a_second, 1.0), clock
        self._allowances: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allowed(self, key: str) -> bool:
        """Whether one more is allowed now; it counts then.

        >>> rates = Rates(0.1, iter([0.0, 0.0, 0.0, 10.0]).__next__)
        >>> [rates.allowed("a") for _ in range(4)]
        [True, True, False, True]
        """
        now = self._clock()
        allowance, before = self._allowances.pop(key, (self._most, now))
        allowance = min(allowance + (now - before) * self._rate, self._most)
        fine = allowance >= 1.0
        self._allowances[key] = (allowance - fine, now)
        if len(self._allowances) > _MAX_REMEMBERED:
            self._allowances.popitem(last=False)
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
        headers = request.headers if self._behind_proxy else {}
        scheme, host = (
            headers.get("x-forwarded-proto", request.url.scheme),
            headers.get("x-forwarded-host", request.url.netloc),
        )
        return f"{scheme}://{host}{headers.get('x-forwarded-prefix', prefix).rstrip('/')}"

    def worker(self, worker: Any, key: str, is_known: Callable[[str], bool]) -> str:
        """The code of a participant who may take part. Raises `Rejection`."""
        code = check_worker(worker)
        if self._invited_only and not self._access.is_key_of(code, key):
            raise Rejection("stranger", "this study is for invited participants only: use the link that you received")
        if not self._workers.allowed(code):
            raise Rejection("too_many", "too many requests from this participant; wait a moment")
        if not is_known(code) and not self._new.allowed(""):
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
    more = {"Retry-After": "2"} if error.status in (429, 503) else None
    return JSONResponse({"refused": error.reason, "why": str(error)}, error.status, more)
