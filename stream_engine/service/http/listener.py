"""One listening address, served from a thread of its own by uvicorn's HTTP/1.1 protocol, within limits of ours.

uvicorn's `limit_concurrency` counts silent connections: a thousand of them would have it answer 503 to the probes.
Its time-out begins after the first answer: a request may drip in, and an answer lie unread, for ever. So connections
are accepted here, a limited number of them, and one look at all of them every `LOOK` seconds ends those that are slow.
"""

import asyncio
import contextlib
import email.utils
import fcntl
import ipaddress
import os
import socket
import ssl
import struct
import termios
import threading
import time
from contextlib import ExitStack

import uvicorn
from starlette.types import ASGIApp
from structlog.typing import FilteringBoundLogger
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from stream_engine.service.http.access import HostMiddleware, Hosts, Refusals
from stream_engine.service.memory import connections_allowed, raised_limit
from stream_engine.service.settings import BadSettings, HttpSettings

MOST_CONNECTIONS = 512  # beyond it the longest silent one gives way
IDLE_TIMEOUT = 15.0  # seconds for a whole request, from the connection or from the answer before it
READER_TIMEOUT, SLOWEST = 30.0, 1024  # seconds between looks at a reader; bytes a second that it must take
LOOK = 0.25  # seconds between looks at all connections
HEAD_BYTES = 16 << 10  # of a request line with its headers; a longer one is refused (400)
_GRACE = 1.0  # seconds that answers may still take when the run ends
_BACKLOG = 1024  # connections that the system holds until they are accepted


def listen_on(
    application: ASGIApp,
    where: str,
    settings: HttpSettings,
    refusals: Refusals,
    log: FilteringBoundLogger,
    stack: ExitStack,
) -> "Listener":
    """Serve an application to those who ask for this host, until `stack` closes.

    Raises `OSError` for an address that cannot be had, `BadSettings` for TLS files that cannot be used.
    """
    tls = tls_context(settings.tls_certificate, settings.tls_key)
    listening = _listening_socket(where)
    stack.callback(listening.close)
    host = listening.getsockname()[0]
    guarded = HostMiddleware(application, Hosts(host, settings.allowed_hosts), refusals)
    most = connections_allowed(MOST_CONNECTIONS, raised_limit(), log)
    listener = Listener(guarded, listening, most, refusals, tls)
    stack.callback(listener.close)
    log.info("listening", address=listener.address, tls=tls is not None)
    return listener


def warn_of_strangers(listener: "Listener", settings: HttpSettings, log: FilteringBoundLogger) -> None:
    """Say what those could do who reach an address that is not a loopback one."""
    if ipaddress.ip_address(listener.host).is_loopback:
        return
    if not settings.token:
        log.warning("anyone who can reach this address can read all exports; set [http] token", host=listener.host)
    elif settings.tls_certificate is None:
        log.warning(
            "tokens travel in clear text; set [http] tls_certificate and tls_key, or put a proxy with TLS in front",
            host=listener.host,
        )


def _listening_socket(where: str) -> socket.socket:
    """A socket on HOST:PORT; no host means the loopback address. Raises `OSError`."""
    host, _, port = where.rpartition(":")
    try:
        return socket.create_server(
            (host.strip("[]") or "127.0.0.1", int(port)),
            backlog=_BACKLOG,
            reuse_port=False,
            family=socket.AF_INET6 if ":" in host else socket.AF_INET,
        )
    except (OSError, ValueError, OverflowError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
        raise OSError(
            f"listen: cannot use {where} ({why}); name an address of this machine and a port that no other process "
            "uses, as HOST:PORT"
        ) from None


def tls_context(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    """The certificate that a listener shows; None without one. Raises `BadSettings`."""
    if certificate is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:  # ssl.SSLError among them
        raise BadSettings(
            f"http.tls_certificate, http.tls_key: got {certificate} and {key}: {error.strerror or error}; expected PEM "
            "files of a certificate and of its key"
        ) from None
    return context


class Connection(H11Protocol):
    """uvicorn's protocol; knows since when it waits for a request, and what its reader left unread at the last look."""

    def __init__(self, listener: "Listener", config: uvicorn.Config, state: ServerState):
        super().__init__(config, state, {})
        self._listener = listener
        self.waiting_since = time.monotonic()
        self._unread: tuple[float, int] | None = None  # when, and how many bytes

    def connection_lost(self, exc: Exception | None) -> None:
        """uvicorn's; there is room for another."""
        super().connection_lost(exc)
        self._listener.open -= 1

    @property
    def answering(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def on_response_complete(self) -> None:
        """uvicorn's; the wait for the next request begins."""
        self.waiting_since = time.monotonic()
        super().on_response_complete()

    def resume_writing(self) -> None:
        """uvicorn's; the reader has taken most of it."""
        super().resume_writing()
        self._unread = None

    def too_slow(self, now: float) -> str:
        """For which of `REASONS` this connection is to end, "" when it may go on."""
        if not self.answering:
            return "silent" if now - self.waiting_since > IDLE_TIMEOUT else ""
        if self.flow.write_paused:
            if self._unread is None:
                self._unread = now, self._left_to_read()
            elif now - self._unread[0] >= READER_TIMEOUT:
                left = self._left_to_read()
                if self._unread[1] - left < SLOWEST * READER_TIMEOUT:
                    return "slow_reader"
                self._unread = now, left
        return ""

    def _left_to_read(self) -> int:
        """Bytes of the answer that the other side has not acknowledged."""
        try:
            descriptor = self.transport.get_extra_info("socket").fileno()
            in_kernel = fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0\0\0\0")
        except (OSError, ValueError):  # the socket is gone
            return 0
        return self.transport.get_write_buffer_size() + int(struct.unpack("i", in_kernel)[0])

    def cut(self) -> None:
        """End the connection now, whatever is left to send."""
        self.connections.discard(self)
        self.transport.abort()


class Listener:
    """The application, served; `address` is where, port 0 having been replaced by a free one. `open` counts connections
    that were accepted and have not ended, those in their TLS handshake among them."""

    def __init__(
        self,
        application: ASGIApp,
        listening: socket.socket,
        most: int,
        refusals: Refusals,
        tls: ssl.SSLContext | None = None,
    ):
        self._socket, self._most, self._refusals, self._tls = listening, most, refusals, tls
        listening.setblocking(False)
        self.host, port = listening.getsockname()[:2]
        self.address = f"[{self.host}]:{port}" if ":" in self.host else f"{self.host}:{port}"
        self._config = uvicorn.Config(
            application,
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=int(IDLE_TIMEOUT) + 1,  # ours comes first
            h11_max_incomplete_event_size=HEAD_BYTES,
        )
        self.state, self.open = ServerState(), 0
        self.connections: set[Connection] = self.state.connections  # type: ignore[assignment]
        self._tasks: set[asyncio.Task] = set()  # connections being set up, kept so that they are not collected
        self._end = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving: what is being sent may take a second more, then it is cut."""
        with contextlib.suppress(RuntimeError):  # closed before
            self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(5)
        self._socket.close()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        working = [self._loop.create_task(self._accept()), self._loop.create_task(self._look())]
        await self._end.wait()
        for each in working:
            each.cancel()
        for connection in list(self.connections):
            connection.shutdown()
        end = time.monotonic() + _GRACE
        while self.connections and time.monotonic() < end:
            await asyncio.sleep(0.05)
        for connection in list(self.connections):
            connection.cut()
        if tasks := list(self.state.tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=_GRACE)  # the runner cancels again: files that are being closed stay open

    async def _accept(self) -> None:
        """Empty the system's queue whatever happens: silent connections give way, so that they keep no probe out."""
        while True:
            try:
                await asyncio.sleep(0)  # a full queue must not keep the others waiting
                accepted, _ = await self._loop.sock_accept(self._socket)
            except OSError as error:  # no descriptors; or the client has gone again
                self._refusals.tell("descriptors", problem=error.strerror)
                self._make_way()
                await asyncio.sleep(0.1)
                continue
            if self.open >= self._most and not self._make_way():
                self._refusals.tell("full", connections=self._most)
                accepted.close()
                continue
            self.open += 1
            task = self._loop.create_task(self._greet(accepted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _greet(self, accepted: socket.socket) -> None:
        handshake = {"ssl": self._tls, "ssl_handshake_timeout": IDLE_TIMEOUT} if self._tls else {}
        try:
            accepted.setblocking(False)
            # asyncio does this only for sockets that name their protocol; else a body waits 40 ms behind its headers
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(
                lambda: Connection(self, self._config, self.state),
                accepted,
                **handshake,  # type: ignore[arg-type]
            )
        except OSError:  # no TLS, or gone again
            accepted.close()
            self.open -= 1

    def _make_way(self) -> bool:
        """Close the connection that has waited longest for a request; False when all are being answered."""
        silent = [each for each in self.connections if not each.answering]
        if not silent:
            return False
        self._refusals.tell("gave_way")
        min(silent, key=lambda each: each.waiting_since).cut()
        return True

    async def _look(self) -> None:
        """End what is too slow, and tell the time to answers that come."""
        while True:
            self.state.default_headers = [(b"date", email.utils.formatdate(usegmt=True).encode())]
            now = time.monotonic()
            for connection in list(self.connections):
                if reason := connection.too_slow(now):
                    self._refusals.tell(reason, client=connection.client and connection.client[0])
                    connection.cut()
            await asyncio.sleep(LOOK)
