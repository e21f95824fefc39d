"""`backup`: what it copies and refuses; copying it back restores, and `verify` checks that. A running engine: see
tests/end_to_end/test_service.py."""

import json
import random
import re
import shutil
import subprocess

import pytest

from stream_engine.state.store import Store
from tests.conftest import ROOT
from tests.support.event_worlds import stream
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
    engine("refit", "spectral", "--state", folder / "one")
    (folder / "one" / "study").mkdir()
    (folder / "one" / "study" / "answers.jsonl").write_text("{}\n")
    return file, folder / "one"


def test_a_backup_that_is_copied_back_is_the_state(whole, tmp_path):
    file, one = whole
    said = engine("backup", "--state", one, "--to", tmp_path / "copies").stdout
    (copy,) = (tmp_path / "copies").iterdir()
    assert str(copy) in said
    assert copy.name == "000000000002"
    assert len(list((copy / "snapshots").iterdir())) == 1
    linked, there = (store.snapshot_path(2).stat() for store in (Store(copy), Store(one)))
    assert linked.st_ino == there.st_ino  # on one file system
    assert (copy / "study" / "answers.jsonl").read_text() == "{}\n"
    assert Store(copy).published().seconds == Store(one).published().seconds != {}
    shutil.copytree(copy, tmp_path / "again")
    assert "ok     backup: all " in engine("verify", "--state", tmp_path / "again").stdout
    assert state_of(tmp_path / "again") == state_of(one)
    engine("run", file, "--state", tmp_path / "again", "--no-refits")
    backups = sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "copies").rglob("*"))
    engine("backup", "--state", one, "--to", tmp_path / "copies")  # of the same snapshot: nothing is written again
    assert sorted((path, path.stat().st_mtime_ns) for path in (tmp_path / "copies").rglob("*")) == backups


def test_a_restored_state_that_has_gone_on_is_backed_up_without_the_manifest_of_before(whole, tmp_path):
    file, one = whole
    shutil.copytree(one, tmp_path / "one")
    engine("backup", "--state", tmp_path / "one", "--to", tmp_path / "copies")
    shutil.copytree(tmp_path / "copies" / "000000000002", tmp_path / "again")
    more = jsonl(file.parent / "more.jsonl", ['{"anchor":"a","near":"b","far":"c"}'])
    engine("run", more, "--state", tmp_path / "again", "--no-refits")
    engine("backup", "--state", tmp_path / "again", "--to", tmp_path / "copies")
    assert "ok     backup: all " in engine("verify", "--state", tmp_path / "copies" / "000000000003").stdout


def test_a_second_backup_of_a_snapshot_brings_what_has_come_since(whole, tmp_path):
    state = shutil.copytree(whole[1], tmp_path / "one")
    saved = ["backup", "--state", state, "--to", tmp_path / "copies"]
    engine(*saved)
    engine("refit", "spectral", "--state", state, "--seed", 5)  # in the place of one that is there
    engine("refit", "clusters", "--state", state)
    Store(state).exclude(["ann"])
    engine(*saved)
    (copy,) = (tmp_path / "copies").iterdir()
    assert "ok     backup: all " in engine("verify", "--state", copy).stdout
    found = Store(copy)
    assert found.excluded() == ("ann",) and found.artifact("spectral", 2).seed == 5 and "clusters" in found.kinds()
    assert state_of(copy) == state_of(state)


@pytest.mark.parametrize("page", ["tour.md", "runbook.md", "how-to/recover.md"])
def test_the_pages_restore_one_backup_where_there_are_several(page, tmp_path):
    commands = re.findall(r"^\$ cp -r (\S+) (\w+)", (ROOT / "stream_engine" / "docs" / page).read_text(), re.M)
    for number, (copied, new) in enumerate(commands):
        folder = tmp_path / str(number)
        for backup in ("000000000001", "000000000002"):
            (folder / copied.partition("/")[0] / backup / "snapshots").mkdir(parents=True)
        subprocess.run(["bash", "-c", f"cp -r {copied} {new}"], cwd=folder, check=True)
        assert [each.name for each in (folder / new).iterdir()] == ["snapshots"]
    assert commands


def test_a_damaged_copy_is_found(whole, tmp_path):
    engine("backup", "--state", whole[1], "--to", tmp_path / "copies")
    copy = shutil.copytree(tmp_path / "copies" / "000000000002", tmp_path / "again")
    names = [str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()]
    assert {"manifest.json", "dead_letters/000001.jsonl", "study/answers.jsonl"} <= set(names)
    for name in names:
        content = (copy / name).read_bytes()
        (copy / name).write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
        assert "WRONG" in engine("verify", "--state", copy, status=1).stdout, name
        (copy / name).write_bytes(content)
    (copy / "dead_letters" / "000001.jsonl").unlink()
    assert "backup" in engine("verify", "--state", copy, status=1).stdout


def test_dead_letters_that_are_elsewhere_have_to_be_named(whole, tmp_path):
    file, _ = whole
    engine("run", file, "--state", tmp_path / "s", "--no-refits", "--dead-letters", tmp_path / "refused")
    said = one_line(engine("backup", "--state", tmp_path / "s", "--to", tmp_path / "copy", status=1).stderr)
    assert "snapshot" in said and "--dead-letters" in said
    engine("backup", "--state", tmp_path / "s", "--to", tmp_path / "copy", "--dead-letters", tmp_path / "refused")
    copied = tmp_path / "copy" / "000000000001" / "dead_letters" / "000001.jsonl"
    assert copied.read_bytes() == (tmp_path / "refused" / "000001.jsonl").read_bytes() != b""


def test_states_and_targets_that_are_none(whole, tmp_path):
    _, one = whole
    nothing = engine("backup", "--state", tmp_path / "none", "--to", tmp_path / "copy", status=1)
    assert "snapshot" in one_line(nothing.stderr)
    inside = engine("backup", "--state", one, "--to", one / "copy", status=1)
    assert "inside" in one_line(inside.stderr)
    assert one_line(engine("backup", "--state", one, "--to", "/dev/null", status=1).stderr)
    other = jsonl(tmp_path / "other.jsonl", [{"anchor": "a", "near": "b", "far": "c"}])
    for number in (1, 2):
        jsonl(other, [{"anchor": "a", "near": "b", "far": "c"}] * number)
        engine("run", other, "--state", tmp_path / "s", "--no-refits")
    engine("backup", "--state", one, "--to", tmp_path / "copy")
    said = one_line(engine("backup", "--state", tmp_path / "s", "--to", tmp_path / "copy", status=1).stderr)
    assert "--to" in said
