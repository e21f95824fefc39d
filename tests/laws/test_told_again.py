"""Whatever is said of a state is the same after a restart, of the sum of two states, and of one that was written and
read again, and nothing of a participant remains where somebody is deleted.

The events have other columns, other reasons to be rejected and other numbers of each in both halves, answers without a
time and too late for the window, and more catch trials that were passed than failed: so what one half alone would say
is never what both say.
"""

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pytest

from stream_engine import exports
from stream_engine.commands.inspect import as_page, inspect
from stream_engine.counts import ACCUMULATORS, Forgetting
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.refits import refit_module
from stream_engine.report import SECTIONS, maker
from stream_engine.report.material import material
from stream_engine.service.context import HttpContext
from stream_engine.service.http.live_metrics import LiveMetrics
from stream_engine.service.metrics import Metrics
from stream_engine.state import snapshot as snapshots
from stream_engine.state.engine import Engine
from stream_engine.state.exclusion import without
from stream_engine.state.forgetting import forget_object, forget_worker
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store

NAMES = [f"o{i}" for i in range(7)]
MERGEABLE = [name for name in ACCUMULATORS if name not in ("online_embedding",)]
READ = ("quality", "read", "methods")  # sections of the report that say how much was read
UNNAMED = [name for name in ACCUMULATORS if name.endswith(("_weighted", "_decayed")) or name == "window"]


def half(number: int, people: int = 4, late: float = 260.0) -> list[dict]:
    rng, made = np.random.default_rng(number), []
    for at in range(60 + 20 * number):
        a, b, c, d = (str(name) for name in rng.permutation(NAMES)[:4])
        event = [
            {"anchor": a, "near": b, "far": c},
            {"type": "quadruplet", "near": [a, b], "far": [c, d]},
            {"type": "odd_one_out", "objects": [a, b, c], "odd": a if at < 40 else c},
            {"anchor": a, "near": b, "far": c, "catch": at % 8 > 3 * number},
            {"type": "label", "object": a, "label": "red"},
        ][at % 5]
        event["worker"] = f"w{at % people}"
        if at % 3:
            event["time"] = 1000.0 + 100 * number + 7 * (at % 11) - late * (number and at % 13 == 0)
        made.append(event | {("colour", "weather")[number]: at, "milliseconds": 200 + 50 * (at % 9)})
    wrong = [{"anchor": "o1", "near": "o1", "far": "o2"}, {"anchor": "o1", "near": "o2"}]
    return made + wrong[:1] * (1 + number) + wrong[1:] * (3 - number)


def learned(engine: Engine, events: list[dict]) -> Engine:
    options = EventOptions(provenance=True, columns={"catch": ("catch",)})
    engine.learn(decoder("json", options)("\n".join(map(json.dumps, events)).encode()))
    return engine


def new(guard: bool = True, without: Collection[str] = ()) -> Engine:
    return Engine(tuple(name for name in MERGEABLE if name not in without), guard, Forgetting("time", 50.0, 200.0))


def read_again(snapshot: Snapshot) -> Snapshot:
    return snapshots.decode(b"".join(snapshots.encode(snapshot)[0]))


def plain(value: Any) -> Any:
    """Numbers to seven digits, what is not known as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return None if value != value else float(f"{value:.7g}")
    return value if isinstance(value, int | str | bool | None) else str(value)


def by_key(table: Mapping) -> dict[str, dict]:
    """The rows of a table by the name in their first column."""
    columns = {head: plain([*values]) for head, values in table.items()}
    rows = [dict(zip(columns, row)) for row in zip(*columns.values())]
    return {str(row[next(iter(columns))]): row for row in rows}


def said(snapshot: Snapshot, tmp_path) -> dict:
    """All that is told: every export, `inspect` and its page, the sections of the report, the live page."""
    same = {"history": [], "progressive": {}}
    snapshot = read_again(snapshot._replace(sequence=9, positions={}, counters={**snapshot.counters, **same}))
    params = refit_module("reliability").Params()
    published = Published(snapshot, {"reliability": refit_module("reliability").refit(snapshot, params, 0)})
    (store := Store(tmp_path)).publish(snapshot)
    store.publish_artifact(published.artifacts["reliability"])
    inspected = inspect(str(tmp_path))
    made = material(published, workers=True)
    sections = {name: maker(name)(made) for name in SECTIONS if name not in ("learning", "next")}
    exported: dict = {}
    for what in exports.EXPORTS:
        try:
            for stem, content in exports.contents(what, published).items():
                exported[stem] = plain(content.arrays) | {"value": plain(content.value)}
        except exports.NothingToExport as nothing:
            exported[what] = str(nothing)
    tables = {what: exports.contents(what, published)[what].tables[what] for what in ("workers", "objects")}
    metrics = Metrics()
    metrics.start_from(Engine.restore(snapshot).counters)
    live = LiveMetrics(HttpContext(tmp_path, metrics, lambda: published)).now()
    found = {
        "summary": exported["summary"]["value"],
        "inspect": plain({k: v for k, v in inspected.items() if k not in ("digest", "summary")}),
        "page": as_page(inspected),
        "report": {
            name: plain([section.says, section.notes, {table.name: table.columns for table in section.tables}])
            for name, section in sections.items()
            if section
        },
        "exports": exported,
        "live": {name: value for name, value in live.items() if name not in ("time", "quiet", "age")},
        **{name: by_key(table) for name, table in tables.items()},
    }
    return json.loads(re.sub("digest [0-9a-f]+", "digest", json.dumps(found).replace(str(tmp_path), "DIR")))


def noted(engine: Engine, number: int) -> Engine:
    """What is done to a state, and lost with consent."""
    engine.note(("seek", "pass_over")[number])
    engine.lost["t/0"] = engine.lost.get("t/0", 0) + 2 + number
    engine.counters["dead_letters"] = {"lost": 3 + engine.counters["dead_letters"].get("lost", 0)}
    engine.counters["repeated"] += 4 + number
    return engine


@pytest.fixture(scope="module")
def whole() -> Snapshot:
    engine = noted(noted(learned(learned(new(), half(0)), half(1)), 0), 1)
    engine.share = "0/2"
    return read_again(engine.snapshot())


def done(snapshot: Snapshot) -> list[str]:
    return [each["did"] for each in snapshot.counters["history"]]


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
    assert found["summary"]["lost"] == {"t/0": 5}
    assert (found["summary"]["repeated"], found["summary"]["dead_letters_lost"], found["summary"]["share"]) == (
        9,
        6,
        "0/2",
    )
    assert done(whole) == ["seek", "pass_over"]
    assert len(found["exports"]) > 15 and len(found["report"]) > 5


def test_a_restart_changes_nothing_that_is_said(whole, tmp_path):
    begun = noted(learned(new(), half(0)), 0)
    begun.share = "0/2"
    again = noted(learned(Engine.restore(read_again(begun.snapshot())), half(1)), 1)
    assert done(again.snapshot()) == done(whole)
    assert alike(said(again.snapshot(), tmp_path / "a"), said(whole, tmp_path / "b")) == []


def alike(one: Any, other: Any, at: str = "") -> list[str]:
    """Where two of what `said` gives differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted(one.keys() | other.keys())
        return [each for name in names for each in alike(one.get(name), other.get(name), f"{at}/{name}")]
    return [] if one == other else [f"{at}: {one!s:.200} {other!s:.200}"]


def test_the_sum_of_two_states_says_what_one_would(tmp_path):
    """Where no triplet is late, which depends on what was read before, and no run of a position goes on."""
    halves = [half(number, late=0.0) for number in (0, 1)]
    one, other = (noted(learned(new(guard=False), some), number) for number, some in enumerate(halves))
    one.merge(other)
    together = noted(noted(learned(learned(new(guard=False), halves[0]), halves[1]), 0), 1)
    assert done(one.snapshot()) == done(together.snapshot())
    assert alike(said(one.snapshot(), tmp_path / "a"), said(together.snapshot(), tmp_path / "b")) == []


PARTS = ("workers", "objects", "exports", "report")  # that do not say how much was read


FIRST = [  # all objects in order: else what leaves changes their numbers
    dict(zip(("anchor", "near", "far", "worker"), (*(NAMES[at] for at in row), "w0")))
    for row in ((0, 1, 2), (3, 4, 5), (0, 6, 1))
]


def both() -> list[dict]:
    return FIRST + half(0) + half(1)


def compared(left: Snapshot, wanted: Snapshot, tmp_path, *but: str) -> list[str]:
    """Where two states differ in what they say, but for how much was read."""
    told = [said(each, tmp_path / str(at)) for at, each in enumerate((left, wanted))]
    for part in told:
        part["exports"].pop("summary")
        part["report"] = {name: each for name, each in part["report"].items() if name not in READ}
    return alike(*({part: each[part] for part in PARTS if part not in but} for each in told))


def test_of_somebody_who_is_deleted_nothing_is_said(tmp_path):
    """What was read stays read: the numbers of events and rejections."""
    engine = learned(learned(new(guard=False), half(0)), half(1))
    kept = [event for number in (0, 1) for event in half(number) if event.get("worker") != "w3"]
    left = forget_worker(engine.snapshot(), "w3", UNNAMED).snapshot
    assert "w3" not in json.dumps(said(left, tmp_path / "left"))
    assert compared(left, learned(new(guard=False, without=UNNAMED), kept).snapshot(), tmp_path) == []


def test_somebody_who_is_excluded_is_as_one_who_never_answered(tmp_path):
    """The state itself keeps the answers. Labels, which are nobody's, are left out."""
    answers = [event for event in both() if event.get("type") != "label"]
    engine = learned(new(guard=False, without=UNNAMED), answers)
    kept = [event for event in answers if event.get("worker") not in ("w1", "w3")]
    whole = engine.snapshot()
    fewer = without(whole, ("w3", "w1", "nobody"))
    assert (fewer.sequence, fewer.digest) == (whole.sequence, whole.digest)
    assert compared(fewer, learned(new(guard=False, without=UNNAMED), kept).snapshot(), tmp_path) == []


def test_of_an_object_that_is_deleted_no_comparison_is_left(tmp_path):
    """Other comparisons of the same answers stay; here no answer has any."""
    engine = learned(new(guard=False, without=UNNAMED), both())
    kept = [event for event in both() if "o6" not in json.dumps(event)]
    left = forget_object(engine.snapshot(), "o6", ()).snapshot
    assert "o6" not in json.dumps(said(left, tmp_path / "left"))
    differ = compared(left, learned(new(guard=False, without=UNNAMED), kept).snapshot(), tmp_path, "workers")
    assert [each for each in differ if not PATTERNS.search(each.partition(":")[0])] == []


PATTERNS = re.compile(r"events|response_time|under_300_ms|position|run|p_fast|passed|failed|/workers")  # as they were
