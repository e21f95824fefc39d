"""To publish a state that something was taken out of, and to leave nothing behind that still has it.

Under the lock, in this order: dead letters that name it are overwritten (`connectors.files.dead_letters.overwrite`); a
mark says what is to be removed; the snapshot is published; then the rest is removed. A crash before the snapshot is
there leaves the counts of before and is answered by forgetting again; after one behind it, who takes the lock next ends
the removal.
"""

from stream_engine.state import snapshot as snapshots
from stream_engine.state import sweeping
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store


def replace(store: Store, snapshot: Snapshot) -> Snapshot:
    """Publish a snapshot in place of all before it. The state is locked. Raises `OSError`."""
    sweeping.mark(store.directory, store.disk, snapshot.sequence, snapshots.encode(snapshot)[1].digest)
    published, _ = store.publish(snapshot)
    sweeping.finish(store.directory, store.disk)
    return published
