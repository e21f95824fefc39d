"""A consistent copy of a state directory, taken while a run may be writing to it.

    TO/000000000042/                 named by its newest snapshot, laid out as the state directory: copy it back
    TO/000000000042/manifest.json    written last, with the SHA-256 of every file: a folder without it is no backup

Snapshots and artifacts never change and are linked where possible; of dead letters, a fixed number of bytes is copied.
No lock is taken: if a run prunes files meanwhile, the copy starts again from the newest snapshot.
"""

import hashlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from connectors.disk import Disk, write_whole
from connectors.files.dead_letters import parts_before
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import NoSuchSnapshot, Store, read_note

ATTEMPTS = 10  # to copy a snapshot before a run prunes it
MANIFEST = "manifest"
_PIECE = 8 << 20
_OF_A_PROCESS = ("lock", "in_flight", "suspects.json", "scratch", "served", "forgetting")  # not of the state
_NOT_COPIED = (*_OF_A_PROCESS, f"{MANIFEST}.json")  # a state that was restored has that of its backup
_PUBLISHED = ("snapshots", "artifacts", "dead_letters")


class BadBackup(RuntimeError):
    """The target cannot take this backup; one line."""


class Backup(NamedTuple):
    """Where a backup is, the number of its newest snapshot, how many files it has, and whether it had all of them
    before."""

    folder: Path
    snapshot: int
    files: int
    before: bool


def backup(store: Store, target: Path, dead_letters: str | None = None) -> Backup:
    """Copy the newest whole snapshot, and what belongs to it, to a folder of its own below `target`.

    `dead_letters` is their folder, where it is not DIR/dead_letters. Raises `BadBackup`, `NoSuchSnapshot`, `OSError`.
    """
    state = os.path.abspath(store.directory)
    if os.path.commonpath([os.path.abspath(target), state]) == state:
        raise BadBackup(f"{target}: lies inside the state {store.directory}; name another --to")
    disk = store.disk
    for attempt in range(ATTEMPTS):
        try:
            newest = store.newest()
            folder = target / store.snapshot_path(newest.sequence).stem
            if manifest := Store(folder, disk).noted(MANIFEST):
                if manifest.get("digest") != newest.digest:
                    raise BadBackup(f"{folder}: holds a snapshot of another state; name another --to")
                files = {
                    each.name: _digest(disk, each.path, each.size) for each in _sources(store, newest, dead_letters)
                }
                if files == manifest["files"]:
                    return Backup(folder, newest.sequence, len(files), True)
                disk.remove(folder / f"{MANIFEST}.json")  # until all that has come since is there
                disk.fsync_dir(folder)
            files = {each.name: _copy(disk, each, folder / each.name) for each in _sources(store, newest, dead_letters)}
            break
        except (FileNotFoundError, NoSuchSnapshot):  # pruned by a run meanwhile
            if attempt + 1 == ATTEMPTS:
                raise
    time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    note = {"snapshot": newest.sequence, "digest": newest.digest, "time": time, "files": files}
    Store(folder, disk).note(MANIFEST, note, durable=True)
    return Backup(folder, newest.sequence, len(files), False)


class _SourceFile(NamedTuple):
    """A file of a state: its name in the backup, how many of its bytes belong there, and whether it never changes."""

    name: str
    path: Path
    size: int
    is_fixed: bool = False


def _sources(store: Store, snapshot: Snapshot, dead_letters: str | None) -> Iterator[_SourceFile]:
    """All files of a backup of that snapshot."""
    directory, disk = store.directory, store.disk
    artifacts = [artifact for kind in store.kinds() if (artifact := store.latest_artifact(kind, snapshot.sequence))]
    published = [store.artifact_path(artifact.kind, artifact.sequence) for artifact in artifacts]
    for path in [store.snapshot_path(snapshot.sequence), *published]:
        yield _SourceFile(os.path.relpath(path, directory), path, disk.size(path), True)
    letters = Path(dead_letters) if dead_letters else directory / "dead_letters"
    for part in parts_before(letters, snapshot.counters.get("sinks", {}).get("file", 0), disk):
        yield _SourceFile(f"dead_letters/{part.name}", letters / part.name, part.size)
    seconds = [f"artifacts/{artifact.kind}/seconds.json" for artifact in artifacts]
    notes = [name for name in seconds if disk.is_file(directory / name)]
    for name in (*notes, *_others(store, "")):
        yield _SourceFile(name, directory / name, disk.size(directory / name))


def _copy(disk: Disk, source: _SourceFile, target: Path) -> str:
    """Copy or link a file, unless it is there already; its SHA-256."""

    def fill(temporary: Any) -> None:
        if not (source.is_fixed and disk.link(source.path, temporary)):
            disk.write_new(temporary, _pieces(disk, source.path, source.size))

    wanted = _digest(disk, source.path, source.size) if disk.is_file(target) else None
    if wanted is not None and wanted == _digest(disk, target, disk.size(target)):
        disk.fsync_dir(target.parent)
        return wanted
    write_whole(disk, target, fill)
    return _digest(disk, target, disk.size(target))


def _others(store: Store, inside: str) -> Iterator[str]:
    """Whatever else lies in the directory, whoever put it there: notes, and the files of a study. What is neither a
    file nor a folder is told and skipped, as is a link to a folder that it is in."""
    disk, folder = store.disk, os.path.realpath(store.directory / inside)
    for name in disk.listdir(store.directory / inside):
        path = os.path.join(inside, name)
        if name.startswith(".") or path in _NOT_COPIED + _PUBLISHED:
            continue
        real = os.path.realpath(store.directory / path)
        if disk.is_file(store.directory / path):
            yield path
        elif disk.is_folder(store.directory / path) and os.path.commonpath([real, folder]) != real:
            yield from _others(store, path)
        else:
            store.tell_once(f"{store.directory / path}: is no ordinary file; skipped")


def _pieces(disk: Disk, path: Path, size: int) -> Iterator[bytes]:
    for at in range(0, size, _PIECE):
        yield disk.read(path, at, min(_PIECE, size - at))


def _digest(disk: Disk, path: Path, size: int) -> str:
    digest = hashlib.sha256()
    for piece in _pieces(disk, path, size):
        digest.update(piece)
    return digest.hexdigest()


def restored(directory: Path, newest: int | None) -> tuple[int, list[str]] | None:
    """Whether a copy of a backup is what was backed up: how many files it has, and a line for each that differs; None
    of a directory that is no such copy, or has gone on since. Raises `Corrupt`, `OSError`."""
    if not (directory / f"{MANIFEST}.json").exists():
        return None
    manifest = read_note(directory / f"{MANIFEST}.json")
    if newest is not None and manifest["snapshot"] < newest:
        return None
    differing, disk = [], Disk()
    for name, digest in manifest["files"].items():
        path = directory / name
        if not path.is_file():
            differing.append(f"{name}: missing, the backup has it")
        elif _digest(disk, path, disk.size(path)) != digest:
            differing.append(f"{name}: differs from the backup")
    return len(manifest["files"]), differing
