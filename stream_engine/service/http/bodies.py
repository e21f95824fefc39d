"""Bodies of requests: bounded in size and in time, so that no client keeps memory or a connection for itself."""

import asyncio

from starlette.requests import ClientDisconnect, Request

SECONDS = 15.0  # for any body; as long as a silent connection has
SLOWEST = 64 << 10  # bytes a second for what is larger


class BadBody(ValueError):
    """A body that is not taken; `status` is that of the answer."""

    def __init__(self, status: int, why: str):
        super().__init__(why)
        self.status = status


async def body_of(request: Request, most: int) -> bytes:
    """The body of a request. Raises `BadBody`: more than `most` bytes (413), too slow (408), cut short (400)."""
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS + most / SLOWEST):
            async for some in request.stream():
                body += some
                if len(body) > most:
                    raise BadBody(413, f"got more than {most:,} bytes, the maximum")
    except TimeoutError:
        raise BadBody(408, "the body did not come in time") from None
    except ClientDisconnect:
        raise BadBody(400, "the connection was closed") from None
    return bytes(body)
