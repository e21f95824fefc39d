"""Power cut before every disk operation of `backup`, every image that may be found: a folder with a manifest is whole,
and the backup before it stays as it was."""

import hashlib

import pytest

from stream_engine.state.backup import MANIFEST
from stream_engine.state.snapshot import encode
from stream_engine.state.store import Store
from tests.support.crashing_runs import EVENTS, consume, copied_back, dead, final, save
from tests.support.simulated_disk import SimDisk, crash_images


def running(disk, events: int) -> SimDisk:
    """A state that has read so many of the events, with a note and a file of a study."""
    engine = consume(disk, [], events)
    Store("/state", disk).note("progressive", {"snapshot": engine.sequence})
    disk.append("/state/answers.jsonl", [b"%d\n" % events])
    return disk


def checked(disk, folder: str) -> dict:
    """The manifest of a backup, whose files are all there, as they were; empty where there is none."""
    manifest = Store(folder, disk).noted(MANIFEST)
    for name, digest in manifest.get("files", {}).items():
        assert hashlib.sha256(disk.read(f"{folder}/{name}")).hexdigest() == digest, name
    return manifest


@pytest.fixture(scope="module")
def twice() -> tuple[SimDisk, str]:
    """A state that has gone on since it was backed up, and where the backup is."""
    disk = running(SimDisk(directories=("/state", "/copy")), 5)
    folder = str(save(disk).folder)
    return running(disk, 9), folder


def test_every_crash_of_a_backup(twice):
    disk, before = twice
    old, images, whole = checked(disk, before), 0, 0
    for n, _, image in crash_images(lambda disk, _: save(disk), disk.copy):
        assert checked(image, before) == old, f"operation {n}"
        newer = [name for name in image.listdir("/copy") if not before.endswith(name)]
        whole += any(checked(image, f"/copy/{name}") for name in newer)
        images += 1
        again = save(image)
        assert checked(image, str(again.folder))["snapshot"] == 9, f"operation {n}"
    assert images > 30 and 0 < whole < images


def test_every_crash_of_a_second_backup_of_a_snapshot(twice):
    """Its manifest, where there is one, is that of the files that are there."""
    disk = twice[0].copy()
    folder = str(save(disk).folder)
    Store("/state", disk).exclude(["ann"])
    Store("/state", disk).note("progressive", {"snapshot": 0})  # in the place of one that is there
    for n, _, image in crash_images(lambda disk, _: save(disk), disk.copy):
        checked(image, folder)
        save(image)
        assert checked(image, folder) and Store(folder, image).excluded() == ("ann",), f"operation {n}"


def test_what_was_copied_back_goes_on_as_if_nothing_had_happened(twice):
    """While the first one goes on too: its copy is of that moment."""
    disk = twice[0].copy()
    folder = str(save(disk).folder)
    expected = b"".join(encode(Store("/state", disk).latest().snapshot)[0])
    running(disk, len(EVENTS))
    new = copied_back(disk, folder)
    assert b"".join(encode(Store("/state", new).latest().snapshot)[0]) == expected
    assert new.read("/state/answers.jsonl") == b"5\n9\n"
    assert final(consume(new, [])) == final(consume(SimDisk(), []))
    assert dead(new) == dead(disk)


def test_a_snapshot_that_is_pruned_meanwhile_gives_way_to_the_next(twice):
    disk = twice[0].copy()
    link, pruned = disk.link, []

    def prunes(source, target):
        if not pruned:
            pruned.append(source)
            running(disk, 12)
            disk.remove(source)
        return link(source, target)

    disk.link = prunes
    done = save(disk)
    assert done.snapshot == 12 and checked(disk, str(done.folder))["snapshot"] == 12
