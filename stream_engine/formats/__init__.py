"""Bytes to columns of comparisons: one decoder per format, hence one definition of a valid event.

A format is a module `*_events.py` with `Decoder(options)`. Decoding a block depends neither on earlier blocks nor on
block boundaries, and an invalid event never affects its neighbours.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from stream_engine.data import registered
from stream_engine.data.comparisons import DecodedEvents
from stream_engine.formats.options import EventOptions, UnusableOptions

FORMATS = {
    "json": "stream_engine.formats.json_events:Decoder",
    "csv": "stream_engine.formats.csv_events:Decoder",
    "arrow": "stream_engine.formats.arrow_events:Decoder",
}
DELIVERED_AS = {"avro": "json"}  # what connectors make another format of: connectors/avro.py
INPUT_FORMATS = (*FORMATS, *DELIVERED_AS)  # that can be asked for


# Shared by the formats:
#
#     event_fields    the fields of each event type, and the input fields that they are read from
#     validate        the definition of one valid event, slow and simple
#     field_values    values of single fields: names, weights, times
#     table_events    columns of text, integers and lists to events
#     event_columns   names to numbers, pieces of events in row order
#     event_block     pieces of events to `DecodedEvents`
#     expand          events to comparisons, and messages about invalid events
#
# A fast path may leave an event to `validate`; it must never accept one that `validate` rejects.
class Decoder(Protocol):
    """Decodes values of one format. Its only state is the unknown fields, and caches that affect speed."""

    def __call__(self, value: Any, header: bytes = b"") -> DecodedEvents:
        """The events of one value; `header` is the header line that belongs to a value of CSV."""

    def many(self, values: Sequence[Any]) -> tuple[DecodedEvents, list[int]]:
        """Decode consecutive values (the messages of one poll) as one block; also returns the value of each rejected
        event.

        The result is the same as decoding them one by one, but the fixed cost of a block is paid only once: a factor of
        a hundred for messages of one event. Rejected events keep the locations in their own values. What does not fit
        into one block is left for the next call: `Decoded.values` says how many values were decoded, at least one.

        >>> values = [b'{"anchor": "a", "near": "b", "far": "c"}', b'{"anchor": "a"}']
        >>> both, refused_in = decoder("json", EventOptions()).many(values)
        >>> both.triplets.tolist(), refused_in, both.rejected[0].index
        ([[0, 1, 2]], [1], 0)
        """


def decoder(name: str, options: EventOptions) -> Decoder:
    """A decoder of the format registered under `name`; raises `UnusableOptions` for options that are invalid for any
    input.

    >>> decode = decoder("json", EventOptions(type="odd_one_out"))
    >>> block = decode(b'{"objects": ["a", "b", "c"], "odd": "c"}')
    >>> block.names, block.triplets.tolist()
    (('a', 'b', 'c'), [[0, 1, 2], [1, 0, 2]])
    """
    name = DELIVERED_AS.get(name, name)
    if name not in FORMATS:
        raise UnusableOptions(f"unknown format {name!r}; known: {', '.join(INPUT_FORMATS)}")
    return registered(FORMATS[name])(options)
