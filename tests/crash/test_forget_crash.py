"""Power cut before every disk operation of `forget`, every image that may be found: the state before or the state
after, dead letters and all, and after it nothing that has the name."""

import pytest

from connectors.files.dead_letter_reader import letters_before
from connectors.files.dead_letter_rewrite import rewritten
from stream_engine.state import sweeping
from stream_engine.state.artifact import Artifact
from stream_engine.state.forget_in_place import letters_without, replace
from stream_engine.state.forgetting import forget_object, noted
from stream_engine.state.letters_naming import naming
from stream_engine.state.snapshot import Snapshot, encode
from stream_engine.state.store import Store
from tests.crash.test_crash_anywhere import EVENTS, consume, dead
from tests.support.simulated_disk import SimDisk, crash_images

NAME = "d"  # of the last of the objects


def forget(disk, _=None) -> None:
    """What the command does."""
    sweeping.finish("/state", disk)
    store = Store("/state", disk)
    before = store.latest().snapshot
    after = noted(forget_object(before, NAME, ["adds4"]).snapshot, "now", "forget")
    replace(store, after, letters_without(store, before, lambda line: b"not_distinct" in line, segment_bytes=60))


@pytest.fixture(scope="module")
def before() -> SimDisk:
    """Snapshots, an artifact and dead letters, of which some leave."""
    disk = SimDisk()
    consume(disk, [], 8)
    Store("/state", disk).publish_artifact(Artifact("spectral", "", 8, {}, 0, {}, {"names": [NAME]}))
    return disk.copy()


def opened(disk) -> tuple[bytes, list]:
    """What whoever takes the lock next finds and goes on with to the end, wherever its dead letters are."""
    sweeping.finish("/state", disk)
    newest = encoded(Store("/state", disk).latest().snapshot)
    return newest + encoded(consume(disk, []).snapshot()), [letter["value"] for letter in dead(disk)]


def encoded(snapshot: Snapshot) -> bytes:
    return b"".join(encode(snapshot._replace(counters={**snapshot.counters, "sinks": {}}))[0])


def test_every_crash_of_forget(before):
    old, after = opened(before.copy()), before.copy()
    forget(after)
    assert len([path for path in after.contents() if "dead_letters" in path]) > 1  # segments roll
    new = opened(after.copy())
    assert len(old[1]) == 6 > len(new[1])
    there, found = after.contents().keys(), []
    for n, _, image in crash_images(forget, before.copy):
        found.append(opened(image.copy()))
        assert found[-1] in (old, new), f"operation {n}"
        if found[-1] == old:
            forget(image)
        else:
            sweeping.finish("/state", image)
        # segments that a power cut left count: the letters may stand in later ones than without it
        assert len(image.contents()) == len(there) and "/state/dead_letters/000001.jsonl" not in image.contents()
        assert opened(image) == new, f"operation {n}"
    assert old in found and found[-1] == new and len(found) > 40


def test_nothing_has_the_name_afterwards(before):
    disk = before.copy()
    forget(disk)
    store = Store("/state", disk)
    assert NAME not in store.latest().snapshot.objects and store.sequences() == [9]
    assert store.artifact_sequences("spectral") == [] and not disk.exists("/state/forgetting")
    assert len(EVENTS) > 8 and not any(naming("b")(line) for line in [b'{"value":"abc"}'])


def test_a_mark_of_another_snapshot_removes_nothing(before):
    disk = before.copy()
    sweeping.mark(Store("/state", disk).directory, disk, 8, "0" * 64, "/state/dead_letters", 99)
    sweeping.finish("/state", disk)
    assert disk.contents() == before.contents()
    disk.write_new("/state/forgetting", [b'{"snapshot": "8"}'])
    with pytest.raises(RuntimeError, match="not what `forget` writes"):
        sweeping.finish("/state", disk)


def test_what_was_replayed_stays_replayed(before):
    """A place among the letters moves with them."""
    disk = before.copy()
    position = Store("/state", disk).latest().snapshot.counters["sinks"]["file"]
    letters = disk.read("/state/dead_letters/000001.jsonl").splitlines(keepends=True)
    ends = [sum(map(len, letters[:n])) for n in range(len(letters) + 1)]
    places = [0, ends[1], ends[2], position]
    made = rewritten("/state/dead_letters", position, lambda line: line == letters[1], disk, 60, places)
    after = [kept.at for kept in letters_before("/state/dead_letters", made.position, disk) if kept.at >= 1 << 40]
    stand = [sum(at >= made.moved[place] for at in after) for place in places]
    assert stand == [len(letters) - 1, len(letters) - 2, len(letters) - 2, 0] and made.dropped == 1
