"""JSON: lines, arrays, documents and messages; with fast paths and without, in one value and in many."""

import json
from random import Random

from stream_engine.data.comparisons import DecodedEvents
from stream_engine.formats.json_events import Decoder
from stream_engine.formats.json_places import places_of
from stream_engine.formats.options import EventOptions
from tests.fuzz.events import some_event
from tests.fuzz.mutations import damaged, kept_case
from tests.fuzz.reading import alike, blocks_of, chance, outcome, pieces_of, put_together, seen
from tests.support.event_worlds import essence
from tests.support.joined_blocks import all_of, joined

TRUSTED = True
TOKENS = [
    b'"',
    b"{",
    b"}",
    b",",
    b":",
    b"\\",
    b"\n",
    b"\r\n",
    b"null",
    b"1",
    b"1e999",
    b"0x1",
    b"NaN",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\\ud800",
    b"\\u0000",
    b"\0",
    b'"x":1,',
    b'"weight":',
    b'"time":"',
    b"[" * 40,
    b"}\n{",
    b"\xff\xff\xff\xff",
]
OPTIONS = [
    EventOptions(provenance=True),
    EventOptions(provenance=True),
    EventOptions(type="triplet", provenance=True),
    EventOptions(type="pick"),
    EventOptions(where={"worker": "u"}, provenance=True),
    EventOptions(columns={"near": ("chosen",), "worker": ("near",)}),
    EventOptions(columns={"catch": ("ok",)}, provenance=True),
    EventOptions(columns={"objects": ("anchor", "near", "far")}),
]


def make(rng: Random) -> bytes:
    case = kept_case(rng, "json")
    if case is None:
        events = [some_event(rng) for _ in range(rng.randint(1, 4))]
        if rng.random() < 0.1:
            events[0]["ok"] = rng.choice([True, False, None, 1, "true"])
        how = rng.random()
        ascii = rng.random() < 0.5
        if how < 0.75:
            case = b"\n".join(json.dumps(event, ensure_ascii=ascii).encode() for event in events)
        else:
            case = json.dumps(events if how < 0.9 else events[0], indent=1 if how % 0.1 < 0.05 else None).encode()
        case += b"\n" if rng.random() < 0.3 else b""
        if rng.random() < 0.35:
            return case
    return damaged(rng, case, TOKENS, 2)


def check(data: bytes) -> str:
    rng = chance(data)
    options = rng.choice(OPTIONS)
    arrow = data[:4] == b"\xff\xff\xff\xff"
    done, slow = _used(OPTIONS.index(options))(data), Decoder(options, fast=False)(data)
    alike(done, slow)
    if rng.random() < 0.01:  # making one takes ten times as long as using it
        new = Decoder(options)(data)
        alike(new, slow)
        assert arrow or new.unknown_fields == slow.unknown_fields
    if not arrow:
        assert seen(done) == (len(places_of(data).begins) if data else 1)
        for one in done.rejected:
            assert data[one.start : one.start + len(one.value)] == one.value
    if rng.random() < 0.05 and not arrow:
        _in_blocks(rng, data, options)
    if rng.random() < 0.05:
        _as_messages([*data.split(b"\n"), b"", data], options)
    return outcome(done)


_DECODERS: dict[int, Decoder] = {}


def _used(number: int) -> Decoder:
    """A decoder of these options that has seen other inputs, whatever they were: results do not depend on them."""
    if number not in _DECODERS or len(_DECODERS[number].unknown) > 60:
        _DECODERS[number] = Decoder(OPTIONS[number])
    return _DECODERS[number]


def _in_blocks(rng: Random, data: bytes, options: EventOptions) -> None:
    """Lines are the same in any blocks; a document over several lines is one only in a single value."""
    lines, decode = data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), Decoder(options)

    def lines_of(value: bytes, header: bytes) -> DecodedEvents:
        return decode.lines(value)

    blocks, _, _ = blocks_of("json", pieces_of(rng, data), rng.randint(1, 100))
    alone, _, _ = blocks_of("json", [data], 1)
    assert b"".join(block.value for block in blocks) == b"\n".join(lines)
    one = put_together(alone, b"", lines_of)
    if all(len(places_of(block.value).begins) == _items(block.value) for block in blocks):
        assert put_together(blocks, b"", lines_of) == one


def _items(value: bytes) -> int:
    return sum(len(places_of(line).begins) for line in value.split(b"\n"))


def _as_messages(values: list[bytes], options: EventOptions) -> None:
    done, refused_in = all_of(Decoder(options), values)
    parts = list(map(Decoder(options), values))
    assert essence(done) == essence(joined(parts))
    assert list(zip(refused_in, done.rejected, strict=True)) == [
        (number, refused) for number, part in enumerate(parts) for refused in part.rejected
    ]
