"""A position moved on purpose: noted in the state for ever, what is passed over counted as lost.

Invariant: the move, its note and its loss are published in one snapshot, or none of them is. Asked again for a place
that is come to, nothing is done.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from connectors import Position
from connectors.files.readers import partition_of
from stream_engine.service.repair.places import CannotMove, Place
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot
from stream_engine.state.store import Store


class Move(NamedTuple):
    """What became of a position; `sequence` is the snapshot that holds it, `records` how many lie between."""

    partition: str
    at: int
    to: int
    records: int | None
    sequence: int


def move(
    store: Store,
    partition: str,
    find: Callable[[str, Position], Place],
    count_again: bool = False,
    since: int | None = None,
) -> Move:
    """Move a position to the place that `find(name, present position)` gives, and publish a snapshot; the state's lock
    must be held. `since`: where the position is expected to be; when the last deed moved it away from there, that was
    this move, and nothing is done.

    Raises `CannotMove`, `NoSuchSnapshot`, `Corrupt`, `SourceFailed`, `OSError`.
    """
    snapshot = store.named("latest")
    name = _named(snapshot, partition)
    now = snapshot.positions[name]
    history = snapshot.counters.get("history", ())
    if since is not None and now.offset != since:
        if history and _place(history[-1]) == (name, since, now.offset):
            return Move(name, now.offset, now.offset, 0, snapshot.sequence)
        raise CannotMove(f"{name}: stands at {now.offset:,}, not at {since:,}; nothing was moved")
    place = find(name, now)
    if place.position.offset == now.offset:
        return Move(name, now.offset, now.offset, 0, snapshot.sequence)
    to = place.position.offset
    if to < now.offset and not count_again:
        raise CannotMove(
            f"{name}: {to:,} lies before {now.offset:,}, where the state has read to: {_told(place.between)} would be "
            "counted a second time; say --count-again if that is wanted"
        )
    engine = Engine.restore(snapshot)
    engine.positions[name] = place.position
    lost = place.between if to > now.offset else 0
    if lost:
        engine.lost[name] = engine.lost.get(name, 0) + lost
    engine.note("seek", partition=name, at=now.offset, to=to, records=place.between)
    published, _ = store.publish(engine.snapshot())
    return Move(name, now.offset, to, place.between, published.sequence)


def _named(snapshot: Snapshot, partition: str) -> str:
    for name in (partition, partition_of(partition)):
        if name in snapshot.positions:
            return name
    known = ", ".join(sorted(snapshot.positions)[:8]) or "none"
    raise CannotMove(f"{partition}: no partition of the state, which has {known}")


def _place(deed: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return deed.get("partition"), deed.get("at"), deed.get("to")


def _told(records: int | None) -> str:
    return "an unknown number of records" if records is None else f"{records:,} records"
