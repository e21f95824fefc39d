"""`seek`: a position moved on purpose is noted for ever, its loss counted, and a recount knows of it."""

from connectors import Position
from stream_engine.data.comparisons import Triplet
from stream_engine.service.repair.seek import Target, seek
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import encode
from stream_engine.state.store import Lock, Store
from tests.support.facts import states
from tests.support.process import engine, one_line, summary
from tests.support.simulated_disk import SimDisk, crash_images


def of_a_topic() -> Engine:
    made = Engine()
    made.learn_many([Triplet("a", "b", "c"), Triplet("b", "c", "a")])
    made.positions = {"votes/0": Position(5, 7), "labels:/l.csv": Position(9, 1), "-": Position(4)}
    return made


def test_a_move_is_told_noted_and_done_once(tmp_path):
    Store(tmp_path).publish(of_a_topic().snapshot())
    move = ("seek", "--state", tmp_path, "--from", 5, "votes/0", "+2")
    assert states(engine(*move).stdout, "5 … 7 … 2 records")
    assert " moved from " not in engine(*move).stdout  # nobody knew whether the first was done
    found = summary(tmp_path)
    [deed] = found["history"]
    assert found["lost"] == {"votes/0": 2} and deed.pop("time")
    assert deed == {"did": "seek", "partition": "votes/0", "at": 5, "to": 7, "records": 2}
    assert "2 records" in engine("seek", "--state", tmp_path, "--count-again", "votes/0", 5).stdout
    assert summary(tmp_path)["positions"]["votes/0"] == 5 and summary(tmp_path)["lost"] == {"votes/0": 2}
    engine("seek", "--state", tmp_path, "votes/0", "+3")
    assert summary(tmp_path)["lost"] == {"votes/0": 5}, "what was lost before stays lost"


def test_what_cannot_be_moved_is_one_line(tmp_path):
    Store(tmp_path).publish(of_a_topic().snapshot())
    for arguments, said in (
        (("votes/1", "3"), "votes/1 … votes/0"),
        (("labels:/l.csv", "3"), "labels:/l.csv … votes/0"),
        (("votes/0", str(2**63)), "0"),
        (("votes/0", "3"), "2 records"),
    ):
        assert states(one_line(engine("seek", "--state", tmp_path, *arguments, status=2).stderr), said)
    assert "0 records" in one_line(engine("seek", "--state", tmp_path, "votes/0", "+0", status=2).stderr)
    said = one_line(engine("seek", "--state", tmp_path, "--from", "2", "votes/0", "+1", status=2).stderr)
    assert states(said, "votes/0 … 5 … 2")
    lock = Lock(tmp_path)
    said = one_line(engine("forget", "--state", tmp_path, "--object", "a", status=1).stderr)
    assert "in use by process" in said and said.endswith("; stop that run first")
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
