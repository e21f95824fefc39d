"""What Arrow events must decode to, and what is refused for which reason."""

import pyarrow as pa

from stream_engine.data.comparisons import Label, Quadruplet, Triplet
from stream_engine.formats.arrow_events import TEXT_CELLS
from stream_engine.formats.options import EventOptions
from tests.formats.examples import Accepts, Rejects


def _stream(*rows: dict, **types: pa.DataType) -> bytes:
    """An IPC stream of these rows, for the examples below."""
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.table({name: pa.array([row.get(name) for row in rows], types.get(name)) for name in names})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _text_cells(*rows: dict) -> bytes:
    """The same, of text cells like those of CSV."""
    table = pa.Table.from_pylist(list(rows)).replace_schema_metadata(TEXT_CELLS)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


_ABC, _CODED = Triplet("a", "b", "c"), pa.dictionary(pa.int8(), pa.string())
_ROW = {"anchor": "a", "near": "b", "far": "c"}
ACCEPTS = [
    Accepts(_stream(_ROW), [_ABC]),
    Accepts(pa.RecordBatch.from_pylist([_ROW, _ROW]), [_ABC, _ABC]),
    Accepts(pa.RecordBatch.from_pylist([]), []),
    Accepts(_stream(_ROW, anchor=_CODED, near=pa.large_string(), far=pa.string_view()), [_ABC]),
    Accepts(_stream({"anchor": 5, "near": b"05", "far": -1}, anchor=pa.int8()), [Triplet("5", "05", "-1")]),
    Accepts(_stream({**_ROW, "weight": 2, "time": 1.5e9, "id": 1, "type": None, "rt": [1]}), [_ABC]),
    Accepts(_stream({**_ROW, "weight": 0.5, "time": "2024-05-01T12:00:00Z"}), [_ABC]),
    Accepts(_text_cells({**_ROW, "weight": "0.5", "time": "12"}, {**_ROW, "weight": "", "time": ""}), [_ABC, _ABC]),
    Accepts(_stream({**_ROW, "time": 1}, time=pa.timestamp("ns")), [_ABC]),
    Accepts(
        _stream({"type": "quadruplet", "near": ["a", "b"], "far": ["c", "d"]}, type=_CODED),
        [Quadruplet(("a", "b"), ("c", "d"))],
    ),
    Accepts(
        _stream({"near_i": 1, "near_j": 2, "far_i": 3, "far_j": 1}),
        [Triplet("1", "2", "3")],
        EventOptions("quadruplet"),
    ),
    Accepts(
        _stream({"objects": ["a", "b", "c"], "odd": "c"}, objects=pa.list_(pa.string(), 3)),
        [Triplet("a", "b", "c"), Triplet("b", "a", "c")],
        EventOptions("odd_one_out"),
    ),
    Accepts(
        _text_cells({"objects": "a|b|c", "central": "a"}),
        [Triplet("b", "a", "c"), Triplet("c", "a", "b")],
        EventOptions("most_central"),
    ),
    Accepts(
        _stream({"anchor": 0, "shown": [1, 2], "chosen": [2]}, shown=pa.large_list(pa.int64())),
        [Triplet("0", "2", "1")],
        EventOptions("pick"),
    ),
    Accepts(
        _stream({"object": "a", "label": 1}, {"object": "a", "label": None}),
        [Label("a", "1"), Label("a", None)],
        EventOptions("label"),
    ),
    Accepts(
        _stream({**_ROW, "ok": True, "n": 7}, {**_ROW, "ok": False, "n": 7}, {**_ROW, "ok": None, "n": 7}),
        [_ABC],
        EventOptions(where={"ok": "true", "n": "7"}),
    ),
    Accepts(
        _stream({"anchor": 16.0, "shown": [1.0, 2.0], "chosen": "2"}, {"anchor": None, "shown": None, "chosen": None}),
        [Triplet("16", "2", "1")],
        EventOptions("pick", where={"chosen": "2"}),
    ),
    Accepts(
        _stream({"objects": [1.0, 2.0, 3.0], "odd": 1.0}, {"objects": [1.0, 2.0, 3.0], "odd": None}),
        [Triplet("2", "3", "1"), Triplet("3", "2", "1")],
        EventOptions("odd_one_out", answers_by="position", where={"odd": "1"}),
    ),
    Accepts(
        _stream({**_ROW, "n_near": 1.0, "n_far": 1.0}, {**_ROW, "n_near": float("nan"), "n_far": None}),
        [_ABC, Triplet("a", "c", "b"), _ABC],
    ),
]
REJECTS = [
    Rejects(b"\xff\xff\xff\xff\x10junk", "not_parseable", "Arrow"),
    Rejects(_stream(_ROW)[:-200], "not_parseable", "Arrow"),
    Rejects(_stream({**_ROW, "far": b"\xff"}), "wrong_type", "far … bytes"),
    Rejects(_stream({**_ROW, "far": None}), "missing_field", "far"),
    Rejects(_stream({"anchor": "a", "near": "b"}), "missing_field", "far"),
    Rejects(_stream({**_ROW, "far": 1.5}), "wrong_type", "far … number (1.5)"),
    Rejects(_stream({**_ROW, "far": ""}), "empty_name", "far is empty"),
    Rejects(_stream({**_ROW, "type": 3}), "unknown_type", "type 3 is unknown"),
    Rejects(_stream({**_ROW, "worker": 1.5}), "wrong_type", "worker … number"),
    Rejects(_stream({**_ROW, "weight": float("nan")}), "bad_weight", "weight is nan"),
    Rejects(_stream({**_ROW, "weight": True}), "bad_weight", "weight is True"),
    Rejects(_stream({**_ROW, "weight": "1"}), "bad_weight", "weight is '1'"),
    Rejects(_stream({**_ROW, "weight": ""}), "bad_weight", "weight is ''"),
    Rejects(_stream({**_ROW, "time": ""}), "bad_time", "time is ''"),
    Rejects(_stream({**_ROW, "time": "12"}), "bad_time", "time is '12'"),
    Rejects(_stream({**_ROW, "type": ""}), "unknown_type", "type '' is unknown"),
    Rejects(
        _stream({"anchor": "a", "shown": ["b", "c", "d"], "chosen": 1.5}),
        "wrong_type",
        "chosen … (1.5)",
        EventOptions("pick"),
    ),
    Rejects(_text_cells({**_ROW, "weight": "x"}), "bad_weight", "weight is 'x'"),
    Rejects(_stream({**_ROW, "time": 1}, time=pa.date32()), "bad_time", "time is 1970-01-02"),
    Rejects(_stream({"anchor": 1, "near": 2, "far": 1}), "not_distinct", "anchor equals far ('1')"),
    Rejects(_stream({"anchor": "a", "ranked": ["b", None]}), "wrong_type", "ranked … null", EventOptions("ranking")),
    Rejects(_stream({"anchor": "a", "ranked": []}), "nothing_chosen", "ranked … 0 objects", EventOptions("ranking")),
]
