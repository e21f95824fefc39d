"""Every decoder with its fast paths and without them: the same batches, refusals and places, at the exact limits, with
equal elements, and with fields of several lines before text."""

import itertools
import json

import numpy as np
import pytest

from stream_engine.data.comparisons import MAX_LIST, MAX_NAME_BYTES
from stream_engine.formats.arrow_events import Decoder as ArrowDecoder
from stream_engine.formats.csv_events import Decoder as CsvDecoder
from stream_engine.formats.json_events import Decoder as JsonDecoder
from stream_engine.formats.options import Bounds, EventOptions
from tests.support.event_worlds import arrow_of, csv_of, essence, ipc_of, some_events


def with_lines(event, drawn):
    """The event with line ends, quotes and separators within its texts."""
    odd = ["two\nlines", "a\r\nb", 'he said "no"', "a,b", "\n", " both ends ", "é\n日本", "\ttab"]
    return {
        key: drawn.choice(odd) + value if isinstance(value, str) and key != "type" else value
        for key, value in event.items()
    }


def at_limits():
    """Events at, below and above each limit, alike in everything else."""
    triplet = {"type": "triplet", "anchor": "a", "near": "b", "far": "c", "worker": "w"}
    pick = {"type": "pick", "anchor": "a", "chosen": ["o0"]}
    for size, unit in itertools.product((-1, 0, 1), ("x", "é", "日")):
        name = unit * ((MAX_NAME_BYTES + size) // len(unit.encode())) + "y" * (
            (MAX_NAME_BYTES + size) % len(unit.encode())
        )
        for field in ("anchor", "far", "worker"):
            yield triplet | {field: name}
        yield pick | {"shown": ["o0", name], "chosen": [name]}
    for size in (MAX_LIST - 1, MAX_LIST, MAX_LIST + 1):
        yield pick | {"shown": [f"o{i}" for i in range(size)]}
    for votes in (-1, 0, 1, 2, 1_000_001, 10**20, 1.5, True, "2"):
        yield triplet | {"n_near": votes, "n_far": 1}
    for weight in (0, -0.0, 5e-324, -5e-324, 1.7e308, 1e16, -1):
        yield triplet | {"weight": weight}
    for time in (
        0,
        -1,
        253402300799,
        253402300800,
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59.999999Z",
        "2024-02-30T00:00:00Z",
        "2024-05-00T00:00:00Z",
    ):
        yield triplet | {"time": time}


def with_equal_elements():
    """Every way in which some of few names can be the same, in every type."""
    for names in itertools.product("abe", repeat=3):
        yield dict(zip(("type", "anchor", "near", "far"), ("triplet", *names)))
        yield {"type": "ranking", "anchor": "c", "ranked": list(names)}
        yield {"type": "ranking", "anchor": names[0], "ranked": ["c", *names[1:]]}
        yield {"type": "odd_one_out", "objects": [*names], "odd": "b"}
        yield {"type": "most_central", "objects": [*names], "central": "a"}
        yield {"type": "pick", "anchor": "c", "shown": [*names], "chosen": ["a"]}
        yield {"type": "pick", "anchor": "c", "shown": ["a", "b", "d"], "chosen": list(names[:2])}
    for names in itertools.product("abc", repeat=4):
        yield {"type": "quadruplet", "near": list(names[:2]), "far": list(names[2:])}


def corpora():
    drawn = np.random.default_rng(0)
    yield "limits", list(at_limits())
    yield "equal", list(with_equal_elements())
    for seed in range(3):
        events = some_events(seed, 60)
        yield f"drawn {seed}", events
        yield f"lines {seed}", [with_lines(event, drawn) if n % 3 == 0 else event for n, event in enumerate(events)]


CORPORA = dict(corpora())


def read_by(events, options, fast):
    """name -> what each way of reading the events gives."""
    lines = [json.dumps(event, ensure_ascii=False).encode() for event in events]
    read, csv, arrow = (kind(options, fast=fast) for kind in (JsonDecoder, CsvDecoder, ArrowDecoder))
    header, rows = csv_of(events, ("n_near", "n_far"))
    made = {
        "lines": read.lines(b"\n".join(lines) + b"\n"),
        "value": read(b"\n".join(lines)),
        "array": read(b"[" + b",".join(lines) + b"]"),
        "csv": csv(rows, header),
    }
    for name, many in (
        ("many", read.many(lines)),
        ("many arrays", read.many([b"[" + b",".join(lines[n : n + 9]) + b"]" for n in range(0, len(lines), 9)])),
    ):
        made[name], made[f"{name}, where"] = many
    flat = [event for event in events if not any(isinstance(value, float | bool) for value in event.values())]
    try:
        batch = arrow_of(flat)
    except (ValueError, TypeError, OverflowError):  # values that one column cannot hold together
        return made
    return made | {"arrow": arrow(batch), "coded": arrow(arrow_of(flat, coded=True)), "stream": read(ipc_of(batch))}


@pytest.mark.parametrize(
    "options",
    [EventOptions(provenance=True), EventOptions(type="triplet", where={"worker": "w"})],
    ids=["all", "where"],
)
@pytest.mark.parametrize("corpus", CORPORA)
def test_fast_and_slow_paths_read_alike(corpus, options):
    events = CORPORA[corpus]
    fast, slow = read_by(events, options, True), read_by(events, options, False)
    assert fast.keys() == slow.keys()
    for name, done in fast.items():
        if name.endswith("where"):
            assert done == slow[name], name
            continue
        assert essence(done) == essence(slow[name]), name
        assert done.rejected == slow[name].rejected, name
        assert done.unknown_fields == slow[name].unknown_fields, name
        assert sum(done.events.values()) + len(done.rejected) + done.filtered > 0


def test_the_corpora_hold_what_is_taken_and_what_is_refused_at_each_limit():
    done = JsonDecoder(EventOptions(), fast=False)(json.dumps(CORPORA["limits"]).encode())
    reasons = {one.reason for one in done.rejected}
    assert (
        reasons >= {"name_too_long", "list_too_long", "bad_votes", "bad_weight", "bad_time"} and len(done.events) == 2
    )
    equal = JsonDecoder(EventOptions())(json.dumps(CORPORA["equal"]).encode())
    assert len(equal.events) == 6 and {one.reason for one in equal.rejected} >= {"not_distinct", "not_shown"}


@pytest.mark.parametrize("rows", [6, 7, 8])
def test_a_message_at_below_and_above_the_limit_of_rows(rows):
    """As an Arrow stream, and as lines beside another message: alike, and the stream refused above it."""
    events = [{"anchor": f"a{n}", "near": "b", "far": "c"} for n in range(rows)]
    options = EventOptions(bounds=Bounds(1 << 20, 7), provenance=True)
    fast, slow = read_by(events, options, True), read_by(events, options, False)
    for name in ("value", "array", "csv", "arrow", "coded", "stream"):
        assert essence(fast[name]) == essence(slow[name]) and fast[name].rejected == slow[name].rejected, name
    assert [one.reason for one in fast["stream"].rejected] == ["too_large"] * (rows > 7)
    lines = b"\n".join(json.dumps(event).encode() for event in events)
    (done, at), (again, at_too) = (JsonDecoder(options, fast=fast).many([lines, lines[:40]]) for fast in (True, False))
    assert essence(done) == essence(again)
    assert at == at_too
    assert done.rejected == again.rejected
