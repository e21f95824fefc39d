"""Event times where a state forgets by time: jumps ahead are counted whatever the batches, and said; so are times of
the future that a state of an earlier version holds."""

import json
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.counts import Forgetting
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.report.findings import findings
from stream_engine.report.findings.facts import Facts
from stream_engine.state.engine import Engine
from stream_engine.state.event_time import newest_time
from stream_engine.state.published import Published
from tests.support.process import engine, summary

DAY = 86_400.0
BY_TIME = Forgetting(by="time", half_life=7 * DAY, window=30 * DAY)
FORGETTING = ("adds3", "adds3_decayed", "window")
START = 1.7e9


def learned(times, cuts=(), forgetting=BY_TIME, accumulators=FORGETTING):
    """An engine that learned one triplet for each time (None: without one), in batches."""
    made = Engine(accumulators, forgetting=forgetting)
    decode = decoder("json", EventOptions(provenance=True, max_time_ahead=float("inf")))
    for some in np.split(np.array(times, object), sorted(cuts)):
        lines = [json.dumps({"anchor": "a", "near": "b", "far": "c", "time": each}) for each in some]
        if lines:
            made.learn(decode("\n".join(lines).encode()))
    return made


def found(made: Engine) -> dict:
    return {each.what: each for each in findings(Facts(Published(made.snapshot(), {})))["data"]}


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.one_of(st.none(), st.integers(0, 60).map(lambda day: START + day * DAY)), max_size=12),
    st.sets(st.integers(1, 11)),
)
def test_jumps_are_those_of_the_definition_whatever_the_batches_and_resumptions(times, cuts):
    newest, jumps = None, []
    for each in times:
        if each is not None and newest is not None and each - newest > BY_TIME.half_life:
            jumps.append((each - newest, newest, each))
        newest = each if newest is None else max(newest, each or newest)
    once, parts = learned(times), learned(times, [cut for cut in cuts if cut < len(times)])
    told = once.counters["time_jumps"]
    assert told == parts.counters["time_jumps"] and told.get("number", 0) == len(jumps)
    if jumps:
        assert told["to"] - told["from"] == max(jumps)[0]
    assert Engine.restore(once.snapshot()).counters["time_jumps"] == told


def test_a_jump_is_a_warning_with_its_times_and_a_stream_without_one_says_nothing():
    steady = [START + day * DAY for day in range(20)]
    assert "time_jumps" not in found(learned(steady))
    assert "time_jumps" not in found(learned([*steady, START + 40 * DAY], forgetting=Forgetting(by="count")))
    warned = found(learned([*steady, START + 40 * DAY]))["time_jumps"]
    assert warned.level == "warning" and warned.figures == {"number": 1, "from": steady[-1], "to": START + 40 * DAY}
    assert "21 days" in warned.text and "12.5 %" in warned.text
    assert "by more than the half-life;" in warned.text and "window" not in warned.text
    only_window = learned([*steady, START + 60 * DAY], accumulators=("adds3", "window"))
    assert only_window.counters["time_jumps"]["number"] == 1
    text = found(only_window)["time_jumps"].text
    assert "by more than the window;" in text and "left the window" in text and "half-life" not in text
    assert not learned([*steady, START + 40 * DAY], accumulators=("adds3", "window")).counters["time_jumps"]


def test_sums_of_states_keep_the_larger_jump_and_the_number_of_all():
    one, other = learned([START, START + 8 * DAY]), learned([START, START + 9 * DAY, START + 30 * DAY])
    one.merge(other)
    assert one.counters["time_jumps"] == {"number": 3, "from": START + 9 * DAY, "to": START + 30 * DAY}


@pytest.mark.parametrize("last", [4.1e9, 1.8e12])  # of a state made before such times were rejected
def test_a_state_that_holds_a_time_of_the_future_says_so(last):
    future = (time.time() + 2 * DAY) if last == 4.1e9 else last
    made = learned([START])
    for each in ("adds3_decayed", "window"):
        made.accumulators[each]._newest = future
    assert newest_time(made.snapshot()) == future
    warned = found(made)["future_time"]
    assert warned.level == "warning"
    assert warned.figures["newest"] == future
    assert "--start-over" in warned.text


def test_one_event_in_milliseconds_does_not_empty_the_window_of_a_run(tmp_path):
    now = int(time.time())
    names = [("a", "b", "c"), ("b", "c", "d"), ("c", "d", "a")]
    rows = [dict(zip(("anchor", "near", "far"), names[i % 3]), time=now - 50 + i) for i in range(50)]
    rows.insert(0, rows[0] | {"time": now * 1000})
    rows.insert(25, rows[0] | {"time": 1e18})
    (tmp_path / "e.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "w.toml").write_text(
        'accumulators = ["adds3", "window"]\n[forgetting]\nby = "time"\nwindow = 2592000\n'
    )
    run = ["run", tmp_path / "e.jsonl", "--no-refits", "--state", tmp_path / "s", "--config", tmp_path / "w.toml"]
    said = engine(*run).stderr.splitlines()[-1]
    assert "2 rejected" in said and "milliseconds" in said
    stored = summary(tmp_path / "s")
    assert stored["rejected"] == {"bad_time": 2} and stored["not_in_recent"]["window"] == {"late": 0, "untimed": 0}
