"""Requests to web servers that may be slow, endless or hostile: a deadline for the whole answer, safe redirects.

A socket's timeout starts again with every byte, so a timer ends the connection instead. A redirect is followed to the
same host only, and never from https to http.
"""

import socket
import ssl
import threading
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from types import TracebackType
from typing import Any, Self
from urllib.parse import SplitResult, urlsplit
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

_PORTS = {"http": 80, "https": 443}


class RedirectRefused(OSError):
    """A redirect that is not followed; the message names where it leads, without what follows a `?`."""


class Deadline:
    """Ends the connections that are opened within it after some seconds; used as a context.

    Parameters
    ----------
    seconds : float
        How long all of it may take.
    """

    def __init__(self, seconds: float):
        self.seconds, self.passed = seconds, False
        self._guards: list[socket.socket] = []
        self._timer = threading.Timer(seconds, self._pass)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Raises `TimeoutError` after the deadline, whatever came of the connection that it has ended."""
        self._timer.cancel()
        for guard in self._guards:
            guard.close()
        if self.passed:
            raise TimeoutError(f"no complete answer within {self.seconds:g} s") from None

    def watch(self, connection: socket.socket) -> None:
        """End this connection at the deadline, also after TLS has taken it over."""
        self._guards.append(connection.dup())
        if self.passed:
            self._pass()

    def _pass(self) -> None:
        self.passed = True
        for guard in list(self._guards):
            with suppress(OSError):
                guard.shutdown(socket.SHUT_RDWR)


def open_address(
    request: Request, deadline: Deadline, silent: float, context: ssl.SSLContext | None = None, redirects: bool = True
) -> Any:
    """The answer to a request, whose body is still to be read.

    Parameters
    ----------
    request : Request
        What is asked.
    deadline : Deadline
        When the connection ends.
    silent : float
        Seconds that the server may send nothing.
    context : ssl.SSLContext, optional
        Which certificates are trusted.
    redirects : bool
        Whether redirects are followed; otherwise they are errors.

    Raises
    ------
    HTTPError, RedirectRefused, OSError, ValueError
    """

    def connect(*address: Any) -> socket.socket:
        connected = socket.create_connection(*address)
        deadline.watch(connected)
        return connected

    def guarded(kind: type[HTTPConnection]) -> Any:
        def connection(host: str, **more: Any) -> HTTPConnection:
            made_connection = kind(host, **more)
            made_connection._create_connection = connect  # type: ignore[attr-defined]
            return made_connection

        return connection

    class Http(HTTPHandler):
        def http_open(self, req: Request) -> Any:
            return self.do_open(guarded(HTTPConnection), req)

    class Https(HTTPSHandler):
        def https_open(self, req: Request) -> Any:
            return self.do_open(guarded(HTTPSConnection), req, context=context or ssl.create_default_context())

    followed = _SameHost() if redirects else _NoRedirect()
    try:
        return build_opener(followed, Http(), Https()).open(request, timeout=silent)
    except HTTPException as error:  # what is no HTTP
        raise OSError(f"{type(error).__name__}: {error}") from None


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Redirects are answers like others."""


class _SameHost(HTTPRedirectHandler):
    def redirect_request(self, req: Request, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Request | None:
        """Raises `RedirectRefused`."""
        old, new = urlsplit(req.full_url), urlsplit(newurl)
        upgraded = (old.scheme, new.scheme) == ("http", "https") and _port(new) == 443
        same = old.hostname == new.hostname and ((old.scheme, _port(old)) == (new.scheme, _port(new)) or upgraded)
        if not same or "@" in new.netloc:
            fp.close()
            target = f"{new.scheme}://{new.netloc.rpartition('@')[2]}{new.path}"
            raise RedirectRefused(f"it redirects to {target}, which is not followed; name that address if it is right")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _port(parts: SplitResult) -> int | None:
    return parts.port or _PORTS.get(parts.scheme)
