"""What the header of a snapshot may hold: each refusal in its own words, and what is at the limit."""

import json

import pytest

from stream_engine.data.container import Corrupt
from stream_engine.state.snapshot import LARGEST, check_meta
from tests.support import crafted_worlds as worlds
from tests.support.crafted_files import opened

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
            "header: got counters, more, positions, sequence, settings, expected sequence, positions, counters",
        ),
        ("sequence", GONE, "header: got counters, positions, settings, expected"),
        ("sequence", -1, "sequence: got -1, expected a number >= 0"),
        ("sequence", True, "sequence: got True, "),
        ("sequence", 1.0, "sequence: got 1.0, "),
        ("sequence", LARGEST, f"sequence: got {LARGEST}, "),
        ("positions", [], "positions: got [], expected an object"),
        ("positions/t", [1], "position of 't': got [1], expected an offset >= 0 and its mark"),
        ("positions/t", [1, -1], "position of 't': got [1, -1], "),
        ("positions/t", [1, 2, 3], "position of 't': got [1, 2, 3], "),
        ("positions/t", {"0": 1, "1": 2}, "position of 't': got {"),
        ("settings", None, "settings: got None, expected an object"),
        ("settings/more", 1, "settings: got ['more'], expected accumulators, guard and forgetting"),
        (
            "settings/accumulators",
            ["adds3", "adds3"],
            "settings.accumulators: got ['adds3', 'adds3'], expected some of ",
        ),
        ("settings/accumulators", ["adds5"], "settings.accumulators: got ['adds5'], "),
        ("settings/accumulators", "adds3", "settings.accumulators: got adds3, "),
        ("settings/accumulators", ["adds3"], "settings.forgetting: got ['by', 'half_life', 'window'], expected none"),
        ("settings/guard", "best", "settings.guard: got best, expected none or one of "),
        ("settings/guard", GONE, "settings.guard: got Ellipsis, "),
        ("settings/forgetting", [], "settings.forgetting: got [], expected an object"),
        ("settings/forgetting/window", GONE, "settings.forgetting: got ['by', 'half_life'], expected by, half_life, w"),
        ("settings/forgetting/by", "clock", "settings.forgetting.by: got clock, expected a clock, or a length above 0"),
        ("settings/forgetting/window", 0, "settings.forgetting.window: got 0, "),
        ("settings/forgetting/half_life", float("inf"), "settings.forgetting.half_life: got inf, "),
        ("settings/forgetting/half_life", "9", "settings.forgetting.half_life: got 9, "),
        *((f"counters/{name}", -1, f"counters.{name}: got -1, expected a number >= 0") for name in COUNTS),
        *((f"counters/{name}", GONE, f"counters.{name}: got None, expected a number >= 0") for name in COUNTS),
        ("counters/rejected", [], "counters.rejected: got [], expected an object"),
        ("counters/rejected/x", -1, "counters.rejected.x: got -1, expected a number >= 0"),
        ("counters/kinds", GONE, "counters.kinds: got None, expected an object"),
        ("counters/lost", {"t/0": "1"}, "counters.lost.t/0: got 1, expected a number >= 0"),
        ("counters/dead_letters", None, "counters.dead_letters: got None, expected an object"),
        ("counters/guard/accepted", GONE, "counters.guard: got {"),
        ("counters/unknown_fields", [1], "counters.unknown_fields: got [1], expected names of fields"),
        ("counters/unknown_fields", "x", "counters.unknown_fields: got x, "),
        ("counters/progressive", GONE, "counters.progressive: got None, expected an object"),
        (
            "counters/progressive/x",
            {"tested": 5},
            "counters.progressive.x: got ['tested'], expected tested, correct, un",
        ),
        (
            "counters/progressive/x",
            TESTED | {"y": 1},
            "counters.progressive.x: got ['correct', 'tested', 'undecided', ",
        ),
        (
            "counters/progressive/x",
            TESTED | {"correct": -3},
            "counters.progressive.x.correct: got -3, expected a number",
        ),
        ("counters/sinks", 3, "counters.sinks: got 3, expected an object"),
        (
            "counters/sinks/file",
            {"0": 3},
            "counters.sinks.file: got {'0': 3}, expected a place >= 0, or one by partition",
        ),
        ("counters/sinks/kafka", 3, "counters.sinks.kafka: got 3, "),
        ("counters/sinks/kafka", {"x": 3}, "counters.sinks.kafka: got {'x': 3}, "),
        ("counters/sinks/kafka", {"0": -3}, "counters.sinks.kafka: got {'0': -3}, "),
        ("counters/sinks/other", {"x": -3}, "counters.sinks.other: got {'x': -3}, "),
        ("counters/share", "0", 'counters.share: got 0, expected "i/n"'),
        ("counters/share", "1/2 ", 'counters.share: got 1/2 , expected "i/n"'),
        ("counters/share", 2, 'counters.share: got 2, expected "i/n"'),
        ("counters/history", {}, "counters.history: got {}, expected a list"),
        ("counters/history", ["x"], "counters.history: got x, expected what was done, with its time"),
        ("counters/history", [{"did": "seek"}], "counters.history: got {'did': 'seek'}, "),
        ("counters/history", [{"did": "seek", "time": 3}], "counters.history: got {'did': 'seek', 'time': 3}, "),
    ],
)
def test_what_a_header_may_not_hold_is_said(header, where, value, said):
    with pytest.raises(Corrupt) as refused:
        check_meta(changed(header, where, value))
    assert str(refused.value).startswith(said), str(refused.value)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("sequence", 0),
        ("sequence", LARGEST - 1),
        ("positions/t", [0, 0]),
        ("settings/guard", None),
        ("settings/forgetting/by", "time"),
        ("settings/forgetting/window", 0.5),
        ("counters/of_a_later_version", {"any": ["thing"]}),
        ("counters/lost", GONE),
        ("counters/progressive/x", dict.fromkeys(TESTED, 0)),
        ("counters/sinks", GONE),
        ("counters/sinks/other", 0),
        ("counters/sinks/other", {"any name": 3}),
        ("counters/sinks/kafka", {}),
        ("counters/share", GONE),
        ("counters/share", "123/456"),
        ("counters/history", GONE),
        ("counters/history", [{"did": "forget", "time": "now", "what": "worker"}]),
    ],
)
def test_what_a_header_may_hold(header, where, value):
    check_meta(changed(header, where, value))
