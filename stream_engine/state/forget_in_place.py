"""To publish a state that something was taken out of, and to leave nothing behind that still has it.

Under the lock, in this order: the dead letters that stay are written into new segments; a mark says what is to be
removed; the snapshot is published with the position after those letters; then the rest is removed. A crash before the
snapshot is there leaves the state before, one after it the state after: who takes the lock next ends the removal.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from connectors.files.dead_letter_rewrite import SEGMENT_BYTES, Rewritten, rewritten
from stream_engine.state import snapshot as snapshots
from stream_engine.state import sweeping
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store


class Replaced(NamedTuple):
    """The published snapshot, and how many dead letters went."""

    snapshot: Snapshot
    dead_letters: int


def letters_without(
    store: Store,
    snapshot: Snapshot,
    drop: Callable[[bytes], bool],
    folder: str | None = None,
    segment_bytes: int = SEGMENT_BYTES,
) -> Rewritten:
    """The dead letters that a snapshot relies on without some; nothing changes before `replace` is told. `folder` is
    theirs, where it is not DIR/dead_letters. Raises `FileNotFoundError`, `OSError`."""
    sinks = snapshot.counters.get("sinks", {})
    replayed = sinks.get("replayed", {}).values()
    return rewritten(_folder(store, folder), sinks.get("file", 0), drop, store.disk, segment_bytes, replayed)


def replace(store: Store, snapshot: Snapshot, letters: Rewritten, folder: str | None = None) -> Replaced:
    """Publish a snapshot in place of all before it. The state is locked. Raises `OSError`."""
    if letters.dropped:
        sinks = {**snapshot.counters.get("sinks", {}), "file": letters.position}
        if "replayed" in sinks:
            sinks["replayed"] = {reason: letters.moved[place] for reason, place in sinks["replayed"].items()}
        snapshot = snapshot._replace(counters={**snapshot.counters, "sinks": sinks})
    digest = snapshots.encode(snapshot)[1].digest
    where = os.path.abspath(_folder(store, folder)) if letters.dropped else None
    sweeping.mark(store.directory, store.disk, snapshot.sequence, digest, where, letters.first)
    published, _ = store.publish(snapshot)
    sweeping.finish(store.directory, store.disk)
    return Replaced(published, letters.dropped)


def _folder(store: Store, folder: str | None) -> Path:
    return Path(folder) if folder else store.directory / "dead_letters"
