"""Checks of a state directory without its sources: one finding for each file.

Only reads, and takes no lock: a run may be at work and prune a snapshot while it is read.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from connectors.files.dead_letters import check_folder, segment_name
from stream_engine.counts.adds_similarity import adds3
from stream_engine.data import container
from stream_engine.data.container import Corrupt
from stream_engine.data.numbers_in_words import amount
from stream_engine.data.signatures import Signing
from stream_engine.order.partial_order import topological_order
from stream_engine.service.dead_letters import ELSEWHERE
from stream_engine.state.backup import restored
from stream_engine.state.order_file import KIND as ORDER
from stream_engine.state.order_file import SUFFIX
from stream_engine.state.snapshot import Snapshot, triplet_columns
from stream_engine.state.store import NoChecksum, NoSuchSnapshot, Store, read_note

OK, WRONG, NOTE = "ok", "WRONG", "note"
NOTES = ("progressive.json", "counts_told.json", "excluded.json", "seconds.json", "manifest.json")  # by `Store.note`


class Finding(NamedTuple):
    """What was checked, the verdict, and one line about it."""

    what: str
    verdict: str
    text: str


def check_state(
    directory: str | Path, dead_letters: str | None = None, signing: Signing | None = None
) -> Iterator[Finding]:
    """All findings, the newest snapshot first. Raises `NoSuchSnapshot` where there is no state."""
    skipped_files: list[str] = []
    store = Store(directory, signing=signing, tell=skipped_files.append)
    if not store.sequences():
        raise NoSuchSnapshot(f"{directory}: no snapshot there; name the --state of a run")
    snapshots: dict[int, Snapshot] = {}  # those that can be read, the newest first
    for sequence in reversed(store.sequences()):
        yield _finding_of(f"snapshot {sequence:012d}", _snapshot, store, sequence, snapshots)
    newest = next(iter(snapshots.values()), None)
    if newest is None:
        yield Finding("state", WRONG, "no snapshot is valid; restore a backup, or start again with another --state")
    digests = {sequence: snapshot.digest for sequence, snapshot in snapshots.items()}
    for kind in store.kinds():
        for sequence in reversed(store.artifact_sequences(kind)):
            yield _finding_of(f"artifact {kind} {sequence:012d}", _artifact, store, kind, sequence, digests)
    if newest is not None:
        yield from _dead_letters(Path(dead_letters) if dead_letters else store.directory / "dead_letters", newest)
    yield from _other_files(store, newest, {f"{sequence:012d}": digest for sequence, digest in digests.items()})
    for path, _, text in (line.partition(": ") for line in skipped_files):
        yield Finding(os.path.relpath(path, store.directory), NOTE, text)
    yield from _of_a_backup(store.directory, newest)


def _finding_of(file: str, check: Callable[..., str], *arguments: Any) -> Finding:
    """The finding about one file: what `check` says of it, or why it cannot be used."""
    try:
        return Finding(file, OK, check(*arguments))
    except (NoSuchSnapshot, FileNotFoundError):
        return Finding(file, NOTE, "pruned meanwhile by the run that owns the state")
    except NoChecksum as error:
        return Finding(file, NOTE, str(error))
    except (OSError, Corrupt) as error:
        return Finding(file, WRONG, str(error).removeprefix(f"{file}: "))


def _snapshot(store: Store, sequence: int, snapshots: dict[int, Snapshot]) -> str:
    size = store.snapshot_path(sequence).stat().st_size
    snapshots[sequence] = snapshot = store.read(sequence)
    if problems := list(_broken_relations(snapshot)):
        raise Corrupt("; ".join(problems))
    return (
        f"{amount(snapshot.counters['comparisons'], 'comparison')}, {amount(len(snapshot.objects), 'object')}, "
        f"{amount(len(snapshot.positions), 'partition')}, {size:,} bytes, sha256 {snapshot.digest[:16]}"
    )


def _broken_relations(snapshot: Snapshot) -> Iterator[str]:
    """One line for each relation between sections of a snapshot that does not hold; `Store.read` checks each array for
    itself. O(state)."""
    counters = snapshot.counters
    parts, kinds = counters["triplets"] + counters["quadruplets"], sum(counters["kinds"].values())
    if counters["comparisons"] != parts:
        yield f"comparisons: {counters['comparisons']:,}, but triplets and quadruplets are {parts:,}"
    if counters["events"] != kinds:
        yield f"events: {counters['events']:,}, but {kinds:,} by kind"
    for name, section in (("triplets", "triplet_counts"), ("quadruplets", "quadruplet_counts")):
        if counts := snapshot.section(section):
            total = int(counts["n_lo"].sum(dtype=np.int64) + counts["n_hi"].sum(dtype=np.int64))
            if total != counters[name]:
                yield f"{name}: {counters[name]:,}, but {section} add up to {total:,}"
    stored_adds = snapshot.section("adds3")
    if stored_adds and snapshot.section("triplet_counts"):
        columns = triplet_columns(snapshot)
        lo, hi = (np.repeat(ids, np.diff(columns.start)) for ids in (columns.lo, columns.hi))
        net = columns.n_lo.astype(np.int64) - columns.n_hi
        computed_adds = adds3(columns.anchor, lo, hi, net, len(snapshot.objects))
        if not all(np.array_equal(array, stored_adds[name]) for name, array in zip("ijw", computed_adds)):
            yield "adds3: is not the AddS of triplet_counts"
    if not snapshot.settings["guard"]:
        return
    verdicts, n_comparisons = sum(counters["guard"].values()), counters["comparisons"]
    by_key = any(name.startswith("deltas://") for name in snapshot.positions)  # one verdict a key, not a comparison
    was_forgotten = any(deed["did"] == "forget" for deed in counters.get("history", ()))  # verdicts stay in the count
    if (verdicts < n_comparisons and not by_key) or (verdicts > n_comparisons and not was_forgotten):
        yield f"guard: {verdicts:,} verdicts on {n_comparisons:,} comparisons"
    try:
        topological_order(snapshot.section("partial_order")["kept"])
    except ValueError:
        yield "partial_order: the comparisons that are kept hold a cycle"


def _artifact(store: Store, kind: str, sequence: int, digests: Mapping[int, str]) -> str:
    artifact = store.artifact(kind, sequence)
    if artifact.snapshot != digests.get(sequence, artifact.snapshot):
        raise Corrupt(f"made from another snapshot than the {sequence} that is here")
    state = "that is kept" if sequence in digests else "that is not kept any more"
    return f"made from the snapshot {state}, {len(artifact.arrays)} arrays"


def _dead_letters(folder: Path, snapshot: Snapshot) -> Iterator[Finding]:
    sinks = snapshot.counters.get("sinks", {})
    position = sinks.get("file", 0)
    if not isinstance(position, int) or position < 0:
        yield Finding("dead letters", WRONG, f"position {position!r} in the snapshot, expected a whole number >= 0")
        return
    segments = check_folder(folder, position)
    for segment in segments:
        text = f"{segment.letters:,} dead letters"
        if segment.unchecked:
            text += f"; {segment.unchecked:,} of them have no checksum (written by version 0.1.0)"
        if segment.behind:
            text += f"; {segment.behind:,} bytes behind them, which the next run cuts off"
        yield Finding(f"dead letters {segment.name}", WRONG if segment.problem else OK, segment.problem or text)
    n_rejected, count = sum(snapshot.counters["rejected"].values()), sum(segment.letters for segment in segments)
    n_expected = n_rejected - sinks.get(ELSEWHERE, 0)
    moved_away = bool(segments) and segments[0].name != segment_name(1)
    is_intact = not any(segment.problem for segment in segments)
    if is_intact and not moved_away and not snapshot.counters.get("history") and position and count != n_expected:
        yield Finding(
            "dead letters", WRONG, f"{count:,} in the folder, expected {n_expected:,}, one for each rejected event"
        )
    if not segments:
        yield Finding(
            "dead letters", OK if not n_rejected else NOTE, f"none in {folder}; {n_rejected:,} events were rejected"
        )


def _other_files(store: Store, newest: Snapshot | None, digests: Mapping[str, str]) -> Iterator[Finding]:
    """Everything else below the directory: canonical orders and notes by their checksums, the rest by name."""

    def order(path: Path) -> str:
        kind, meta, *_ = container.load(path, store.signing)
        if kind != ORDER or meta.get("snapshot") != digests.get(path.stem, meta.get("snapshot")):
            raise Corrupt("is not the canonical order of its snapshot; remove it")
        return f"canonical order of {meta.get('net_votes'):,} net votes"

    def note(path: Path) -> str:
        read_note(path)
        return "figures for people, not part of the state"

    for path in sorted(path for path in store.directory.rglob("*") if path.is_file()):
        what = os.path.relpath(path, store.directory)
        if path.suffix in (".snapshot", ".artifact") or what.startswith("dead_letters"):
            continue
        if path.suffix == SUFFIX or path.name in NOTES:
            yield _finding_of(what, order if path.suffix == SUFFIX else note, path)
        elif newest and str(path) in newest.positions:
            yield Finding(what, NOTE, f"a source: `stream-engine verify --state {store.directory} {path}` recounts")
        else:
            yield Finding(what, NOTE, "not covered by a checksum, and no result rests on it")


def _of_a_backup(directory: Path, newest: Snapshot | None) -> Iterator[Finding]:
    """Of a backup, or a copy of one from which no run has gone on: every file against the manifest."""
    try:
        backup = restored(directory, None if newest is None else newest.sequence)
    except (OSError, Corrupt):
        return  # the manifest has a finding of its own
    if backup is not None:
        files, differing = backup
        yield from (Finding("backup", WRONG, line) for line in differing)
        if not differing:
            yield Finding("backup", OK, f"all {files} files are those that were backed up")
