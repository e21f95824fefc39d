"""Dead letters as an operator meets them: listed, shown, read again, lost, limited."""

import json
import os
import shutil
from collections import namedtuple
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from connectors import DeadLetter
from connectors.files.dead_letter_sink import DeadLetterFile
from stream_engine.service import disk_room
from stream_engine.service.disk_room import DiskRoom
from stream_engine.service.letters_kept import DAY, LettersKept
from stream_engine.service.metrics import Metrics
from stream_engine.state.engine import Engine
from stream_engine.state.store import Lock, Store
from tests.service.test_prediction_monitor import Lines
from tests.support.dead_letter_world import meaning
from tests.support.process import engine, jsonl, one_line, summary

RUN = ("--no-refits", "--max-reject-ratio", "1")
GOOD = {"anchor": "a", "near": "b", "far": "c"}
MAPPED = ("--columns", "anchor=anchor2,near=near,far=far")


@pytest.fixture
def inputs(tmp_path) -> list[Path]:
    """A file of each kind in which the first name of some events stands in another column."""
    rows = [{"anchor2": f"x{i}", "near": "b", "far": f"c{i}"} for i in range(4)]
    csv = tmp_path / "e.csv"
    csv.write_text('anchor,anchor2,near,far\n,"x, 1",b,c\n,x2,"b\n2",c\n')
    table = pa.Table.from_pylist([{"anchor": None, **row} for row in rows])
    parquet.write_table(table, tmp_path / "e.parquet")
    return [jsonl(tmp_path / "e.jsonl", [*rows, "{bad", {**rows[0], "near": "c0"}]), csv, tmp_path / "e.parquet"]


def listed(state) -> dict:
    return json.loads(engine("dead-letters", "--state", state, "list", "--json").stdout)


def test_letters_of_every_kind_of_file_are_read_again(inputs, tmp_path):
    state, right = tmp_path / "s", tmp_path / "right"
    engine("run", *inputs, "--state", state, *RUN)
    contents = listed(state)
    reasons = [(group["reason"], Path(group["partition"]).name, group["letters"]) for group in contents["groups"]]
    assert contents["letters"] == 12 and ("missing_field", "e.parquet", 4) in reasons
    assert ("empty_name", "e.csv", 2) in reasons and ("not_parseable", "e.jsonl", 1) in reasons
    shown = engine("dead-letters", "show", "--state", state, "--reason", "empty_name", "--limit", 1).stdout
    assert shown.startswith(f"{inputs[1]} line 2  empty_name: anchor is empty") and ',"x, 1",b,c' in shown
    tried = engine("dead-letters", "--state", state, "replay", *MAPPED, "--dry-run").stdout
    assert "12 letters read again: 10 are right now, 10 events would be counted" in tried
    assert Store(state).sequences() == [1]
    done = engine("dead-letters", "--state", state, "replay", *MAPPED).stdout
    assert "10 events counted" in done and "1  refused again: not_distinct" in done and "snapshot 2" in done
    engine("run", *inputs, "--state", right, *RUN, *MAPPED)
    assert meaning(Store(state).named("latest")) == meaning(Store(right).named("latest"))
    assert "nothing changed" in engine("dead-letters", "--state", state, "replay", *MAPPED).stdout
    assert {group["reason"]: group["letters"] for group in listed(state)["groups"]} == summary(state)["rejected"]
    engine("run", *inputs, "--state", state, *RUN)  # goes on where it was
    assert summary(state)["history"][0]["did"] == "replay"


def test_what_was_read_again_stays_so_when_letters_are_forgotten(tmp_path):
    """Places among the letters move where some go: those after them are read once, what comes later is read too."""
    rows = [{"anchor2": f"x{i}", "near": "b", "far": f"c{i}"} for i in range(8)]
    first, later = jsonl(tmp_path / "a.jsonl", rows[:4]), jsonl(tmp_path / "b.jsonl", rows[4:])
    state = tmp_path / "s"
    engine("run", first, "--state", state, *RUN)
    assert "4 events counted" in engine("dead-letters", "--state", state, "replay", *MAPPED).stdout
    assert "1 dead letter" in engine("forget", "--state", state, "--object", "c0").stdout
    assert "nothing changed" in engine("dead-letters", "--state", state, "replay", *MAPPED).stdout
    engine("run", first, later, "--state", state, *RUN)
    assert "4 events counted" in engine("dead-letters", "--state", state, "replay", *MAPPED).stdout
    assert "nothing changed" in engine("dead-letters", "--state", state, "replay", *MAPPED).stdout
    assert summary(state)["comparisons"] == 7 and summary(state)["objects"] == 16


def test_a_header_that_is_gone_can_be_said(inputs, tmp_path):
    csv, state = inputs[1], tmp_path / "s"
    engine("run", csv, "--state", state, *RUN)
    csv.write_text("another,file\n")
    done = engine("dead-letters", "--state", state, "replay", *MAPPED).stdout
    assert "0 are right now" in done and "was replaced or cut" in done and "--header" in done
    done = engine("dead-letters", "--state", state, "replay", *MAPPED, "--header", "anchor,anchor2,near,far").stdout
    assert "2 are right now" in done and listed(state)["letters"] == 0


def test_letters_that_are_not_whole_stay(tmp_path):
    csv, state = tmp_path / "e.csv", tmp_path / "s"
    csv.write_text("anchor,near,far\na,b,c\nd,e,f")
    engine("run", csv, "--state", state, *RUN)
    with csv.open("a") as more:
        more.write("ar,a,way\n")  # the rest of a line whose beginning was read; three fields, too
    engine("run", csv, "--state", state, *RUN)
    done = engine("dead-letters", "--state", state, "replay").stdout
    assert "1  not tried: their bytes are not whole" in done and "0 events counted" in done
    assert listed(state)["letters"] == 1


def test_what_cannot_be_done_is_said_in_one_line(inputs, tmp_path):
    state = tmp_path / "s"
    gone = engine("dead-letters", "--state", tmp_path / "none", "list", status=1)
    assert "no snapshot there" in one_line(gone.stderr) and not (tmp_path / "none").exists()
    assert "--state" in one_line(engine("dead-letters", "list", status=2).stderr)
    engine("run", inputs[0], "--state", state, *RUN)
    lock = Lock(state)
    assert "in use by process" in one_line(engine("dead-letters", "--state", state, "replay", status=1).stderr)
    lock.release()
    assert "no field of an event" in one_line(
        engine("dead-letters", "--state", state, "replay", "--columns", "nonsense=x", status=2).stderr
    )
    topic = engine("dead-letters", "--state", state, "--dead-letters", "kafka://h:1/t", "list", status=2)
    assert "expected a folder" in one_line(topic.stderr)


def test_a_lost_folder_is_counted_when_that_is_accepted(inputs, tmp_path):
    state = tmp_path / "s"
    engine("run", inputs[0], "--state", state, *RUN)
    assert sum(summary(state)["rejected"].values()) == 6
    shutil.rmtree(state / "dead_letters")
    run = ("run", jsonl(tmp_path / "more.jsonl", [GOOD, {"near": "x"}]), "--state", state, *RUN)
    refused = one_line(engine(*run, status=2).stderr)
    assert "dead letters are lost" in refused and "--accept-lost-dead-letters" in refused
    engine(*run, "--accept-lost-dead-letters")
    found = summary(state)
    assert found["dead_letters_lost"] == 6 and found["events"] == 1 and sum(found["rejected"].values()) == 7
    (deed,) = found["history"]
    assert (deed["did"], deed["letters"]) == ("dead letters lost", 6) and "000001.jsonl" in deed["problem"]
    assert (listed(state)["letters"], listed(state)["lost"]) == (1, 6)
    engine(*run)  # it has been accepted
    segment = state / "dead_letters" / "000002.jsonl"
    segment.write_bytes(segment.read_bytes()[:-5])  # cut, and nothing else to read
    engine(*run, "--accept-lost-dead-letters")
    assert summary(state)["dead_letters_lost"] == 7 and len(summary(state)["history"]) == 2
    assert segment.read_bytes() == b"" and engine("verify", "--state", state).returncode == 0
    metrics = Metrics()
    metrics.follow(Engine.restore(Store(state).named("latest")).counters)
    assert metrics.registry.get_sample_value("stream_engine_dead_letters_lost_total") == 7


def test_limits_are_said_and_kept(tmp_path):
    state, settings = tmp_path / "s", tmp_path / "e.toml"
    settings.write_text('dead_letters_keep_bytes = 1\ndead_letters_keep_days = 30\n[log]\nformat = "json"\n')
    events = jsonl(tmp_path / "e.jsonl", ["{bad"])
    said = engine("run", events, "--state", state, "--config", settings, *RUN).stderr
    (told,) = (json.loads(line) for line in said.splitlines() if '"dead letters"' in line)
    assert (told["keep_bytes"], told["keep_days"]) == (1, 30.0) and told["folder"] == str(state / "dead_letters")
    assert listed(state)["letters"] == 1  # the segment that is written stays


def letter(i: int) -> DeadLetter:
    return DeadLetter("f", i, 0, "not_parseable", "no", b"x")


def test_letters_that_are_too_old_go_with_their_segment(tmp_path):
    now = [1_000_000_000.0]
    store, live, log = Store(tmp_path), Engine(), Lines()
    sink = DeadLetterFile(tmp_path / "d")
    kept = LettersKept(tmp_path / "d", store, (0, 7), 1, Metrics(), log, lambda: now[0])
    for day in range(12):
        sink.append([letter(day)])
        live.sinks["file"] = sink.flush()
        for segment in (tmp_path / "d").iterdir():
            if segment.stat().st_mtime > 1_100_000_000:
                os.utime(segment, (now[0], now[0]))
        kept.decide(sink, live.sinks, live.counters["dead_letters"])
        snapshot, _ = store.publish(live.snapshot())
        store.prune(1)
        kept.carry_out(snapshot.counters["sinks"])
        now[0] += DAY
    left = sum(path.read_text().count("\n") for path in (tmp_path / "d").iterdir())
    assert 7 <= left <= 10 and live.counters["dead_letters"]["removed"] == 12 - left
    assert len([event for _, event, _ in log.said if "over their limits" in event]) >= 1


def test_too_little_room_for_snapshots_is_said_once(tmp_path, monkeypatch):
    store, log, metrics = Store(tmp_path), Lines(), Metrics()
    size = store.publish(Engine().snapshot())[1]
    room, free = DiskRoom(store, 3, metrics, log), namedtuple("Usage", "free")
    for bytes_free in (3 * size, 3 * size - 1, 3 * size - 1, 3 * size):
        monkeypatch.setattr(disk_room.shutil, "disk_usage", lambda _, n=bytes_free: free(n))
        room.look()
    assert [(level, more["needed"]) for level, _, more in log.said] == [("warning", 4 * size), ("info", 4 * size)]
    assert metrics.registry.get_sample_value("stream_engine_disk_needed_bytes") == 4 * size
