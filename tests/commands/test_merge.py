"""`merge`: what one process would have counted, whatever the order of the states, and never the same events twice."""

import json
import random

import numpy as np
import pytest

from connectors import Position
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store
from tests.support.event_worlds import stream
from tests.support.process import engine, jsonl, one_line, summary


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shards")
    rng = random.Random(5)
    parts = [stream(rng, 400) for _ in range(3)]
    for i, part in enumerate(parts):
        jsonl(folder / f"part-{i}.jsonl", part)
        engine("run", folder / f"part-{i}.jsonl", "--state", folder / f"s{i}", "--no-refits")
    engine("run", folder / "part-*.jsonl", "--state", folder / "one", "--no-refits")
    return folder


def by_name(state, out):
    engine("export", "--state", state, "--out", out, "objects", "adds3", "adds4", "k1")
    order = np.argsort(json.loads((out / "objects.json").read_text()))
    return [
        np.load(out / f"{what}.npz")[key][np.ix_(order, order)]
        for what, key in (("adds3", "W"), ("adds4", "W"), ("k1", "K"))
    ]


def test_the_sum_is_what_one_process_counted(shards, tmp_path):
    engine("merge", *(shards / f"s{i}" for i in range(3)), "--out", shards / "sum")
    found, whole = summary(shards / "sum"), summary(shards / "one")
    for figure in (
        "objects",
        "events",
        "records",
        "comparisons",
        "triplets",
        "quadruplets",
        "labels",
        "rejected",
        "kinds",
        "unique_triplets",
        "contradicting_pairs",
        "contradicting_triplets",
        "positions",
    ):
        assert found[figure] == whole[figure], figure
    for mine, theirs in zip(by_name(shards / "sum", tmp_path / "a"), by_name(shards / "one", tmp_path / "b")):
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-12)


def test_order_of_the_states_and_repetition_do_not_matter(shards, tmp_path):
    for name, order in (("x", (0, 1, 2)), ("y", (2, 0, 1)), ("y", (1, 2, 0, 0))):
        said = engine("merge", *(shards / f"s{i}" for i in order), "--out", tmp_path / name).stdout
    assert "already" in said
    x, y = (list((tmp_path / name / "snapshots").iterdir()) for name in "xy")
    assert [p.read_bytes() for p in x] == [p.read_bytes() for p in y] and len(x) == 1


def test_dead_letters_of_a_sum_are_those_that_it_has_met_itself(tmp_path):
    for name, broken in (("a", 2), ("b", 1), ("c", 3)):
        jsonl(tmp_path / f"{name}.jsonl", [*[f'{{"{name}{n}' for n in range(broken)], *stream(random.Random(1), 20)])
        engine("run", tmp_path / f"{name}.jsonl", "--state", tmp_path / name, "--no-refits")
    engine("merge", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "sum")
    engine("run", tmp_path / "c.jsonl", "--state", tmp_path / "sum", "--no-refits")
    assert "WRONG" not in engine("verify", "--state", tmp_path / "sum").stdout
    said = one_line(engine("merge", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "b", status=1).stderr)
    assert "--out" in said and Store(tmp_path / "b").sequences() == [1]


def test_who_is_excluded_in_a_state_is_excluded_in_the_sum(tmp_path):
    for name, who in (("a", ("ann", "bob")), ("b", ("bob", "eve"))):
        jsonl(tmp_path / f"{name}.jsonl", [{**dict(zip(("anchor", "near", "far"), "xyz")), "worker": w} for w in who])
        engine("run", tmp_path / f"{name}.jsonl", "--state", tmp_path / name, "--no-refits")
        engine("refit", "embedding", "--state", tmp_path / name, "--exclude", f"participant={who[0]}", status=None)
    said = engine("merge", tmp_path / "a", tmp_path / "b", "--out", tmp_path / "sum").stdout
    assert Store(tmp_path / "sum").excluded() == ("ann", "bob") and "Excluded, as in the states: ann, bob." in said
    assert Store(tmp_path / "sum").published().snapshot.counters["comparisons"] == 1  # eve's
    for number, name in enumerate("ab"):
        made = Engine.restore(Store(tmp_path / name).latest().snapshot)
        made.positions = {f"votes/{number}": Position(2)}
        Store(tmp_path / name).publish(made.snapshot())
    said = engine("merge", tmp_path / "a", tmp_path / "b", "--into", 2, "--out", tmp_path / "n").stdout
    assert "ann, bob" in said
    assert [Store(tmp_path / "n" / f"shard-{k}").excluded() for k in range(2)] == [("ann", "bob")] * 2
    engine("refit", "embedding", "--state", tmp_path / "b", "--include", "participant=bob", status=None)
    said = engine("merge", tmp_path / "b", "--out", tmp_path / "everybody").stdout
    assert Store(tmp_path / "everybody").excluded() == () and "Excluded" not in said


def test_who_is_included_again_in_the_states_is_included_in_the_next_sum(tmp_path):
    """Who is excluded in the sum itself stays so."""
    who = ("ann", "bob", "eve", "zoe")
    jsonl(tmp_path / "a.jsonl", [{**dict(zip(("anchor", "near", "far"), "xyz")), "worker": name} for name in who])
    engine("run", tmp_path / "a.jsonl", "--state", tmp_path / "a", "--no-refits", "--exclude", "participant=ann")
    merge = ["merge", tmp_path / "a", "--out", tmp_path / "sum"]
    engine(*merge)
    Store(tmp_path / "sum").exclude(["bob"])
    for included, excluded, expected in (
        ("ann", "eve", ("bob", "eve")),
        ("eve", "bob", ("bob",)),
        ("bob", "", ("bob",)),
    ):
        Store(tmp_path / "a").exclude([excluded] if excluded else [], [included])
        said = engine(*merge).stdout
        assert Store(tmp_path / "sum").excluded() == expected and included not in said.partition("as in the states")[2]
    Store(tmp_path / "sum").exclude([], ["bob"])
    assert "Excluded" not in engine(*merge).stdout and Store(tmp_path / "sum").excluded() == ()


def test_overlapping_partitions_are_refused(shards, tmp_path):
    said = one_line(engine("merge", shards / "one", shards / "s0", "--out", tmp_path / "x", status=1).stderr)
    assert "twice" in said and "part-0.jsonl" in said
    said = one_line(engine("merge", shards / "s0", "--out", shards / "s1", status=1).stderr)
    assert "--out" in said
    assert "snapshot" in one_line(engine("merge", tmp_path / "none", "--out", tmp_path / "x", status=1).stderr)
