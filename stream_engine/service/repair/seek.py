"""A position in a topic moved on purpose: noted in the history of the state, skipped records counted as lost."""

from typing import NamedTuple

from connectors.kafka.client import partition_of
from stream_engine.input.settings import BadSettings
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store

MAX_OFFSET = 2**63 - 1


class CannotMove(BadSettings):
    """A position cannot be moved so; one line."""


class Target(NamedTuple):
    """Where to: an offset, or with `relative` so many messages on. `count_again` allows going back."""

    offset: int
    relative: bool = False
    count_again: bool = False


class Move(NamedTuple):
    """What became of a position; `sequence` is the snapshot that holds it."""

    partition: str
    at: int
    to: int
    sequence: int


def seek(store: Store, name: str, target: Target, since: int | None = None) -> Move:
    """Move a position and publish a snapshot; the state's lock must be held. `since`: where the position is expected to
    be; when the last deed moved it away from there, that was this move, and nothing is done.

    The move, its note and its loss are published in one snapshot, or none of them is. Moving again to a place that was
    reached does nothing. Raises `CannotMove`, `NoSuchSnapshot`, `Corrupt`, `OSError`.
    """
    snapshot = store.named("latest")
    if name not in snapshot.positions or not is_of_a_topic(name):
        partitions = ", ".join(sorted(filter(is_of_a_topic, snapshot.positions))[:8]) or "none"
        raise CannotMove(f"{name}: no partition of a topic that the state has read; it has {partitions}")
    now = snapshot.positions[name]
    history = snapshot.counters.get("history", ())
    if since is not None and now.offset != since:
        last = history[-1] if history else {}
        if (last.get("partition"), last.get("at"), last.get("to")) == (name, since, now.offset):
            return Move(name, now.offset, now.offset, snapshot.sequence)
        raise CannotMove(f"{name}: stands at {now.offset:,}, not at {since:,}; nothing was moved")
    to = _aim(name, now.offset, target)
    if to == now.offset:
        return Move(name, now.offset, now.offset, snapshot.sequence)
    n_records = abs(to - now.offset)
    if to < now.offset and not target.count_again:
        raise CannotMove(
            f"{name}: {to:,} lies before {now.offset:,}, where the state has read to: {n_records:,} records would be "
            "counted a second time; say --count-again if that is wanted"
        )
    engine = Engine.restore(snapshot)
    engine.positions[name] = now._replace(offset=to)
    if to > now.offset:
        engine.lost[name] = engine.lost.get(name, 0) + n_records
    engine.note("seek", partition=name, at=now.offset, to=to, records=n_records)
    snapshot_after, _ = store.publish(engine.snapshot())
    return Move(name, now.offset, to, snapshot_after.sequence)


def is_of_a_topic(name: str) -> bool:
    """Whether a partition is one of a topic.

    >>> is_of_a_topic("votes/3"), is_of_a_topic("/data/a.jsonl/3"), is_of_a_topic("s3://bucket/3")
    (True, False, False)
    """
    topic = name.rpartition("/")[0]  # no topic has a slash in its name
    return bool(topic) and "/" not in topic and ":" not in topic and partition_of(topic, name) is not None


def _aim(name: str, now: int, target: Target) -> int:
    if target.relative and target.offset < 1:
        raise CannotMove(f"{name}: got {target.offset} records to skip, expected at least 1")
    to = target.offset + now * target.relative
    if not 0 <= to <= MAX_OFFSET:
        raise CannotMove(f"{name}: got offset {to}, expected a whole number from 0 to {MAX_OFFSET}")
    return to
