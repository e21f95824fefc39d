"""The owner's paths, asked of the engine's own listener on the loopback address and sent on as they come."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable

import h11
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

ASKED = ("accept", "content-type", "if-none-match", "if-range", "range")  # headers that are sent on
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
        headers += [(name, request.headers[name]) for name in ASKED if name in request.headers]
        if body:
            headers.append(("Content-Length", str(len(body))))
        query = f"?{request.url.query}" if request.url.query else ""
        try:
            asked = h11.Request(method=request.method, target=_quoted(target) + query, headers=headers)
            sent = (asked, *([h11.Data(data=body)] if body else []), h11.EndOfMessage())
            writer.write(b"".join(connection.send(each) or b"" for each in sent))
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
