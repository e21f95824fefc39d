"""What the formats read and refuse beyond the shared laws: options, headers, limits, numbers, times, real files."""

import json

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from stream_engine.data.comparisons import Triplet
from stream_engine.formats import FORMATS, decoder
from stream_engine.formats.arrow_events import Decoder as ArrowDecoder
from stream_engine.formats.csv_events import Decoder as CsvDecoder
from stream_engine.formats.json_events import Decoder as JsonDecoder
from stream_engine.formats.options import EventOptions, UnreadableHeader, UnusableOptions
from tests.support.event_reference import comparisons
from tests.support.facts import states, stating

PLAIN = EventOptions()


# ---- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_where_comes_before_validation(format):
    rows = [
        {"anchor": "a", "near": "b", "far": "c", "ok": "yes"},
        {"anchor": "", "near": "b", "far": "c", "ok": "no"},
        {"anchor": "a", "near": "a", "far": "c", "ok": "yes"},
        {"anchor": "a", "near": "b", "far": "c", "ok": ""},
    ]
    value = {
        "json": b"\n".join(map(msgspec.json.encode, rows)),
        "arrow": pa.RecordBatch.from_pylist(rows),
        "csv": b"".join(",".join(r.values()).encode() + b"\n" for r in rows),
    }[format]
    done = decoder(format, EventOptions(where={"ok": "yes", "far": "c"}))(value, b"anchor,near,far,ok\n")
    assert done.events == {"triplet": 1}
    assert done.filtered == 2
    assert [r.index for r in done.rejected] == [2]
    for missing in () if format == "csv" else ("rt>", "rt<=", "rt"):  # a table has the columns that are filtered by
        done = decoder(format, EventOptions(where={missing: "100"}))(value, b"anchor,near,far,ok\n")
        assert done.filtered == 4
        assert not done.events
        assert not done.rejected


@pytest.mark.parametrize(
    "text, raw",
    [
        ("true", b"true"),
        ("false", b"false"),
        ("1.50", b"1.50"),
        ("7", b"7"),
        ("x y", b'"x y"'),
        ("\u00e9", b'"\\u00e9"'),
        ("null", b'"null"'),
        ("", b'""'),
    ],
)
def test_where_compares_text(text, raw):
    decode = JsonDecoder(EventOptions(where={"f": text}))
    event = b'{"anchor":"a","near":"b","far":"c","f": %s }'
    assert decode(event % raw).filtered == 0
    for other in (b"null", b"[]", b"{}", b"1.5", b'"' + raw.strip(b'"') + b'z"', b"0"):
        assert decode(event % other).filtered == 1, other
    assert decode(b'{"anchor":"a","near":"b","far":"c"}').filtered == 1


def test_where_on_a_field_that_no_struct_can_hold():
    decode = JsonDecoder(EventOptions(where={'q"': "1"}))
    event = b'{"anchor":"a","near":"b","far":"c","q\\"":%d}'
    done = decode(b"\n".join([event % 1, event % 2, b'{"anchor":5.5}', event % 1]))
    assert len(done.triplets) == 2
    assert done.filtered == 2
    assert done.rejected == []


def test_columns_gather_and_map_everywhere():
    columns = {"objects": ("left", "middle", "right"), "central": ("middle",), "weight": ("w",)}
    options = EventOptions("most_central", columns, provenance=True)
    rows = [{"left": "a", "middle": "b", "right": "c", "w": 2.0}, {"left": "a", "middle": "a", "right": "c", "w": 1.0}]
    found = [
        JsonDecoder(options)(b"\n".join(map(msgspec.json.encode, rows))),
        ArrowDecoder(options)(pa.RecordBatch.from_pylist(rows)),
        CsvDecoder(options)(b"a,b,c,2\na,a,c,1\n", b"left,middle,right,w\n"),
    ]
    for done in found:
        assert comparisons(done) == [Triplet("a", "b", "c"), Triplet("c", "b", "a")]
        assert done.provenance.weight.tolist() == [2]
        assert [r.reason for r in done.rejected] == ["not_distinct"] and done.unknown_fields == frozenset()


def test_unknown_fields_are_named():
    line = b'{"anchor":"a","near":"b","far":"c","x":1,"worker":2,"y":[{}],"chosen":[]}\n'
    assert JsonDecoder(PLAIN)(line * 3).unknown_fields == {"x", "y"}
    assert JsonDecoder(EventOptions("triplet"))(line).unknown_fields == {"x", "y", "chosen"}
    assert JsonDecoder(EventOptions(where={"x": "1"}))(line).unknown_fields == {"y"}
    assert CsvDecoder(PLAIN)(b"a,b,c,1,2\n", b"anchor,near,far,x,worker\n").unknown_fields == {"x"}
    batch = pa.RecordBatch.from_pylist([{"anchor": "a", "near": "b", "far": "c", "x": [1]}])
    assert ArrowDecoder(PLAIN)(batch).unknown_fields == {"x"}
    many = b"".join(b'{"anchor":"a","near":"b","far":"c","x%d":0}\n' % i for i in range(300))
    done = JsonDecoder(PLAIN)(many)
    assert len(done.triplets) == 300 and done.unknown_fields == {f"x{i}" for i in range(100)}


@pytest.mark.parametrize(
    "options, message",
    [
        (EventOptions("duel"), "'duel'"),
        (
            EventOptions(columns={"Anchr": ("a",)}),
            "--columns … 'Anchr'",
        ),
        (EventOptions(columns={"anchor": ("a", "b")}), "--columns … 'anchor'"),
    ],
)
@pytest.mark.parametrize("format", FORMATS)
def test_options_that_fit_no_input(format, options, message):
    with pytest.raises(UnusableOptions) as refused:
        decoder(format, options)
    assert states(str(refused.value), message) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "header, options, message",
    [
        (
            b"a,b,odd\n",
            PLAIN,
            "anchor, near, far … a, b, odd … --columns",
        ),
        (
            b"Anchor;NEAR;fra\n",
            PLAIN,
            "anchor, near, far … Anchor, NEAR, fra … --columns … Anchor, NEAR … --type",
        ),
        (
            b"sep=,\nanchor;near;far\n",
            PLAIN,
            "',' … anchor;near;far … --delimiter ';' … anchor, near, far",
        ),
        (b"anchor,near,far,far\n", PLAIN, "'far'"),
        (b"\x89PNG\r\n", PLAIN, "UTF-8 … --encoding"),
    ],
)
def test_a_header_that_cannot_serve(header, options, message):
    for arguments in ((b"1,2,3\n", header), (header + b"1,2,3\n", b"")):
        with pytest.raises(UnreadableHeader) as refused:
            CsvDecoder(options)(*arguments)
        assert states(str(refused.value), message) and "\n" not in str(refused.value)


def test_an_unknown_format_lists_the_known_ones():
    with pytest.raises(UnusableOptions, match=stating("'xml' … json … csv … arrow")):
        decoder("xml", PLAIN)


# ---- limits, numbers, times ------------------------------------------------------------------------------------------


def test_times_are_epoch_seconds_everywhere():
    event = {"anchor": "a", "near": "b", "far": "c"}
    seconds = 1714564800.5
    options = EventOptions(provenance=True)
    stamps = pa.array([int(seconds * 1000)], pa.timestamp("ms", "UTC"))
    batch = pa.record_batch({**{k: pa.array([v]) for k, v in event.items()}, "time": stamps})
    for done in (
        JsonDecoder(options)(json.dumps({**event, "time": "2024-05-01T14:00:00.5+02:00"}).encode()),
        JsonDecoder(options)(json.dumps({**event, "time": seconds}).encode()),
        ArrowDecoder(options)(batch),
        CsvDecoder(options)(b"a,b,c,2024-05-01T12:00:00.500Z\n", b"anchor,near,far,time\n"),
    ):
        assert done.provenance.time.tolist() == [seconds]


def test_arrow_that_points_outside_its_buffers_is_refused_whole():
    offsets = pa.py_buffer(np.array([0, 2**30, 2], np.int32))
    wild = pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"ab"))
    done = ArrowDecoder(PLAIN)(pa.record_batch({"anchor": wild, "near": ["b"] * 2, "far": ["c"] * 2}))
    assert [r.reason for r in done.rejected] == ["not_parseable"] and done.names == []


def test_refused_rows_of_a_table_are_kept_as_json():
    batch = pa.record_batch(
        {
            "anchor": ["a"],
            "near": ["a"],
            "far": ["c"],
            "at": pa.array([1], pa.timestamp("ns")),
            "took": pa.array([1], pa.duration("ns")),
        }
    )
    (one,) = ArrowDecoder(PLAIN)(batch).rejected
    assert msgspec.json.decode(one.value) == {"anchor": "a", "near": "a", "far": "c", "at": 1e-9, "took": 1.0}
