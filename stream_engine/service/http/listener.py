"""One listening address, served from a thread of its own by uvicorn's HTTP/1.1 protocol, within limits on
connections."""

import asyncio
import contextlib
import email.utils
import fcntl
import ipaddress
import os
import socket
import struct
import termios
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

import uvicorn
from starlette.types import ASGIApp
from structlog.typing import FilteringBoundLogger
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from stream_engine.data.descriptors import connections_allowed, raised_limit
from stream_engine.input.settings import HttpSettings
from stream_engine.service.http.access import HEAD_BYTES, MayChange, RequestMiddleware
from stream_engine.service.http.certificate import Certificate
from stream_engine.service.http.hosts import Hosts
from stream_engine.service.http.refusals import Refusals

MAX_CONNECTIONS = 512  # beyond it the longest silent one gives way
MAX_HANDSHAKES, HANDSHAKE_TIMEOUT = 128, 5.0  # connections that negotiate TLS; seconds for the whole of it
RESERVED_CONNECTIONS = 16  # connections beyond all others, for the probes alone
IDLE_TIMEOUT = 15.0  # seconds for a whole request, from the connection or from the answer before it
READER_TIMEOUT, MIN_BYTES_PER_SECOND = 30.0, 1024  # seconds between looks at a reader; bytes a second that it must take
LOOK_SECONDS = 0.25  # seconds between looks at all connections
_RECORD_HEAD, _HANDSHAKE, _LARGEST_RECORD = 5, 22, 1 << 14  # of TLS: bytes, a type of records, bytes
_NO_TLS = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nthis address takes TLS only: https://\n"
_GRACE = 1.0  # seconds that answers may still take when the run ends
_BACKLOG = 1024  # connections that the system holds until they are accepted


def listen_on(
    application: ASGIApp,
    where: str,
    settings: HttpSettings,
    refusals: Refusals,
    log: FilteringBoundLogger,
    stack: ExitStack,
    may_change: MayChange = lambda path, origin: False,
) -> "Listener":
    """Serve an application to those who ask for this host, until `stack` closes; `may_change` says which pages
    elsewhere may send what changes something.

    Raises `OSError` for an address that cannot be had, `BadSettings` for TLS files that cannot be used.
    """
    tls = Certificate(settings.tls_certificate, settings.tls_key) if settings.tls_certificate else None
    listening = _listening_socket(where)
    stack.callback(listening.close)
    host = listening.getsockname()[0]
    checked_application = RequestMiddleware(application, Hosts(host, settings.allowed_hosts), refusals, may_change)
    limit = connections_allowed(MAX_CONNECTIONS, raised_limit(), log)
    listener = Listener(checked_application, listening, limit, refusals, log, tls)
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


class Connection(H11Protocol):
    """uvicorn's protocol; knows since when it waits for a request, and what its reader left unread at the last look.
    `reserved`: it is one of those beyond all others."""

    def __init__(self, listener: "Listener", config: uvicorn.Config, state: ServerState, reserved: bool):
        super().__init__(config, state, {"reserved": reserved})
        self._listener, self.reserved = listener, reserved
        self.waiting_since = time.monotonic()
        self._unread: tuple[float, int] | None = None  # when, and how many bytes

    def connection_lost(self, exc: Exception | None) -> None:
        """uvicorn's; there is room for another."""
        super().connection_lost(exc)
        self._listener.free_place(self.reserved)

    @property
    def answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def owes_body(self) -> bool:
        """Whether a request is being answered of which the client has not sent all."""
        return self.answering and self.cycle.more_body

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
                n_unread = self._left_to_read()
                if self._unread[1] - n_unread < MIN_BYTES_PER_SECOND * READER_TIMEOUT:
                    return "slow_reader"
                self._unread = now, n_unread
        return ""

    def _left_to_read(self) -> int:
        """Bytes of the answer that the other side has not acknowledged."""
        try:
            descriptor = self.transport.get_extra_info("socket").fileno()
            in_kernel = fcntl.ioctl(descriptor, termios.TIOCOUTQ, b"\0\0\0\0")
        except (OSError, ValueError):  # the socket is gone
            return 0
        return self.transport.get_write_buffer_size() + int(struct.unpack("i", in_kernel)[0])

    def abort(self) -> None:
        """End the connection now, whatever is left to send."""
        self.connections.discard(self)
        self.transport.abort()


class AfterHandshake(asyncio.Protocol):
    """Stands where a connection will, until its handshake is over: only then it takes a place."""

    def __init__(self, connection: Callable[[], Connection]):
        self._make = connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The handshake is over."""
        connection = self._make()
        transport.set_protocol(connection)
        connection.connection_made(transport)  # type: ignore[arg-type]


class Handshake:
    """A connection on its way to TLS. `hello`: its ClientHello is there as a whole."""

    def __init__(self) -> None:
        self.hello, self.since = False, time.monotonic()
        self.task: asyncio.Task[None] | None = None


# uvicorn's `limit_concurrency` counts silent connections: a thousand of them would have it answer 503 to the probes.
# Its time-out begins after the first answer: a request may drip in, and an answer lie unread, for ever. So connections
# are accepted here, a limited number of them, and a check of all of them every LOOK_SECONDS ends those that are slow.
#
# Who keeps a place is decided by what a client has done for it. TLS handshakes have few places of their own, of which
# those without a whole ClientHello are ended first. Of the others, connections that owe a request give way first, then
# those that owe a body. If all are being answered, a reserve still serves the probes.
class Listener:
    """The application, served; `address` is where, port 0 having been replaced by a free one. `open` counts connections
    that were accepted and have not ended, those in their TLS handshake and those of the reserve aside."""

    def __init__(
        self,
        application: ASGIApp,
        listening: socket.socket,
        max_connections: int,
        refusals: Refusals,
        log: FilteringBoundLogger,
        tls: Certificate | None = None,
    ):
        self._socket, self._max_connections, self._refusals, self._log, self._tls = (
            listening,
            max_connections,
            refusals,
            log,
            tls,
        )
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
        self.state, self.open, self.reserved = ServerState(), 0, 0
        self.connections: set[Connection] = self.state.connections  # type: ignore[assignment]
        self._handshakes: dict[Handshake, None] = {}  # the oldest first
        self._tasks: set[asyncio.Task] = set()  # connections being set up, kept so that they are not collected
        self._renew = False
        self._end = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._thread.start()

    def renew_certificate(self) -> None:
        """Read the certificate again soon. Safe in a handler of a signal."""
        self._renew = True

    def free_place(self, reserved: bool) -> None:
        """A connection has ended; there is room for another."""
        if reserved:
            self.reserved -= 1
        else:
            self.open -= 1

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
        for task_of_listener in working:
            task_of_listener.cancel()
        for connection in list(self.connections):
            connection.shutdown()
        end = time.monotonic() + _GRACE
        while self.connections and time.monotonic() < end:
            await asyncio.sleep(0.05)
        for connection in list(self.connections):
            connection.abort()
        if tasks := list(self.state.tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=_GRACE)  # the runner cancels again: files that are being closed stay open

    async def _accept(self) -> None:
        """Empty the system's queue whatever happens: silent connections give way, so that they keep no probe out."""
        while True:
            try:
                await asyncio.sleep(0)  # a full queue must not keep the others waiting
                client, _ = await self._loop.sock_accept(self._socket)
            except OSError as error:  # no descriptors; or the client has gone again
                self._refusals.tell("descriptors", problem=error.strerror)
                self._make_way()
                await asyncio.sleep(0.1)
                continue
            handshake = Handshake()
            task = self._loop.create_task(self._greet(client, handshake))
            if self._tls:
                handshake.task = task
                self._handshakes[handshake] = None
                if len(self._handshakes) > min(MAX_HANDSHAKES, self._max_connections):
                    self._end_a_handshake()
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _end_a_handshake(self) -> None:
        """End the oldest of those without a whole ClientHello, or else the oldest."""
        oldest = next(
            (handshake for handshake in self._handshakes if not handshake.hello), next(iter(self._handshakes))
        )
        del self._handshakes[oldest]
        self._refusals.tell("gave_way")
        if oldest.task is not None:
            oldest.task.cancel()

    async def _greet(self, client: socket.socket, handshake: Handshake) -> None:
        """Take a connection through its handshake, and give it a place."""
        reserved: bool | None = None

        def connection() -> Connection:  # called once the handshake is over
            nonlocal reserved
            self._handshakes.pop(handshake, None)
            reserved = self._place()
            return Connection(self, self._config, self.state, reserved)

        try:
            client.setblocking(False)
            # asyncio does this only for sockets that name their protocol; else a body waits 40 ms behind its headers
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is None:
                await self._loop.connect_accepted_socket(connection, client)
                return
            async with asyncio.timeout(HANDSHAKE_TIMEOUT):
                await self._hello(client)
                handshake.hello = True
                seconds = max(HANDSHAKE_TIMEOUT - (time.monotonic() - handshake.since), 0.1)
                await self._loop.connect_accepted_socket(
                    lambda: AfterHandshake(connection), client, ssl=self._tls.context, ssl_handshake_timeout=seconds
                )
        except (OSError, asyncio.CancelledError) as error:  # no TLS, too slow, gave way, or gone again
            if isinstance(error, TimeoutError):
                self._refusals.tell("silent")
            client.close()
        finally:
            self._handshakes.pop(handshake, None)

    async def _hello(self, client: socket.socket) -> None:
        """Wait until the first TLS record, the ClientHello, has come as a whole. Raises OSError if it is none."""
        n_bytes = _RECORD_HEAD
        while True:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, n_bytes)
            await self._readable(client)
            head = client.recv(n_bytes, socket.MSG_PEEK)
            if len(head) < n_bytes or head[0] != _HANDSHAKE:
                if head.split(b" ")[0].isalpha():  # GET, POST
                    client.recv(HEAD_BYTES)  # what is unread when a connection is closed resets it
                    client.send(_NO_TLS)
                raise ConnectionError("no ClientHello")
            if n_bytes > _RECORD_HEAD:
                break
            n_bytes += int.from_bytes(head[3:5], "big")
            if n_bytes > _RECORD_HEAD + _LARGEST_RECORD:
                raise ConnectionError("no ClientHello")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)

    async def _readable(self, client: socket.socket) -> None:
        """Wait until a connection has what it is to wake up for, or has ended."""
        ready = asyncio.Event()
        self._loop.add_reader(client, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_reader(client)

    def _place(self) -> bool:
        """Give a new connection a place, for which another one may have to give way; whether it is a reserved one."""
        if self.open < self._max_connections or self._make_way():
            self.open += 1
            return False
        if self.reserved >= RESERVED_CONNECTIONS and (
            rivals := [connection for connection in self.connections if connection.reserved]
        ):
            min(rivals, key=lambda connection: connection.waiting_since).abort()
        self._refusals.tell("full", connections=self._max_connections)
        self.reserved += 1
        return True

    def _make_way(self) -> bool:
        """Close the connection that has waited longest for a request, or else for a body; False when all are being
        answered."""
        rivals = [connection for connection in self.connections if not connection.reserved]
        silent = [connection for connection in rivals if not connection.answering] or [
            connection for connection in rivals if connection.owes_body
        ]
        if not silent:
            return False
        self._refusals.tell("gave_way")
        min(silent, key=lambda connection: connection.waiting_since).abort()
        return True

    async def _look(self) -> None:
        """End what is too slow, and tell the time to answers that come."""
        while True:
            self.state.default_headers = [(b"date", email.utils.formatdate(usegmt=True).encode())]
            now = time.monotonic()
            if self._tls is not None:
                soon, self._renew = self._renew, False
                self._tls.renew_if_changed(self._log, now, soon)
            for connection in list(self.connections):
                if reason := connection.too_slow(now):
                    self._refusals.tell(reason, client=connection.client and connection.client[0])
                    connection.abort()
            await asyncio.sleep(LOOK_SECONDS)
