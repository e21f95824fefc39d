"""What the header of a snapshot may hold: each refusal in its own words, and what is at the limit."""

import json

import pytest

from stream_engine.data.container import Corrupt
from stream_engine.state.snapshot import MAX_COUNTER, check_meta
from tests.support import crafted_worlds as worlds
from tests.support.crafted_files import opened
from tests.support.facts import states

TESTED = {"tested": 5, "correct": 3, "undecided": 1}
GONE = object()
COUNTS = ("events", "records", "comparisons", "triplets", "quadruplets", "labels", "filtered", "empty")


@pytest.fixture(scope="module")
def header() -> str:
    return json.dumps(opened(worlds.as_bytes(worlds.state()))[0]["meta"])


def changed(header: str, where: str, value: object) -> dict:
    meta = found = json.loads(header)
    *above, last = where.split("/")
    for key in above:
        found = found[key]
    if value is GONE:
        del found[last]
    else:
        found[last] = value
    return meta


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (
            "more",
            1,
            "counters, more, positions, sequence, settings",
        ),
        ("sequence", -1, "sequence … -1 … >= 0"),
        ("sequence", True, "sequence … True"),
        ("sequence", MAX_COUNTER, f"sequence … {MAX_COUNTER}"),
        ("positions/t", [1], "'t' … [1] … >= 0"),
        ("positions/t", [1, -1], "'t' … [1, -1]"),
        ("positions/t", {"0": 1, "1": 2}, "'t' … {"),
        ("settings/more", 1, "settings … ['more']"),
        (
            "settings/accumulators",
            ["adds3", "adds3"],
            "settings.accumulators … ['adds3', 'adds3']",
        ),
        ("settings/accumulators", ["adds5"], "settings.accumulators … ['adds5']"),
        ("settings/accumulators", ["adds3"], "settings.forgetting … ['by', 'half_life', 'window']"),
        ("settings/guard", "best", "settings.guard"),
        ("settings/forgetting/window", GONE, "settings.forgetting … ['by', 'half_life']"),
        ("settings/forgetting/by", "clock", "settings.forgetting.by … 0"),
        ("settings/forgetting/window", 0, "settings.forgetting.window … 0"),
        ("settings/forgetting/half_life", float("inf"), "settings.forgetting.half_life … inf"),
        *((f"counters/{name}", -1, f"counters.{name} … -1 … >= 0") for name in COUNTS),
        ("counters/rejected/x", -1, "counters.rejected.x … -1 … >= 0"),
        ("counters/lost", {"t/0": "1"}, "counters.lost.t/0 … 1 … >= 0"),
        ("counters/guard/accepted", GONE, "counters.guard … {"),
        ("counters/unknown_fields", [1], "counters.unknown_fields … [1]"),
        (
            "counters/progressive/x",
            {"tested": 5},
            "counters.progressive.x … ['tested'] … tested, correct, un",
        ),
        (
            "counters/progressive/x",
            TESTED | {"correct": -3},
            "counters.progressive.x.correct … -3",
        ),
        ("counters/sinks/file", {"0": 3}, "counters.sinks.file … {'0': 3} … >= 0"),
        ("counters/sinks/kafka", {"0": -3}, "counters.sinks.kafka … {'0': -3}"),
        ("counters/sinks/other", {"x": -3}, "counters.sinks.other … {'x': -3}"),
        ("counters/share", "1/2 ", 'counters.share … 1/2 … "i/n"'),
        ("counters/history", [{"did": "seek"}], "counters.history … {'did': 'seek'}"),
        ("counters/history", [{"did": "seek", "time": 3}], "counters.history … {'did': 'seek', 'time': 3}"),
    ],
)
def test_what_a_header_may_not_hold_is_said(header, where, value, said):
    with pytest.raises(Corrupt) as refused:
        check_meta(changed(header, where, value))
    line = str(refused.value)
    assert states(line, said), line


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("sequence", 0),
        ("sequence", MAX_COUNTER - 1),
        ("settings/guard", None),
        ("settings/forgetting/by", "time"),
        ("settings/forgetting/window", 0.5),
        ("counters/lost", GONE),
        ("counters/progressive/x", dict.fromkeys(TESTED, 0)),
        ("counters/sinks/other", 0),
        ("counters/sinks/other", {"any name": 3}),
        ("counters/share", GONE),
        ("counters/share", "123/456"),
        ("counters/history", GONE),
        ("counters/history", [{"did": "forget", "time": "now", "what": "worker"}]),
    ],
)
def test_what_a_header_may_hold(header, where, value):
    check_meta(changed(header, where, value))
