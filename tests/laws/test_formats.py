"""Laws of every registered format: its examples, equality with the others, no effect of block boundaries or neighbours.

The oracle is tests/support/event_reference.py, one event at a time from the contract. What these laws cannot catch: an
error that all formats and the oracle share; the examples of each format are there for that.
"""

import gc
import json

import numpy as np
import pyarrow as pa
import pytest

from stream_engine.data.comparisons import EVENT_TYPES, Triplet
from stream_engine.formats import FORMATS, decoder
from stream_engine.formats.arrow_events import Decoder as ArrowDecoder
from stream_engine.formats.csv_events import Decoder as CsvDecoder
from stream_engine.formats.json_events import Decoder as JsonDecoder
from stream_engine.formats.options import EventOptions
from tests.formats.examples import examples_of
from tests.support.event_reference import comparisons
from tests.support.event_worlds import (
    HEADER,
    arrow_of,
    csv_of,
    essence,
    except_places,
    expected,
    ipc_of,
    some_event,
    some_events,
)
from tests.support.facts import states
from tests.support.joined_blocks import all_of, joined

PLAIN = EventOptions()


def examples(which):
    for name in FORMATS:
        for number, example in enumerate(examples_of(name, which)):
            yield pytest.param(name, example, id=f"{name}-{number}")


@pytest.mark.parametrize("provenance", [False, True])
@pytest.mark.parametrize("format, example", list(examples("ACCEPTS")))
def test_accepts(format, example, provenance):
    done = decoder(format, example.options._replace(provenance=provenance))(example.value, example.header)
    assert comparisons(done) + done.labels == example.expected
    assert done.rejected == []


@pytest.mark.parametrize("format, example", list(examples("REJECTS")))
def test_rejects(format, example):
    for provenance in (False, True):
        done = decoder(format, example.options._replace(provenance=provenance))(example.value, example.header)
        assert comparisons(done) == []
        assert done.names == []
        assert done.events == {}
        (one,) = done.rejected
        assert one.reason == example.reason and states(one.message, example.message)
        assert one.index == 0
        assert "\n" not in one.message
        assert len(one.message) < 300


# ---- the same events in every format ---------------------------------------------------------------------------------


def in_all_formats(events, options):
    lines = b"\n".join(json.dumps(event, ensure_ascii=False).encode() for event in events)
    array = json.dumps(events, indent=1).encode()
    header, rows = csv_of(events)
    batch = arrow_of(events)
    return {
        "lines": JsonDecoder(options)(lines),
        "array": JsonDecoder(options)(array),
        "csv": CsvDecoder(options)(rows, header),
        "batch": ArrowDecoder(options)(batch),
        "coded": ArrowDecoder(options)(arrow_of(events, coded=True)),
        "stream": JsonDecoder(options)(ipc_of(batch)),
    }


@pytest.mark.parametrize("seed", range(6))
def test_all_formats_agree_with_the_contract(seed):
    events = some_events(seed, faults=seed > 1)
    said, labels, kinds, refused = expected(events)
    found = in_all_formats(events, EventOptions(provenance=True))
    for done in found.values():
        assert comparisons(done) == said
        assert done.labels == labels
        assert {k: kinds.count(k) for k in EVENT_TYPES if k in kinds} == done.events
        assert [(r.index, r.reason) for r in done.rejected] == refused
        appear = dict.fromkeys(n for c in said for n in (c if isinstance(c, Triplet) else (*c.near, *c.far)))
        assert done.names == list(appear)
        assert done.triplets.dtype == done.quadruplets.dtype == np.int32 and done.quadruplet_at.dtype == np.int64
    first = essence(found["lines"])
    for name, done in found.items():
        assert essence(done) == first, name


def test_the_random_events_reach_every_reason():
    reasons = {reason for seed in range(8) for _, reason in expected(some_events(seed))[3]}
    assert reasons >= {
        "unknown_type",
        "empty_name",
        "name_too_long",
        "not_distinct",
        "not_shown",
        "nothing_chosen",
        "everything_chosen",
        "bad_weight",
        "bad_time",
    }


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_a_type_for_all_events(kind):
    rng = np.random.default_rng(5)
    events = [some_event(rng, kind, faults=True) for _ in range(60)]
    typed = [{**event, "type": kind} for event in events]
    for event in events:
        event["type"] = "whatever"  # has no say
    said, labels, kinds, refused = expected(typed)
    for done in in_all_formats(events, EventOptions(type=kind)).values():
        assert comparisons(done) == said
        assert done.labels == labels
        assert done.events == {kind: len(kinds)}
        assert [(r.index, r.reason) for r in done.rejected] == refused


def test_provenance_says_who_when_and_how_much():
    lines = (
        b'{"anchor":"a","near":"b","far":"c","worker":7,"weight":2,"time":"1970-01-01T00:01:00+00:00"}\n'
        b'{"anchor":"a","near":"a","far":"c","worker":"refused"}\n'
        b'{"type":"label","object":"a","label":"x","worker":"7"}\n'
        b'{"type":"quadruplet","near":["a","b"],"far":["c","d"],"time":5}\n'
        b'{"type":"odd_one_out","objects":["a","b","c"],"odd":"c","worker":"u"}'
    )
    provenance = JsonDecoder(EventOptions(provenance=True))(lines).provenance
    assert provenance.workers == ["7", "u"] and provenance.worker.tolist() == [0, 0, -1, 1]
    assert provenance.of_triplet.tolist() == [0, 3, 3] and provenance.of_quadruplet.tolist() == [2]
    assert [EVENT_TYPES[k] for k in provenance.kind] == ["triplet", "label", "quadruplet", "odd_one_out"]
    assert provenance.weight.tolist() == [2, 1, 1, 1]
    assert provenance.time[[0, 2]].tolist() == [60, 5] and np.isnan(provenance.time[[1, 3]]).all()
    assert JsonDecoder(PLAIN)(lines).provenance is None


@pytest.fixture(scope="module", autouse=True)
def few_lines_at_once():
    """So few that little worlds are decoded in several parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JsonDecoder, "scan_events", 7)
        yield


# ---- boundaries, neighbours, history ---------------------------------------------------------------------------------


def put_together(parts):
    """Comparisons, labels, refusals with their places in the whole, of blocks that follow each other."""
    said, labels, refused, at, count = [], [], [], 0, 0
    for done, size in parts:
        said += comparisons(done)
        labels += done.labels
        refused += [(r.index + count, r.start + at, r.reason, r.message, r.value) for r in done.rejected]
        at += size
        count += sum(done.events.values()) + len(done.rejected) + done.filtered
    return said, labels, refused


ODD_LINES = [
    b"",
    b"  ",
    b"\r",
    b"{}",
    b"[]",
    b"5",
    b"null",
    b"\xff\xfe",
    b"{",
    b"}",
    b'{"anchor":"a","near":"b",',
    b'"far":"c"}',
    b'{"anchor":"a","near":"b","far":"c"} {"anchor":"a","near":"b","far":"c"}',
    b'{"anchor":"a","near":"b","far":"c"}{}',
    b' {"anchor":"a","near":"b","far":"c"}\t\r',
    b'\xef\xbb\xbf{"anchor":"a","near":"b","far":"c"}',
    b'[{"anchor":"a","near":"b","far":"d"}, 5,{"anchor":"a"} ]',
    b'{"anchor":"a","near":"b","far":"c","x":"\xff"}',
    b'{"anchor":"a","near":"b","far":"c","x":"}',
    b'{"x":"}',
    b'{"anchor":"a","near":"b","far":"c","x":{}}',
    b'{"anchor":"a","near":"b","far":"c","objects":5}',
    b'{"anchor":"a","near":"b","far":"c","y":1e999}',
    b'{"anchor":"a","near":"b","far":"c","\\ud800":1}',
    b'{"anchor":"a","near":"b","far":"c","q\\"":1}',
    b'{"type":"triplet","type":"pick","anchor":"a","near":"b","far":"c"}',
    b'{"x":{}',
    b"{}}",
    b'{"x":[{}',
    b"{}]}",
]


def some_lines(rng, size=60):
    lines = [json.dumps(event).encode() for event in some_events(int(rng.integers(1 << 30)), size)]
    for _ in range(size // 3):
        lines.insert(int(rng.integers(len(lines))), ODD_LINES[rng.integers(len(ODD_LINES))])
    return lines


@pytest.mark.parametrize("where", [{}, {"worker": "u"}, {"type": "pick"}])
@pytest.mark.parametrize("seed", range(4))
def test_json_lines_stand_for_themselves(seed, where):
    """A block decodes to what its lines decode to one by one, by a decoder that has seen nothing."""
    rng = np.random.default_rng(seed)
    options = EventOptions(where=where)
    lines = [b'{"anchor":"a","near":"b","far":"c","type":"pick"}', *some_lines(rng)]
    whole = b"\n".join(lines)
    alone = put_together((JsonDecoder(options)(line), len(line) + 1) for line in lines)
    assert put_together([(JsonDecoder(options)(whole), 0)]) == alone
    for _, at, _, _, value in put_together([(JsonDecoder(options)(whole), 0)])[2]:
        assert whole[at : at + len(value)] == value
    cuts = sorted(rng.integers(len(lines), size=4).tolist())
    parts = [b"\n".join(lines[a:b]) + b"\n" for a, b in zip([0, *cuts], [*cuts, len(lines)]) if b > a]
    decode = JsonDecoder(options)
    assert put_together((decode(part), len(part)) for part in parts) == alone


def test_a_byte_order_mark_is_text_but_at_the_start_of_a_file():
    """pyarrow passes over one at the start of any data, hence of any block."""
    for value, names in [(b"\xef\xbb\xbf", []), (b"\xef\xbb\xbfa,b,c\n", ["\ufeffa", "b", "c"])]:
        done = CsvDecoder(PLAIN)(value, b"anchor,near,far\n")
        assert done.names == names and [one.value for one in done.rejected] == ([] if names else [value])


def test_a_message_whose_header_cannot_serve_is_one_refused_event():
    good = b"anchor,near,far\na,b,c\n"
    done, refused_in = all_of(CsvDecoder(PLAIN), [good, b"\xef\xbb\xbf", b"a,b\n1,2\n", b"x" * 200_000, good])
    assert refused_in == [1, 2, 3] and len(done.triplets) == 2
    assert [one.reason for one in done.rejected] == ["not_parseable"] * 3
    assert "anchor, near, far" in done.rejected[1].message


def test_csv_quotes_do_not_swallow_neighbours():
    header, good = b"anchor,near,far\n", [b"a,b,c", b'a,"b\nb",c', b'"a""",b,c']
    for stray in (b'"a,b,c', b'a,b,"c', b'"a"",b,c', b'a,"b\nc'):
        rows = b"\n".join([good[0], stray, *good]) + b"\n"
        done = CsvDecoder(PLAIN)(rows, header)
        assert [c.near for c in comparisons(done)] == ["b", "b", "b\nb", "b"], stray
        assert {r.reason for r in done.rejected} == {"not_parseable"} and done.rejected[0].start == 6
        assert done.rejected[0].value == stray.split(b"\n")[0]


@pytest.mark.parametrize("format", ["csv", "arrow"])
def test_tables_split_anywhere(format):
    events = some_events(17, 90)
    header, rows = csv_of(events)
    batch = arrow_of(events)
    decode = decoder(format, PLAIN)
    lines = rows.splitlines(keepends=True)
    for cut in (1, 30, 89):
        parts = [batch.slice(0, cut), batch.slice(cut)]
        if format == "csv":
            parts = [b"".join(lines[:cut]), b"".join(lines[cut:])]
        sizes = [len(p) if format == "csv" else p.num_rows for p in parts]
        whole = decode(rows if format == "csv" else batch, header)
        assert put_together((decode(p, header), n) for p, n in zip(parts, sizes)) == put_together([(whole, 0)])


@pytest.mark.parametrize("format", FORMATS)
def test_results_do_not_depend_on_history(format):
    values = {
        "json": lambda e: b"\n".join(json.dumps(x).encode() for x in e),
        "csv": lambda e: csv_of(e)[1],
        "arrow": arrow_of,
    }[format]
    options = EventOptions(provenance=True)
    used = decoder(format, options)
    for seed in range(4):
        value = values([{**e, "type": e.get("type", "triplet")} for e in some_events(seed, 40)])
        assert essence(used(value, HEADER)) == essence(decoder(format, options)(value, HEADER))


@pytest.mark.parametrize(
    "options", [EventOptions(provenance=True), EventOptions(provenance=True, where={"worker": "u"})]
)
@pytest.mark.parametrize("seed", range(4))
def test_many_messages_are_one_block(seed, options):
    """`many` gives what decoding one by one gives, whatever the messages hold; joined is what a block is."""
    rng = np.random.default_rng(seed)
    events = some_events(seed, 90, faults=seed > 1)
    values = [json.dumps(event).encode() for event in events]
    if seed:
        values += [
            None,
            b"",
            json.dumps(events[:5]).encode(),
            json.dumps(events[0], indent=2).encode(),
            b"\n".join(values[:3]),
            *ODD_LINES,
        ]
        values = [values[i] for i in rng.permutation(len(values))]
    if seed == 3:
        values.insert(7, ipc_of(arrow_of(events[:9])))
    done, refused_in = all_of(JsonDecoder(options), values)
    parts = [JsonDecoder(options)(value) for value in values]
    assert essence(done) == essence(joined(parts)) and done.empty == sum(not value for value in values)
    found = list(zip(refused_in, done.rejected, strict=True))
    assert found == [(i, r) for i, p in enumerate(parts) for r in p.rejected]
    if seed == 0:  # but for the places of refusals, these are the lines of one block
        assert except_places(done) == except_places(JsonDecoder(options)(b"\n".join(values)))
    batches = [arrow_of(events[at : at + 30]) for at in (0, 30, 60)]
    whole, _ = all_of(ArrowDecoder(options), batches)
    assert except_places(whole) == except_places(ArrowDecoder(options)(arrow_of(events)))
    assert joined([]).names == []


@pytest.mark.parametrize(
    "options", [EventOptions(provenance=True), EventOptions(provenance=True, where={"worker": "u"})]
)
@pytest.mark.parametrize("seed", range(4))
def test_many_arrow_messages_are_one_block(seed, options):
    """Streams are decoded as one table where they can be: of other schemas, with dictionaries of their own, in several
    batches, empty, broken, or without a row, they say what they say one by one."""
    rng = np.random.default_rng(seed)
    events = some_events(seed, 120, faults=seed > 1)
    pieces = [arrow_of(events[at : at + 12], coded=bool(seed % 2)) for at in range(0, 120, 12)]
    values = [ipc_of(piece) for piece in pieces]
    if seed:
        text = ipc_of(arrow_of([{"anchor": "a", "near": "b", "far": "ccc", "worker": "u"}] * 3))
        wrong = text.replace(b"ccc", b"\xffcc")  # no UTF-8 any more
        values += [
            None,
            b"",
            ipc_of(pieces[0], 5),
            ipc_of(pieces[1].slice(0, 0)),
            values[2][:-300],
            text,
            wrong,
            text,
            b"\xff\xff\xff\xffjunk",
            ipc_of(arrow_of(events[:12], coded=not seed % 2)),
            *values[:3],
        ]
        values = [values[i] for i in rng.permutation(len(values))]
    done, refused_in = all_of(ArrowDecoder(options), values)
    parts = [ArrowDecoder(options)(value) for value in values]
    assert essence(done) == essence(joined(parts)) and done.empty == sum(not value for value in values)
    assert list(zip(refused_in, done.rejected, strict=True)) == [
        (i, r) for i, p in enumerate(parts) for r in p.rejected
    ]
    assert seed == 0 or any(r.reason == "not_parseable" for r in done.rejected)


@pytest.mark.parametrize("format", FORMATS)
def test_junk_is_refused_and_raises_nothing(format):
    rng = np.random.default_rng(1)
    for size in (1, 7, 100, 5000):
        junk = rng.integers(0, 256, size, dtype=np.uint8).tobytes()
        for value in (junk, b"\xff\xff\xff\xff" + junk, b"{" + junk, b"[" + junk):
            done = decoder(format, PLAIN)(value, b"anchor,near,far\n")
            assert done.events == {} and all(r.reason in ("not_parseable",) for r in done.rejected)


def test_refusals_leave_nothing_for_the_collector():
    """A run collects rarely: a fault that stays in a cycle keeps the messages of a whole poll in memory."""
    cases = [
        (decoder(name, example.options), example.value, example.header, name != "csv")
        for name in FORMATS
        for example in examples_of(name, "REJECTS")
    ]
    for decode, value, header, _ in cases:
        decode(value, header)  # what is made once
    gc.collect()
    gc.disable()
    gc.freeze()  # only what is made from here on is looked at
    try:
        for decode, value, header, alone in cases:
            assert len(decode(value, header).rejected) == 1
            if alone:  # without a header, as messages are
                assert all_of(decode, [value] * 2)[1] == [0, 1]
        assert gc.collect() == 0
    finally:
        gc.unfreeze()
        gc.enable()


@pytest.mark.parametrize("format", FORMATS)
def test_empty_values_are_counted(format):
    decode = decoder(format, EventOptions(provenance=True))
    assert [decode(value, HEADER).empty for value in (b"", None)] == [1, 1]
    if format != "arrow":
        done = decode(b"\n \r\n\n" if format == "json" else b"\n\r\n\n", HEADER)
        assert done.empty == 0
        assert done.rejected == []
        assert done.events == {}


@pytest.mark.parametrize("seed", range(2))
def test_catch_trials_are_left_out_and_remembered(seed):
    """In every format: an event marked as a catch trial is no judgement, whatever else it says; its worker's record
    keeps whether it was passed. Unmarked, and unmapped, events are what they were."""
    rng = np.random.default_rng(seed)
    events = some_events(seed, 70, faults=bool(seed))
    marked = [{**event, "ok": bool(rng.random() < 0.5)} if rng.random() < 0.3 else event for event in events]
    options = EventOptions(columns={"catch": ("ok",)}, provenance=True)
    plain = [event for event in marked if "ok" not in event]
    said = in_all_formats(plain, EventOptions(provenance=True))
    trials = [(str(event.get("worker") or "") or None, event["ok"]) for event in marked if "ok" in event]
    header, rows = csv_of(marked, ["ok"])
    coded = arrow_of(marked).append_column("ok", pa.array([event.get("ok") for event in marked], pa.bool_()))
    lines = b"\n".join(json.dumps(event, ensure_ascii=False).encode() for event in marked)
    for name, done in {
        "lines": JsonDecoder(options)(lines),
        "csv": CsvDecoder(options)(rows, header),
        "batch": ArrowDecoder(options)(coded),
    }.items():
        wanted = said[name]
        assert comparisons(done) == comparisons(wanted)
        assert done.events == wanted.events
        assert done.labels == wanted.labels
        assert [r.reason for r in done.rejected] == [r.reason for r in wanted.rejected]
        assert done.filtered == len(trials) > 5
        provenance = done.provenance
        names = [*provenance.workers, None]
        assert [(names[w], bool(p)) for w, p in zip(provenance.catch_worker, provenance.catch_passed)] == trials
        assert provenance.weight.tolist() == wanted.provenance.weight.tolist()
        assert [names[w] for w in provenance.worker] == [
            [*wanted.provenance.workers, None][w] for w in wanted.provenance.worker
        ]
    for wrong in (b'{"anchor":"a","near":"b","far":"c","ok":1}', b'{"anchor":"a","near":"b","far":"c","ok":"yes"}'):
        (one,) = JsonDecoder(options)(wrong).rejected
        assert one.reason == "wrong_type" and "ok (as catch)" in one.message
    assert comparisons(JsonDecoder(options)(b'{"anchor":"a","near":"b","far":"c","ok":null}'))
    both = joined([JsonDecoder(options)(line) for line in lines.split(b"\n")])
    names = [*both.provenance.workers, None]
    assert [(names[w], bool(p)) for w, p in zip(both.provenance.catch_worker, both.provenance.catch_passed)] == trials


def test_events_that_offer_their_anchor_are_catch_trials_where_catch_is_the_anchors_column():
    """In every format and on every path; without the option they are refused."""
    events = [
        {"type": "pick", "anchor": "a", "shown": ["b", "c"], "chosen": ["b"], "worker": "u"},
        {"type": "pick", "anchor": "a", "shown": ["a", "c"], "chosen": ["a"], "worker": "u"},
        {"type": "pick", "anchor": "a", "shown": ["b", "a"], "chosen": ["b"], "worker": "v"},
        {"type": "pick", "anchor": "a", "shown": ["b", "a"], "chosen": ["d"], "worker": "v"},
        {"type": "pick", "anchor": "a", "shown": ["b", "b"], "chosen": ["b"], "worker": "v"},
        {"anchor": "a", "near": "a", "far": "c"},
        {"anchor": "a", "near": "b", "far": "a", "worker": "w"},
        {"anchor": "a", "near": "b", "far": "b", "worker": "w"},
        {"type": "ranking", "anchor": "a", "ranked": ["b", "a", "c"], "worker": "w"},
    ]
    lines = b"\n".join(json.dumps(event).encode() for event in events)
    header, rows = csv_of(events)
    for fast in (True, False):
        for columns in ({"catch": ("anchor",)}, {}):
            options = EventOptions(columns=columns, provenance=True)
            for done in (
                JsonDecoder(options, fast)(lines),
                joined([JsonDecoder(options, fast)(line) for line in lines.split(b"\n")]),
                CsvDecoder(options, fast)(rows, header),
                ArrowDecoder(options, fast)(arrow_of(events)),
            ):
                names = [*done.provenance.workers, None]
                trials = [
                    (names[w], bool(p)) for w, p in zip(done.provenance.catch_worker, done.provenance.catch_passed)
                ]
                assert len(done.triplets) == 1 and {refused.reason for refused in done.rejected} == {"not_distinct"}
                if columns:
                    assert trials == [("u", True), ("v", False), (None, True), ("w", False)] and done.filtered == 4
                else:
                    assert trials == []
                assert len(done.rejected) == (4 if columns else 8)
