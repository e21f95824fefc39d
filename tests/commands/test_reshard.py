"""`merge --into`: from N states to M, the same sum; whole or not at all."""

import random
import shutil

import pytest

from connectors import DeadLetter, Position
from connectors.disk import Disk
from connectors.files.dead_letters import DeadLetterFile, letters_before
from stream_engine.data.comparisons import Triplet
from stream_engine.service.repair.reshard import old_states, reshard
from stream_engine.state.engine import Engine
from stream_engine.state.store import Lock, Store
from tests.support.event_worlds import stream
from tests.support.facts import states
from tests.support.process import engine, jsonl, one_line, summary

FILES = [f"{name}.jsonl" for name in "abcd"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Two states that have read two partitions of a topic each, four that have read one; `files` has read files."""
    folder, drawn = tmp_path_factory.mktemp("world"), random.Random(3)
    for name in FILES:
        jsonl(folder / name, stream(drawn, 60))
    for state, files in {
        "s0": FILES[0::2],
        "s1": FILES[1::2],
        **{f"one-{k}": [name] for k, name in enumerate(FILES)},
    }.items():
        engine("run", *(folder / name for name in files), "--state", folder / state, "--no-refits")
    shutil.copytree(folder / "s0", folder / "files")
    for state in folder.glob("[so]*"):
        made = Engine.restore(Store(state).latest().snapshot)
        made.positions = {
            f"votes/{FILES.index(name.rpartition('/')[2])}": position for name, position in made.positions.items()
        }
        Store(state).publish(made.snapshot())
    return folder


def counts(state) -> dict:
    known = summary(state)
    return {key: known[key] for key in known if key not in ("history", "snapshot")}


def test_the_sum_stays_the_same(world, tmp_path):
    """Four become two; merged they are what the four are, and their dead letters are all there."""
    said = engine("merge", *(world / f"one-{k}" for k in range(4)), "--into", 2, "--out", tmp_path / "n")
    assert "shard-0" in said.stdout
    new = [tmp_path / "n" / f"shard-{k}" for k in range(2)]
    engine("merge", *new, "--out", tmp_path / "sum")
    engine("merge", *(world / f"one-{k}" for k in range(4)), "--out", tmp_path / "wanted")
    found, wanted = (Store(tmp_path / name).latest().snapshot for name in ("sum", "wanted"))
    assert counts(tmp_path / "sum") == counts(tmp_path / "wanted") and list(found.objects) == list(wanted.objects)
    assert {k: a.tobytes() for k, a in found.arrays.items()} == {k: a.tobytes() for k, a in wanted.arrays.items()}
    letters = [(world / f"one-{k}" / "dead_letters" / "000001.jsonl").read_bytes() for k in range(4)]
    assert (new[0] / "dead_letters" / "000001.jsonl").read_bytes() == b"".join(letters) != b""
    assert summary(new[1])["records"] == 0 and len(summary(new[1])["positions"]) == 2
    assert [deed["did"] for deed in summary(new[1])["history"]] == ["reshard"]
    engine("verify", "--state", new[0])


def test_no_file_is_counted_twice(world, tmp_path):
    """A state that has read files is not divided, since a run on one of the new states may name a file whose position
    another one has."""
    line = one_line(engine("merge", world / "files", "--into", 2, "--out", tmp_path / "n", status=1).stderr)
    assert f"{world / 'files'}: " in line
    assert f"{world / 'a.jsonl'} " in line
    assert "--into 1" in line
    assert not (tmp_path / "n").exists()
    engine("merge", world / "files", "--into", 1, "--out", tmp_path / "n")
    engine("run", world / "a.jsonl", world / "c.jsonl", "--state", tmp_path / "n" / "shard-0", "--no-refits")
    assert counts(tmp_path / "n" / "shard-0") == counts(world / "files")


class Killed(BaseException):
    """Nothing that runs in the process can catch it and go on."""


class Mortal(Disk):
    """The real disk, until the n-th operation that changes or syncs something."""

    def __init__(self, operations: int):
        self.left = operations

    def _operation(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed


def _dying(name):
    def operation(self, *arguments):
        self._operation()
        return getattr(Disk, name)(self, *arguments)

    return operation


for each in ("append", "write_new", "truncate", "fsync", "fsync_dir", "rename", "remove", "mkdir"):
    setattr(Mortal, each, _dying(each))


def test_killed_at_any_disk_operation_the_output_is_whole_or_not_there(world, tmp_path):
    old = old_states([str(world / "s0"), str(world / "s1")])
    killed = 0
    for n in range(0, 1000, 3):
        out = tmp_path / str(n) / "out"
        try:
            reshard(old, 2, out, Mortal(n))
            break
        except Killed:
            killed += 1
        whole = out.exists()
        assert not whole or sorted(each.name for each in out.iterdir()) == ["shard-0", "shard-1"], n
        if not whole:
            reshard(old, 2, out, Disk())
        assert [each.name for each in out.parent.iterdir()] == ["out"]
        made = [Store(out / f"shard-{index}").latest().snapshot for index in range(2)]
        assert sum(snapshot.counters["records"] for snapshot in made) == 240
    assert killed > 8


def of_a_topic(state, numbers, share=None, **counters):
    made = Engine()
    made.learn_many([Triplet("a", "b", f"c{number}") for number in numbers])
    made.positions = {f"votes/{number}": Position(5, 7) for number in numbers}
    made.share = share
    made.lost.update({f"votes/{number}": number for number in numbers if number > 2})
    for did, partition in counters.items():
        made.note(did, partition=partition)
    Store(state).publish(made.snapshot())
    return state


def test_partitions_go_to_the_share_of_their_number(tmp_path):
    of_a_topic(tmp_path / "a", (0, 2, 4), "0/2")
    of_a_topic(tmp_path / "b", (1, 3), "1/2")
    engine("merge", tmp_path / "b", tmp_path / "a", "--into", 3, "--out", tmp_path / "n")
    for k, numbers in enumerate(([0, 3], [1, 4], [2])):
        snapshot = Store(tmp_path / "n" / f"shard-{k}").latest().snapshot
        assert snapshot.positions == {f"votes/{number}": Position(5, 7) for number in numbers}
        assert snapshot.counters["share"] == f"{k}/3"
        assert snapshot.counters.get("lost") == ({"votes/3": 3, "votes/4": 4} if k == 0 else None)
    engine(
        "merge",
        *(tmp_path / "n" / f"shard-{k}" for k in range(3)),
        "--into",
        1,
        "--out",
        tmp_path / "m",
    )
    one = Store(tmp_path / "m" / "shard-0").latest().snapshot
    assert "share" not in one.counters
    assert len(one.positions) == 5
    assert one.counters["triplets"] == 5


def test_letters_that_version_0_1_0_has_replayed_are_left_behind(tmp_path):
    """They were counted; all others stand in the first new state."""
    for name, number, marked in (("a", 0, 2), ("b", 1, 1)):
        letters = [
            DeadLetter(f"votes/{number}", n, n, ("empty_name", "incomplete")[n % 2], "no", b"x") for n in range(3)
        ]
        sink, positions = DeadLetterFile(tmp_path / name / "dead_letters"), []
        for letter in letters:
            sink.append([letter])
            positions.append(sink.flush())
        made = Engine.restore(Store(of_a_topic(tmp_path / name, [number])).latest().snapshot)
        made.sinks = {"file": positions[-1], "replayed": {"empty_name": positions[marked - 1]}}
        Store(tmp_path / name).publish(made.snapshot())
    engine("merge", tmp_path / "a", tmp_path / "b", "--into", 2, "--out", tmp_path / "n")
    sinks = Store(tmp_path / "n" / "shard-0").latest().snapshot.counters["sinks"]
    there = [kept.letter for kept in letters_before(tmp_path / "n" / "shard-0" / "dead_letters", sinks["file"])]
    assert [(each.partition, each.offset) for each in there] == [
        ("votes/0", 1),
        ("votes/0", 2),
        ("votes/1", 1),
        ("votes/1", 2),
    ]
    assert sinks.keys() == {"file"}


def test_what_is_no_whole_set_of_states_is_refused_in_one_line(world, tmp_path):
    a, b = of_a_topic(tmp_path / "a", (0, 2), "0/2"), of_a_topic(tmp_path / "b", (1, 3), "1/2")
    c, d = of_a_topic(tmp_path / "c", (1,), "1/3"), of_a_topic(tmp_path / "d", (0, 2))
    out = ("--into", 2, "--out", tmp_path / "n")
    engine("run", world / "a.jsonl", "--state", tmp_path / "g", "--no-refits", "--guard", "off")
    for merged, said in (
        ((a,), "{} 0/2 … 1/2"),
        ((a, c), "shares"),
        ((a, d), "{}"),
        ((a, tmp_path / "g"), "{}"),
        ((d,), "votes/1 … votes/2"),
        ((tmp_path / "none",), "snapshot"),
    ):
        line = one_line(engine("merge", *merged, *out, status=1).stderr)
        assert states(line, said.format(*merged)), said
    lock = Lock(a)
    assert "process" in one_line(engine("merge", a, b, *out, status=1).stderr)
    lock.release()
    (tmp_path / "n").mkdir()
    (tmp_path / "n" / "mine").write_text("x")
    assert "empty" in one_line(engine("merge", a, b, *out, status=1).stderr)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "b", "c", "d", "g", "n"]


def test_dead_letters_in_folders_elsewhere_come_along(tmp_path):
    letters = tmp_path / "letters"
    events = jsonl(tmp_path / "e.jsonl", [{"anchor": "a", "near": "b", "far": "c"}, {"anchor": "a", "near": "b"}])
    engine("run", events, "--state", tmp_path / "s", "--no-refits", "--dead-letters", letters)
    divided = ("merge", tmp_path / "s", "--into", 1, "--out", tmp_path / "n")
    assert "--dead-letters" in one_line(engine(*divided, status=1).stderr)
    assert "2 folders" in one_line(engine(*divided, *("--dead-letters", letters) * 2, status=2).stderr)
    engine(*divided, "--dead-letters", letters)
    copied = tmp_path / "n" / "shard-0" / "dead_letters" / "000001.jsonl"
    assert copied.read_bytes() == (letters / "000001.jsonl").read_bytes()
