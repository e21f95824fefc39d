"""New connections of a listener: a limited number, the longest silent one giving way to a new one.

The system's queue is emptied whatever happens, so that a thousand silent connections neither keep a probe out nor make
the loop spin; without descriptors the loop pauses, and says so once.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable

from stream_engine.service.http.connection import Connection
from stream_engine.service.http.refusals import Refusals

_NO_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE = 0.1  # seconds before the next attempt when there are no descriptors


class Acceptor:
    """Accepts for one listening socket; `most` connections at once, those in their TLS handshake among them."""

    def __init__(
        self,
        listening: socket.socket,
        connection: Callable[[], Connection],
        most: int,
        tls: ssl.SSLContext | None,
        patience: float,
        refusals: Refusals,
    ):
        self._listening, self._connection, self._most = listening, connection, most
        self._tls, self._patience, self._refusals = tls, patience, refusals
        self._silent: dict[Connection, None] = {}
        self._accepted = 0  # and not ended
        self._greeting: set[asyncio.Task] = set()  # those being set up, kept so that they are not collected

    async def run(self) -> None:
        """Accept until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                await asyncio.sleep(0)  # a full queue must not keep the others waiting
                accepted, _ = await loop.sock_accept(self._listening)
            except OSError as error:
                if error.errno in _NO_RESOURCES:
                    self._refusals.tell("descriptors", problem=error.strerror)
                    self._make_way()
                    await asyncio.sleep(_PAUSE)
                continue  # the client has gone again
            if self._accepted >= self._most and not self._make_way():
                self._refusals.tell("full", connections=self._most)
                accepted.close()
                continue
            self._accepted += 1
            greeting = loop.create_task(self._greet(accepted))
            self._greeting.add(greeting)
            greeting.add_done_callback(self._greeting.discard)

    async def _greet(self, accepted: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        accepted.setblocking(False)
        handshake = {"ssl": self._tls, "ssl_handshake_timeout": self._patience} if self._tls else {}
        try:
            # asyncio does this only for sockets that name their protocol; else a body waits 40 ms behind its headers
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.connect_accepted_socket(self._new, accepted, **handshake)  # type: ignore[arg-type]
        except OSError:  # no TLS, or gone again
            accepted.close()
            self._ended()

    def _new(self) -> Connection:
        connection = self._connection()
        connection.ended, connection.silent = self._ended, self._silent
        return connection

    def _ended(self) -> None:
        self._accepted -= 1

    def _make_way(self) -> bool:
        """Close the connection that has waited longest for a request; False when all are being answered."""
        longest = next(iter(self._silent), None)
        if longest is None:
            return False
        self._refusals.tell("gave_way")
        longest.cut()
        return True
