"""What has the name of a snapshot, an artifact or a segment and is none is skipped, and ends nothing."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from connectors.disk import Disk
from connectors.files.dead_letters import segments_in
from stream_engine.data.container import Corrupt
from stream_engine.state.published import Published
from stream_engine.state.store import Store
from tests.support.crafted_worlds import published
from tests.support.process import engine, jsonl

TRIPLET = {"anchor": "a", "near": "b", "far": "c"}


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as bound, pytest.MonkeyPatch.context() as patched:
        patched.chdir(path.parent)  # names of sockets are short
        bound.bind(path.name)


def _longer(path: Path) -> None:
    path.write_bytes((path.parent / f"{1:012}{path.suffix}").read_bytes())
    os.truncate(path, 1 << 40)


ODD: dict[str, Callable[[Path], object]] = {
    "folder": Path.mkdir,
    "pipe": os.mkfifo,
    "socket": _socket,
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "device": lambda path: path.symlink_to("/dev/zero"),
    "empty": Path.touch,
    "sparse": lambda path: (path.touch(), os.truncate(path, 1 << 42)),
    "longer than its header says": _longer,
}


@pytest.fixture(scope="module")
def state(tmp_path_factory) -> Path:
    """A state with one snapshot, and one thing of each kind for each name after it."""
    folder = tmp_path_factory.mktemp("odd")
    jsonl(folder / "e.jsonl", [TRIPLET] * 3)
    engine("run", folder / "e.jsonl", "--state", folder / "s", "--no-refits")
    artifacts, letters = folder / "s" / "artifacts" / "embedding", folder / "s" / "dead_letters"
    artifacts.mkdir(parents=True)
    letters.mkdir(exist_ok=True)
    os.mkfifo(folder / "s" / "artifacts" / "kind")
    os.mkfifo(folder / "s" / "progressive.json")
    os.mkfifo(folder / "s" / "notes")
    os.mkfifo(folder / "s" / "snapshots" / f"{1:012}.order")
    (folder / "s" / "around").symlink_to("..")
    for number, make in enumerate(ODD.values(), 2):
        make(folder / "s" / "snapshots" / f"{number:012}.snapshot")
        if make is not _longer:
            make(artifacts / f"{number:012}.artifact")
    for number, make in enumerate((Path.mkdir, os.mkfifo), 1):
        make(letters / f"{number:06}.jsonl")
    return folder / "s"


def test_readers_skip_them_in_a_line_each(state, tmp_path):
    for arguments in (
        ["inspect"],
        ["backup", "--to", tmp_path / "b"],
        ["report", "--out", tmp_path / "r.html"],
        ["export", "summary", "--out", tmp_path / "o"],
        ["dead-letters", "list"],
    ):
        said = engine(*arguments, "--state", state).stderr
        for number in range(2, 2 + len(ODD)):
            assert sum(f"{number:012}" in line and "artifact" not in line for line in said.splitlines()) == 1, said
    verified = engine("verify", "--state", state, status=1)
    assert (
        "ok     snapshot 000000000001" in verified.stdout
        and "note   snapshots/000000000002.snapshot" in verified.stdout
    )
    (copy,) = (tmp_path / "b").iterdir()
    assert engine("verify", "--state", copy).returncode == 0 and not (copy / "around").exists()


def test_a_run_goes_on_beside_them(state):
    source = state.parent / "e.jsonl"
    with source.open("a") as file:
        file.write('{"anchor": "a", "near": "b", "far": "d"}\n{"anchor": "x"}\n')
    before = sorted(path.name for path in (state / "snapshots").iterdir())
    engine("run", source, "--state", state, "--no-refits")
    newest = Store(state, tell=lambda line: None).newest()
    assert newest.counters["comparisons"] == 4 and not (state / "snapshots" / before[3]).is_file()
    assert segments_in(state / "dead_letters", Disk()) == [3]
    assert {name for name in before if "snapshot" in name} <= {path.name for path in (state / "snapshots").iterdir()}


def test_a_file_in_pieces_with_holes_is_read(tmp_path):
    """On a file system that compresses, every file takes less room than it is long."""
    world: Published = published()
    store = Store(tmp_path)
    store.publish(world.snapshot)
    path = store.snapshot_path(world.snapshot.sequence)
    content = path.read_bytes()
    with path.open("r+b") as file:
        file.truncate(0)
        file.truncate(len(content))
        for start in range(0, len(content), 4096):
            if content[start : start + 4096].strip(b"\0"):
                file.seek(start)
                file.write(content[start : start + 4096])
    assert store.newest().digest
    with pytest.raises(Corrupt):
        path.write_bytes(content[:-1])
        store.newest()
