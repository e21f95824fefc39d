"""Power cut before every disk operation of `forget`, every image that may be found: the state before or the
state after, and after it nothing that has the name."""

import pytest

from connectors.files.dead_letters import overwrite
from stream_engine.state import sweeping
from stream_engine.state.artifact import Artifact
from stream_engine.state.forgetting import forget_object, with_history
from stream_engine.state.names_in_letters import naming
from stream_engine.state.snapshot import Snapshot, encode
from stream_engine.state.store import Store
from tests.support.crashing_runs import EVENTS, consume, dead
from tests.support.simulated_disk import SimDisk, crash_images

NAME = "d"  # of the last of the objects


def forget(disk, _=None) -> None:
    """What the command does."""
    sweeping.finish("/state", disk)
    store = Store("/state", disk)
    before = store.latest().snapshot
    after = with_history(forget_object(before, NAME, ["adds4"]).snapshot, "now", "forget")
    overwrite("/state/dead_letters", lambda letter: letter.reason == "not_distinct", disk)
    store.replace(after)


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
    """The counts of before or of after; forgetting again ends what a crash has interrupted."""
    old, after = opened(before.copy()), before.copy()
    forget(after)
    new = opened(after.copy())
    assert len(old[1]) == 6 > len(new[1])
    there, found = set(after.contents()), []
    for n, _, image in crash_images(forget, before.copy):
        found.append(opened(image.copy()))
        assert found[-1][0] in (old[0], new[0]), f"operation {n}"
        if found[-1][0] == old[0]:
            forget(image)
        else:
            assert found[-1] == new, f"operation {n}"
            sweeping.finish("/state", image)
        left = {path for path in image.contents() if "/." not in path}  # a half-written file of a dead process
        assert left == there
        assert opened(image) == new, f"operation {n}"
    assert old in found
    assert found[-1] == new
    assert len(found) > 40


def test_nothing_has_the_name_afterwards(before):
    disk = before.copy()
    forget(disk)
    store = Store("/state", disk)
    assert NAME not in store.latest().snapshot.objects and store.sequences() == [9]
    assert store.artifact_sequences("spectral") == [] and not disk.exists("/state/forgetting")
    assert len(EVENTS) > 8 and not naming("b")(b'{"value":"abc"}')


def test_a_mark_of_another_snapshot_removes_nothing(before):
    disk = before.copy()
    sweeping.mark(Store("/state", disk).directory, disk, 8, "0" * 64)
    sweeping.finish("/state", disk)
    assert disk.contents() == before.contents()
    disk.write_new("/state/forgetting", [b'{"snapshot": "8"}'])
    with pytest.raises(RuntimeError, match="/state/forgetting"):
        sweeping.finish("/state", disk)
