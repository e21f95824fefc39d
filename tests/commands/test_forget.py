"""`forget`: what is left is what a run over the stream without it has counted; no file says the name."""

import json
import random

import numpy as np
import pytest

from stream_engine.state.store import Store
from tests.support.facts import states
from tests.support.process import engine, jsonl, one_line, summary

OBJECTS = [f"thing-{i}" for i in range(12)]
GONE = "thing-1"  # "thing-10" and "thing-11" are others
WORKERS = ["ada", "bob", "cy"]
ALL = "adds3, adds4, triplet_counts, quadruplet_counts, worker_votes, window, triplet_counts_decayed"


def events(seed: int, size: int = 250, quadruplets: bool = True) -> list[dict | str]:
    """Every object but GONE is named first, so that ids are the same in a stream without it."""
    rng = random.Random(seed)
    others = [name for name in OBJECTS if name != GONE]
    out: list[dict | str] = [dict(zip(("anchor", "near", "far"), others[i : i + 3])) for i in range(len(others) - 2)]
    for n in range(size):
        a, b, c, d = rng.sample(OBJECTS, 4)
        kind = rng.random()
        if kind < 0.6 or not quadruplets:
            out.append({"anchor": a, "near": b, "far": c, "worker": rng.choice(WORKERS), "time": n})
        elif kind < 0.75:
            out.append({"type": "quadruplet", "near": [a, b], "far": [c, d], "time": n})
        elif kind < 0.9:
            out.append({"type": "ranking", "anchor": a, "ranked": [b, c, d], "worker": rng.choice(WORKERS), "time": n})
        else:
            out.append({"type": "label", "object": a, "label": rng.choice("xy")})
    out[20:20] = [f'{{"anchor": "{name}", "near": "{name}", "far": "{by}"}}' for name in OBJECTS for by in (name, "q")]
    return [*out, {"anchor": "thing-0", "near": "thing-2", "far": "thing-3", "time": size, "worker": "ada"}]


def without(each: dict | str) -> dict | str | None:
    """The event as if GONE had never been shown; None where nothing is left of it."""
    if isinstance(each, str):
        return None if f'"{GONE}"' in each else each
    if each.get("type") == "ranking" and each["anchor"] != GONE:
        ranked = [name for name in each["ranked"] if name != GONE]
        return {**each, "ranked": ranked}
    return None if f'"{GONE}"' in json.dumps(each) else each


def run(folder, name, stream, state, config="", accumulators=ALL):
    (folder / "engine.toml").write_text(
        f'accumulators = {json.dumps(accumulators.split(", "))}\n{config}\n[forgetting]\nby = "time"\n'
        if "forgetting" not in config
        else f"accumulators = {json.dumps(accumulators.split(', '))}\n{config}\n"
    )
    jsonl(folder / name, stream)
    engine("run", folder / name, "--state", state, "--no-refits", "--config", folder / "engine.toml")


def newest(state):
    return Store(state).latest().snapshot


def order_free(snapshot) -> dict:
    """What does not depend on the order of arrival, but for how many events a worker answered."""
    arrays = {name: np.asarray(array).tolist() for name, array in snapshot.arrays.items()}
    arrays = {
        name: value for name, value in arrays.items() if not name.startswith(("partial_order/", "worker_votes/ev"))
    }
    counters = {name: snapshot.counters[name] for name in ("comparisons", "triplets", "quadruplets")}
    return arrays | counters | {"objects": list(snapshot.objects), "labels": snapshot.labels}


def refused(state) -> list[str]:
    lines = [line for path in sorted((state / "dead_letters").iterdir()) for line in path.read_text().splitlines()]
    return [json.loads(line)["value"] for line in lines if line.strip()]


def files_with(folder, name: str) -> list[str]:
    """Files in which the name stands, not as the beginning of a longer one."""
    found = []
    for path in (path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        at = data.find(name.encode())
        while at >= 0:
            if data[at + len(name) : at + len(name) + 1] not in (b"0", b"1"):
                found.append(str(path))
                break
            at = data.find(name.encode(), at + 1)
    return found


def test_an_object_is_forgotten(tmp_path):
    stream, state = events(1), tmp_path / "s"
    run(tmp_path, "a.jsonl", stream[:100], state)
    run(tmp_path, "b.jsonl", stream[100:], state)
    engine("refit", "--state", state, "spectral", "--set", "k=2")
    before = newest(state)
    said = engine("forget", "--state", state, "--object", GONE).stdout
    after = newest(state)
    assert files_with(state, GONE) == [] and files_with(state, "thing-10") != []
    assert Store(state).sequences() == [before.sequence + 1] and Store(state).artifact_sequences("spectral") == []
    filtered = [each for each in map(without, stream) if each is not None]
    run(tmp_path, "c.jsonl", filtered, tmp_path / "t")
    expected = newest(tmp_path / "t")
    mine, theirs = order_free(after), order_free(expected)
    assert mine.keys() == theirs.keys()
    for name in mine:
        if name.startswith("triplet_counts_decayed/n_"):
            np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-9, err_msg=name)
        else:
            assert mine[name] == theirs[name], name
    assert refused(state) == refused(tmp_path / "t")
    left = before.counters["comparisons"] - after.counters["comparisons"]
    assert states(said, f" {left:,} … 2 ") and " 11 " in said
    [deed] = summary(state)["history"]
    assert deed | {"time": ""} == {
        "did": "forget", "time": "", "what": "object", "comparisons": left, "dead_letters": 2,
    }  # fmt: skip
    assert summary(state)["forgotten"] == {"objects": 1, "workers": 0}
    engine("verify", "--state", state)
    run(tmp_path, "b.jsonl", [*stream[100:], *events(2)[1:]], state)  # the same file, grown
    assert newest(state).objects[-1] == GONE and summary(state)["records"] == len(stream) + len(events(2)) - 1
    assert "no object 'nothing'" in one_line(engine("forget", "--state", state, "--object", "nothing", status=1).stderr)


def test_what_cannot_be_told_apart_is_said_and_dropped_with_consent(tmp_path):
    state = tmp_path / "s"
    run(
        tmp_path,
        "a.jsonl",
        events(3),
        state,
        accumulators="adds3, adds4, triplet_counts, adds3_weighted, triplet_counts_weighted",
    )
    before = {path: path.read_bytes() for path in state.rglob("*") if path.is_file() and path.name != "lock"}
    said = one_line(engine("forget", "--state", state, "--object", GONE, status=1).stderr)
    assert "adds4" in said and "adds3_weighted" in said
    assert "--drop adds4 --drop adds3_weighted" in said
    assert before == {path: path.read_bytes() for path in before}
    drop = [word for name in ("adds4", "adds3_weighted", "triplet_counts_weighted") for word in ("--drop", name)]
    said = engine("forget", "--state", state, "--object", GONE, *drop).stdout
    assert " adds3_weighted, adds4, triplet_counts_weighted" in said and "unknown number" in said
    assert newest(state).settings["accumulators"] == ["adds3", "triplet_counts"] and files_with(state, GONE) == []
    run(tmp_path, "a.jsonl", events(3), state, accumulators="adds3, triplet_counts")
    said = engine("forget", "--state", state, "--object", "thing-2", "--drop", "window", status=1).stderr
    assert states(one_line(said), "--drop … adds3, triplet_counts")


def test_a_worker_is_forgotten_with_all_answers(tmp_path):
    stream, state = events(4, quadruplets=False), tmp_path / "s"
    exact = "adds3, adds4, triplet_counts, worker_votes"
    run(tmp_path, "a.jsonl", [*stream, '{"worker": "bob", "anchor": 1}'], state, accumulators=exact)
    said = engine("forget", "--state", state, "--participant", "bob").stdout
    assert " 1 dead letters " in said and files_with(state, "bob") == []
    others = [each for each in stream if isinstance(each, str) or each.get("worker") != "bob"]
    run(tmp_path, "b.jsonl", others, tmp_path / "t", accumulators=exact)
    assert order_free(newest(state)) == order_free(newest(tmp_path / "t"))
    assert summary(state)["forgotten"] == {"objects": 0, "workers": 1}
    engine("verify", "--state", state)
    assert "no worker 'bob'" in one_line(engine("forget", "--state", state, "--worker", "bob", status=1).stderr)


@pytest.mark.parametrize("kept, dropped", [("adds3", "worker_votes"), ("adds3, triplet_counts", "triplet_counts")])
def test_a_participant_is_forgotten_in_the_order_too_where_that_is_counted_no_more(tmp_path, kept, dropped):
    """Also of answers that name nobody, which are in the triplet counts alone."""
    nobody, bob = {"anchor": "a", "near": "b", "far": "c"}, {"anchor": "c", "near": "a", "far": "b", "worker": "bob"}
    run(tmp_path, "a.jsonl", [nobody, bob], tmp_path / "s", accumulators=f"{kept}, worker_votes")
    engine("forget", "--state", tmp_path / "s", "--participant", "bob", "--drop", dropped)
    assert newest(tmp_path / "s").section("partial_order")["kept"].tolist() == [[0, 1, 0, 2]]


def test_a_state_that_is_not_there_is_not_made(tmp_path):
    said = one_line(engine("forget", "--state", tmp_path / "s", "--object", "a", status=1).stderr)
    assert "has no snapshot" in said and not (tmp_path / "s").exists()


def test_a_worker_whose_answers_are_not_known_loses_the_name(tmp_path):
    stream, state = events(5), tmp_path / "s"
    run(tmp_path, "a.jsonl", stream, state, accumulators="adds3, triplet_counts, judgements")
    before = newest(state)
    said = engine("forget", "--state", state, "--worker", "bob").stdout
    assert "--keep-answers" in said and files_with(state, "bob") == [] != files_with(state, "forgotten-1")
    assert newest(state).section("triplet_counts")["n_lo"].tolist() == before.section("triplet_counts")["n_lo"].tolist()
    said = one_line(engine("forget", "--state", state, "--object", "x", "--keep-answers", status=2).stderr)
    assert "--participant" in said
    assert states(one_line(engine("forget", "--state", state, status=2).stderr), "--object … --participant")


def test_a_participant_who_is_excluded_stays_so_without_a_name(tmp_path):
    """Bob's answers are kept, and still not shown."""
    state = tmp_path / "s"
    run(tmp_path, "a.jsonl", events(5, quadruplets=False), state, accumulators="adds3, triplet_counts, worker_votes")
    Store(state).exclude(["bob"])
    shown = Store(state).published().snapshot.counters["comparisons"]
    engine("forget", "--state", state, "--participant", "bob", "--keep-answers")
    assert Store(state).published().snapshot.counters["comparisons"] == shown < newest(state).counters["comparisons"]


def test_a_name_that_only_dead_letters_hold(tmp_path):
    stream, state = events(6, 30), tmp_path / "s"
    run(tmp_path, "a.jsonl", [*stream, '{"anchor": "V\\u00e9lo", "near": 1'], state)
    assert states(engine("forget", "--state", state, "--object", "Vélo").stdout, "0 … 1")
    assert b"u00e9" not in b"".join(path.read_bytes() for path in (state / "dead_letters").iterdir())
    assert "forgotten" not in summary(state) and summary(state)["history"][-1]["did"] == "forget"


def test_the_old_name_of_a_renamed_object_goes_too(tmp_path):
    """Version 0.1.0 could rename an object, and noted both names in the history."""
    state = tmp_path / "s"
    run(tmp_path, "a.jsonl", [each for each in events(7) if GONE not in json.dumps(each)], state)
    store, before = Store(state), newest(state)
    deed = {"did": "rename", "time": "2026-01-01T00:00:00Z", "old": GONE, "new": "thing-3"}
    counters = {**before.counters, "history": [deed]}
    store.publish(before._replace(sequence=before.sequence + 1, counters=counters))
    assert files_with(state, GONE)
    engine("forget", "--state", state, "--object", "thing-3")
    assert files_with(state, "thing-3") == [] == files_with(state, GONE)


def test_after_forgetting_every_page_has_the_number_that_the_export_has(tmp_path):
    run(tmp_path, "all.jsonl", events(3), tmp_path / "s")
    accepted = summary(tmp_path / "s")["guard"]["accepted"]
    engine("forget", "--state", tmp_path / "s", "--object", GONE)
    engine("export", "--state", tmp_path / "s", "--out", tmp_path / "out", "partial_order")
    kept = len(np.load(tmp_path / "out" / "partial_order.npz")["kept"])
    assert 0 < kept < accepted
    assert summary(tmp_path / "s")["order_kept"] == kept
    engine("report", "--state", tmp_path / "s", "--out", tmp_path / "report.html")
    for page in (engine("inspect", "--state", tmp_path / "s").stdout, (tmp_path / "report.html").read_text()):
        assert f"{kept:,} comparisons" in " ".join(page.split()) and "deleted since" in page
