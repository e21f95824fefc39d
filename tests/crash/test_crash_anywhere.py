"""Power cut before every disk operation, every image that may be found: what was published is there, and a resumed run
equals an uninterrupted one.

Two properties, because one hides the other: files replay from the start, so "the final state is equal" would be true
even if every snapshot were lost. Hence also: a sequence that `publish` returned for is still there.
"""

import errno
import json
import os

import pytest

from connectors import Position, Record, SinkUnavailable
from connectors.files.dead_letters import DeadLetterFile
from stream_engine.data.container import Corrupt
from stream_engine.formats.options import EventOptions
from stream_engine.input import decoding
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import encode
from stream_engine.state.store import Store
from tests.support.simulated_disk import SimDisk, crash_images

EVENTS = [
    b'{"anchor":"a","near":"b","far":"c"}\n{"broken\n',
    b'{"anchor":"a","near":"c","far":"b"}\n{"type":"label","object":"a","label":"x"}\n',
    b'{"anchor":"a","near":"a","far":"b"}\n{"anchor":"b","near":"c","far":"d"}\n',
    b'{"type":"quadruplet","near":["a","b"],"far":["c","d"]}\n',
] * 3
EVERY, KEEP = 1, 2  # a snapshot after every record, two stay


def consume(disk, promises: list, events: int = len(EVENTS), directory: str = "/state") -> Engine:
    """What run.py does with a stream, over `disk`, from wherever the disk says, up to so many events."""
    store = Store(directory, disk)
    latest = store.latest().snapshot
    engine = Engine.restore(latest) if latest else Engine()
    sink = DeadLetterFile(f"{directory}/dead_letters", engine.sinks.get("file", 0), disk=disk)
    reader = decoding.RecordDecoder(EventOptions())
    start = engine.positions.get("m", Position(0)).offset
    for offset in range(start, events):
        record = Record(EVENTS[offset], "m", offset, offset + 1, unit="message")
        decoded, letters = reader.read(record)
        if decoded.rejected:
            sink.append(letters)
        engine.learn(decoded, {"m": Position(offset + 1)})
        if (offset + 1) % EVERY == 0:
            engine.sinks["file"] = sink.flush()
            published, _ = store.publish(engine.snapshot())
            promises.append(published.sequence)
            store.prune(KEEP)
    return engine


def dead(disk, directory: str = "/state") -> list[dict]:
    lines = []
    if disk.exists(f"{directory}/dead_letters"):
        for name in (name for name in disk.listdir(f"{directory}/dead_letters") if not name.startswith(".")):
            lines += disk.read(f"{directory}/dead_letters/{name}").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def final(engine: Engine) -> bytes:
    return b"".join(encode(engine.snapshot())[0])


def test_every_crash_of_the_whole_world():
    whole = SimDisk()
    expected, letters = final(consume(whole, [])), dead(whole)
    assert [letter["reason"] for letter in letters] == ["not_parseable", "not_distinct"] * 3
    images = 0
    for n, promises, image in crash_images(consume):
        store = Store("/state", image)
        found = store.latest()
        assert (found.snapshot.sequence if found.snapshot else 0) >= max(promises, default=0), f"operation {n}"
        resumed = consume(image, [])
        assert final(resumed) == expected, f"operation {n}: {found}"
        assert dead(image) == letters, f"operation {n}"
        images += 1
    assert images > 200


def test_a_second_crash_while_resuming():
    expected = final(consume(SimDisk(), []))
    first = [image for n, _, image in crash_images(consume) if n % 7 == 3][::5]
    for disk in first[:4]:
        files = disk.contents()
        directories = tuple(path for path in ("/state", "/state/snapshots", "/state/dead_letters") if disk.exists(path))
        for n, _, image in crash_images(consume, lambda files=files, d=directories: SimDisk(files, d)):
            if n % 6 == 0:
                assert final(consume(image, [])) == expected


def test_a_full_disk_leaves_the_published_ones_whole():
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
        assert final(consume(disk, [])) == final(consume(SimDisk(), []))


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
