"""Old files stay readable, and what they mean does not change."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from connectors import open_source
from stream_engine.data.container import NotTrusted
from stream_engine.data.signatures import signing_with
from stream_engine.exports.summary import summary_of
from stream_engine.formats.options import EventOptions
from stream_engine.input import decoding
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import encode, read_snapshot
from tests.conftest import ROOT
from tests.order.invariants import check_guard

GOLDEN = ROOT / "tests" / "golden"
EVENTS, SNAPSHOT = GOLDEN / "events.jsonl", GOLDEN / "snapshot-v1.snapshot"
SIGNED = GOLDEN / "snapshot-v2.snapshot"


def folded(path: Path) -> Engine:
    """The engine after a file, read as the run loop reads it; positions by file name alone."""
    engine, reader, source = (
        Engine(("adds3", "adds4", "triplet_counts", "quadruplet_counts")),
        decoding.RecordDecoder(EventOptions()),
        open_source(str(path), {}),
    )
    while not source.finished():
        for block in reader.blocks(source.poll(1.0)):
            positions = {Path(name).name: position for name, position in block.positions().items()}
            engine.learn(block.decoded, positions, block.counts().total())
    source.close()
    return engine


def test_version_1_is_still_read_and_means_the_same():
    old, now = read_snapshot(SNAPSHOT), folded(EVENTS).snapshot()
    assert old.digest == hashlib.sha256(SNAPSHOT.read_bytes()[:-32]).hexdigest()
    assert (old.objects, old.labels, old.settings) == (now.objects, now.labels, now.settings)
    at_the_end = {name: position.offset for name, position in old.positions.items()}
    assert {name: position.offset for name, position in now.positions.items()} == at_the_end
    assert summary_of(old) == summary_of(now)
    assert old.arrays.keys() == now.arrays.keys()
    for name, array in now.arrays.items():
        np.testing.assert_array_equal(old.arrays[name], array, err_msg=name)


def test_equal_states_still_give_these_bytes():
    """But for the mark of the file: version 1 knew a file by its first bytes, and was read on by a whole checksum."""
    old = read_snapshot(SNAPSHOT)
    chunks, _ = encode(folded(EVENTS).snapshot()._replace(positions=old.positions))
    assert b"".join(chunks) == SNAPSHOT.read_bytes()


def test_version_2_is_version_1_with_a_signature():
    """Its bytes with this key, and the digest of its content, stay the same too."""
    key = signing_with("a golden key is no secret")
    signed, plain = read_snapshot(SIGNED, key), read_snapshot(SNAPSHOT)
    assert signed.digest == plain.digest and b"".join(encode(plain, key)[0]) == SIGNED.read_bytes()
    with pytest.raises(NotTrusted, match="STREAM_ENGINE_STATE_KEY"):
        read_snapshot(SIGNED)


def test_an_old_snapshot_goes_on():
    engine = Engine.restore(read_snapshot(SNAPSHOT))
    assert engine.snapshot().sequence == 2 and check_guard(engine.guard) is None


def test_the_stream_reaches_everything():
    found = summary_of(read_snapshot(SNAPSHOT))
    assert set(found["kinds"]) == {"triplet", "quadruplet", "odd_one_out", "most_central", "pick", "ranking", "label"}
    assert all(found["guard"].values())
    assert found["rejected"]
    assert found["contradicting_pairs"]
    assert found["quadruplets"]
