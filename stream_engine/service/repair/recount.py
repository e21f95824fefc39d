"""A state recounted from its sources up to its positions, and what differs."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import structs

from connectors import Position
from stream_engine.accumulators import Forgetting
from stream_engine.accumulators.worker_votes import WorkerVotes, holds_nobody
from stream_engine.guard.stored_states import always_first
from stream_engine.service.repair.differences import differences, equal_bytes
from stream_engine.service.repair.read_again import Counted, ReadAgain
from stream_engine.service.repair.stretches import MOVES
from stream_engine.service.settings import Settings
from stream_engine.state.engine import Engine
from stream_engine.state.snapshot import Snapshot


class Recount(NamedTuple):
    """`problems`: what could not be read again; `differing`: where the state is not what was recounted.

    `one_order`: everything came from one partition, and the guard never had a former policy, so that what depends on
    the order of arrival was compared too;
    `same_bytes`: then, and nothing differs, whether the snapshots are the same to the last byte.
    """

    problems: list[str]
    differing: list[str]
    one_order: bool
    same_bytes: bool
    records: int
    deeds: list[str]  # what was done to the state that no source knows of


def recount(settings: Settings, snapshot: Snapshot, starts: Mapping[str, int] = {}) -> Recount:
    """Recount everything that a snapshot has counted, and compare. Raises `UnusableSource`, `SourceFailed`."""
    again = ReadAgain(of_state(settings, snapshot), Counted(snapshot.positions, _history(snapshot), starts))
    engine = empty_like(snapshot)
    for block in again.blocks():
        engine.learn(block.decoded, block.positions(), block.counts().total())
    engine.positions |= again.reached
    one_order = len([name for name in snapshot.positions if not name.startswith("labels:")]) <= 1
    one_order &= always_first(snapshot.settings["guard"], _history(snapshot))
    differing = [*_positions(snapshot, engine.positions), *differences(snapshot, engine, one_order)]
    same = one_order and not differing and not again.problems and equal_bytes(snapshot, engine)
    deeds = [f"{deed['did']} ({deed['time']})" for deed in _history(snapshot) if deed["did"] not in MOVES]
    return Recount(again.problems, differing, one_order, same, engine.counters["records"], deeds)


def of_state(settings: Settings, snapshot: Snapshot) -> Settings:
    """The settings with what the state itself says: its accumulators, of which some need to know who judged."""
    return structs.replace(settings, accumulators=tuple(snapshot.settings["accumulators"]))


def empty_like(snapshot: Snapshot) -> Engine:
    """An engine of the same kind that has counted nothing. One that was made when votes of workers were nobody's too,
    beside triplet counts, keeps them so."""
    kind = snapshot.settings
    engine = Engine(kind["accumulators"], bool(kind["guard"]), Forgetting(**kind.get("forgetting", {})))
    votes = engine.accumulators.get("worker_votes")
    if isinstance(votes, WorkerVotes):
        votes.keeps_nobody |= holds_nobody(snapshot.section("worker_votes"))
    return engine


def _history(snapshot: Snapshot) -> list[dict]:
    return list(snapshot.counters.get("history", ()))


def _positions(snapshot: Snapshot, come_to: Mapping[str, Position]) -> list[str]:
    found = []
    for name, position in sorted(snapshot.positions.items()):
        there = come_to.get(name)
        if there is not None and there.offset != position.offset:
            found.append(f"positions: {name}: state {position.offset:,}, sources {there.offset:,}")
        elif there is not None and there.mark != position.mark and there.mark and position.mark:
            found.append(f"positions: {name}: state and sources do not begin alike")
    return found
