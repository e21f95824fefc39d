"""A state recounted from its sources, from their beginning up to its positions, and what differs."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import structs

from connectors import split_uri
from connectors.kafka.cleanup_policy import cleanup_policy
from connectors.kafka.client import parse_address
from stream_engine.counts import Forgetting
from stream_engine.counts.worker_votes import WorkerVotes, holds_nobody
from stream_engine.input.settings import Settings
from stream_engine.order.stored_states import always_first
from stream_engine.service.repair.reading_again import MOVES, SourceReader
from stream_engine.service.repair.recount_differences import differences, excess
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot, encode

NOT_OF_SOURCES = ("progressive", "sinks", "history", "lost", "dead_letters", "share", "input")  # other counters


class Recount(NamedTuple):
    """`problems`: what could not be read again; `differing`: where the state is not what was recounted.

    `one_order`: everything came from one partition, and the guard never had a former policy, so that what depends on
    the order of arrival was compared too;
    `same_bytes`: then, and nothing differs, whether the snapshots are the same to the last byte.
    `limits`: why the sources cannot give the same state any more; then `differing` is where they hold more than it.
    """

    problems: list[str]
    differing: list[str]
    one_order: bool
    same_bytes: bool
    records: int
    manual_changes: list[str]  # what was done to the state that no source knows of
    limits: tuple[str, ...] = ()


def recount(settings: Settings, snapshot: Snapshot, starts: Mapping[str, int] = {}) -> Recount:
    """Recount everything that a snapshot has counted, and compare. `starts`: where the first run began in a partition,
    if not at its beginning. Raises `UnusableSource`, `SourceFailed`."""
    history = list(snapshot.counters.get("history", ()))
    accumulators = tuple(snapshot.settings["accumulators"])  # some need to know who answered
    reader = SourceReader(structs.replace(settings, follow=False, accumulators=accumulators), snapshot, history, starts)
    engine = empty_like(snapshot)
    for block in reader.blocks():
        engine.learn(block.decoded, block.positions(), block.counts().total())
    one_order = len([name for name in snapshot.positions if not name.startswith("labels:")]) <= 1
    one_order &= always_first(snapshot.settings["guard"], history)
    limits = tuple(_limits(settings, snapshot, engine, reader.missing)) if not reader.problems else ()
    differing = list(excess(snapshot, engine) if limits else differences(snapshot, engine, one_order))
    same_bytes = one_order and not differing and not reader.problems and _equal_bytes(snapshot, engine)
    manual_changes = [f"{change['did']} ({change['time']})" for change in history if change["did"] not in MOVES]
    return Recount(
        reader.problems, differing, one_order, same_bytes, engine.counters["records"], manual_changes, limits
    )


def empty_like(snapshot: Snapshot) -> Engine:
    """An engine of the same kind that has counted nothing. One that was made when votes of workers were nobody's too,
    beside triplet counts, keeps them so."""
    kind = snapshot.settings
    engine = Engine(kind["accumulators"], bool(kind["guard"]), Forgetting(**kind.get("forgetting", {})))
    votes = engine.accumulators.get("worker_votes")
    if isinstance(votes, WorkerVotes):
        votes.keeps_nobody |= holds_nobody(snapshot.section("worker_votes"))
    return engine


# A compacted topic lacks messages that the state has counted, and a time that was in the future when it was read may be
# in the past by now. Then the state cannot equal the recount, but what is in the sources must be in the state.
def _limits(settings: Settings, snapshot: Snapshot, recounted: Engine, missing: Mapping[str, int]) -> Iterator[str]:
    """Why the sources cannot give the same state any more, one line each."""
    stored, recounted_counters = snapshot.counters, recounted.counters
    fewer = stored["records"] - recounted_counters["records"]
    if 0 < fewer <= sum(missing.values()):
        topics = {parse_address(address).topic: address for uri in settings.source for _, address in [split_uri(uri)]}
        compacted = [
            topic for topic, n in missing.items() if n and "compact" in cleanup_policy(topics[topic], settings.kafka)
        ]
        if compacted:
            counted_records = f"{stored['records']:,} records that the state has counted"
            yield f"{', '.join(compacted)}: compacted; the broker has removed {fewer:,} of {counted_records}"
    n_late = stored["rejected"].get("bad_time", 0) - recounted_counters["rejected"].get("bad_time", 0)
    if n_late > 0 and not fewer:
        yield (
            f"{n_late:,} events were rejected because their time was too far in the future (bad_time) when they were "
            "read; read now, it is not"
        )


def _equal_bytes(snapshot: Snapshot, recounted: Engine) -> bool:
    """Whether the recounted state, with what no source can tell taken from the snapshot, has the same bytes."""
    recounted_snapshot = recounted.snapshot()
    counters = {name: value for name, value in recounted_snapshot.counters.items() if name not in NOT_OF_SOURCES}
    counters |= {name: snapshot.counters[name] for name in NOT_OF_SOURCES if name in snapshot.counters}
    recounted_snapshot = recounted_snapshot._replace(
        sequence=snapshot.sequence, counters=counters, positions=snapshot.positions
    )
    return encode(recounted_snapshot)[1].digest == snapshot.digest
