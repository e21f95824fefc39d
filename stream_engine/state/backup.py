"""A consistent copy of a state directory, taken while a run may be at work in it.

Snapshots and artifacts are files that never change; dead letters only grow, so those up to the position that the newest
copied snapshot relies on are a fixed number of bytes. What a run prunes while it is being copied is not there any more:
then the copy begins again, with the snapshot that is the newest by then. No lock of the state is taken.
"""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from connectors.files.dead_letter_parts import parts_before
from connectors.targets import Target, pieces_of
from stream_engine.data.container import Corrupt
from stream_engine.state.manifest import (
    FOLDER,
    NAME,
    BadBackup,
    Differs,
    File,
    Manifest,
    checked,
    digest_of,
    encode,
    read_manifest,
)
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import NoSuchSnapshot, Store

ATTEMPTS = 10  # to copy a snapshot before a run prunes it
_WHOLE = 1 << 62  # more bytes than a file has
_COLLECTED = (  # of a study: room `collect`
    *("answers.jsonl", "sessions.jsonl", "refused.jsonl"),
    *("log", "secret", "study.toml", "words.toml"),
)
_OF_A_PROCESS = ("suspects.json",)  # how processes on this very directory died


class Copied(NamedTuple):
    """What a backup has done: its manifest, and how many files and bytes were not in the target yet."""

    manifest: Manifest
    files: int
    bytes: int


class _Part(NamedTuple):
    """A file of the state that is to be copied: its first `size` bytes."""

    path: str  # below the state directory
    source: Path
    size: int = _WHOLE


def backup(store: Store, target: Target, where: str, keep: int = 1, dead_letters: str | None = None) -> Copied:
    """Copy the newest `keep` whole snapshots, their artifacts, the dead letters and the notes for people to a target,
    which holds this backup or the one before, whenever this ends. `where` names the target in messages.

    `dead_letters` is their folder, where it is not DIR/dead_letters. Raises `BadBackup`, `NoSuchSnapshot`, `OSError`.
    """
    before = read_manifest(target, where)
    for attempt in range(ATTEMPTS):
        snapshots = _newest(store, keep)
        _refuse_older(before, snapshots[0], store, where)
        try:
            copied = _copy(store, target, snapshots, dead_letters)
            break
        except (FileNotFoundError, Differs, NoSuchSnapshot):
            if attempt + 1 == ATTEMPTS or store.sequences()[-1:] == [snapshots[0].sequence]:
                raise
    target.write(NAME, [encode(copied.manifest)])
    for stored in target.sizes(FOLDER).keys() - {file.stored for file in copied.manifest.files}:
        target.remove(stored)
    return copied


def _newest(store: Store, keep: int) -> list[Snapshot]:
    """The newest whole snapshots, newest first. Raises `NoSuchSnapshot`."""
    found: list[Snapshot] = []
    for sequence in reversed(store.sequences()):
        try:
            found.append(store.read(sequence))
        except (Corrupt, NoSuchSnapshot, FileNotFoundError):  # damaged, or pruned a moment ago
            continue
        if len(found) == keep:
            break
    if not found:
        raise NoSuchSnapshot(f"{store.directory}: no whole snapshot there to back up")
    return found


def _refuse_older(before: Manifest | None, newest: Snapshot, store: Store, where: str) -> None:
    """Raise `BadBackup` where the target holds what this state has not come to, or another one's."""
    if before is None:
        return
    if before.snapshot > newest.sequence or (before.snapshot == newest.sequence and before.digest != newest.digest):
        raise BadBackup(
            f"{where}: holds snapshot {before.snapshot} of {before.time}, {store.directory} has "
            f"{'another ' if before.snapshot == newest.sequence else ''}{newest.sequence}; that may be "
            "the copy of another state: name another --to, or remove it"
        )


def _copy(store: Store, target: Target, snapshots: list[Snapshot], dead_letters: str | None) -> Copied:
    """Copy what is not there yet."""
    there = target.sizes(FOLDER)
    files: list[File] = []
    written = size = 0
    for part in _parts(store, snapshots, dead_letters):
        file = File(part.path, *digest_of(pieces_of(store.disk, part.source, part.size)))
        files.append(file)
        if there.get(file.stored) != file.size:
            target.write(file.stored, checked(pieces_of(store.disk, part.source, part.size), file, str(part.source)))
            written, size = written + 1, size + file.size
    time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return Copied(Manifest(1, snapshots[0].sequence, snapshots[0].digest, time, files), written, size)


def _parts(store: Store, snapshots: list[Snapshot], dead_letters: str | None) -> Iterator[_Part]:
    """What the snapshots rely on, then the newest, then those before it."""
    directory, disk = store.directory, store.disk
    letters = Path(dead_letters) if dead_letters else directory / "dead_letters"
    position = snapshots[0].counters.get("sinks", {}).get("file", 0)
    for name, size in parts_before(letters, position, disk):
        yield _Part(f"dead_letters/{name}", letters / name, size)
    for kind in store.kinds():
        found = [store.latest_artifact(kind, snapshot.sequence) for snapshot in snapshots]
        for sequence in sorted({artifact.sequence for artifact in found if artifact}):
            path = store.artifact_path(kind, sequence)
            yield _Part(os.path.relpath(path, directory), path)
    for path in (directory / "collect" / name for name in _COLLECTED):
        if disk.exists(path):  # before the snapshots: its lines are those that they have counted, and more
            yield _Part(os.path.relpath(path, directory), path, disk.size(path))
    shown = directory / "collect" / "objects"  # to participants: files that never change
    for name in disk.listdir(shown) if disk.exists(shown) else ():
        if not name.startswith("."):
            yield _Part(f"collect/objects/{name}", shown / name)
    for name in disk.listdir(directory):
        if name.endswith(".json") and not name.startswith(".") and name not in _OF_A_PROCESS:
            yield _Part(name, directory / name)
    for snapshot in snapshots:
        path = store.snapshot_path(snapshot.sequence)
        yield _Part(os.path.relpath(path, directory), path)
