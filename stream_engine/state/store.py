"""Where snapshots and artifacts are published: one immutable file each, complete or absent.

    DIR/lock                                  held while a process owns the state
    DIR/snapshots/000000000042.snapshot       newest K are kept
    DIR/artifacts/KIND/000000000042.artifact  named after the snapshot it was made from
    DIR/snapshots/000000000042.order          its canonical order, once computed (order_file)
    DIR/artifacts/KIND/seconds.json           what its newest artifact took to make; not part of the state
    DIR/counts_told.json                      how well counts alone answer, for `inspect`; not part of the state
    DIR/excluded.json                         participants who are excluded (exclusion); not part of the state
    DIR/progressive.json                      how predictions went up to the newest snapshot; not part of the state

A file is written under another name, synced and renamed, and its folder synced: after `publish` it survives a crash.
Readers never see half a file; of a damaged one the predecessor is used.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from connectors.disk import Disk, FolderInUse, FolderLock, is_owned, unfinished, write_whole
from stream_engine.counts.removal import CannotForget
from stream_engine.data.container import Corrupt, NewerVersion, NotForThisProcess
from stream_engine.data.signatures import Signing, signing_of_environment
from stream_engine.state import artifact as artifacts
from stream_engine.state import exclusion, sweeping
from stream_engine.state import snapshot as snapshots
from stream_engine.state.artifact import Artifact
from stream_engine.state.artifact_checks import check_artifact
from stream_engine.state.order_file import SUFFIX, OrderFile
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot

_DIGITS = 12
DIGEST = "sha256"  # of the rest of a note
MAX_NOTE_BYTES = 1 << 28  # bytes; the manifest of a backup has a line a file


class StateInUse(RuntimeError):
    """Another process owns the state directory."""


class NoSuchSnapshot(LookupError):
    """No snapshot with that number is kept; the message lists those that are."""


class NoSnapshotName(ValueError):
    """What is to name a snapshot is neither a number nor "latest"."""


class Latest(NamedTuple):
    """The newest whole snapshot, if any, and one line for each damaged one that was passed over."""

    snapshot: Snapshot | None
    damaged: list[str]


def _say(line: str) -> None:
    print(f"stream-engine: {line}", file=sys.stderr)


class Store:
    """The published files below one state directory.

    `signing`: with which key files are signed and must be signed; none: as the environment says. `tell` gets a line for
    each damaged file that is passed over for an older one.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        disk: Disk | None = None,
        signing: Signing | None = None,
        tell: Callable[[str], None] = _say,
    ):
        self.directory = Path(directory)
        self.disk = disk or Disk()
        self.signing = signing_of_environment() if signing is None else signing
        self._tell, self._told_lines = tell, set[str]()

    def _numbers(self, folder: Path, suffix: str) -> list[int]:
        """Sequence numbers of the files there, ascending; what has such a name and is no file is skipped."""
        numbers = []
        for name in self.disk.listdir(folder) if self.disk.is_folder(folder) else []:
            number = name.removesuffix(suffix)
            if name.endswith(suffix) and len(number) == _DIGITS and number.isascii() and number.isdigit():
                if self.disk.is_file(folder / name):
                    numbers.append(int(number))
                else:
                    self.tell_once(f"{folder / name}: is no ordinary file; skipped")
        return sorted(numbers)

    def is_occupied(self, sequence: int) -> bool:
        """Whether something that no snapshot can replace, such as a folder, has the name of a snapshot."""
        path = self.snapshot_path(sequence)
        return self.disk.exists(path) and not self.disk.is_file(path)

    def snapshot_path(self, sequence: int) -> Path:
        """Where a snapshot of that number is published."""
        return self.directory / "snapshots" / f"{sequence:0{_DIGITS}}.snapshot"

    def artifact_path(self, kind: str, sequence: int) -> Path:
        """Where an artifact made from that snapshot is published."""
        return self.directory / "artifacts" / kind / f"{sequence:0{_DIGITS}}.artifact"

    def sequences(self) -> list[int]:
        """Numbers of the published snapshots, ascending."""
        return self._numbers(self.directory / "snapshots", ".snapshot")

    def artifact_sequences(self, kind: str) -> list[int]:
        """Numbers of the snapshots that a published artifact of this kind was made from, ascending."""
        return self._numbers(self.directory / "artifacts" / kind, ".artifact")

    @property
    def in_use(self) -> bool:
        """Whether a run is at work on it now."""
        return is_owned(self.directory)

    def publish(self, snapshot: Snapshot) -> tuple[Snapshot, int]:
        """Make a snapshot durable; returns it with its digest, and its size in bytes. Raises OSError."""
        chunks, named = snapshots.encode(snapshot, self.signing)
        write_whole(self.disk, self.snapshot_path(snapshot.sequence), chunks)
        return named, sum(chunk.nbytes for chunk in chunks)

    def publish_artifact(self, artifact: Artifact) -> Artifact:
        """Make an artifact durable; returns it with its digest. Raises OSError."""
        chunks, named = artifacts.encode(artifact, self.signing)
        write_whole(self.disk, self.artifact_path(artifact.kind, artifact.sequence), chunks)
        return named

    def note(self, name: str, value: dict[str, Any], durable: bool = False) -> None:
        """Write DIR/NAME.json with a checksum, whole or not at all. Raises OSError."""
        text = json.dumps({**value, DIGEST: _digest(value)}, indent=1, ensure_ascii=False) + "\n"
        write_whole(self.disk, self.directory / f"{name}.json", [text.encode()], durable)

    def noted(self, name: str) -> dict[str, Any]:
        """What `note` wrote last; empty where there is nothing, or not what was written."""
        try:
            return read_note(self.directory / f"{name}.json", self.disk)
        except (OSError, Corrupt):
            return {}

    def read(self, sequence: int) -> Snapshot:
        """One snapshot by number. Raises NoSuchSnapshot, Corrupt (both name the file and the next step)."""
        retained = self.sequences()
        if sequence not in retained:
            listed = ", ".join(map(str, retained)) or "none"
            raise NoSuchSnapshot(f"{self.directory}: no snapshot {sequence}; kept are {listed}")
        path = self.snapshot_path(sequence)
        try:
            if self._can_map():
                return _numbered(snapshots.read_snapshot(path, self.signing), sequence)
            return _numbered(snapshots.decode(self.disk.read(path), self.signing), sequence)
        except OSError as error:
            raise _unreadable(path, error) from None
        except NewerVersion as error:
            older = [n for n in retained if n < sequence]
            way = f", or move that file away to resume from {older[-1]:0{_DIGITS}}" if older else ""
            raise NewerVersion(f"snapshot {sequence:0{_DIGITS}}: {error}. Upgrade{way}") from None
        except Corrupt as error:
            raise type(error)(f"snapshot {sequence:0{_DIGITS}}: {error}") from None

    def named(self, which: str) -> Snapshot:
        """The snapshot that a person names: "latest" or a number. Raises NoSnapshotName, NoSuchSnapshot, Corrupt."""
        if which != "latest":
            if not (which.isascii() and which.isdigit() and len(which) <= _DIGITS):
                raise NoSnapshotName(f"--snapshot: got {which!r}, expected a number or latest")
            return self.read(int(which))
        return self.newest()

    def newest(self, use: Callable[[Snapshot], object] | None = None) -> Snapshot:
        """As `latest`, told what was passed over. Raises NoSuchSnapshot, Corrupt where all are damaged."""
        latest = self.latest(use)
        if latest.snapshot is None and latest.damaged:
            raise Corrupt(f"{self.directory}: every snapshot is damaged ({latest.damaged[0]}); restore one from a copy")
        if latest.snapshot is None:
            how = "`stream-engine run SOURCE --state DIR` makes one"
            if self.in_use:
                how = "the active run takes one at its next interval and when it ends"
            elif (self.directory / "lock").exists():
                how = f"a run started there and ended before its first snapshot, and none is active now; {how}"
            raise NoSuchSnapshot(f"{self.directory}: no snapshot there; {how}")
        for line in latest.damaged:
            self.tell_once(f"{line}; the one before it is read")
        return latest.snapshot

    def tell_once(self, line: str) -> None:
        """Tell a line, the first time that there is reason to."""
        if line not in self._told_lines:
            self._told_lines.add(line)
            self._tell(line)

    def excluded(self) -> tuple[str, ...]:
        """The participants who are excluded from what is fitted and reported."""
        names = self.noted(exclusion.NOTE).get("participants")
        return tuple(sorted(map(str, names))) if isinstance(names, list) else ()

    def exclude(self, names: Collection[str], include: Collection[str] = ()) -> None:
        """Leave out more participants, or take some in again. Raises OSError."""
        after = (set(self.excluded()) | set(names)) - set(include)
        self._note_excluded(after, self._excluded_by_merge() & after - set(names))

    def exclude_as_merged(self, names: Collection[str]) -> None:
        """Leave out the participants whom the merged states exclude, in place of those whom they excluded at the last
        merge. Raises OSError."""
        own = set(self.excluded()) - self._excluded_by_merge()
        self._note_excluded(own | set(names), set(names) - own)

    def _excluded_by_merge(self) -> set[str]:
        names = self.noted(exclusion.NOTE).get("by_merge")
        return set(map(str, names)) if isinstance(names, list) else set()

    def _note_excluded(self, names: set[str], by_merge: set[str]) -> None:
        if (names, by_merge) != (set(self.excluded()), self._excluded_by_merge()):
            merged = {"by_merge": sorted(by_merge)} if by_merge else {}
            self.note(exclusion.NOTE, {"participants": sorted(names), **merged})

    def published(self, which: str = "latest") -> Published:
        """The snapshot that `which` names, with its artifacts. Raises what `named` raises."""
        return self.with_artifacts(self.named(which))

    def with_artifacts(self, snapshot: Snapshot) -> Published:
        """A snapshot without the participants who are excluded, with the newest whole artifact of each kind that was
        made from it or from one before it. Raises `CannotForget` where they cannot be excluded."""
        excluded = self.excluded()
        n = len(snapshot.objects)
        newest = {kind: self.latest_artifact(kind, snapshot.sequence, n) for kind in self.kinds()}
        path = self.snapshot_path(snapshot.sequence)
        order = OrderFile(path, snapshot.digest, self.disk, self.signing, self.tell_once) if snapshot.digest else None
        by_kind = {kind: artifact for kind, artifact in newest.items() if artifact}
        seconds = {kind: s for kind, artifact in by_kind.items() if (s := self._seconds(artifact)) is not None}
        if excluded:
            try:
                snapshot, order = exclusion.without(snapshot, excluded), None
            except CannotForget as error:
                to_include = f"stream-engine report --state {self.directory} --include participant=NAME"
                raise CannotForget(f"{error}; to include: {to_include}") from None
        return Published(snapshot, by_kind, seconds=seconds, excluded=excluded, order_file=order)

    def note_seconds(self, artifact: Artifact, seconds: float) -> None:
        """Write beside an artifact what it took to make; no part of it, for that would not come again. Raises
        OSError."""
        self.note(f"artifacts/{artifact.kind}/seconds", {"snapshot": artifact.sequence, "seconds": round(seconds, 3)})

    def _seconds(self, artifact: Artifact) -> float | None:
        """What `note_seconds` wrote of this artifact; None where that is not known."""
        noted = self.noted(f"artifacts/{artifact.kind}/seconds")
        seconds: Any = noted.get("seconds")
        if noted.get("snapshot") != artifact.sequence or type(seconds) not in (int, float):
            return None
        return float(seconds) if 0 <= seconds < float("inf") else None

    def _can_map(self) -> bool:
        """Whether files of this disk are real ones; those of a simulated disk are read."""
        return type(self.disk) is Disk

    def latest(self, use: Callable[[Snapshot], object] | None = None) -> Latest:
        """The newest intact snapshot that `use` (such as restoring an engine from it) accepts as well. Raises
        `NotForThisProcess`: a newer engine's state, or one of another key, is not damage."""
        damaged: list[str] = []
        for sequence in reversed(self.sequences()):
            try:
                snapshot = self.read(sequence)
                _used(snapshot, use)
                return Latest(snapshot, damaged)
            except NotForThisProcess:
                raise
            except Corrupt as error:
                damaged.append(str(error))
        return Latest(None, damaged)

    def artifact(self, kind: str, sequence: int, n_objects: int | None = None) -> Artifact:
        """One artifact, checked against what its kind declares, and against the number of objects of the snapshot that
        it is read beside. Raises Corrupt."""
        path = self.artifact_path(kind, sequence)
        try:
            if self._can_map():
                artifact = artifacts.read_artifact(path, self.signing)
            else:
                artifact = artifacts.decode(self.disk.read(path), self.signing)
            if (artifact.kind, artifact.sequence) != (kind, sequence):
                raise Corrupt(f"holds {artifact.kind[:80]} {artifact.sequence}, another one than it is named after")
            check_artifact(artifact, n_objects)
            return artifact
        except OSError as error:
            raise _unreadable(path, error) from None
        except Corrupt as error:
            raise type(error)(f"artifact {kind} {sequence:0{_DIGITS}}: {error}") from None

    def latest_artifact(self, kind: str, up_to: int | None = None, n_objects: int | None = None) -> Artifact | None:
        """The newest whole artifact of a kind, of those made from snapshot `up_to` or from one before it (None: from
        any), which knows `n_objects`. Damaged ones are passed over, and told: a refit makes them again. The one rule by
        which artifacts are chosen."""
        for sequence in reversed(self.artifact_sequences(kind)):
            if up_to is not None and sequence > up_to:
                continue
            try:
                return self.artifact(kind, sequence, n_objects)
            except Corrupt as error:
                self.tell_once(f"{error}; skipped, a refit makes it again")
        return None

    def kinds(self) -> list[str]:
        """Refits that have published an artifact here."""
        folder = self.directory / "artifacts"
        names = self.disk.listdir(folder) if self.disk.is_folder(folder) else []
        return sorted(name for name in names if self.disk.is_folder(folder / name))

    def replace(self, snapshot: Snapshot) -> Snapshot:
        """Publish a snapshot in place of all before it, see `sweeping`. The state is locked. Raises `OSError`."""
        sweeping.mark(self.directory, self.disk, snapshot.sequence, snapshots.encode(snapshot)[1].digest)
        published, _ = self.publish(snapshot)
        sweeping.finish(self.directory, self.disk)
        return published

    def prune(self, keep: int, whole_is: int | None = None) -> list[int]:
        """Remove all but the newest `keep` snapshots and artifacts of each kind, and half-written leftovers; returns
        the numbers of the snapshots removed.

        The last whole snapshot is never removed: damaged ones do not count towards `keep`. `whole_is` is one that this
        process has just published, so that it is known to be whole; any other is read to find out, O(its bytes).
        """
        removed = []
        whole = 0
        for sequence in reversed(self.sequences()):
            if whole >= keep:
                self.disk.remove(self.snapshot_path(sequence))
                removed.append(sequence)
            elif whole or sequence == whole_is or self._whole(sequence):
                whole += 1
        for kind in self.kinds():
            for sequence in self.artifact_sequences(kind)[:-keep]:
                self.disk.remove(self.artifact_path(kind, sequence))
        self._sweep(self.directory / "snapshots")
        self.remove_orders()
        return removed

    def remove_orders(self) -> None:
        """Remove the canonical orders of snapshots that are not there."""
        folder = self.directory / "snapshots"
        for sequence in set(self._numbers(folder, SUFFIX)).difference(self.sequences()):
            self.disk.remove(self.snapshot_path(sequence).with_suffix(SUFFIX))

    def _whole(self, sequence: int) -> bool:
        try:
            self.read(sequence)
        except Corrupt:
            return False
        return True

    def _sweep(self, folder: Path) -> None:
        """Remove what an interrupted `publish` of another process left (the state's lock is held: it is dead), and
        nothing that others put there."""
        for name in self.disk.listdir(folder) if self.disk.exists(folder) else []:
            partial_file = unfinished(name)
            is_ours = (
                partial_file and partial_file[0].endswith((".snapshot", SUFFIX)) and partial_file[1] != os.getpid()
            )
            if is_ours and not self.disk.is_folder(folder / name):
                self.disk.remove(folder / name)


class NoChecksum(Corrupt):
    """A note without a checksum, as version 0.1.0 wrote it: nobody can say whether it was changed."""


def read_note(path: Path, disk: Disk | None = None) -> dict[str, Any]:
    """What `Store.note` wrote to a file. Raises `Corrupt` unless it is that, bit for bit, `NoChecksum`; OSError."""
    disk = disk or Disk()
    if disk.exists(path) and not disk.is_file(path):
        raise Corrupt("is no ordinary file")
    if disk.exists(path) and disk.size(path) > MAX_NOTE_BYTES:
        raise Corrupt(f"got {disk.size(path):,} bytes, expected at most {MAX_NOTE_BYTES:,}")
    data = disk.read(path)
    try:
        noted = json.loads(data)
        has_digest = any(isinstance(value, str) and len(value) == 64 for value in noted.values())  # whatever its name
        digest = noted.pop(DIGEST, None)
    except (ValueError, RecursionError, AttributeError, TypeError):
        raise Corrupt("no note with a checksum, as versions after 0.1.0 write it") from None
    if not has_digest:
        raise NoChecksum("not covered by a checksum: version 0.1.0 wrote it")
    text = json.dumps({**noted, DIGEST: digest}, indent=1, ensure_ascii=False) + "\n"
    if digest != _digest(noted) or text.encode("utf-8", "surrogatepass") != data:
        raise Corrupt("checksum differs: the file was changed after it was written")
    return noted


def _digest(value: Mapping[str, Any]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _unreadable(path: Path, error: OSError) -> Exception:
    """What to raise for a file that could not be opened or mapped: where it is there, it is passed over as a damaged
    one is; where a run has pruned it meanwhile, or this user must not read it, the error."""
    if isinstance(error, (FileNotFoundError, PermissionError)):
        return error
    return Corrupt(f"{path.name}: cannot be read: {error.strerror or error}")


def _numbered(snapshot: Snapshot, sequence: int) -> Snapshot:
    """The snapshot, which says of itself that it has the number that its file is named by."""
    if snapshot.sequence != sequence:
        raise Corrupt(f"holds snapshot {snapshot.sequence}, another one than it is named after")
    return snapshot


def _used(snapshot: Snapshot, use: Callable[[Snapshot], object] | None) -> None:
    try:
        if use is not None:
            use(snapshot)
    except Corrupt as error:
        raise Corrupt(f"snapshot {snapshot.sequence:0{_DIGITS}}: {error}") from None


class Lock:
    """Ownership of a state directory; released by the system when the process ends, however it ends. `instead`: what
    to do where another process owns it."""

    def __init__(self, directory: str | Path, instead: str = "stop that run first"):
        try:
            self._folder = FolderLock(directory)
        except FolderInUse as error:
            raise StateInUse(f"{directory}: in use by process {error.owner}; {instead}") from None
        sweeping.finish(directory)

    def release(self) -> None:
        """Give the state directory up."""
        self._folder.release()
