"""Arrow IPC streams: columns of odd types, damaged streams; with fast paths and without, alone and among others."""

from random import Random

import pyarrow as pa

from stream_engine.data.comparisons import DecodedEvents
from stream_engine.formats.arrow_events import Decoder
from stream_engine.formats.options import EventOptions
from tests.fuzz.events import some_event
from tests.fuzz.mutations import flipped, kept_case
from tests.fuzz.reading import alike, chance, outcome, seen
from tests.support.event_worlds import essence
from tests.support.joined_blocks import all_of

TRUSTED = False
FIELDS = ["type", "anchor", "near", "far", "objects", "odd", "central", "shown", "chosen", "ranked", "object", "label"]
OPTIONS = [
    EventOptions(provenance=True),
    EventOptions(provenance=True),
    EventOptions(type="pick", provenance=True),
    EventOptions(where={"worker": "u"}),
    EventOptions(columns={"objects": ("anchor", "near", "far"), "catch": ("ok",)}, provenance=True),
]
CASTS = [
    pa.large_string(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string()),
    pa.string_view(),
    pa.binary(),
    pa.large_list(pa.string()),
    pa.list_(pa.dictionary(pa.int8(), pa.string())),
    pa.int8(),
    pa.uint64(),
    pa.float32(),
    pa.decimal128(20, 2),
    pa.timestamp("ms"),
    pa.timestamp("ns", "UTC"),
    pa.date32(),
    pa.bool_(),
    pa.null(),
]


def some_table(rng: Random) -> pa.Table:
    """Events as columns, each of the first type that holds its values, some of them cast to another one."""
    events = [some_event(rng, odd=0.1) for _ in range(rng.randint(1, 5))]
    columns = {}
    for name in dict.fromkeys([*(f for e in events for f in e), *rng.sample(FIELDS, 2)]):
        values = [event.get(name) for event in events]
        columns[name] = _column(rng, values)
    table = pa.table(columns)
    if rng.random() < 0.1:
        table = table.append_column(rng.choice(FIELDS), pa.array([rng.choice("abc")] * table.num_rows))
    return table


def _column(rng: Random, values: list) -> pa.Array:
    try:
        column = pa.array(values)
    except (pa.ArrowException, OverflowError):
        kept = [value if isinstance(value, str) else None for value in values]
        column = pa.array(kept, pa.string())
    if rng.random() < 0.25:
        try:
            return column.cast(rng.choice(CASTS))
        except pa.ArrowException:
            pass
    if rng.random() < 0.1:
        column = column.dictionary_encode() if not pa.types.is_nested(column.type) else column
    return column


def stream_of(table: pa.Table, rows: int, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)
    return sink.getvalue().to_pybytes()


def make(rng: Random) -> bytes:
    case = kept_case(rng, "arrow")
    if case is None:
        packed = pa.ipc.IpcWriteOptions(compression=rng.choice((None, None, None, "zstd", "lz4")))
        case = stream_of(some_table(rng), rng.randint(1, 5), packed)
        if rng.random() < 0.5:
            return case
    return flipped(rng, case)


def check(data: bytes) -> str:
    rng = chance(data)
    options = rng.choice(OPTIONS)
    done = Decoder(options)(data)
    alike(done, Decoder(options, fast=False)(data))
    rows = _rows(data, done)
    assert seen(done) == (1 if rows is None else rows)
    others = [data, b"", data] if rng.random() < 0.5 else [data, data]
    both, refused_in = all_of(Decoder(options), others)
    assert sum(both.events.values()) == 2 * sum(done.events.values()) and both.filtered == 2 * done.filtered
    assert [r for n, r in zip(refused_in, both.rejected, strict=True) if n == 0] == done.rejected
    assert essence(both)[0] == done.names
    return "unreadable" if rows is None else outcome(done)


def _rows(data: bytes, done: DecodedEvents) -> int | None:
    """How many rows a stream holds, by pyarrow; None for one that was refused as a whole."""
    if not data:
        return 1
    if len(done.rejected) == 1 and done.rejected[0].value == data:
        assert done.rejected[0].reason in ("not_parseable", "too_large") and not done.events
        return None
    return pa.ipc.open_stream(pa.py_buffer(data)).read_all().num_rows
