"""Several states that read disjoint partitions become the one that a single process would have counted.

Accumulators are summed and names united exactly; the guard is order-dependent, so the kept comparisons of one are
offered to the other (acyclic again, but not what one arrival order would have kept). The states are taken in the order
of their first partition, so the result does not depend on the order in which they are named, and merging the same
states again changes nothing.
"""

from collections.abc import Iterable

from stream_engine.state.engine import Engine, OverlappingStates
from stream_engine.state.snapshot import Snapshot, encode
from stream_engine.state.store import Lock, NoSuchSnapshot, Store


def merge(states: Iterable[str], out: str) -> tuple[Snapshot, bool]:
    """Publish the sum of the newest snapshots of `states` in `out`; returns it, and whether it was new there.

    Raises NoSuchSnapshot, Corrupt, StateInUse, OverlappingStates.
    """
    snapshots = [_newest(state) for state in dict.fromkeys(states)]
    if not snapshots:
        raise NoSuchSnapshot("merge: no state given")
    snapshots.sort(key=lambda s: (min(s.positions, default=""), s.digest))
    engine = Engine.restore(snapshots[0])
    for snapshot in snapshots[1:]:
        engine.merge(Engine.restore(snapshot))
    engine.sinks = {}
    engine.sequence = 0
    lock = Lock(out)
    try:
        return _published(Store(out), engine)
    finally:
        lock.release()


def _newest(state: str) -> Snapshot:
    found = Store(state).latest().snapshot
    if found is None:
        raise NoSuchSnapshot(f"{state}: no snapshot there to merge")
    return found


def _published(store: Store, engine: Engine) -> tuple[Snapshot, bool]:
    there = store.latest().snapshot
    if there is None:
        return store.publish(engine.snapshot())[0], True
    strangers = sorted(there.positions.keys() - engine.positions.keys())
    if strangers:
        raise OverlappingStates(
            f"{store.directory}: holds {', '.join(strangers)}, which none of the states given has read; "
            "name another --out"
        )
    engine.sequence = there.sequence - 1
    merged = engine.snapshot()
    if encode(merged)[1].digest == there.digest:
        return there, False
    engine.sequence = there.sequence
    return store.publish(engine.snapshot())[0], True
