"""One validation of the values of fields: whichever format brings a value, the same events are valid, with the same
numbers, and the others are rejected for the same reason.

`expected` is the contract in plain Python. Each value comes in JSON (alone, in lines, in messages), CSV, Arrow,
Parquet, Avro (of a file and of a message), and in frames.
"""

import io
import json
import math
import time
from contextlib import closing

import fastavro
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from connectors import open_source
from connectors.avro import Schema
from stream_engine.api.feeding import learn_dicts, learn_table
from stream_engine.api.frames import columns_of
from stream_engine.data.comparisons import DecodedEvents
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.state.engine import Engine

NOW = float(int(time.time()))
DAY = 86_400.0
VALUES = [
    *(math.nan, math.inf, -math.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 1e6, 1e6 + 1, 1e18, -1e18, 1e100, 2e100),
    *(
        NOW,
        NOW - DAY,
        NOW + DAY / 2,
        NOW + 2 * DAY,
        NOW * 1e3,
        NOW * 1e6,
        NOW * 1e9,
        253_402_300_799.0,
        -62_135_596_800.0,
    ),
    *(-62_135_596_801.0, 7, -7, 10**18, int(NOW), int(NOW) * 1000),
]
OPTIONS = EventOptions(provenance=True)
EVENT = {"anchor": "a", "near": "b", "far": "c"}


def expected(field: str, value: float, nothing_is_nan: bool = False) -> str | float:
    """The number that a value is read as, or the reason for which its event is rejected."""
    if math.isnan(value) and (nothing_is_nan or field in ("n_near", "n_far")):
        return {"weight": 1.0, "time": math.nan}.get(field, 1.0)
    if field == "weight":
        return float(value) if 0 <= value <= 1e100 else "bad_weight"
    if field == "time":
        return float(value) if -62_135_596_800 <= value <= NOW + DAY else "bad_time"
    return float(value) if 0 <= value <= 1e6 and value == int(value) else "bad_votes"


def json_of(field: str, value: float) -> bytes:
    """The event as JSON; what no JSON number is has the text that a number beyond all bounds has."""
    text = {"nan": "1e99999", "inf": "1e999", "-inf": "-1e999"}.get(str(value), json.dumps(value))
    return json.dumps({**EVENT, field: 0}).replace("0}", f"{text}}}").encode()


def column_of(field: str, value: float) -> pa.RecordBatch:
    return pa.record_batch({**{name: [names] for name, names in EVENT.items()}, field: pa.array([value])})


def avro_of(field: str, value: float) -> bytes:
    kind = "long" if isinstance(value, int) else "double"
    names = [{"name": name, "type": "string"} for name in EVENT]
    schema = {"type": "record", "name": "Event", "fields": [*names, {"name": field, "type": ["null", kind]}]}
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {**EVENT, field: value})
    return Schema(json.dumps(schema)).as_json(out.getvalue())


def stream_of(batch: pa.RecordBatch) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, batch.schema) as writer:
        writer.write_batch(batch)
    return out.getvalue()


def parquet_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    out = io.BytesIO()
    parquet.write_table(pa.Table.from_batches([batch]), out)
    (back,) = parquet.read_table(out).combine_chunks().to_batches()
    return back


WAYS = {
    "json": lambda field, value: decoder("json", OPTIONS)(json_of(field, value)),
    "json among others": lambda field, value: decoder("json", OPTIONS)(b"{}\n" + json_of(field, value) + b"\n{}"),
    "messages": lambda field, value: decoder("json", OPTIONS).many([json_of(field, value)])[0],
    "csv": lambda field, value: decoder("csv", OPTIONS)(
        f"a,b,c,{json.dumps(value)}\n".encode(), f"anchor,near,far,{field}\n".encode()
    ),
    "arrow": lambda field, value: decoder("arrow", OPTIONS)(column_of(field, value)),
    "arrow stream": lambda field, value: decoder("json", OPTIONS)(stream_of(column_of(field, value))),
    "parquet": lambda field, value: decoder("arrow", OPTIONS)(parquet_of(column_of(field, value))),
    "avro": lambda field, value: decoder("avro", OPTIONS)(avro_of(field, value)),
}


def outcome(done: DecodedEvents, field: str) -> str | float:
    of_event = [each.reason for each in done.rejected if each.reason != "missing_field"]
    if of_event:
        (reason,) = of_event
        return reason
    if field in ("n_near", "n_far"):
        return float(len(done.triplets))
    return float(getattr(done.provenance, field)[0])


def alike(one: str | float, other: str | float) -> bool:
    return one == other or (
        isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    )


@pytest.mark.parametrize("field", ["weight", "time"])
def test_a_number_is_read_alike_or_rejected_for_the_same_reason_in_every_format(field):
    for value in VALUES:
        for name, way in WAYS.items():
            found = outcome(way(field, value), field)
            if name == "csv" and not math.isfinite(value):
                assert found == f"bad_{field}", (name, value)  # a text, never an absent value
            else:
                assert alike(found, expected(field, value)), (name, value, found)


@pytest.mark.parametrize("field", ["n_near", "n_far"])
def test_votes_are_read_alike_or_rejected_for_the_same_reason_in_every_format(field):
    for value in [value for value in VALUES if value != 1e6]:  # a million comparisons of one event: elsewhere
        wanted = expected(field, value)
        for name, way in WAYS.items():
            found = outcome(way(field, value), field)
            if isinstance(wanted, str) or (name == "csv" and math.isnan(value)):
                assert found == "bad_votes", (name, value, found)
            elif not math.isnan(value):
                assert found == wanted, (name, value, found)
            else:
                assert not isinstance(found, str), (name, value)


@pytest.mark.parametrize("field", ["weight", "time"])
def test_frames_say_of_a_value_what_formats_say(field):
    for value in VALUES:
        rows = {**{name: [names] for name, names in EVENT.items()}, field: [value]}
        wanted = expected(field, value, nothing_is_nan=True)  # NaN is how frames write that nothing is there
        refused = {
            "pandas": learn_table(Engine(), columns_of(pd.DataFrame(rows)), OPTIONS),
            "mapping": learn_table(Engine(), columns_of(rows), OPTIONS),
            "dicts": learn_dicts(Engine(), [{**EVENT, field: value}], OPTIONS),
            "NumPy": learn_dicts(Engine(), [{**EVENT, field: np.float64(value)}], OPTIONS),
        }
        for name, found in refused.items():
            assert [each.reason for each in found] == ([wanted] if isinstance(wanted, str) else []), (value, name)


def test_a_file_of_avro_says_what_its_messages_say(tmp_path):
    kinds = [{"name": name, "type": "string"} for name in EVENT] + [{"name": "weight", "type": "double"}]
    schema = fastavro.parse_schema({"type": "record", "name": "Event", "fields": kinds})
    weights = [1.0, math.nan, math.inf, -math.inf, 2.0]
    with open(tmp_path / "e.avro", "wb") as file:
        fastavro.writer(file, schema, [{**EVENT, "weight": weight} for weight in weights])
    with closing(open_source(str(tmp_path / "e.avro"), {})) as source:
        (record,) = source.poll(1.0)
    done = decoder("avro", OPTIONS)(record.value)
    assert [each.index for each in done.rejected] == [1, 2, 3] and done.provenance.weight.tolist() == [1.0, 2.0]


def test_times_are_compared_with_the_clock_when_they_are_read(monkeypatch):
    ahead = {**EVENT, "time": NOW + 3 * DAY}
    text = json.dumps(ahead).encode()
    decode = decoder("json", OPTIONS)
    assert [each.reason for each in decode(text).rejected] == ["bad_time"]
    assert not decoder("json", OPTIONS._replace(max_time_ahead=7 * DAY))(text).rejected
    assert not decoder("json", OPTIONS._replace(max_time_ahead=math.inf))(text).rejected
    monkeypatch.setattr("stream_engine.formats.event_fields.time.time", lambda: NOW + 5 * DAY)
    assert not decode(text).rejected


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_an_arrow_timestamp_in_the_future_is_rejected(unit):
    for seconds, reasons in ((NOW, []), (NOW + 2 * DAY, ["bad_time"])):
        at = pa.array(np.array([seconds * 1e9]).astype("datetime64[ns]"), pa.timestamp("ns")).cast(pa.timestamp(unit))
        batch = pa.record_batch({**{name: [names] for name, names in EVENT.items()}, "time": at})
        assert [each.reason for each in decoder("arrow", OPTIONS)(batch).rejected] == reasons


def test_text_of_a_time_in_the_future_is_rejected():
    for text, reasons in (("2024-05-01T12:00:00Z", []), ("9999-12-31T23:59:59Z", ["bad_time"])):
        done = decoder("json", OPTIONS)(json.dumps({**EVENT, "time": text}).encode())
        assert [each.reason for each in done.rejected] == reasons


def test_a_dead_letter_of_a_row_is_rejected_again_when_it_is_read_again():
    for value in (math.nan, math.inf, -math.inf, 1e18):
        for field in ("weight", "time"):
            first = decoder("arrow", OPTIONS)(column_of(field, value)).rejected
            again = [each for letter in first for each in decoder("json", OPTIONS)(letter.value).rejected]
            assert [each.reason for each in again] == [each.reason for each in first]
            assert [each.message for each in again] == [each.message for each in first]
