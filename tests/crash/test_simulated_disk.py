"""The simulated disk is a disk (it does what the real one does), and it forgets what may be forgotten."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.disk import Disk
from tests.support.simulated_disk import DIRECTORY, PowerCut, SimDisk, crash_images

NAMES = st.sampled_from(["a", "b", "d", "d/a", "d/b"])
OPERATIONS = st.one_of(
    st.tuples(st.sampled_from(["append", "write_new"]), NAMES, st.lists(st.binary(max_size=5), max_size=3)),
    st.tuples(st.just("truncate"), NAMES, st.integers(0, 6)),
    st.tuples(st.sampled_from(["fsync", "remove", "mkdir", "read", "size", "exists", "listdir", "fsync_dir"]), NAMES),
    st.tuples(st.just("rename"), st.sampled_from([("a", "b"), ("b", "a"), ("d/a", "d/b")])),
)


def outcome(disk, root, operation):
    name, path, *arguments = operation
    try:
        return getattr(disk, name)(*at(root, path), *arguments)
    except FileExistsError as error:
        return type(error)
    except OSError:
        return "refused"  # a file where a directory should be, or nothing: which of both differs


def at(root, path):
    return [f"{root}/{p}" for p in (path if isinstance(path, tuple) else (path,))]


def for_directories(sim, root, operation):
    """What is asked of files only: that directories can be renamed, read or synced as files is not simulated."""
    return operation[0] not in ("listdir", "fsync_dir", "exists", "mkdir") and any(
        sim.live.get(path) is DIRECTORY for path in at(root, operation[1])
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(OPERATIONS, max_size=20))
def test_it_does_what_the_real_disk_does(tmp_path_factory, operations):
    root = tmp_path_factory.mktemp("disk")
    sim, real = SimDisk(directories=(str(root), *map(str, root.parents))), Disk()
    for operation in operations:
        if not for_directories(sim, root, operation):
            assert outcome(sim, root, operation) == outcome(real, root, operation), operation
    files = {str(p): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    assert sim.contents() == files


def found(disk):
    return [image.contents() for image in disk.images()]


def test_unsynced_content_survives_whole_torn_as_zeros_or_not_at_all():
    disk = SimDisk({"/state/f": b"old"})
    disk.append("/state/f", [b"new!"])
    assert {image["/state/f"] for image in found(disk)} == {b"old", b"oldnew!", b"oldne", b"old\0\0\0\0"}
    disk.fsync("/state/f")
    assert found(disk) == [{"/state/f": b"oldnew!"}]


def test_an_unsynced_name_may_be_lost_with_its_synced_content():
    disk = SimDisk()
    disk.write_new("/state/f", [b"x"])
    disk.fsync("/state/f")
    assert sorted(map(str, found(disk))) == sorted(["{}", "{'/state/f': b'x'}"])
    disk.fsync_dir("/state")
    assert found(disk) == [{"/state/f": b"x"}]


def test_a_rename_is_whole_or_not_at_all_and_a_lost_directory_takes_its_files():
    disk = SimDisk({"/state/t": b"new", "/state/f": b"old"})
    disk.rename("/state/t", "/state/f")
    assert found(disk) == [{"/state/t": b"new", "/state/f": b"old"}, {"/state/f": b"new"}]
    disk = SimDisk()
    disk.mkdir("/state/d")
    disk.write_new("/state/d/f", [b"x"])
    disk.fsync("/state/d/f")
    disk.fsync_dir("/state/d")
    assert found(disk) == [{}, {"/state/d/f": b"x"}]


def test_power_is_cut_before_every_operation_and_stays_off():
    def run(disk, promises):
        try:
            for i in range(3):
                disk.append("/state/f", [b"x"])
                promises.append(i)
        finally:
            with pytest.raises(PowerCut) if disk.dead else pytest.raises(FileNotFoundError):
                disk.read("/state/g")

    lengths = {
        n: (
            len(promises),
            max(len(image.contents().get("/state/f", b"")) for n_, _, image in crash_images(run) if n_ == n),
        )
        for n, promises, _ in crash_images(run)
    }
    assert lengths == {0: (0, 0), 1: (1, 1), 2: (2, 2), 3: (3, 3)}


def test_a_full_disk_takes_what_fits():
    disk = SimDisk({"/state/f": b"abc"}, capacity=5)
    with pytest.raises(OSError, match="No space left"):
        disk.append("/state/f", [b"xyz"])
    assert disk.read("/state/f") == b"abcxy"
