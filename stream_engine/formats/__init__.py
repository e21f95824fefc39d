"""Bytes to columns of comparisons. Each format has exactly one decoder, hence one definition of a valid event.

A format module is named `*_events.py` and has `Decoder(options)`, which is a `Decoder` as below; its examples are in
tests/formats. A decoder is pure in its results: what a block decodes to does not depend
on the blocks before it, nor on where block boundaries fall (`unknown_fields` alone grows: it holds what this decoder
has met so far). One bad event never changes what its neighbours decode to.

The other files are what the formats share:

    event_fields    the shapes of events, and in which input field each of their fields stands
    validate        the definition of one valid event, slow and plain
    field_values    values of single fields: names of people, weights, times
    table_events    columns of text, integers and lists to events
    event_columns   names to numbers, pieces of events into one order
    event_block     pieces of events to `Decoded`
    joined_blocks   blocks that follow each other to one
    expand          events to comparisons, and what is told about an event that is refused

A fast path is allowed to be unsure of an event and leave it to `validate`; it is never allowed to take one that
`validate` refuses.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Protocol

from stream_engine.data.comparisons import Decoded
from stream_engine.formats.options import EventOptions, UnusableOptions

FORMATS = {
    "json": "stream_engine.formats.json_events:Decoder",
    "csv": "stream_engine.formats.csv_events:Decoder",
    "arrow": "stream_engine.formats.arrow_events:Decoder",
}


class Decoder(Protocol):
    """Decodes values of one format. It may remember unknown fields and what speeds it up, nothing else."""

    def __call__(self, value: Any, header: bytes = b"") -> Decoded:
        """The events of one value; `header` is the header line that belongs to a value of CSV."""

    def many(self, values: Sequence[Any]) -> tuple[Decoded, list[int]]:
        """Values that follow each other (the messages of one poll) as one block, and which value each refusal was in.

        The same as decoding them one by one, but the fixed cost of a block is paid once: for messages of one event
        each that is a hundredfold. A decoder that can do no better uses `joined_blocks.one_by_one`. Refusals keep their
        places in their own values. Values that are too much at once are left for the next call: `Decoded.values` says
        how many were decoded, one at least.

        >>> values = [b'{"anchor": "a", "near": "b", "far": "c"}', b'{"anchor": "a"}']
        >>> both, refused_in = decoder("json", EventOptions()).many(values)
        >>> both.triplets.tolist(), refused_in, both.rejected[0].index
        ([[0, 1, 2]], [1], 0)
        """


def decoder(name: str, options: EventOptions) -> Decoder:
    """A decoder of the format registered under `name`; raises `UnusableOptions` for options that fit no input.

    >>> decode = decoder("json", EventOptions(type="odd_one_out"))
    >>> block = decode(b'{"objects": ["a", "b", "c"], "odd": "c"}')
    >>> block.names, block.triplets.tolist()
    (('a', 'b', 'c'), [[0, 1, 2], [1, 0, 2]])
    """
    if name not in FORMATS:
        raise UnusableOptions(f"unknown format {name!r}; known: {', '.join(FORMATS)}")
    module, _, attribute = FORMATS[name].partition(":")
    return getattr(import_module(module), attribute)(options)
