"""`backup` and `restore`, on folders and an object store, and what they refuse. A running engine: see
tests/end_to_end/test_standby.py."""

import json
import random

import pytest
from pyarrow import fs

from connectors.targets import ObjectStore
from stream_engine.state.backup import backup
from stream_engine.state.restored_backup import restore
from stream_engine.state.store import Store
from tests.end_to_end.test_service import stream
from tests.support.process import engine, jsonl, one_line, state_of


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A file of events, some of them refused, and the state of an uninterrupted run over it."""
    folder = tmp_path_factory.mktemp("whole")
    lines = [json.dumps(each) if isinstance(each, dict) else each for each in stream(random.Random(3), 600)]
    lines[::50] = [f'{{"broken {n}' for n in range(len(lines[::50]))]
    file = jsonl(folder / "events.jsonl", lines)
    jsonl(folder / "first.jsonl", lines[:50])
    for source in (folder / "first.jsonl", file):  # a snapshot of each
        engine("run", source, "--state", folder / "one", "--no-refits")
    return file, lines, folder / "one"


def test_what_is_there_already_is_not_copied_again(whole, tmp_path):
    _, _, one = whole
    first = engine("backup", "--state", one, "--to", tmp_path / "copy", "--snapshots", "2").stdout
    files = sorted((tmp_path / "copy" / "files").iterdir())
    assert f"{len(files)} files" in first and len([path for path in files if "snapshots-" in path.name]) == 2
    assert "; 0 files, 0 bytes were copied" in engine("backup", "--state", one, "--to", tmp_path / "copy").stdout
    assert len(list((tmp_path / "copy" / "files").iterdir())) == len(files) - 1  # what no manifest names is removed
    said = one_line(engine("restore", "--from", tmp_path / "copy", "--state", one, status=1).stderr)
    assert "is not empty, it holds" in said


def test_dead_letters_that_are_elsewhere_have_to_be_named(whole, tmp_path):
    file, _, one = whole
    engine("run", file, "--state", tmp_path / "s", "--no-refits", "--dead-letters", tmp_path / "refused")
    said = one_line(engine("backup", "--state", tmp_path / "s", "--to", tmp_path / "copy", status=1).stderr)
    assert "the snapshot relies on" in said and "--dead-letters" in said
    assert "no manifest" in one_line(
        engine("restore", "--from", tmp_path / "copy", "--state", tmp_path / "b", status=1).stderr
    )
    named = ("--dead-letters", tmp_path / "refused")
    engine("backup", "--state", tmp_path / "s", "--to", tmp_path / "copy", *named)
    engine("restore", "--from", tmp_path / "copy", "--state", tmp_path / "b")
    copied, refused = (folder / "000001.jsonl" for folder in (tmp_path / "b" / "dead_letters", tmp_path / "refused"))
    assert copied.read_bytes() == refused.read_bytes() != b""


def test_an_object_store(whole, tmp_path):
    """pyarrow's interface for s3, gs and abfs, over its file system in memory."""
    _, _, one = whole
    target = ObjectStore(fs._MockFileSystem(), "bucket/copies")
    before = backup(Store(one), target, "mock", 2)
    again = backup(Store(one), target, "mock", 2)
    assert before.files == len(before.manifest.files) and again.files == again.bytes == 0
    restore(target, "mock", tmp_path / "b")
    assert state_of(tmp_path / "b") == state_of(one)
    assert not [name for name in target.sizes("files") if name.endswith(".new")]


@pytest.mark.parametrize(
    "target, status, said",
    [
        ("s4://bucket/x", 2, "unknown scheme 's4'; name a folder, s3://"),
        ("fsspec+nothing://x", 2, "fsspec"),
        ("-", 2, "no folder"),
        ("/dev/null", 2, "no folder"),
        ("/proc/nothing", 1, "/proc/nothing"),
    ],
)
def test_targets_that_are_none(whole, tmp_path, target, status, said):
    assert said in one_line(engine("backup", "--state", whole[2], "--to", target, status=status).stderr)
    assert not (tmp_path / "b").exists()


def test_states_and_copies_that_are_none(whole, tmp_path):
    _, _, one = whole
    nothing = engine("backup", "--state", tmp_path / "none", "--to", tmp_path / "copy", status=1)
    assert "no whole snapshot there to back up" in one_line(nothing.stderr)
    other = jsonl(tmp_path / "other.jsonl", [{"anchor": "a", "near": "b", "far": "c"}])
    engine("run", other, "--state", tmp_path / "s", "--no-refits")
    engine("backup", "--state", one, "--to", tmp_path / "copy")
    said = one_line(engine("backup", "--state", tmp_path / "s", "--to", tmp_path / "copy", status=1).stderr)
    assert "holds snapshot" in said and "name another --to" in said
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "restoring").write_text("")
    said = one_line(engine("run", other, "--state", tmp_path / "b", status=1).stderr)
    assert "a restore did not end there; run `stream-engine restore` again" in said
    engine("restore", "--from", tmp_path / "copy", "--state", tmp_path / "b")
    assert state_of(tmp_path / "b") == state_of(one)
