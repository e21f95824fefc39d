"""Files that others put into a state directory stay there, whatever a run removes of its own."""

import os

import pytest

from stream_engine.data.comparisons import Triplet
from stream_engine.state import sweeping
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store

FOREIGN = [".DS_Store", ".nfs0000000000a1", ".notes.2024", "readme.txt"]


@pytest.fixture
def store(tmp_path):
    store, engine = Store(tmp_path), Engine()
    for names in ("abc", "bcd", "cde"):
        engine.learn_one(Triplet(*names))
        store.publish(engine.snapshot())
    for name in FOREIGN:
        (tmp_path / "snapshots" / name).write_text("precious")
    (tmp_path / "snapshots" / ".snapshot").mkdir()
    return store


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def test_pruning_removes_what_a_killed_process_left_and_nothing_else(store):
    folder, dead = store.directory / "snapshots", os.getpid() + 1
    left, mine = f".000000000009.snapshot.{dead}", f".000000000009.snapshot.{os.getpid()}"
    for name in (left, mine):
        (folder / name).write_bytes(b"half")
    store.prune(1)
    assert names_in(folder) == {*FOREIGN, ".snapshot", mine, "000000000003.snapshot"}


def test_forgetting_removes_exports_for_readers_and_older_snapshots_and_nothing_else(store):
    served = store.directory / sweeping.SERVED
    (served / "export-1").mkdir(parents=True)
    (served / "export-1" / "objects.csv").write_text("a name")
    (served / "mine.csv").write_text("precious")
    newest = store.latest().snapshot
    store.replace(newest._replace(sequence=4, digest=""))
    assert names_in(store.directory / "snapshots") == {*FOREIGN, ".snapshot", "000000000004.snapshot"}
    assert names_in(served) == {"mine.csv"}


def test_a_link_in_place_of_the_exports_is_not_followed_to_files_of_others(tmp_path):
    other = tmp_path / "elsewhere"
    (other / "2025").mkdir(parents=True)
    (other / "2025" / "thesis.txt").write_text("precious")
    (tmp_path / sweeping.SERVED).symlink_to(other)
    sweeping.remove_exports(tmp_path / sweeping.SERVED)
    assert (other / "2025" / "thesis.txt").exists()
