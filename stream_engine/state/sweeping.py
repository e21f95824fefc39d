"""To forget means it: what a published snapshot has replaced is removed, also when the process that began it died.

Under the lock, in this order: dead letters that name it are overwritten (`connectors.files.dead_letters.overwrite`); a
mark says what is to be removed; the snapshot is published; then the rest is removed. A crash before the snapshot is
there leaves the counts of before and is answered by forgetting again; after one behind it, who takes the lock next ends
the removal.

    DIR/forgetting   {"snapshot": 43, "digest": "..."}

It is written, durably, before snapshot 43 is published, and holds no name. Once that snapshot is there, older snapshots
and all artifacts made from them (they speak of other ids, or hold names) are removed; then the mark itself. Where that
snapshot is not there the state is as it was before, and only the mark goes. Whoever takes the lock of a state does this
first.
"""

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

import msgspec

from connectors.disk import Disk, unfinished, write_whole
from stream_engine.data import container

MARK = "forgetting"
SERVED = "served"  # folder of the exports that a run has built for readers
_EXPORT = re.compile(r"export-[0-9]+")


class _Mark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to be removed, and the snapshot that says so; see the module."""

    snapshot: int
    digest: str


def mark(directory: Path, disk: Disk, snapshot: int, digest: str) -> None:
    """Say what is to be removed once the snapshot is published. Raises `OSError`."""
    write_whole(disk, directory / MARK, [msgspec.json.encode(_Mark(snapshot, digest))])


def finish(directory: str | Path, disk: Disk | None = None) -> None:
    """Remove what is to be removed, if anything is. The state is locked. Raises `OSError`."""
    disk, directory = disk or Disk(), Path(directory)
    path = directory / MARK
    if not disk.exists(path):
        return
    try:
        content = msgspec.json.decode(disk.read(path), type=_Mark)
    except msgspec.DecodeError as error:
        raise RuntimeError(
            f"{path}: {error}; not what `forget` writes, so not followed. Remove it, and forget again"
        ) from None
    if _published(directory, disk, content):
        _sweep(directory, disk, content)
    disk.remove(path)
    disk.fsync_dir(directory)


def _published(directory: Path, disk: Disk, content: _Mark) -> bool:
    path = directory / "snapshots" / f"{content.snapshot:012}.snapshot"
    try:
        return disk.exists(path) and container.decode(disk.read(path))[3] == content.digest
    except container.Corrupt:
        return False


def _sweep(directory: Path, disk: Disk, content: _Mark) -> None:
    folders = [(directory / "snapshots", suffix) for suffix in (".snapshot", ".order")]
    if disk.exists(directory / "artifacts"):
        folders += [(directory / "artifacts" / kind, ".artifact") for kind in disk.listdir(directory / "artifacts")]
    for folder, suffix in folders:
        names = disk.listdir(folder)
        new = f"{content.snapshot:012}{suffix}"
        half = [name for name in names if (left := unfinished(name)) and left[0].endswith(suffix)]
        old = [name for name in names if re.fullmatch(r"[0-9]{12}" + re.escape(suffix), name) and name < new]
        _remove(disk, folder, half + old)
    remove_exports(directory / SERVED)  # they hold names


def remove_exports(folder: Path) -> None:
    """Remove the exports that a run has built there, and the folder if nothing else is in it."""
    if not folder.is_dir():
        return
    for each in folder.iterdir():
        if _EXPORT.fullmatch(each.name):
            shutil.rmtree(each, ignore_errors=True)
    with suppress(OSError):  # files of somebody else, or a link
        folder.rmdir()


def _remove(disk: Disk, folder: Path, names: list[str]) -> None:
    for name in names:
        disk.remove(os.path.join(folder, name))
    if names:
        disk.fsync_dir(folder)
