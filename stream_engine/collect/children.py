"""The two child processes, restarted when they die: the engine that follows the log, and the maker of questions.

Each ends when its input does, hence with this process. `Forward` sends the owner's requests on to the engine's own
listener on the loopback address.
"""

import asyncio
import os
import select
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import IO

import h11
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from structlog.typing import FilteringBoundLogger

FIRST_PAUSE, MAX_PAUSE = 0.5, 30.0  # seconds before a child that died is started again, doubled each time
MIN_UPTIME_SECONDS = 60.0  # seconds after which a child is taken to have worked


class Child:
    """One of them; `first()` is the first line that it is told."""

    def __init__(self, module: str, first: Callable[[], bytes], log: FilteringBoundLogger, answers: bool = False):
        self._module, self._first, self._log, self._answers = module, first, log, answers
        self._process: subprocess.Popen[bytes] | None = None
        self._pause, self._since, self._not_before = FIRST_PAUSE, 0.0, 0.0
        self._read = b""
        self.starts = 0

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of the running process, or the last one; 0 before there was one."""
        return self._process.pid if self._process else 0

    def keep(self) -> bool:
        """Start it when it is not running and may be; returns whether it was started now."""
        if self.alive or time.monotonic() < self._not_before:
            return False
        if self._process is not None:
            self._ended(self._process)
            if time.monotonic() < self._not_before:
                return False
        self._since, self._read = time.monotonic(), b""
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE if self._answers else sys.stderr,
            process_group=0,  # what a terminal sends goes to this process alone
        )
        self.starts += 1
        self.tell(self._first())
        return True

    def tell(self, line: bytes) -> None:
        """Write a line to it; nothing when it has died, which `keep` notices."""
        if self._process is not None and self._process.stdin is not None:
            try:
                self._process.stdin.write(line + b"\n")
                self._process.stdin.flush()
            except OSError:
                pass

    def read_line(self) -> bytes | None:
        """A whole line that it has said, or None; waits for nothing."""
        out: IO[bytes] | None = self._process.stdout if self._process else None
        while out is not None and b"\n" not in self._read and select.select([out], [], [], 0)[0]:
            some = os.read(out.fileno(), 1 << 20)
            if not some:
                return None
            self._read += some
        line, end, unread = self._read.partition(b"\n")
        if not end:
            return None
        self._read = unread
        return line

    def signal(self, number: int) -> None:
        """Send a signal to it, if it is running."""
        if self._process is not None:
            self._process.send_signal(number)

    def stop(self, patience: float) -> None:
        """Have it end, and wait; kill it when it takes longer."""
        if self._process is None:
            return
        self._process.terminate()  # also while it loads what would notice the end of its input
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            self._log.warning("a child process did not exit and is killed", child=self._module)
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        """Note that it has died: the next start waits a little, longer each time that it died soon."""
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        lived = time.monotonic() - self._since
        self._pause = FIRST_PAUSE if lived > MIN_UPTIME_SECONDS else min(2 * self._pause, MAX_PAUSE)
        self._not_before = time.monotonic() + self._pause
        self._process = None
        self._log.warning(
            "a child process exited and is restarted",
            child=self._module,
            status=process.returncode,
            after=round(lived, 1),
            pause=self._pause,
        )


REQUEST_SECONDS = 2.0  # seconds between two requests while enough questions are left


class QuestionRequests:
    """The maker's side here: requests out, questions in."""

    def __init__(self, child: Child):
        self._child = child
        self._waiting, self._asked_at = False, 0.0

    def restarted(self) -> None:
        """The maker knows nothing yet."""
        self._waiting, self._asked_at = False, 0.0

    def due(self, low: bool) -> bool:
        """Whether to send a request now: at every interval, and at once where few questions are left."""
        return not self._waiting and self._child.alive and (low or time.monotonic() - self._asked_at > REQUEST_SECONDS)

    def request(self, line: bytes) -> None:
        self._child.tell(line)
        self._waiting, self._asked_at = True, time.monotonic()

    def reply(self) -> bytes | None:
        """What it has answered, or None."""
        line = self._child.read_line()
        if line is not None:
            self._waiting = False
        return line


FORWARDED_HEADERS = ("accept", "content-type", "if-none-match", "if-range", "range")  # headers that are sent on
_OURS = (b"connection", b"transfer-encoding", b"server", b"date", b"keep-alive")  # headers of the answer that are not
_PIECE = 64 << 10
PATIENCE = 30.0  # seconds for the head of an answer


class Forward:
    """`port()` is that of the engine's listener, `token` opens it; a child of ours, it has TLS where we have it."""

    def __init__(self, port: Callable[[], int], token: str, tls: bool = False):
        self._port, self._token = port, token
        self._tls: ssl.SSLContext | None = None
        if tls:  # its certificate is for the name of the site, not for the loopback address
            self._tls = ssl.create_default_context()
            self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE

    async def __call__(self, request: Request, body: bytes = b"") -> Response:
        """What the engine answers to a request with this body; 503 while it is not there."""
        target = request.scope["path"].removeprefix(request.scope.get("root_path", "")) or "/"
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port(), ssl=self._tls)
        except OSError:
            return PlainTextResponse("the engine is starting; try again in a moment\n", 503, {"Retry-After": "3"})
        connection = h11.Connection(h11.CLIENT)
        headers = [("Host", "127.0.0.1"), ("Authorization", f"Bearer {self._token}"), ("Connection", "close")]
        headers += [(name, request.headers[name]) for name in FORWARDED_HEADERS if name in request.headers]
        if body:
            headers.append(("Content-Length", str(len(body))))
        query = f"?{request.url.query}" if request.url.query else ""
        try:
            asked = h11.Request(method=request.method, target=_quoted(target) + query, headers=headers)
            sent = (asked, *([h11.Data(data=body)] if body else []), h11.EndOfMessage())
            writer.write(b"".join(connection.send(message) or b"" for message in sent))
            answer = await asyncio.wait_for(_head(connection, reader), PATIENCE)
        except (OSError, h11.ProtocolError, TimeoutError):
            writer.close()
            return PlainTextResponse("the engine does not respond; try again in a moment\n", 502)
        sent_on = {name.decode(): value.decode("latin-1") for name, value in answer.headers if name not in _OURS}
        return StreamingResponse(_body(connection, reader, writer), answer.status_code, sent_on)


def _quoted(path: str) -> str:
    from urllib.parse import quote

    return quote(path, safe="/~!$&'()*+,;=:@")


async def _next(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Event | type:
    while True:
        event = connection.next_event()
        if event is not h11.NEED_DATA:
            return event
        connection.receive_data(await reader.read(_PIECE))


async def _head(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Response:
    event = await _next(connection, reader)
    if not isinstance(event, h11.Response):
        raise h11.RemoteProtocolError("no answer")
    return event


async def _body(
    connection: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> AsyncIterator[bytes]:
    try:
        while isinstance(event := await _next(connection, reader), h11.Data):
            yield bytes(event.data)
    finally:
        writer.close()
