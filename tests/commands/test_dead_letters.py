"""Dead letters as an operator meets them: listed, shown, read again, lost, limited."""

import json
import re
import shutil
from collections import namedtuple
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from connectors import DeadLetter
from connectors.files.dead_letters import DeadLetterFile
from stream_engine.commands import dead_letters
from stream_engine.service import disk_room
from stream_engine.service.disk_room import DiskRoom
from stream_engine.service.metrics import Metrics
from stream_engine.state.engine import Engine
from stream_engine.state.store import Lock, Store
from tests.support.facts import states
from tests.support.process import engine, jsonl, one_line, process, summary
from tests.support.served import Lines

RUN = ("--no-refits", "--max-reject-ratio", "1")
GOOD = {"anchor": "a", "near": "b", "far": "c"}
MAPPED = ("--columns", "anchor=zz,near=near,far=far")


@pytest.fixture
def inputs(tmp_path) -> list[Path]:
    """A file of each kind in which the first name of some events stands in another column."""
    rows = [{"zz": f"x{i}", "near": "b", "far": f"c{i}"} for i in range(4)]
    csv = tmp_path / "e.csv"
    csv.write_text('anchor,zz,near,far\n,"x, 1",b,c\n,x2,"b\n2",c\n')
    table = pa.Table.from_pylist([{"anchor": None, **row} for row in rows])
    parquet.write_table(table, tmp_path / "e.parquet")
    return [jsonl(tmp_path / "e.jsonl", [*rows, "{bad", {**rows[0], "near": "c0"}]), csv, tmp_path / "e.parquet"]


def listed(state) -> dict:
    return json.loads(engine("dead-letters", "list", "--state", state, "--json").stdout)


def test_letters_of_every_kind_of_file_are_listed_and_shown(inputs, tmp_path):
    state = tmp_path / "s"
    engine("run", *inputs, "--state", state, *RUN)
    contents = listed(state)
    reasons = [(group["reason"], Path(group["partition"]).name, group["letters"]) for group in contents["groups"]]
    assert contents["letters"] == 12 and ("missing_field", "e.parquet", 4) in reasons
    firsts = {(group["reason"], Path(group["partition"]).name): group["first"] for group in contents["groups"]}
    assert json.loads(firsts["missing_field", "e.parquet"]["value"])["far"] == "c0"  # of c0 to c3
    assert (firsts["missing_field", "e.jsonl"]["line"], firsts["empty_name", "e.csv"]["line"]) == (1, 2)
    assert ("empty_name", "e.csv", 2) in reasons and ("not_parseable", "e.jsonl", 1) in reasons
    assert "--limit" in one_line(engine("dead-letters", "show", "--state", state, "--limit", -1, status=2).stderr)
    shown = engine("dead-letters", "show", "--state", state, "--reason", "empty_name", "--limit", 1).stdout
    assert states(shown, f'{inputs[1]} … 2 … empty_name … anchor … ,"x, 1",b,c')
    engine("verify", "--state", state)


def raw(state, *more) -> str:
    return process("dead-letters", "show", "--raw", "--state", state, *more).stdout


def test_raw_events_are_all_written_and_a_table_has_the_first_twenty(tmp_path):
    bad = [f"{{bad {n}" for n in range(25)]
    engine("run", jsonl(tmp_path / "e.jsonl", [GOOD, *bad]), "--state", tmp_path / "s", *RUN)
    assert raw(tmp_path / "s").splitlines() == bad
    assert raw(tmp_path / "s", "--limit", 3).splitlines() == bad[:3]
    assert engine("dead-letters", "show", "--state", tmp_path / "s").stdout.count("{bad") == 20


def test_refused_events_are_counted_once_however_often_they_are_read_again(tmp_path):
    """As the runbook says: into a file, which a run reads to its end once."""
    events = jsonl(tmp_path / "e.jsonl", [GOOD, "{bad", {**GOOD, "far": "b"}])
    state, again = tmp_path / "s", tmp_path / "again.jsonl"
    engine("run", events, "--state", state, *RUN)
    assert raw(state).splitlines() == ["{bad", json.dumps({**GOOD, "far": "b"})]
    # the cause is mended: other options, in a state of their own, and one sum of both
    mended = ("--columns", "far=zz")
    rows = [{**GOOD, "zz": "x"}, {"anchor": "a", "near": "b", "zz": "y"}]
    other = jsonl(tmp_path / "o.jsonl", [GOOD, *rows[1:]])
    engine("run", other, "--state", tmp_path / "t", *RUN)
    again.write_text(raw(tmp_path / "t"))
    for _ in range(2):
        engine("run", again, "--state", tmp_path / "u", *RUN, *mended)
        assert summary(tmp_path / "u")["comparisons"] == 1
    engine("merge", tmp_path / "t", tmp_path / "u", "--out", tmp_path / "sum")
    assert summary(tmp_path / "sum")["comparisons"] == 2
    # the same options: the file made anew begins as before, and only what came later is read
    again.write_text(raw(state))
    engine("run", again, "--state", state, *RUN)
    assert summary(state)["comparisons"] == 1 and listed(state)["letters"] == 4
    with events.open("a") as more:
        more.write("{bad too\n")
    engine("run", events, "--state", state, *RUN)
    again.write_text(raw(state))
    engine("run", again, "--state", state, *RUN)
    assert summary(state)["rejected"] == {"not_distinct": 3, "not_parseable": 5}  # 3 in events, 2 in again, 3 new there


def test_refused_events_are_piped_into_a_run(tmp_path):
    state = tmp_path / "s"
    engine("run", jsonl(tmp_path / "e.jsonl", [{"zz": "x\n", "near": "b", "far": "c"}]), "--state", state, *RUN)
    (state / "dead_letters" / "000002.jsonl").write_text("behind the position")
    letters = raw(state)
    done = process("run", "-", "--state", tmp_path / "t", *RUN, "--columns", "anchor=zz", stdin=letters.encode())
    assert done.returncode == 0 and summary(tmp_path / "t")["comparisons"] == 1


def test_rows_of_csv_are_read_again_below_their_header(inputs, tmp_path):
    state, again = tmp_path / "s", tmp_path / "again.csv"
    engine("run", *inputs, "--state", state, *RUN)
    again.write_text(raw(state, "--partition", inputs[1]))
    assert again.read_text().startswith("anchor,zz,near,far\n")
    engine("run", again, "--state", tmp_path / "t", *RUN, *MAPPED)
    assert summary(tmp_path / "t")["comparisons"] == 2 and summary(tmp_path / "t")["objects"] == 5


def test_a_part_of_an_event_and_a_damaged_line_are_not_read_again(tmp_path):
    csv, state = tmp_path / "e.csv", tmp_path / "s"
    csv.write_text("anchor,near,far\na,b,c\na,a,b\nb,b,a\nd,e,f")
    engine("run", csv, "--state", state, *RUN)
    with csv.open("a") as more:
        more.write("ar,a,way\n")  # the rest of a line whose beginning was read; three fields, too
    engine("run", csv, "--state", state, *RUN)
    segment = state / "dead_letters" / "000001.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b"a,a,b", b"a,c,b"))
    done = process("dead-letters", "show", "--raw", "--state", state)
    assert done.stdout == "anchor,near,far\nb,b,a\n" and len(done.stderr.splitlines()) == 2
    assert "1 skipped: damaged" in done.stderr and "1" in done.stderr
    assert listed(state)["damaged"] == 1
    found = engine("verify", "--state", state, status=1)
    assert states(found.stdout, "000001.jsonl … 1")


def test_what_cannot_be_done_is_said_in_one_line(tmp_path):
    gone = engine("dead-letters", "list", "--state", tmp_path / "none", status=1)
    assert "snapshot" in one_line(gone.stderr) and not (tmp_path / "none").exists()
    assert "--state" in one_line(engine("dead-letters", "list", status=2).stderr)


def test_a_lost_folder_is_counted_and_ends_nothing(inputs, tmp_path):
    state = tmp_path / "s"
    engine("run", inputs[0], "--state", state, *RUN)
    assert sum(summary(state)["rejected"].values()) == 6
    shutil.rmtree(state / "dead_letters")
    run = ("run", jsonl(tmp_path / "more.jsonl", [GOOD, {"near": "x"}]), "--state", state, *RUN)
    assert "000001.jsonl" in engine(*run).stderr
    found = summary(state)
    assert found["dead_letters_lost"] == 6
    assert found["events"] == 1
    assert sum(found["rejected"].values()) == 7
    (deed,) = found["history"]
    assert (deed["did"], deed["letters"]) == ("dead letters lost", 6) and "000001.jsonl" in deed["problem"]
    assert (listed(state)["letters"], listed(state)["lost"]) == (1, 6)
    assert "000001.jsonl" not in engine(*run).stderr  # once
    segment = state / "dead_letters" / "000002.jsonl"
    segment.write_bytes(segment.read_bytes()[:-5])  # cut, and nothing else to read
    engine(*run)
    assert summary(state)["dead_letters_lost"] == 7 and len(summary(state)["history"]) == 2
    assert segment.read_bytes() == b"" and engine("verify", "--state", state).returncode == 0


def test_the_limit_is_said_and_kept(tmp_path):
    state, settings = tmp_path / "s", tmp_path / "e.toml"
    settings.write_text('dead_letters_keep_bytes = 20000\n[snapshot]\nevery = 1\n[log]\nformat = "json"\n')
    events = jsonl(tmp_path / "e.jsonl", ["{bad", GOOD] * 400)
    said = engine("run", events, "--state", state, "--config", settings, *RUN).stderr
    (told,) = (json.loads(line) for line in said.splitlines() if '"dead letters"' in line)
    assert told["keep_bytes"] == 20_000 and told["folder"] == str(state / "dead_letters")
    contents = listed(state)
    assert contents["removed"] > 0 and contents["letters"] + contents["removed"] == 400
    assert sum(path.stat().st_size for path in (state / "dead_letters").iterdir()) <= 20_000 + 6000
    assert said.count("removed_in_total") == 1
    last = said.splitlines()[-1]
    assert f"{contents['removed']:,} are removed" in last and f"{contents['letters']:,} in {state}" in last
    engine("verify", "--state", state)


def test_while_a_run_is_at_work_newer_letters_are_said_to_come(inputs, tmp_path):
    state = tmp_path / "s"
    engine("run", inputs[1], "--state", state, *RUN)
    before = engine("dead-letters", "list", "--state", state).stdout.splitlines()[0]
    lock = Lock(state)
    try:
        assert listed(state)["in_use"]
        said = engine("dead-letters", "list", "--state", state).stdout.splitlines()[0]
    finally:
        lock.release()
    assert said.startswith(before) and "next snapshot" in said.removeprefix(before)
    assert not listed(state)["in_use"]


def test_too_little_room_for_snapshots_is_said_once(tmp_path, monkeypatch):
    store, log, metrics = Store(tmp_path), Lines(), Metrics()
    size = store.publish(Engine().snapshot())[1]
    room, free = DiskRoom(store, 3, metrics, log), namedtuple("Usage", "free")
    for bytes_free in (3 * size, 3 * size - 1, 3 * size - 1, 3 * size):
        monkeypatch.setattr(disk_room.shutil, "disk_usage", lambda _, n=bytes_free: free(n))
        room.look()
    assert [(level, more["needed"]) for level, _, more in log.said] == [("warning", 4 * size), ("info", 4 * size)]
    assert metrics.registry.get_sample_value("stream_engine_disk_needed_bytes") == 4 * size


def test_each_number_of_the_table_stands_in_its_line():
    first = {"offset": 4, "line": None, "message": "why", "value": "x"}
    contents = {
        "letters": 90,
        "folder": "F",
        "snapshot": 3,
        "in_use": False,
        "damaged": 5,
        "removed": 6,
        "removed_bytes": 700,
        "forgotten": 12,
        "elsewhere": 11,
        "lost": 8,
    }
    groups = [{"letters": 80, "reason": "not_distinct", "partition": "t/0", "first": first}]
    lines = dead_letters._table(contents | {"groups": groups}).splitlines()
    assert lines[1].split() == ["80", "not_distinct", "t/0"]
    assert [lines[at].split()[0] for at in (-5, -3, -2, -1)] == ["5", "12", "11", "8"]
    assert re.findall(r"\d+", lines[-4]) == ["6", "700"]


def test_a_header_that_cannot_be_read_any_more_is_named(inputs, tmp_path):
    state = tmp_path / "s"
    engine("run", inputs[1], "--state", state, *RUN)
    inputs[1].unlink()
    done = process("dead-letters", "show", "--raw", "--state", state)
    assert done.stdout.startswith(',"x, 1"') and f"header of {inputs[1]}" in done.stderr


def test_letters_that_a_run_stored_elsewhere_are_not_said_to_be_none(inputs, tmp_path):
    state = tmp_path / "s"
    engine("run", inputs[1], "--state", state, "--dead-letters", tmp_path / "elsewhere", *RUN)
    assert listed(state)["elsewhere"] == 2
    assert "--dead-letters" in engine("dead-letters", "list", "--state", state).stdout


def test_only_letters_that_no_line_of_the_folder_holds_are_elsewhere(tmp_path):
    """Of nine, five are in the folder, two of these damaged, and one was removed."""
    file = DeadLetterFile(tmp_path)
    file.append([DeadLetter("t/0", at, 0, "not_distinct", "why", b"{}") for at in range(5)])
    counters = {"rejected": {"not_distinct": 9}, "dead_letters": {"removed": 1}, "sinks": {"file": file.flush()}}
    (segment,) = tmp_path.glob("*.jsonl")
    segment.write_bytes(
        segment.read_bytes().replace(b'"offset":1', b'"offset":7').replace(b'"offset":3', b'"offset":8')
    )
    snapshot = Engine().snapshot()
    found = dead_letters.grouped(snapshot._replace(counters={**snapshot.counters, **counters}), tmp_path)
    assert (found["letters"], found["damaged"], found["removed"], found["elsewhere"]) == (3, 2, 1, 3)
    assert [(group["letters"], group["first"]["offset"]) for group in found["groups"]] == [(3, 0)]
