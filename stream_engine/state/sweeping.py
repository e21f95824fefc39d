"""Removal of what a snapshot after forgetting has replaced, also if the process that began it died.

    DIR/forgetting   {"snapshot": 43, "digest": "..."}

This mark is durable before snapshot 43 is published and holds no name. Once the snapshot is there, older snapshots and
their artifacts are removed, then the mark; if the snapshot is not there, only the mark.
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


# Under the lock, in this order: dead letters that name the object are overwritten; the mark is written; the snapshot is
# published; the rest is removed. After a crash, whoever takes the lock next finishes the removal first.
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
        return disk.is_file(path) and container.decode(disk.read(path))[3] == content.digest
    except container.NotTrusted as error:  # signed; the mark has the digest of the content, which no key changes
        return error.digest == content.digest
    except container.Corrupt:
        return False


def _sweep(directory: Path, disk: Disk, content: _Mark) -> None:
    folders = [(directory / "snapshots", suffix) for suffix in (".snapshot", ".order")]
    if disk.exists(directory / "artifacts"):
        folders += [(directory / "artifacts" / kind, ".artifact") for kind in disk.listdir(directory / "artifacts")]
    folders = [(folder, suffix) for folder, suffix in folders if disk.is_folder(folder)]
    for folder, suffix in folders:
        names = [name for name in disk.listdir(folder) if not disk.is_folder(folder / name)]
        new = f"{content.snapshot:012}{suffix}"
        half = [name for name in names if (partial_file := unfinished(name)) and partial_file[0].endswith(suffix)]
        old = [name for name in names if re.fullmatch(r"[0-9]{12}" + re.escape(suffix), name) and name < new]
        _remove(disk, folder, half + old)
    remove_exports(directory / SERVED)  # they hold names


def remove_exports(folder: Path) -> None:
    """Remove the exports that a run has built there, and the folder if nothing else is in it."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if _EXPORT.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):  # files of somebody else, or a link
        folder.rmdir()


def _remove(disk: Disk, folder: Path, names: list[str]) -> None:
    for name in names:
        disk.remove(os.path.join(folder, name))
    if names:
        disk.fsync_dir(folder)
