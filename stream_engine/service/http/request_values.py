"""Values in requests: numbers and flags of a query, and bodies of limited size and duration."""

import asyncio

from starlette.requests import ClientDisconnect, Request

_MOST_DIGITS = 18


def whole_number(text: str) -> int | None:
    """The number that a query gives in decimal digits, None for anything else.

    >>> whole_number("12"), whole_number("\u00b2"), whole_number("9" * 5000)
    (12, None, None)
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def is_raw(request: Request) -> bool:
    """Whether `?raw=1` asks for texts in CSV as they are, also those that a spreadsheet would run as formulas."""
    return request.query_params.get("raw") == "1"


SECONDS = 15.0  # for any body; as long as a silent connection has
SLOWEST = 64 << 10  # bytes a second for what is larger


class BadBody(ValueError):
    """A body that is not taken; `status` is that of the answer."""

    def __init__(self, status: int, why: str):
        super().__init__(why)
        self.status = status


async def body_of(request: Request, limit: int) -> bytes:
    """The body of a request. Raises `BadBody`: more than `limit` bytes (413), too slow (408), cut short (400)."""
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS + limit / SLOWEST):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limit:
                    raise BadBody(413, f"got more than {limit:,} bytes, the maximum")
    except TimeoutError:
        raise BadBody(408, "the body did not come in time") from None
    except ClientDisconnect:
        raise BadBody(400, "the connection was closed") from None
    return bytes(body)
