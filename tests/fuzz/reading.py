"""Reading bytes as sources do, in blocks and pieces of any size, and what was read as plain values to compare."""

from collections.abc import Callable
from random import Random
from typing import Any
from zlib import crc32

from connectors import Position
from connectors.files.line_blocks import FRAMINGS, Block, Blocks, Unreadable
from stream_engine.data.comparisons import DecodedEvents
from tests.support.event_worlds import essence

WHOLE = 1 << 26


class Pieces:
    """A stream that hands out its bytes in given pieces; now and then it has nothing yet, like a file that grows."""

    damage, trusted = "", 0

    def __init__(self, pieces: list[bytes]):
        self.left = list(pieces)

    def read(self) -> bytes:
        piece = self.left.pop(0) if self.left else b""
        self.trusted += len(piece)
        return piece

    def jump(self, size: int) -> int:
        return 0

    def unread(self) -> int:
        return 0

    def close(self) -> None:
        pass


def chance(data: bytes) -> Random:
    """What is done with an input by chance, the same each time."""
    return Random(crc32(data))


def pieces_of(rng: Random, data: bytes) -> list[bytes]:
    """`data` cut anywhere; an empty piece means: nothing more yet."""
    cuts = sorted(rng.randint(0, len(data)) for _ in range(rng.randint(0, 6)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def blocks_of(format: str, pieces: list[bytes], block_bytes: int, limit: int = WHOLE) -> tuple[list[Block], bytes, str]:
    """The blocks of a stream, the header, and the line that says why it cannot be read at all."""
    stream = Pieces(pieces)
    blocks, out = Blocks(stream, FRAMINGS[format], Position(0), block_bytes, limit), []
    try:
        while True:
            final = not stream.left
            block = blocks.take(final)
            if block is not None:
                out.append(block)
            elif final and blocks.starved:
                return out, blocks.header, ""
    except Unreadable as error:
        return out, blocks.header, str(error)


def said(done: DecodedEvents) -> list[Any]:
    """Comparisons and labels by name."""
    names = done.names
    triplets = [tuple(names[i] for i in row) for row in done.triplets.tolist()]
    quadruplets = [tuple(names[i] for i in row) for row in done.quadruplets.tolist()]
    return [triplets, quadruplets, list(map(tuple, done.labels))]


def put_together(blocks: list[Block], header: bytes, decode: Callable[..., DecodedEvents]) -> dict[str, Any]:
    """What blocks that follow each other say, with the places of refusals in the stream."""
    whole: dict[str, Any] = {"said": [[], [], []], "refused": [], "events": {}, "filtered": 0}
    for block in blocks:
        if block.problem:
            whole["refused"].append((block.offset, "incomplete", block.problem, block.value))
            continue
        done = decode(block.value, header)
        assert done.empty == 0
        for all_of, some in zip(whole["said"], said(done), strict=True):
            all_of += some
        whole["refused"] += [(block.offset + r.start, r.reason, r.message, r.value) for r in done.rejected]
        for kind, n in done.events.items():
            whole["events"][kind] = whole["events"].get(kind, 0) + n
        whole["filtered"] += done.filtered
    return whole


def seen(done: DecodedEvents) -> int:
    """The sum rule: each item is accepted, refused, filtered or empty."""
    return sum(done.events.values()) + len(done.rejected) + done.filtered + done.empty


def alike(one: DecodedEvents, other: DecodedEvents) -> None:
    """Two readings of the same bytes are the same in everything."""
    assert essence(one) == essence(other)
    assert one.rejected == other.rejected


def outcome(done: DecodedEvents) -> str:
    """What became of an input, in a word."""
    return ("mixed" if done.events else "refused") if done.rejected else ("accepted" if done.events else "nothing")
