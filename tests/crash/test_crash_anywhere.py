"""Power cut before every disk operation, every image that may be found: what was published is there, and a resumed run
equals an uninterrupted one.

Two properties, because one hides the other: files replay from the start, so "the final state is equal" would be true
even if every snapshot were lost. Hence also: a sequence that `publish` returned for is still there.
"""

import errno
import os
from functools import partial

import pytest

from connectors import Position, Record, SinkUnavailable
from stream_engine.data.container import Corrupt
from stream_engine.formats.options import EventOptions
from stream_engine.input import decoding
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store
from tests.support.crashing_runs import EVENTS, consume, dead, final
from tests.support.simulated_disk import SimDisk, crash_images


def test_every_crash_of_the_whole_world():
    whole, run = SimDisk(), partial(consume, events=8)
    expected, letters = final(run(whole, [])), dead(whole)
    assert [letter["reason"] for letter in letters] == ["not_parseable", "not_distinct"] * 2
    images = 0
    for n, promises, image in crash_images(run):
        store = Store("/state", image)
        found = store.latest()
        assert (found.snapshot.sequence if found.snapshot else 0) >= max(promises, default=0), f"operation {n}"
        resumed = run(image, [])
        assert final(resumed) == expected, f"operation {n}: {found}"
        assert dead(image) == letters, f"operation {n}"
        images += 1
    assert images > 150


def test_a_second_crash_while_resuming():
    run = partial(consume, events=8)
    expected = final(run(SimDisk(), []))
    first = [image for n, _, image in crash_images(run) if n % 7 == 3][::5]
    for disk in first[:4]:
        files = disk.contents()
        directories = tuple(path for path in ("/state", "/state/snapshots", "/state/dead_letters") if disk.exists(path))
        for n, _, image in crash_images(run, lambda files=files, d=directories: SimDisk(files, d)):
            if n % 6 == 0:
                assert final(run(image, [])) == expected


def test_a_full_disk_leaves_the_published_ones_whole():
    expected = final(consume(SimDisk(), []))
    for capacity in range(2_000, 14_000, 500):
        disk = SimDisk(capacity=capacity)
        promises = []
        try:
            consume(disk, promises)
        except (OSError, SinkUnavailable) as error:
            assert os.strerror(errno.ENOSPC) in str(error)
            disk.capacity = None
            assert not [name for name in disk.contents() if "/snapshots/." in name]
            latest = Store("/state", disk).latest()
            assert latest.damaged == [] and (latest.snapshot.sequence if latest.snapshot else 0) == max(
                promises, default=0
            )
            consume(disk, promises)
        assert final(consume(disk, [])) == expected


@pytest.fixture
def three(tmp_path):
    engine, store = Engine(), Store(tmp_path)
    for offset, value in enumerate(EVENTS[:3]):
        engine.learn(
            decoding.RecordDecoder(EventOptions()).read(Record(value, "m", offset, offset + 1))[0],
            {"m": Position(offset + 1)},
        )
        store.publish(engine.snapshot())
    return store


def test_damage_is_reported_and_the_one_before_used(three):
    path = three.snapshot_path(3)
    whole = path.read_bytes()
    for damaged in (b"", whole[:100], whole[:-1], whole[:500] + b"\1" + whole[501:]):
        path.write_bytes(damaged)
        found = three.latest()
        assert found.snapshot.sequence == 2
        assert len(found.damaged) == 1
        assert "000000000003" in found.damaged[0]
        with pytest.raises(Corrupt, match="snapshot 000000000003"):
            three.read(3)


def test_pruning_keeps_whole_ones_and_sweeps_leftovers(three):
    (three.directory / "snapshots" / ".000000000004.snapshot.999999").write_bytes(b"half")
    three.snapshot_path(3).write_bytes(b"damaged")
    assert three.prune(1) == [1]  # the newest is damaged: the whole one before it stays
    assert three.sequences() == [2, 3] and len(list((three.directory / "snapshots").iterdir())) == 2
    assert three.latest().snapshot.sequence == 2
