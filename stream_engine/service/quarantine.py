"""A decoder that fails costs the event it fails on, not the stream: that event is refused as `decoder_failed`.

The block is halved until what fails is one message, line or row, so that its neighbours are counted as if it had not
been there. Running out of memory says nothing about an event, and options that fit no input are an argument error:
both pass through. O(log n) readings of a block for each event that fails, the first `LOCATED` of a block; what fails
after them is refused in stretches of up to `STRETCH` events, one letter each.
"""

from collections.abc import Callable, Sequence

from connectors import Record
from stream_engine.data.comparisons import Decoded, Rejected
from stream_engine.formats.bounds import raise_if_out_of_memory
from stream_engine.formats.event_block import nothing
from stream_engine.formats.joined_blocks import joined
from stream_engine.formats.options import UnusableOptions
from stream_engine.service.record_parts import as_bytes, item_starts, part_of

LOCATED = 1024
STRETCH = 4096
_SHOWN = 500  # characters of an exception's text
Many = Callable[[Sequence], tuple[Decoded, list[int]]]


def failure_of(error: Exception) -> str:
    """Type and text of a decoder's exception in one line. Raises it again where it is no verdict about an event."""
    raise_if_out_of_memory(error)
    if isinstance(error, UnusableOptions):
        raise error
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:_SHOWN].removesuffix(": ")


def refused(record: Record, reason: str, message: str, provenance: bool = False) -> Decoded:
    """A record that is one refusal, with all of its bytes."""
    return nothing(provenance=provenance)._replace(rejected=[Rejected(0, 0, reason, message, as_bytes(record))])


def decoded_apart(decode: Callable[[Record], Decoded], record: Record, provenance: bool = False) -> Decoded:
    """A record whose decoding failed, in parts: what can be read of it, and a refusal for each item that cannot."""
    starts, parts, located = item_starts(record), [], 0

    def read(begin: int, end: int) -> None:
        nonlocal located
        part = part_of(record, starts, begin, end)
        try:
            parts.append((part, decode(part)))
            return
        except Exception as error:
            message = failure_of(error)
        if end - begin > 1 and located < LOCATED:
            read(begin, (begin + end) // 2)
            read((begin + end) // 2, end)
            return
        located += 1
        for first in range(begin, end, STRETCH):
            stretch = part_of(record, starts, first, min(end, first + STRETCH))
            parts.append((stretch, refused(stretch, "decoder_failed", message, provenance)))

    read(0, len(starts))
    placed, before = [], 0
    for part, decoded in parts:
        within = part.offset - record.offset
        moved = [r._replace(index=r.index + before, start=r.start + within) for r in decoded.rejected]
        if record.unit == "row":  # the place of a row is its number
            moved = [r._replace(index=r.start) for r in moved]
        placed.append(decoded._replace(rejected=moved))
        before += sum(decoded.events.values()) + len(decoded.rejected) + decoded.filtered
    return joined(placed)


def many_apart(many: Many, records: Sequence[Record], provenance: bool = False) -> tuple[Decoded, list[int]]:
    """Messages whose decoding together failed: all that can be read, and a refusal for each that cannot; and which
    message each refusal was in."""
    parts: list[Decoded] = []
    refused_in: list[int] = []

    def read(begin: int, end: int) -> None:
        try:
            part, numbers = many([record.value for record in records[begin:end]])
        except Exception as error:
            message = failure_of(error)
            if end - begin > 1:
                read(begin, (begin + end) // 2)
                read((begin + end) // 2, end)
                return
            part, numbers = refused(records[begin], "decoder_failed", message, provenance), [0]
        parts.append(part)
        refused_in.extend(begin + number for number in numbers)
        if part.values is not None and begin + part.values < end:
            read(begin + part.values, end)

    read(0, len(records))
    return joined(parts), refused_in
