"""Exact limits, one below and one above: n_near and n_far by every way that events come in, and the events of a
message."""

import json

import numpy as np
import pyarrow as pa
import pytest

from stream_engine.formats.arrow_events import Decoder as ArrowDecoder
from stream_engine.formats.csv_events import Decoder as CsvDecoder
from stream_engine.formats.expand_in_pieces import COMPARISONS_AT_ONCE
from stream_engine.formats.field_values import MAX_VOTES, votes_of
from stream_engine.formats.json_events import Decoder as JsonDecoder
from stream_engine.formats.options import Bounds, EventOptions
from tests.support.event_worlds import ipc_of

LIMIT = 1_000_000
TRIPLET = {"anchor": "a", "near": "b", "far": "c"}
QUADRUPLET = {"near_i": "a", "near_j": "b", "far_i": "c", "far_j": "d"}


def ways(event, field, votes):
    """Name -> what is decoded of two events, of which the second has these votes in this field and 2 in the other."""
    other = {"n_near": "n_far", "n_far": "n_near"}[field]
    events = [event | {"n_near": 1, "n_far": 2}, event | {field: votes, other: 2}]
    names = list(events[0])
    rows = [",".join(str(each[name]) for name in names).encode() for each in events]
    header = ",".join(names).encode() + b"\n"
    options = EventOptions(type="triplet" if event is TRIPLET else "quadruplet", provenance=True)
    table = {name: [each[name] for each in events] for name in names}
    for fast in (True, False):
        csv, arrow = CsvDecoder(options, fast), ArrowDecoder(options, fast)
        yield f"csv {fast}", csv(b"\n".join([*rows, b""]), header)
        yield f"csv with its header {fast}", csv(header + b"\n".join(rows))
        yield f"csv of floats {fast}", csv(b"\n".join(row + b".0" for row in rows), header)
        for kind in (pa.int32(), pa.int64(), pa.float64(), pa.float32()):
            made = {k: pa.array(v, kind if k.startswith("n_") else pa.string()) for k, v in table.items()}
            yield f"arrow {kind} {fast}", arrow(pa.record_batch(made))
        yield f"stream {fast}", JsonDecoder(options, fast)(ipc_of(pa.record_batch(table)))
        if event is TRIPLET:
            lines = [json.dumps(each).encode() for each in events]
            floats = [json.dumps(each | {field: float(votes)}).encode() for each in events]
            read = JsonDecoder(options, fast)
            yield f"lines {fast}", read.lines(b"\n".join(lines) + b"\n")
            yield f"floats {fast}", read(b"\n".join([lines[0], floats[1]]))
            yield f"array {fast}", read(b"[" + b",".join(lines) + b"]")
            yield f"many {fast}", read.many(lines)[0]


@pytest.mark.parametrize("event", [TRIPLET, QUADRUPLET], ids=["triplet", "quadruplet"])
@pytest.mark.parametrize("field", ["n_near", "n_far"])
@pytest.mark.parametrize("votes", [LIMIT - 1, LIMIT, LIMIT + 1])
def test_a_count_is_good_up_to_the_limit(event, field, votes):
    for way, done in ways(event, field, votes):
        rows = done.triplets if event is TRIPLET else done.quadruplets
        if votes > LIMIT:
            at = 0 if way.startswith("many") else 1  # of many values each has places of its own
            assert [(r.index, r.reason) for r in done.rejected] == [(at, "bad_votes")], way
            assert f"{field} is " in done.rejected[0].message and "from 0 to 1,000,000" in done.rejected[0].message, way
            assert len(rows) == 3, way
        else:
            assert not done.rejected and len(rows) == 3 + votes + 2, way
            as_it_stands = np.count_nonzero(rows[:, -1] == rows[0, -1])
            assert as_it_stands == 1 + (votes if field == "n_near" else 2), way


def test_one_event_at_both_limits_is_one_piece():
    """What one question may be answered each way at most is chosen so: an event with votes is never cut in two."""
    assert MAX_VOTES == LIMIT and 2 * MAX_VOTES <= COMPARISONS_AT_ONCE
    done = JsonDecoder(EventOptions())(json.dumps(TRIPLET | {"n_near": LIMIT, "n_far": LIMIT}).encode())
    assert len(done.triplets) == 2 * LIMIT and not list(done.rest)
    assert np.bincount(done.triplets[:, 1]).tolist() == [0, LIMIT, LIMIT]
    assert votes_of(LIMIT, LIMIT, text=False) == (LIMIT, LIMIT)


ROWS = 5  # of a message


def messages(n):
    """Name -> a message of n events."""
    events = [json.dumps(TRIPLET | {"anchor": f"a{i}"}).encode() for i in range(n)]
    table = pa.record_batch({"anchor": [f"a{i}" for i in range(n)], "near": ["b"] * n, "far": ["c"] * n})
    return {
        "lines": b"\n".join(events) + b"\n",
        "lines without the last end": b"\n".join(events),
        "lines with blanks": b"\n".join(b" " + event for event in events),
        "an array": b"[" + b",".join(events) + b"]",
        "an array over lines": b"[\n" + b",".join(events) + b"\n]",
        "an array and a line": b"[" + b",".join(events[1:]) + b"]\n" + events[0],
        "a line and an array": events[0] + b"\n[" + b",".join(events[1:]) + b"]\n",
        "a table": ipc_of(table),
    }


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("n", [ROWS - 1, ROWS, ROWS + 1])
def test_a_message_holds_events_up_to_the_limit(n, fast):
    """Of several in one poll, too: what is refused is the message alone."""
    options = EventOptions(provenance=True, bounds=Bounds(max_rows=ROWS))
    for way, message in messages(n).items():
        for before in (0, 1, 2):
            first = [json.dumps(TRIPLET | {"anchor": "x"}).encode()] * before
            left, triplets, refused = [*first, message], 0, []
            while left:
                done, _ = JsonDecoder(options, fast).many(left)
                triplets += len(done.triplets)
                refused += [each.reason for each in done.rejected]
                left = left[done.values or len(left) :]
            assert (triplets, refused) == ((before + n, []) if n <= ROWS else (before, ["too_large"])), (way, before)
