"""Whatever is said of a state is the same after a restart, of the sum of two states, and of one that was written and
read again, and nothing of a participant remains where somebody is deleted.

The events have other columns, other reasons to be rejected and other numbers of each in both halves, answers without a
time and too late for the window, and more catch trials that were passed than failed: so what one half alone would say
is never what both say.
"""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from stream_engine import exports
from stream_engine.counts import ACCUMULATORS, Forgetting
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.refits import refit_module
from stream_engine.report.findings import findings
from stream_engine.report.findings.facts import Commands, Facts
from stream_engine.service.context import HttpContext
from stream_engine.service.http.live_page import LiveFigures
from stream_engine.service.metrics import Metrics
from stream_engine.state import snapshot as snapshots
from stream_engine.state.engine import Engine
from stream_engine.state.forgetting import forget_worker
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot

NAMES = [f"o{i}" for i in range(7)]
MERGEABLE = [name for name in ACCUMULATORS if name not in ("online_embedding",)]
UNNAMED = [name for name in ACCUMULATORS if name.endswith(("_weighted", "_decayed")) or name == "window"]
OWN = ("snapshot", "positions", "history", "progressive")  # of a process, and not of what was read


def half(number: int, people: int = 4) -> list[dict]:
    rng, made = np.random.default_rng(number), []
    for at in range(60 + 20 * number):
        a, b, c, d = (str(name) for name in rng.permutation(NAMES)[:4])
        event = [
            {"anchor": a, "near": b, "far": c},
            {"type": "quadruplet", "near": [a, b], "far": [c, d]},
            {"type": "odd_one_out", "objects": [a, b, c], "odd": c},
            {"anchor": a, "near": b, "far": c, "catch": at % 8 > 3 * number},
            {"type": "label", "object": a, "label": "red"},
        ][at % 5]
        event["worker"] = f"w{at % people}"
        if at % 3:
            event["time"] = 1000.0 + 100 * number + 7 * (at % 11) - 260 * (number and at % 13 == 0)
        made.append(event | {("colour", "weather")[number]: at, "milliseconds": 200 + 50 * (at % 9)})
    wrong = [{"anchor": "o1", "near": "o1", "far": "o2"}, {"anchor": "o1", "near": "o2"}]
    return made + wrong[:1] * (1 + number) + wrong[1:] * (3 - number)


def learned(engine: Engine, events: list[dict]) -> Engine:
    options = EventOptions(provenance=True, columns={"catch": ("catch",)})
    engine.learn(decoder("json", options)("\n".join(map(json.dumps, events)).encode()))
    return engine


def new(guard: bool = True) -> Engine:
    return Engine(tuple(MERGEABLE), guard, Forgetting("time", 50.0, 200.0))


def read_again(snapshot: Snapshot) -> Snapshot:
    return snapshots.decode(b"".join(snapshots.encode(snapshot)[0]))


def table(snapshot: Snapshot, name: str, key: str) -> dict:
    fitted = refit_module("reliability").refit(snapshot, refit_module("reliability").Params(), 0)
    found = exports.contents(name, Published(snapshot, {"reliability": fitted}))[name].tables[name]
    columns = {head: list(values) for head, values in found.items()}
    rows = [dict(zip(columns, row)) for row in zip(*columns.values())]
    return {
        row[key]: {head: None if v != v else round(v, 7) if isinstance(v, float) else v for head, v in row.items()}
        for row in rows
    }


def said(snapshot: Snapshot, tmp_path) -> dict:
    """The summary, every finding, the live page's figures, and the tables of participants and objects."""
    facts = Facts(Published(snapshot, {}), Commands("DIR"), None)
    metrics = Metrics()
    metrics.start_from(Engine.restore(snapshot).counters)
    live = LiveFigures(HttpContext(tmp_path, metrics, lambda: SimpleNamespace(snapshot=snapshot, artifacts={}))).now()
    return {
        "summary": {name: value for name, value in facts.summary.items() if name not in OWN},
        "findings": {topic: [each.text for each in some] for topic, some in findings(facts).items()},
        "live": {name: live[name] for name in ("events", "comparisons", "refused", "objects")},
        "workers": table(snapshot, "workers", "worker"),
        "objects": table(snapshot, "objects", "object"),
    }


@pytest.fixture(scope="module")
def whole() -> Snapshot:
    return read_again(learned(learned(new(), half(0)), half(1)).snapshot())


def test_what_both_halves_say_is_counted_from_the_events(whole, tmp_path):
    """So that the comparisons below compare something: no figure is that of one half, and no two of them are alike."""
    events = half(0) + half(1)
    found = said(whole, tmp_path)
    catch = [event["catch"] for event in events if "catch" in event]
    assert sum(row["passed"] for row in found["workers"].values()) == sum(catch)
    assert sum(row["failed"] for row in found["workers"].values()) == len(catch) - sum(catch)
    assert 2 * sum(catch) != len(catch)
    assert found["summary"]["unknown_fields"] == ["colour", "weather"]
    assert found["summary"]["rejected"] == {"not_distinct": 3, "missing_field": 5}
    assert found["live"]["refused"] == 8
    assert found["live"]["comparisons"] == found["summary"]["comparisons"]
    read = [event for event in events if "far" in event or "odd" in event or "label" in event]
    assert found["live"]["events"] == found["summary"]["events"] == len(read) - 3 - len(catch)
    left = found["summary"]["not_in_recent"]["window"]
    assert 0 < left["late"] != left["untimed"] > 0


def test_a_restart_changes_nothing_that_is_said(whole, tmp_path):
    first = read_again(learned(new(), half(0)).snapshot())
    again = learned(Engine.restore(first), half(1)).snapshot()
    assert said(read_again(again), tmp_path) == said(whole, tmp_path)


def test_the_sum_of_two_states_says_what_one_would(tmp_path):
    one, other = (learned(new(guard=False), half(number)) for number in (0, 1))
    one.merge(other)
    together = learned(learned(new(guard=False), half(0)), half(1))
    mine, wanted = said(read_again(one.snapshot()), tmp_path), said(read_again(together.snapshot()), tmp_path)
    for each in (mine, wanted):  # which triplet is late, and a run of one position, depend on what was read before
        each["summary"]["not_in_recent"]["window"].pop("late")
        assert all(row.pop("longest_run") for row in each["workers"].values())
    assert mine == wanted


def test_of_somebody_who_is_deleted_nothing_is_said(tmp_path):
    engine = learned(learned(new(guard=False), half(0)), half(1))
    kept = [event for number in (0, 1) for event in half(number) if event.get("worker") != "w3"]
    left = said(read_again(forget_worker(engine.snapshot(), "w3", UNNAMED).snapshot), tmp_path)
    wanted = said(read_again(learned(new(guard=False), kept).snapshot()), tmp_path)
    assert left["workers"] == wanted["workers"]
