"""Size limits of a message, line or row, and how to distinguish running out of memory from invalid input.

Invariant: whether something exceeds a limit depends only on the input and the settings, never on the machine. Running
out of memory says nothing about an event: it ends the run, and the next run reads the event again.
"""

import errno
from typing import NamedTuple


class Bounds(NamedTuple):
    """Size limits. `max_bytes` of a message, line or row, decompressed and with its dictionaries written out, at
    least 8 bytes for every entry of a column; `max_rows`: events, lines or rows of a message, or elements of an
    array on a line."""

    max_bytes: int = 64 << 20
    max_rows: int = 1_000_000


DEFAULT_BOUNDS = Bounds()


class OverBound(Exception):
    """A message, line or row exceeds a size limit; one line with the figures."""


def too_many_bytes(what: str, size: int, bounds: Bounds) -> str:
    """The message for something that exceeds the limit in bytes.

    >>> too_many_bytes("the message", 3_000, Bounds(max_bytes=1_000))
    'the message holds 3,000 bytes; the limit is 1,000 (input.max_message_bytes)'
    """
    return f"{what} holds {size:,} bytes; the limit is {bounds.max_bytes:,} (input.max_message_bytes)"


def too_many_rows(what: str, rows: int, unit: str, bounds: Bounds) -> str:
    """The message for something that exceeds the limit in rows, which are called `unit`."""
    return f"{what} holds {rows:,} {unit}; the limit is {bounds.max_rows:,} (input.max_message_rows)"


def raise_if_out_of_memory(error: BaseException) -> None:
    """Raise `MemoryError` if that is what a library's error means; some of Arrow's errors say so only in their text.

    >>> raise_if_out_of_memory(ValueError("malloc of size 8000000000 failed"))
    Traceback (most recent call last):
    MemoryError: malloc of size 8000000000 failed
    """
    text = str(error)
    out = (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or any(words in text.lower() for words in _OUT_OF_MEMORY)
    )
    if out:
        raise MemoryError(text.partition("\n")[0]) from error


_OUT_OF_MEMORY = ("malloc of size", "realloc of size", "out of memory", "cannot allocate memory", "bad_alloc")
