"""`seek`: a position moved on purpose is noted for ever, its loss counted, and a recount knows of it."""

import gzip
import re

import pyarrow as pa
import pytest
from pyarrow import parquet

from connectors import Position
from stream_engine.data.comparisons import Triplet
from stream_engine.service.repair.seek import CannotMove, Target, find, seek
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import encode
from stream_engine.state.store import Lock, Store
from tests.support.facts import states
from tests.support.process import engine, jsonl, one_line, summary
from tests.support.simulated_disk import SimDisk, crash_images

EVENTS = [{"anchor": a, "near": b, "far": c} for a, b, c in ("abc", "bca", "cab", "dab", "acd", "bdc")]

NOT_COUNTED = ("snapshot", "positions", "history", "lost", "progressive")


def counts(state) -> dict:
    """What the state knows, without where it was read and what was done to it."""
    return {key: value for key, value in summary(state).items() if key not in NOT_COUNTED}


def run(source, state):
    engine("run", source, "--state", state, "--no-refits")


def test_a_poison_line_is_passed_over_and_the_rest_is_as_if_it_had_never_been_there(tmp_path):
    """The recipe: find where the state stands, pass over what it must not read, run on."""
    source, state = jsonl(tmp_path / "a.jsonl", EVENTS[:2]), tmp_path / "s"
    run(source, state)
    at = source.stat().st_size
    jsonl(source, EVENTS)
    said = engine("seek", "--state", state, "--from", at, source, "+2").stdout
    assert states(said, f"{at} … {at * 2} … 2 … 2 ")
    again = engine(
        "seek", "--state", state, "--from", at, source, "+2"
    ).stdout  # nobody knew whether the first was done
    assert " moved from " not in again
    run(source, state)
    without = jsonl(tmp_path / "without.jsonl", EVENTS[:2] + EVENTS[4:])
    run(without, tmp_path / "t")
    assert counts(state) == counts(tmp_path / "t")
    found = summary(state)
    assert found["lost"] == {str(source): 2}
    [deed] = found["history"]
    assert deed["time"] and {key: deed[key] for key in ("did", "partition", "at", "to", "records")} == {
        "did": "seek",
        "partition": str(source),
        "at": at,
        "to": 2 * at,
        "records": 2,
    }
    assert "  did=seek  partition=" in engine("inspect", "--state", state).stdout
    assert "WRONG" not in engine("verify", "--state", state, source).stdout


def test_going_back_counts_again_only_if_that_is_said(tmp_path):
    source, state = jsonl(tmp_path / "a.jsonl", EVENTS), tmp_path / "s"
    run(source, state)
    line = source.stat().st_size // 6
    said = one_line(engine("seek", "--state", state, source, 2 * line, status=2).stderr)
    assert states(said, "4 records … --count-again")
    assert summary(state)["snapshot"] == 1
    said = engine("seek", "--state", state, "--count-again", source, 2 * line).stdout
    assert "4 records" in said
    run(source, state)
    twice = jsonl(tmp_path / "twice.jsonl", EVENTS + EVENTS[2:])
    run(twice, tmp_path / "t")
    assert counts(state) == counts(tmp_path / "t") and "lost" not in summary(state)
    assert re.search(" 10 ", engine("verify", "--state", state, source).stdout, re.M)


def places(path, now, *targets, format=None):
    found = []
    for target in targets:
        try:
            position, between = find(str(path), now, Target(target, format=format))
            found.append((position.offset, between))
        except CannotMove:
            found.append(None)
    return found


CSV = b'\xef\xbb\xbfanchor,near,far\n\na,"b\nb",c\nb,c,a\nc,a,b'  # a mark, a blank line, a newline inside


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_in_text_a_position_stands_behind_whole_records_only(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(CSV) if name.endswith("gz") else CSV)
    ends = [CSV.index(b"\na,") + 1, CSV.index(b"b,c,a"), CSV.index(b"c,a,b"), len(CSV)]
    start = Position(0)
    assert places(path, start, *ends) == [(ends[0], 0), (ends[1], 1), (ends[2], 2), (ends[3], 3)]
    assert places(path, start, 5, ends[1] - 4, ends[3] + 1) == [None, None, None]
    now = find(str(path), start, Target(ends[2]))[0]
    assert places(path, now, *ends, ends[1] + 1, 0) == [
        (ends[0], 2),
        (ends[1], 1),
        (ends[2], 0),
        (ends[3], 1),
        None,
        (0, 2),
    ]
    assert find(str(path), start, Target(2, relative=True)) == (now, 2)
    with pytest.raises(CannotMove, match="4 records.*3"):
        find(str(path), start, Target(4, relative=True))


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_in_tables_rows_are_counted(tmp_path, name):
    table, path, state = pa.Table.from_pylist(EVENTS), tmp_path / name, tmp_path / "s"
    if name == "a.parquet":
        parquet.write_table(table.slice(0, 4), path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table.slice(0, 4), max_chunksize=2)
    run(path, state)
    engine("seek", "--state", state, "--count-again", path, "1")
    assert "7" in one_line(engine("seek", "--state", state, path, "7", status=2).stderr)
    engine("seek", "--state", state, path, "+2")
    run(path, state)
    assert summary(state)["records"] == 5 and summary(state)["lost"] == {str(path): 2}
    assert re.search(" 5 ", engine("verify", "--state", state, path).stdout, re.M)


def of_a_topic() -> Engine:
    made = Engine()
    made.learn_many([Triplet("a", "b", "c"), Triplet("b", "c", "a")])
    made.positions = {"votes/0": Position(5, 7), "labels:/l.csv": Position(9, 1), "-": Position(4)}
    return made


def test_what_cannot_be_moved_is_one_line(tmp_path):
    Store(tmp_path).publish(of_a_topic().snapshot())
    for arguments, said in (
        (("votes/1", "3"), "votes/1 … labels:/l.csv, votes/0"),
        (("labels:/l.csv", "3"), "position"),
        (("votes/0", str(2**63)), "0"),
        (("votes/0", "3"), "2 records"),
    ):
        assert states(one_line(engine("seek", "--state", tmp_path, *arguments, status=2).stderr), said)
    assert "0 records" in one_line(engine("seek", "--state", tmp_path, "votes/0", "+0", status=2).stderr)
    said = one_line(engine("seek", "--state", tmp_path, "--from", "2", "votes/0", "+1", status=2).stderr)
    assert states(said, "votes/0 … 5 … 2")
    lock = Lock(tmp_path)
    assert "process" in one_line(engine("seek", "--state", tmp_path, "votes/0", "8", status=1).stderr)
    lock.release()
    assert "snapshot" in one_line(engine("seek", "--state", tmp_path / "no", "votes/0", "8", status=1).stderr)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["lock", "snapshots"]


def test_power_cut_before_every_disk_operation_moves_once_or_not_at_all():
    def skip(disk, promises):
        store = Store("/state", disk)
        promises.append(seek(store, "votes/0", Target(3, relative=True), since=5).sequence)

    def made():
        disk = SimDisk()
        Store("/state", disk).publish(of_a_topic().snapshot())
        return disk.copy()

    undone = encode(of_a_topic().snapshot())[1].digest
    outcomes = set()
    for n, promises, image in crash_images(skip, made):
        store = Store("/state", image)
        found = store.latest().snapshot
        done = found.digest != undone
        outcomes.add(done)
        assert done or not promises, f"operation {n}"
        skip(image, [])
        found = Store("/state", image).latest().snapshot
        assert found.positions["votes/0"] == Position(8, 7) and found.counters["lost"] == {"votes/0": 3}, n
        assert len(found.counters["history"]) == 1, n
    assert outcomes == {False, True}
