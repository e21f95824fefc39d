"""Power cut before every disk operation of `backup` and of `restore`, every image that may be found: a target holds the
old backup or the new one, a directory nothing or all of the state."""

import pytest

from connectors.disk import make_folders
from connectors.targets import Folder
from stream_engine.state.backup import backup
from stream_engine.state.manifest import BadBackup, read_manifest
from stream_engine.state.restored_backup import restore, unfinished
from stream_engine.state.snapshot import encode
from stream_engine.state.store import Store
from tests.crash.test_crash_anywhere import EVENTS, consume, dead, final
from tests.support.simulated_disk import SimDisk, crash_images


def running(disk, events: int) -> SimDisk:
    """A state that has read so many of the events, with a note."""
    engine = consume(disk, [], events)
    Store("/state", disk).note("progressive", {"snapshot": engine.sequence})
    return disk


def save(disk) -> None:
    backup(Store("/state", disk), Folder("/copy", disk), "/copy", keep=2)


def load(disk, directory: str = "/new") -> Store:
    restore(Folder("/copy", disk), "/copy", directory, disk)
    return Store(directory, disk)


def newest(store: Store) -> bytes:
    return b"".join(encode(store.latest().snapshot)[0])


@pytest.fixture(scope="module")
def twice() -> SimDisk:
    """A state that has gone on since it was backed up."""
    disk = running(SimDisk(directories=("/state", "/copy")), 5)
    save(disk)
    return running(disk, 9)


def test_every_crash_of_a_backup(twice):
    old, new = twice.copy(), twice.copy()
    save(new)
    old, new = newest(load(old)), newest(load(new))
    assert old != new
    found = []
    for n, _, image in crash_images(lambda disk, _: save(disk), twice.copy):
        found.append(newest(load(image.copy())))
        assert found[-1] in (old, new), f"operation {n}"
        save(image)
        assert newest(load(image)) == new, f"operation {n}"
    assert old in found and found[-1] == new and len(found) > 30


def test_every_crash_of_a_restore(twice):
    disk = twice.copy()
    save(disk)
    expected, images, empty = newest(Store("/state", disk)), 0, 0
    for n, _, image in crash_images(lambda disk, _: load(disk), disk.copy):
        store = Store("/new", image)
        begun = unfinished("/new", image)
        if store.sequences():
            assert newest(store) == expected and not begun, f"operation {n}"
        else:
            empty += 1
            assert begun or not [path for path in image.contents() if path.startswith("/new/") and "/." not in path], n
            store = load(image)
        assert dead(image, "/new") == dead(disk) and b'"snapshot": 9' in image.read("/new/progressive.json"), (
            f"operation {n}"
        )
        images += 1
    assert images > 60 and empty > 30


def test_the_restored_state_goes_on_as_if_nothing_had_happened(twice):
    """While the first one goes on too: its copy is of that moment."""
    disk = twice.copy()
    save(disk)
    running(disk, len(EVENTS))
    load(disk)
    assert final(consume(disk, [], directory="/new")) == final(consume(SimDisk(), []))
    assert dead(disk, "/new") == dead(disk)


def test_a_snapshot_that_is_pruned_meanwhile_gives_way_to_the_next(twice):
    class Prunes(Folder):
        def write(self, name, pieces):
            if name.startswith("files/dead_letters") and Store("/state", disk).sequences()[-1] == 9:
                running(disk, 12)
            super().write(name, pieces)

    disk = twice.copy()
    copied = backup(Store("/state", disk), Prunes("/copy", disk), "/copy")
    assert copied.manifest.snapshot == 12 and newest(load(disk)) == newest(Store("/state", disk))


def test_a_damaged_copy_is_refused_and_leaves_nothing(twice):
    disk = twice.copy()
    save(disk)
    manifest = read_manifest(Folder("/copy", disk), "/copy")
    for file in manifest.files:
        damaged = disk.copy()
        inode = damaged.live[f"/copy/{file.stored}"]
        inode.live[3] ^= 1
        with pytest.raises(BadBackup, match="nothing was restored"):
            load(damaged)
        assert not [path for path in damaged.contents() if path.startswith("/new/")]
        inode.live[3] ^= 1
        load(damaged)
    disk.remove(f"/copy/{file.stored}")
    with pytest.raises(BadBackup, match="nothing, expected"):
        load(disk)
    with pytest.raises(BadBackup, match="is not empty, it holds /state/"):
        load(twice.copy(), "/state")


@pytest.mark.parametrize(
    "manifest, said",
    [
        (b"", "expected the manifest"),
        (b"[]", "expected the manifest"),
        (b'{"format":2,"snapshot":1,"digest":"","time":"","files":[]}', "upgrade"),
        (b'{"format":1,"snapshot":-1,"digest":"","time":"","files":[]}', "expected the manifest"),
        *(
            (
                b'{"format":1,"snapshot":1,"digest":"","time":"","files":[{"path":"%s","size":1,"sha256":"%s"}]}'
                % (path, digest),
                "expected the manifest",
            )
            for path, digest in [
                (b"../state/x", b"0" * 64),
                (b"/etc/x", b"0" * 64),
                (b".x", b"0" * 64),
                (b"a/../../x", b"0" * 64),
                (b"x", b"0" * 63),
                (b"x", b"../" + b"0" * 61),
            ]
        ),
    ],
)
def test_a_manifest_that_is_none(manifest, said):
    disk = SimDisk({"/copy/manifest.json": manifest}, ("/copy", "/copy/files"))
    with pytest.raises(BadBackup, match=said):
        load(disk)
    make_folders(disk, "/new")
    assert disk.listdir("/new") == []
