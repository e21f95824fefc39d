"""`verify`: finds what is damaged without the sources, and with them every figure that is not theirs."""

import json
import random
import re

import numpy as np
import pyarrow as pa
import pytest
import zstandard
from pyarrow import csv, parquet

from connectors import Record
from stream_engine.commands import verify
from stream_engine.order.pair_rows import canonical
from stream_engine.service.repair.check_state import check_state
from stream_engine.service.repair.recount import Recount
from stream_engine.state.engine import Engine
from stream_engine.state.store import Lock, Store
from tests.support import spark_written
from tests.support.event_worlds import stream
from tests.support.facts import states
from tests.support.process import engine, jsonl, one_line


def lines(seed: int, n: int = 150) -> list:
    return stream(random.Random(seed), n)


@pytest.fixture
def state(tmp_path):
    """A state of one file that has grown since, with its dead letters."""
    events = lines(5)
    source = jsonl(tmp_path / "a.jsonl", events[:100])
    engine("run", source, "--state", tmp_path / "s", "--no-refits")
    jsonl(source, events)
    return tmp_path / "s"


def changed(state, **replaced) -> None:
    """Publish the newest snapshot again with other contents: right checksum, wrong figures."""
    store = Store(state)
    snapshot = store.latest().snapshot
    arrays = {name: np.array(array) for name, array in snapshot.arrays.items()}
    counters = json.loads(json.dumps(snapshot.counters))
    for name, change in replaced.items():
        change(arrays if name == "arrays" else counters)
    store.publish(snapshot._replace(sequence=snapshot.sequence + 1, arrays=arrays, counters=counters))


def test_a_state_is_what_its_source_holds_to_the_last_byte_though_the_source_has_grown(state):
    lock = Lock(state)  # a run is at work
    said = engine("verify", "--state", state, state.parent / "a.jsonl").stdout
    lock.release()
    assert "100 records " in said and "WRONG" not in said


FORMATS = {
    "a.csv": csv.write_csv,
    "a.parquet": lambda table, path: parquet.write_table(table, path, row_group_size=7),
}


@pytest.mark.parametrize("name", ["a.csv", "a.csv.zst", "a.parquet", "a.arrow", "*.jsonl"])
def test_every_kind_of_file_can_be_read_again(tmp_path, name):
    drawn, names = random.Random(7), [f"object-{i}" for i in range(6)]
    triplets = [dict(zip(("anchor", "near", "far"), drawn.sample(names, 3))) for _ in range(60)]
    plain = tmp_path / name.removesuffix(".zst")
    if name == "*.jsonl":
        for part in (0, 1):
            jsonl(tmp_path / f"{part}.jsonl", triplets[part::2])
    else:
        table = pa.Table.from_pylist(triplets)
        if name == "a.arrow":
            with pa.ipc.new_file(plain, table.schema) as writer:
                writer.write_table(table, max_chunksize=7)
        else:
            FORMATS[plain.name](table, plain)
        if name != plain.name:
            data = plain.read_bytes()
            (tmp_path / name).write_bytes(zstandard.compress(data))
    labels = tmp_path / "labels.csv"
    labels.write_text("object,kind\nobject-1,car\nobject-2,van\n")
    more = ("--where", "far=object-3") if name == "a.csv" else ("--labels", labels)
    engine("run", tmp_path / name, "--state", tmp_path / "s", "--no-refits", *more)
    said = engine("verify", "--state", tmp_path / "s", tmp_path / name, *more).stdout
    assert f"{len(triplets) + 2 * ('--labels' in more)} records " in said
    assert ("to the last byte" in said) == (name != "*.jsonl")
    changed(tmp_path / "s", arrays=lambda arrays: arrays["adds3/w"].__imul__(2))
    wrong = engine("verify", "--state", tmp_path / "s", tmp_path / name, *more, status=1).stdout
    assert states(wrong, "adds3 … AddS … triplet_counts") and states(wrong, "WRONG … snapshot 000000000002: adds3")


def test_deltas_can_be_read_again(tmp_path):
    drawn, names = random.Random(7), [f"object-{i}" for i in range(6)]
    batches = []
    for number in range(3):
        values = [json.dumps(dict(zip(("anchor", "near", "far"), drawn.sample(names, 3)))).encode() for _ in range(9)]
        records = [Record(v, "t/0", at, at + 1, unit="message") for at, v in enumerate([*values, b"{"], 10 * number)]
        batches.append([records])
    source = spark_written.source_of(spark_written.deltas(tmp_path / "out", batches[:2]))
    engine("run", source, "--state", tmp_path / "s", "--no-refits")
    said = engine("verify", "--state", tmp_path / "s", source).stdout
    assert re.search("20 ", said)


def count_once_more_nearer(arrays) -> None:
    lo = arrays["triplet_counts/n_lo"]
    lo[0] += 1


def answered_backwards(arrays) -> None:
    kept = arrays["partial_order/kept"]
    (arrays["partial_order/kept"],) = canonical(np.vstack([kept, kept[:1, [2, 3, 0, 1]]]))


WRONG = {
    "adds3": {"arrays": lambda a: a["adds3/w"].__imul__(3)},
    "triplets: [0-9]+.*triplet_counts": {"arrays": count_once_more_nearer},
    "guard: [0-9]+": {"counters": lambda c: c["guard"].update(cycle=c["guard"]["cycle"] + 1)},
    "events: [0-9]+.* [0-9]+": {"counters": lambda c: c.update(events=1)},
    "cycle": {"arrays": answered_backwards},
    "dead letters: [0-9]+.* [0-9]+": {"counters": lambda c: c["rejected"].update(bad_time=1)},
}


@pytest.mark.parametrize("said", WRONG)
def test_sections_that_do_not_agree_are_found_without_the_source(state, said):
    changed(state, **WRONG[said])
    done = engine("verify", "--state", state, status=1)
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("WRONG") and re.search(said, line)]
    assert "000000000002" in line or "dead letters" in line
    assert ": 1 problem" in one_line(done.stderr)


def test_where_a_state_differs_from_its_source_is_said_by_name(state):
    source = state.parent / "a.jsonl"

    def count_once_more(arrays):
        arrays["triplet_counts/n_lo"][3] += 5

    changed(state, arrays=count_once_more, counters=lambda c: c.update(filtered=3))
    said = engine("verify", "--state", state, source, status=1).stdout
    assert "counters: filtered: state 3, sources 0" in said
    (line,) = [line for line in said.splitlines() if "triplet_counts: " in line and "recount" in line]
    assert states(line, "triplet_counts: n_lo: 1 of ")
    source.write_text(source.read_text().replace("object-1", "object-9", 1))
    said = engine("verify", "--state", state, source, status=1)
    assert "snapshot" in one_line(said.stderr)


def test_damage_leftovers_and_what_was_pruned_meanwhile(state):
    store = Store(state)
    engine_again = Engine.restore(store.latest().snapshot)
    store.publish(engine_again.snapshot())
    damaged = store.snapshot_path(2)
    *rest, last = damaged.read_bytes()
    damaged.write_bytes(bytes([*rest, last ^ 1]))  # the last byte of a checksum may be any
    store.snapshot_path(9).symlink_to(state / "gone")
    (state / "snapshots" / ".000000000004.snapshot.99").write_bytes(b"half")
    (state / "progressive.json").write_text("{")
    (state / "notes.txt").write_text("mine")
    segment = state / "dead_letters" / "000001.jsonl"
    segment.write_bytes(b"{}\n" + segment.read_bytes()[3:])
    done = engine("verify", "--state", state, status=1)
    for line in (
        "WRONG  snapshot 000000000002: ",
        "note   snapshots/000000000009.snapshot: ",
        "ok     snapshot 000000000001: ",
        "snapshots/.000000000004.snapshot.99",
        "WRONG  progressive.json",
        "notes.txt",
        "WRONG  dead letters 000001.jsonl: line 1 ",
    ):
        assert states(done.stdout, line), done.stdout
    assert re.search(": [34] problems", one_line(done.stderr))
    segment.write_bytes(b"")
    assert "snapshot" in engine("verify", "--state", state, status=1).stdout


def test_notes_of_version_0_1_0_have_no_checksum_and_are_not_called_wrong(state):
    (state / "progressive.json").write_text('{\n "snapshot": 1,\n "tested": 12\n}\n')
    said = engine("verify", "--state", state).stdout
    assert [line[:6] for line in said.splitlines() if "progressive.json" in line] == ["note  "]
    assert Store(state).noted("progressive") == {}


def test_what_cannot_be_verified_is_one_line(state, tmp_path):
    assert "snapshot" in one_line(engine("verify", "--state", tmp_path / "none", status=1).stderr)
    assert "again" in one_line(engine("verify", "--state", state, "-", status=2).stderr)
    other = jsonl(tmp_path / "other.jsonl", lines(1, 3))
    said = engine("verify", "--state", state, other, status=1).stdout
    assert "a.jsonl" in said and said.count("WRONG") == 1
    assert "expected PARTITION=OFFSET" in one_line(engine("verify", "--state", state, "--from", "x", status=2).stderr)


def test_a_state_that_forgot_names_the_reason_before_it_counts_what_differs(tmp_path):
    rows = [{"anchor": "a", "near": "b", "far": "c", "worker": worker} for worker in ("w1", "w2", "w2")]
    events, state = jsonl(tmp_path / "e.jsonl", rows), tmp_path / "s"
    engine("run", events, "--state", state, "--no-refits")
    engine("forget", "--state", state, "--worker", "w2")
    said = engine("verify", "--state", state, events, status=1).stdout
    assert states(said, "note   recount … forget … WRONG  recount … more") and said.count("WRONG") == 1


def test_the_first_difference_of_a_state_that_was_changed_is_named_and_the_others_are_counted():
    recounted = Recount([], ["events: state 5, sources 7", "n_lo: 1", "n_hi: 2", "kept: 3"], True, False, 7, ["forget"])
    (_, (_, verdict, text)) = verify._findings(recounted, 3)
    assert verdict == "WRONG" and states(text, "events: state 5, sources 7 … 3 more")
    assert re.findall(r"(\d+) more", text) == ["3"]
    (_, alone) = verify._findings(recounted._replace(differing=["n_lo: 1"]), 3)
    assert alone.text == "n_lo: 1"


NOT_COVERED = ("lock",)


def test_random_bit_flips_are_found_in_every_file(tmp_path):
    """500 of them over a whole state directory, each by itself; a file that is not covered is named as such."""
    state, source = tmp_path / "s", jsonl(tmp_path / "a.jsonl", lines(5))
    engine("run", source, "--state", state, "--no-refits")
    engine("refit", "spectral", "--state", state)
    engine("export", "partial_order", "--state", state, "--out", tmp_path / "out")
    Store(state).note("progressive", {"snapshot": 1, "tested": 12, "of": "é"})
    (state / "stray.txt").write_text("abc")
    sound = list(check_state(state))
    assert not [each for each in sound if each.verdict == "WRONG"]
    assert [each.what for each in sound if "not covered" in each.text] == ["lock", "stray.txt"]
    drawn, files = random.Random(3), sorted(path for path in state.rglob("*") if path.is_file())
    names = [str(path.relative_to(state)) for path in files]
    assert {"progressive.json", "artifacts/spectral/seconds.json", "snapshots/000000000001.order"} <= set(names)
    for _ in range(500):
        path = drawn.choice(files)  # the small ones as often as the large
        whole = path.read_bytes()
        at, bit = drawn.randrange(len(whole)), drawn.randrange(8)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :])
        found = [each for each in check_state(state) if each.verdict == "WRONG"]
        path.write_bytes(whole)
        what = str(path.relative_to(state))
        assert found or what in (*NOT_COVERED, "stray.txt"), f"{what}: bit {bit} of byte {at}"
