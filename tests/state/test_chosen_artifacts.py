"""Which artifacts belong to a snapshot: one rule, whoever asks."""

import numpy as np
import pytest

from stream_engine import Engine, Triplet
from stream_engine.state.artifact import Artifact
from stream_engine.state.store import Lock, NoSnapshotName, NoSuchSnapshot, Store


@pytest.fixture
def store(tmp_path):
    """Three snapshots, of the first and the last of which there is an artifact."""
    store, engine = Store(tmp_path), Engine()
    for sequence in (1, 2, 3):
        engine.learn_one(Triplet("a", "b", f"c{sequence}"))
        snapshot, _ = store.publish(engine.snapshot())
        if sequence != 2:
            arrays = {"labels": np.full(3, sequence)}
            store.publish_artifact(Artifact("spectral", snapshot.digest, sequence, {}, 0, arrays, {}))
    return store


def test_the_newest_that_was_made_from_the_snapshot_or_before_it(store):
    for which, expected in (("1", 1), ("2", 1), ("3", 3), ("latest", 3)):
        assert store.published(which).artifacts["spectral"].sequence == expected
    assert store.latest_artifact("spectral", 0) is None and store.latest_artifact("hierarchy") is None
    assert store.with_artifacts(store.read(2)).artifacts["spectral"].sequence == 1


def test_seconds_are_of_the_artifact_that_took_them(store):
    store.note_seconds(store.published("3").artifacts["spectral"], 12.5)
    assert store.published("3").seconds == {"spectral": 12.5}
    assert store.published("1").artifacts.keys() == {"spectral"} and store.published("1").seconds == {}


def test_a_damaged_one_is_passed_over(store):
    store.artifact_path("spectral", 3).write_bytes(b"damaged")
    assert store.published().artifacts["spectral"].sequence == 1
    store.artifact_path("spectral", 1).write_bytes(b"damaged")
    assert store.published().artifacts == {}


def test_of_each_kind_as_many_stay_as_are_kept(store):
    arrays = {"labels": np.zeros(3, int)}
    for sequence in (2, 3):
        store.publish_artifact(Artifact("hierarchy", "", sequence, {}, 0, arrays, {}))
    assert sorted(store.prune(2)) == [1]
    assert [store.artifact_sequences(kind) for kind in ("spectral", "hierarchy")] == [[1, 3], [2, 3]]
    assert store.prune(1) == [2]
    assert [store.artifact_sequences(kind) for kind in ("spectral", "hierarchy")] == [[3], [3]]


def test_a_damaged_file_is_told_once(tmp_path):
    told = []
    store = Store(tmp_path, tell=told.append)
    for line in ("one", "other", "one"):
        store.tell_once(line)
    assert told == ["one", "other"]


def test_what_names_no_snapshot_is_said(store, tmp_path):
    with pytest.raises(NoSnapshotName, match="--snapshot.*'newest'"):
        store.named("newest")
    with pytest.raises(NoSuchSnapshot, match="7.*1, 2, 3"):
        store.named("7")
    with pytest.raises(NoSuchSnapshot, match="`stream-engine run SOURCE --state DIR`"):
        Store(tmp_path / "empty").published()
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoSuchSnapshot, match="`stream-engine run SOURCE --state DIR`"):
        Store(tmp_path / "empty").published()
    lock = Lock(tmp_path / "begun")
    with pytest.raises(NoSuchSnapshot, match="run"):
        Store(tmp_path / "begun").published()
    lock.release()
    Lock(tmp_path / "begun").release()  # asking has not taken it
