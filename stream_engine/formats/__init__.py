"""Bytes to columns of comparisons. Each format has exactly one decoder, hence one definition of a valid event.

A format module is named `*_events.py` and has `Decoder(options)` whose call `decoder(value, header=b"")` gives a
`Decoded`, and at its foot the examples `ACCEPTS` and `REJECTS` that tests/laws runs. A decoder is pure in its results:
what a block decodes to does not depend on the blocks before it, nor on where block boundaries fall (`unknown_fields`
alone grows: it holds what this decoder has met so far). One bad event never changes what its neighbours decode to.

The other files are what the formats share: `plan` (where each field stands in the input), `validate` (the definition of
one valid event, slow and plain), `expand` (events to comparisons), `events` (columns of events to `Decoded`), `tables`
(columns of text to events). A fast path is
allowed to be unsure of an event and leave it to `validate`; it is never allowed to take one that `validate` refuses.
"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from stream_engine.comparisons import Decoded, Label, Quadruplet, Triplet

FORMATS = {
    "json": "stream_engine.formats.json_events:Decoder",
    "csv": "stream_engine.formats.csv_events:Decoder",
    "arrow": "stream_engine.formats.arrow_events:Decoder",
}


class UnusableOptions(ValueError):
    """The options cannot be used for any input: an argument error, one line."""


class UnreadableHeader(UnusableOptions):
    """No row of this table can be read: its header lacks columns that the options ask for. One line, an argument
    error: the columns that are missing, those that are there, and `--columns` to map them."""


class EventOptions(NamedTuple):
    """How events are to be read.

    `type` is the type of every event (None: each says its own, `triplet` by default). `columns` maps a contract field
    to the name(s) it has in the input; several names gather into one list. `where` keeps only events whose field has
    this text. `judges` asks for workers, weights and times too. The contract field `catch` is looked at only when `columns`
    maps it: an event where it is true (passed) or false (failed) is a catch trial, left out of the judgements.
    """

    type: str | None = None
    columns: Mapping[str, tuple[str, ...]] = {}
    where: Mapping[str, str] = {}
    judges: bool = False


class Accepts(NamedTuple):
    """An example at the foot of a format: what a value must decode to, comparisons first, then labels."""

    value: Any
    said: list[Triplet | Quadruplet | Label]
    options: EventOptions = EventOptions()
    header: bytes = b""


class Rejects(NamedTuple):
    """An example at the foot of a format: a value of one event, the code it is refused with, words of the reason."""

    value: Any
    reason: str
    message: str
    options: EventOptions = EventOptions()
    header: bytes = b""


def decoder(name: str, options: EventOptions) -> Callable[..., Decoded]:
    """A decoder of the format registered under `name`; raises `UnusableOptions` for options that fit no input.

    >>> decode = decoder("json", EventOptions(type="odd_one_out"))
    >>> block = decode(b'{"objects": ["a", "b", "c"], "odd": "c"}')
    >>> block.names, block.triplets.tolist()
    (['a', 'b', 'c'], [[0, 1, 2], [1, 0, 2]])
    """
    if name not in FORMATS:
        raise UnusableOptions(f"unknown format {name!r}; known: {', '.join(FORMATS)}")
    module, _, attribute = FORMATS[name].partition(":")
    make: Any = getattr(import_module(module), attribute)
    return make(options)


def decode_many(decode: Callable[..., Decoded], values: Sequence[bytes | None]) -> tuple[Decoded, list[int]]:
    """Values that follow each other (the messages of one poll) as one block, and which value each refusal was in.

    The same as decoding them one by one, but the fixed cost of a block is paid once: for messages of one event each
    that is a hundredfold. A decoder that can do better than one by one has `many`. Refusals keep their places in their
    own values.

    >>> decode = decoder("json", EventOptions())
    >>> both, refused_in = decode_many(decode, [b'{"anchor": "a", "near": "b", "far": "c"}', b'{"anchor": "a"}'])
    >>> both.triplets.tolist(), refused_in, both.rejected[0].index
    ([[0, 1, 2]], [1], 0)
    """
    many = getattr(decode, "many", None)
    if many is not None:
        return many(values)
    from stream_engine.formats.events import joined

    parts = [decode(value) for value in values]
    return joined(parts), [at for at, part in enumerate(parts) for _ in part.rejected]
