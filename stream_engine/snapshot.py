"""The snapshot's public name, `stream_engine.snapshot`; the code is in `stream_engine/state/snapshot.py`."""

from stream_engine.state.snapshot import Snapshot, read_snapshot, triplet_columns

__all__ = ["Snapshot", "read_snapshot", "triplet_columns"]
