"""CSV files of events: the same whatever the blocks, arrival, compression and path; rows as the plain rules say."""

import gzip
import os
import tempfile
from random import Random

import zstandard

from connectors.files.streams import Compressed, _gzip, _zstd
from stream_engine.formats.csv_events import Decoder
from stream_engine.formats.options import EventOptions, UnreadableHeader
from tests.fuzz.csv_records import TOKENS
from tests.fuzz.events import cells_of, quoted, some_event
from tests.fuzz.mutations import damaged, kept_case
from tests.fuzz.reading import WHOLE, blocks_of, chance, pieces_of, put_together
from tests.support.csv_reference import rows_of_file
from tests.support.event_worlds import COLUMNS, HEADER

TRUSTED = True
SMALL = [
    b"anchor,near,far\n",
    b"anchor,near,far,weight\r\n",
    b"\xef\xbb\xbfanchor,near,far\n",
    b'\n"anchor",near,far\n',
]
ROWS = [
    b"a,b,c",
    b'a,"b",c',
    b'"a\nb",b,c',
    b"a,b",
    b"a,b,c,1",
    b"a,b,c,x",
    b"a,,c",
    b'a,b"b,c',
    b'"a"a,b,c',
    b'a,b,"c',
]
OPTIONS = [
    EventOptions(provenance=True),
    EventOptions(provenance=True),
    EventOptions(type="triplet", provenance=True),
    EventOptions(where={"near": "b"}, provenance=True),
    EventOptions(columns={"near": ("far",), "far": ("near",)}, provenance=True),
]


def make(rng: Random) -> bytes:
    case = kept_case(rng, "csv")
    if case is not None:
        return damaged(rng, case, TOKENS)
    if rng.random() < 0.3:
        cells = [cells_of(some_event(rng)) or {} for _ in range(rng.randint(1, 5))]
        rows = [",".join(_written(rng, row.get(name, "")) for name in COLUMNS) + "\n" for row in cells]
        return HEADER + damaged(rng, "".join(rows).encode(), TOKENS)
    lines = [rng.choice(ROWS) + rng.choice((b"\n", b"\n", b"\n", b"\r\n", b"\r")) for _ in range(rng.randint(0, 6))]
    return rng.choice(SMALL) + damaged(rng, b"".join(lines), TOKENS)


def _written(rng: Random, cell: str) -> str:
    return quoted(cell) if rng.random() < 0.3 or any(c in cell for c in ',"\r\n') else cell


def check(data: bytes) -> str:
    rng = chance(data)
    options = rng.choice(OPTIONS)
    limit = rng.choice((WHOLE, WHOLE, 200))
    try:
        first = read(options, [data], WHOLE, limit)
        again = read(
            options,
            _packed(data) if rng.random() < 0.2 else pieces_of(rng, data),
            rng.choice((1, 20, 60, 150, 400)),
            limit,
        )
    except UnreadableHeader:
        return "unusable header"
    assert first == again, (first, again)
    whole, unreadable = first
    if unreadable:
        return "unreadable"
    if rng.random() < 0.25:
        assert first == read(options, [data], WHOLE, limit, fast=False)
    if limit == WHOLE:
        _, rows = rows_of_file(data)
        refused = [row.start for row in rows if row.fields is None]
        assert [place for place, reason, _, _ in whole["refused"] if reason == "not_parseable"] == refused
        assert len(rows) == sum(whole["events"].values()) + len(whole["refused"]) + whole["filtered"]
    return "read" if whole["events"] else "refused"


def read(options: EventOptions, pieces: list[bytes], block_bytes: int, limit: int, fast: bool = True):
    blocks, header, unreadable = blocks_of("csv", pieces, block_bytes, limit)
    return put_together(blocks, header, Decoder(options, fast)), unreadable


def _packed(data: bytes) -> list[bytes]:
    """What the decompressors hand out of `data`, packed."""
    packed, codec = (gzip.compress(data, 1), _gzip()) if len(data) % 2 else (zstandard.compress(data), _zstd())
    with tempfile.TemporaryFile() as file:
        file.write(packed)
        file.seek(0)
        stream, pieces = Compressed(os.fdopen(os.dup(file.fileno()), "rb"), codec), []
        while piece := stream.read():
            pieces.append(piece)
        stream.close()
    return pieces
