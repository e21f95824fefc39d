"""Power is cut before every disk operation of the dead-letter sink, and it is opened again on all that may be found."""

import pytest

from connectors import DeadLetter, SinkUnavailable
from connectors.files.dead_letters import DeadLetterFile
from tests.support.simulated_disk import SimDisk, crash_images

DIRECTORY = "/state/dead_letters"
BATCHES = [
    [DeadLetter("p", 10 * batch + i, i, "not_parseable", "no", b"x" * (7 * i + batch)) for i in range(3)]
    for batch in range(4)
]


def opened(disk, position):
    return DeadLetterFile(DIRECTORY, position, disk=disk, segment_bytes=360)


def write(sink, batches, snapshots):
    """Each batch is a snapshot's: its letters are durable, then it is published with the position."""
    for number, batch in batches:
        sink.append(batch)
        snapshots.append((number + 1, sink.flush()))


def run(disk, snapshots):
    write(opened(disk, 0), list(enumerate(BATCHES)), snapshots)


def uninterrupted():
    disk = SimDisk()
    run(disk, [])
    return disk.contents()


def test_any_snapshot_can_be_resumed_after_any_crash():
    """Also one that is older than the last: the newest may have been damaged."""
    expected, resumed, segments = uninterrupted(), 0, set()
    assert len(expected) > 2  # the segments roll
    for n, snapshots, image in crash_images(run):
        for done, position in [(0, 0), *snapshots]:
            disk = image.copy()
            write(opened(disk, position), list(enumerate(BATCHES))[done:], [])
            assert disk.contents() == expected, (n, done)
            resumed += 1
            segments.add(position >> 40)
    assert resumed > 150 and len(segments) > 2


def test_a_crash_while_resuming_after_a_crash():
    """Cutting back is not synced: it is done again by whoever resumes next."""
    snapshots: list = []
    first = SimDisk()
    run(first, snapshots)
    for done, position in [(0, 0), *snapshots]:

        def again(disk, log, done=done, position=position):
            write(opened(disk, position), list(enumerate(BATCHES))[done:], log)

        for n, later, image in crash_images(again, first.copy):
            sink = opened(image, later[-1][1] if later else position)
            write(sink, list(enumerate(BATCHES))[later[-1][0] if later else done :], [])
            assert image.contents() == uninterrupted(), (done, n)


def test_a_cut_folder_is_noted_until_a_snapshot_relies_on_what_follows():
    """Whole letters stay, nothing is overwritten, and a crash before the next snapshot finds the same loss."""
    snapshots: list = []
    disk = SimDisk()
    run(disk, snapshots)
    position = snapshots[-1][1]
    last = f"{DIRECTORY}/{(position >> 40) + 1:06d}.jsonl"
    first = disk.read(last).index(b"\n") + 1
    disk.truncate(last, first + 3)
    assert f"{last} holds {first + 3} bytes" in opened(disk, position).lost
    sink = opened(disk, position)
    assert disk.size(last) == first and f"holds {first} bytes" in sink.lost
    sink.append(BATCHES[0])
    after = sink.flush()
    assert after >> 40 == (position >> 40) + 1 and not opened(disk, after).lost


def test_a_full_disk_keeps_the_letters_until_there_is_room():
    disk, refused = SimDisk(capacity=500), 0
    sink = opened(disk, 0)
    for batch in BATCHES:
        sink.append(batch)
        try:
            sink.flush()
        except SinkUnavailable as error:
            assert "No space left" in str(error)
            refused += 1
            disk.capacity = 10_000 if refused == 2 else 500
            continue
    sink.flush()
    assert refused == 2 and disk.contents() == uninterrupted()


def test_after_a_failed_sync_nothing_is_promised():
    disk = SimDisk()
    sink = opened(disk, 0)
    sink.append(BATCHES[0])
    fsync, disk.fsync = disk.fsync, lambda path: (_ for _ in ()).throw(OSError(5, "Input/output error"))
    with pytest.raises(OSError, match="Input/output"):
        sink.flush()
    disk.fsync = fsync
    with pytest.raises(OSError, match="Restart"):
        sink.flush()
