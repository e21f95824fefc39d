"""One listening address served from a thread of its own: uvicorn with our connections, our limits, and TLS by files."""

import asyncio
import contextlib
import socket
import ssl
import threading
from typing import NamedTuple

import uvicorn
from starlette.types import ASGIApp

from stream_engine.service.http.accepting import Acceptor
from stream_engine.service.http.connection import Connection, Patience, with_clocks
from stream_engine.service.http.refusals import Refusals
from stream_engine.service.settings import BadSettings

HEAD_BYTES = 16 << 10  # of a request line with its headers; a longer one is refused (400)
_GRACE = 1.0  # seconds that answers may still take when the run ends
_BACKLOG = 1024  # connections that the system holds until they are accepted


class Limits(NamedTuple):
    """How many connections a listener has, and how long it waits for them."""

    connections: int = 512
    patience: Patience = Patience(15.0, 30.0)


def listening_socket(listen: str) -> socket.socket:
    """A socket on HOST:PORT; no host means the loopback address. Raises `OSError`."""
    host, _, port = listen.rpartition(":")
    try:
        return socket.create_server(
            (host.strip("[]") or "127.0.0.1", int(port)),
            backlog=_BACKLOG,
            reuse_port=False,
            family=socket.AF_INET6 if ":" in host else socket.AF_INET,
        )
    except (OSError, ValueError, OverflowError) as error:
        raise OSError(f"cannot listen on {listen}: {error}; expected HOST:PORT, free and ours") from None


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


class Listener:
    """The application, served; `address` is where, port 0 having been replaced by a free one."""

    def __init__(
        self,
        application: ASGIApp,
        listening: socket.socket,
        limits: Limits,
        refusals: Refusals,
        tls: ssl.SSLContext | None = None,
        name: str = "http",
    ):
        self._socket, self._limits, self._refusals, self._tls = listening, limits, refusals, tls
        listening.setblocking(False)
        where = listening.getsockname()
        self.address = f"[{where[0]}]:{where[1]}" if ":" in where[0] else f"{where[0]}:{where[1]}"
        self._config = uvicorn.Config(
            application,
            http=with_clocks(limits.patience, refusals),
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=int(limits.patience.idle) + 1,  # ours comes first
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=HEAD_BYTES,
        )
        self._server = uvicorn.Server(self._config)
        self._started, self._end = threading.Event(), asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self._started.wait()

    def connections(self) -> int:
        """How many there are now."""
        return len(self._server.server_state.connections)

    def close(self) -> None:
        """Stop serving: what is being sent may take a second more, then it is cut."""
        if self._loop and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(5)
        self._socket.close()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        finally:
            self._started.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        serving = self._loop.create_task(self._server.serve(sockets=[]))
        while not self._server.started:
            await asyncio.sleep(0.001)
        acceptor = Acceptor(
            self._socket,
            self._connection,
            self._limits.connections,
            self._tls,
            self._limits.patience.idle,
            self._refusals,
        )
        accepting = self._loop.create_task(acceptor.run())
        self._started.set()
        await self._end.wait()
        accepting.cancel()
        await self._cut_what_is_left()
        self._server.should_exit = True
        await serving

    def _connection(self) -> Connection:
        """A protocol for a new connection, made as uvicorn makes its own."""
        return self._config.http_protocol_class(  # type: ignore[call-arg,return-value]
            config=self._config, server_state=self._server.server_state, app_state={}, _loop=self._loop
        )

    async def _cut_what_is_left(self) -> None:
        """Close silent connections at once and the others when their answers are sent, or after a moment anyhow."""
        state = self._server.server_state
        for connection in list(state.connections):
            connection.shutdown()
        for _ in range(int(_GRACE / 0.05)):
            if not state.connections:
                break
            await asyncio.sleep(0.05)
        for connection in list(state.connections):
            connection.cut()  # type: ignore[union-attr]
        for task in list(state.tasks):
            task.cancel()
        await asyncio.sleep(0)
