"""Everything in a state directory, checked without its sources: one finding a thing. Reads only, and takes no lock: a
run may be at work, so that a snapshot may be pruned while it is read.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from stream_engine.data.container import Corrupt
from stream_engine.service.repair.dead_letter_lines import lines, segments
from stream_engine.service.repair.invariants import broken
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import NoSuchSnapshot, Store

OK, WRONG, NOTE = "ok", "WRONG", "note"
KNOWN = ("lock", "snapshots", "artifacts", "dead_letters", "scratch", "in_flight")
_LETTER = ("partition", "offset", "index", "reason", "message")


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
    yield from _side_files(store)


def _lock(directory: Path) -> Finding:
    path = directory / "lock"
    if not path.exists():
        return Finding("lock", NOTE, "nobody has run here yet")
    owner = path.read_text(errors="replace").strip() or "unknown"
    held = _is_held(path)
    text = {True: f"held by process {owner}", False: "free", None: f"last held by process {owner}"}[held]
    return Finding("lock", OK, text)


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
    there, count = segments(folder, position), 0
    for segment in there:
        what = f"dead letters {segment.path.name}"
        if segment.size < segment.wanted:
            yield Finding(
                what, WRONG, f"holds {segment.size:,} bytes, the newest snapshot relies on {segment.wanted:,}: lost"
            )
            continue
        letters, problem = _letters(lines(segment))
        count += letters
        behind = segment.size - segment.wanted
        more = f"; {behind:,} bytes behind it, which the next run cuts off" if behind else ""
        yield Finding(what, WRONG if problem else OK, problem or f"{letters:,} letters up to the position{more}")
    refused = sum(snapshot.counters["rejected"].values())
    moved_away = bool(there) and there[0].number > 1
    if not moved_away and not snapshot.counters.get("history") and position and count != refused:
        yield Finding("dead letters", WRONG, f"{count:,} letters, {refused:,} refused by the counters")
    if not there:
        yield Finding("dead letters", OK if not refused else NOTE, f"none in {folder}; {refused:,} events were refused")


def _letters(letters: Iterator[bytes]) -> tuple[int, str]:
    """How many lines, and what is wrong with the first that is no letter."""
    count = 0
    for count, line in enumerate(letters, 1):
        try:
            letter = json.loads(line)
            missing = [key for key in _LETTER if key not in letter]
        except ValueError as error:
            return count, f"line {count} is no dead letter: {error}"
        if missing or not ({"value", "value_base64"} & letter.keys()) or not line.endswith(b"\n"):
            return count, f"line {count} is no dead letter: {', '.join(missing) or 'value'} missing, or cut short"
    return count, ""


def _side_files(store: Store) -> Iterator[Finding]:
    for name in sorted(os.listdir(store.directory)):
        path = store.directory / name
        if name.endswith(".json") and path.is_file():
            try:
                json.loads(path.read_text(encoding="utf-8"))
                yield Finding(name, OK, "can be read; not part of the state")
            except (OSError, ValueError) as error:
                yield Finding(name, WRONG, f"cannot be read ({error}); not part of the state: remove it")
        elif name not in KNOWN:
            yield Finding(name, NOTE, "not ours; left alone")
    for folder in (store.directory / "snapshots", *(store.directory / "artifacts").glob("*")):
        for name in sorted(os.listdir(folder)) if folder.is_dir() else ():
            if name.startswith("."):
                yield Finding(
                    f"{folder.name}/{name}", NOTE, "half written; removed when the next snapshot is published"
                )
