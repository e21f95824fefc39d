"""Everything in a state directory, checked without its sources: one finding a thing. Reads only, and takes no lock: a
run may be at work, so that a snapshot may be pruned while it is read.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from connectors.files.dead_letters import check_folder, segment_name
from stream_engine.data import container
from stream_engine.data.container import Corrupt
from stream_engine.service.repair.invariants import broken
from stream_engine.state.backup import restored
from stream_engine.state.order_file import KIND as ORDER
from stream_engine.state.order_file import SUFFIX
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import NoSuchSnapshot, Store, read_note

OK, WRONG, NOTE = "ok", "WRONG", "note"
NOTES = ("progressive.json", "counts_told.json", "seconds.json", "manifest.json")  # by `Store.note`


class Finding(NamedTuple):
    """A thing, what became of it, and one line about it."""

    what: str
    verdict: str
    text: str


def check_state(directory: str | Path, dead_letters: str | None = None) -> Iterator[Finding]:
    """All findings, the newest snapshot first. Raises `NoSuchSnapshot` where there is no state."""
    store = Store(directory)
    if not store.sequences():
        raise NoSuchSnapshot(f"{directory}: no snapshot there; name the --state of a run")
    yield _lock(store.directory)
    newest: Snapshot | None = None
    digests: dict[int, str] = {}
    for sequence in reversed(store.sequences()):
        snapshot, findings = _snapshot(store, sequence)
        yield from findings
        if snapshot is not None:
            newest = newest or snapshot
            digests[sequence] = snapshot.digest
    if newest is None:
        yield Finding(
            "state", WRONG, "no snapshot is whole; restore one from a copy, or start anew with another --state"
        )
    yield from _artifacts(store, digests)
    if newest is not None:
        yield from _dead_letters(Path(dead_letters) if dead_letters else store.directory / "dead_letters", newest)
    by_name = {store.snapshot_path(sequence).stem: digest for sequence, digest in digests.items()}
    yield from _side_files(store, newest, by_name)
    yield from _of_a_backup(store.directory, newest)


def _lock(directory: Path) -> Finding:
    path = directory / "lock"
    if not path.exists():
        return Finding("lock", NOTE, "nobody has run here yet")
    owner = path.read_text(errors="replace").strip() or "unknown"
    held = _is_held(path)
    text = {True: f"held by process {owner}", False: "free", None: f"last held by process {owner}"}[held]
    return Finding("lock", OK, f"{text}; not covered by a checksum, and no result rests on it")


def _is_held(path: Path) -> bool | None:
    """Whether somebody holds a lock on the file, from the system's list, which disturbs nobody; None: not known."""
    try:
        held = Path("/proc/locks").read_text()
    except OSError:
        return None
    return bool(re.search(rf":{path.stat().st_ino} ", held))


def _snapshot(store: Store, sequence: int) -> tuple[Snapshot | None, list[Finding]]:
    what = f"snapshot {sequence:012d}"
    try:
        size = store.snapshot_path(sequence).stat().st_size
        snapshot = store.read(sequence)
        problems = list(broken(snapshot))
    except (NoSuchSnapshot, FileNotFoundError):
        return None, [Finding(what, NOTE, "pruned meanwhile by the run that owns the state")]
    except Corrupt as error:
        return None, [Finding(what, WRONG, str(error).removeprefix(f"{what}: "))]
    if snapshot.sequence != sequence:
        problems.append(f"holds the number {snapshot.sequence}")
    if problems:
        return snapshot, [Finding(what, WRONG, problem) for problem in problems]
    text = (
        f"{snapshot.counters['comparisons']:,} comparisons, {len(snapshot.objects):,} objects, "
        f"{len(snapshot.positions):,} partitions, {size:,} bytes, sha256 {snapshot.digest[:16]}"
    )
    return snapshot, [Finding(what, OK, text)]


def _artifacts(store: Store, digests: dict[int, str]) -> Iterator[Finding]:
    for kind in store.kinds():
        for sequence in reversed(store.artifact_sequences(kind)):
            what = f"artifact {kind} {sequence:012d}"
            try:
                artifact = store.artifact(kind, sequence)
            except FileNotFoundError:
                yield Finding(what, NOTE, "pruned meanwhile by the run that owns the state")
                continue
            except Corrupt as error:
                yield Finding(what, WRONG, str(error).removeprefix(f"{what}: "))
                continue
            made_from = digests.get(sequence, artifact.snapshot)
            if (artifact.kind, artifact.sequence) != (kind, sequence):
                yield Finding(what, WRONG, f"holds {artifact.kind} of snapshot {artifact.sequence}")
            elif artifact.snapshot != made_from:
                yield Finding(what, WRONG, f"made from another snapshot than the {sequence} that is here")
            else:
                there = "that is kept" if sequence in digests else "that is not kept any more"
                yield Finding(what, OK, f"made from the snapshot {there}, {len(artifact.arrays)} arrays")


def _dead_letters(folder: Path, snapshot: Snapshot) -> Iterator[Finding]:
    position = snapshot.counters.get("sinks", {}).get("file", 0)
    if not isinstance(position, int) or position < 0:
        yield Finding("dead letters", WRONG, f"position {position!r} in the snapshot, expected a whole number >= 0")
        return
    checked = check_folder(folder, position)
    for segment in checked:
        text = f"{segment.letters:,} letters up to the position"
        if segment.unchecked:
            text += f"; {segment.unchecked:,} of them have no checksum (written by version 0.1.0)"
        if segment.behind:
            text += f"; {segment.behind:,} bytes behind it, which the next run cuts off"
        yield Finding(f"dead letters {segment.name}", WRONG if segment.problem else OK, segment.problem or text)
    refused, count = sum(snapshot.counters["rejected"].values()), sum(segment.letters for segment in checked)
    moved_away = bool(checked) and checked[0].name != segment_name(1)
    whole = not any(segment.problem for segment in checked)
    if whole and not moved_away and not snapshot.counters.get("history") and position and count != refused:
        yield Finding("dead letters", WRONG, f"{count:,} letters, {refused:,} refused by the counters")
    if not checked:
        yield Finding("dead letters", OK if not refused else NOTE, f"none in {folder}; {refused:,} events were refused")


def _side_files(store: Store, snapshot: Snapshot | None, digests: Mapping[str, str]) -> Iterator[Finding]:
    """Everything else below the directory: canonical orders and notes by their checksums; no result rests on the
    others."""
    sources = {} if snapshot is None else snapshot.positions
    for path in sorted(path for path in store.directory.rglob("*") if path.is_file()):
        what = os.path.relpath(path, store.directory)
        if path.suffix in (".snapshot", ".artifact") or what.startswith("dead_letters"):
            continue
        try:
            if path.suffix == SUFFIX:
                kind, meta, *_ = container.load(path, store.signing)
                if kind != ORDER or meta.get("snapshot") != digests.get(path.stem, meta.get("snapshot")):
                    raise Corrupt("is not the canonical order of the snapshot beside it")
                yield Finding(what, OK, f"canonical order of {meta.get('net_votes'):,} net votes")
            elif path.name in NOTES:
                read_note(path)
                yield Finding(what, OK, "figures for people, not part of the state")
            elif str(path) in sources:
                yield Finding(what, NOTE, f"a source: `stream-engine verify --state {store.directory} {path}` recounts")
            elif path.name.startswith("."):
                yield Finding(what, NOTE, "half written; removed when the next snapshot is published")
            elif what != "lock":
                yield Finding(what, NOTE, "not covered by a checksum, and no result rests on it")
        except FileNotFoundError:
            yield Finding(what, NOTE, "pruned meanwhile by the run that owns the state")
        except (OSError, Corrupt) as error:
            yield Finding(what, WRONG, f"{error}; not part of the state: remove it")


def _of_a_backup(directory: Path, newest: Snapshot | None) -> Iterator[Finding]:
    """Of a backup, or a copy of one from which no run has gone on: every file against the manifest."""
    try:
        found = restored(directory, None if newest is None else newest.sequence)
    except (OSError, Corrupt):
        return  # told of the file itself
    if found is not None:
        files, differing = found
        yield from (Finding("backup", WRONG, line) for line in differing)
        if not differing:
            yield Finding("backup", OK, f"all {files} files are those that were backed up")
