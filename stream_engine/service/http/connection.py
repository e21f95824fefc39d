"""One connection: uvicorn's HTTP/1.1 protocol with two clocks that it lacks.

A whole request must come within `idle_timeout` of the connection or of the answer before it, however many bytes drip
in; a reader must take something of an answer within `write_timeout`. uvicorn closes a connection that is idle between
requests and limits the size of a head; it lets a head drip in and an answer lie for ever.
"""

import asyncio
import fcntl
import struct
import termios
from collections.abc import Callable
from typing import Any, NamedTuple

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from stream_engine.service.http.refusals import Refusals

SLOWEST = 1024  # bytes a second that a reader must take at least


class Patience(NamedTuple):
    """Seconds that a connection may take, see `HttpSettings`."""

    idle: float
    write: float


class Connection(H11Protocol):
    """`silent` holds the connections of a listener that wait for a request, the longest first; `ended` is called when
    this one is over."""

    patience: Patience
    refusals: Refusals
    ended: Callable[[], None]
    silent: dict["Connection", None]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """uvicorn's, and the clock of the first request starts."""
        self._idle_clock: asyncio.TimerHandle | None = None
        self._write_clock: asyncio.TimerHandle | None = None
        super().connection_made(transport)
        self._wait_for_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """uvicorn's, and the clocks stop."""
        self._stop_clocks()
        self.silent.pop(self, None)
        super().connection_lost(exc)
        self.ended()

    def data_received(self, data: bytes) -> None:
        """uvicorn's; a whole head stops the clock, single bytes of it do not."""
        super().data_received(data)
        if self.answering and self._idle_clock:
            self._idle_clock.cancel()
            self.silent.pop(self, None)

    @property
    def answering(self) -> bool:
        """Whether a request is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def on_response_complete(self) -> None:
        """uvicorn's; what is left of a request that was answered early is not read, the connection ends."""
        if self.conn.their_state not in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED) and not self.transport.is_closing():
            self.transport.close()
        super().on_response_complete()
        if not self.answering:
            self._wait_for_request()

    def pause_writing(self) -> None:
        """uvicorn's, called when the reader does not keep up; the clock of the reader starts."""
        super().pause_writing()
        self._look_at_reader(None)

    def resume_writing(self) -> None:
        """uvicorn's; the reader has taken most of it."""
        super().resume_writing()
        if self._write_clock:
            self._write_clock.cancel()

    def cut(self) -> None:
        """End the connection now, whatever is left to send."""
        self._stop_clocks()
        self.silent.pop(self, None)
        self.transport.abort()

    def _stop_clocks(self) -> None:
        for clock in (self._idle_clock, self._write_clock):
            if clock:
                clock.cancel()

    def _wait_for_request(self) -> None:
        if self._idle_clock:
            self._idle_clock.cancel()
        self.silent.pop(self, None)
        self.silent[self] = None
        self._idle_clock = self.loop.call_later(self.patience.idle, self._nothing_came)

    def _nothing_came(self) -> None:
        if not self.answering:
            self.refusals.tell("silent")
            self.cut()

    def _look_at_reader(self, left_before: int | None) -> None:
        """Cut a reader that has taken too little since the last look."""
        left = self.transport.get_write_buffer_size() + _unread_in_kernel(self.transport)
        if left_before is not None and left_before - left < SLOWEST * self.patience.write:
            self.refusals.tell("slow_reader", client=self.client and self.client[0])
            self.cut()
        else:
            self._write_clock = self.loop.call_later(self.patience.write, self._look_at_reader, left)


def _unread_in_kernel(transport: asyncio.Transport) -> int:
    """Bytes that were given to the system and that the other side has not acknowledged."""
    try:
        answer = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
    except (OSError, ValueError):  # the socket is gone
        return 0
    return int(struct.unpack("i", answer)[0])


def with_clocks(patience: Patience, refusals: Refusals) -> type[Connection]:
    """The protocol class for one listener, as uvicorn wants it."""
    bound: dict[str, Any] = {"patience": patience, "refusals": refusals}
    return type("Connection", (Connection,), bound)
