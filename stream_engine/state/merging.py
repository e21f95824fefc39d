"""The counters of a state, and the sum of two states.

Votes of workers where one of both keeps none: exact, or not at all.

Nobody's votes stand in the triplet counts. So a state in which nobody was named can be summed with one that keeps
votes, whether it keeps them or not. Who was named in a state without votes is known from its judgements, if all of them
are held.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from stream_engine.counts import Accumulator, Ledger, common_sums
from stream_engine.counts.judgements import Judgements
from stream_engine.counts.response_patterns import ResponsePatterns
from stream_engine.counts.worker_votes import WorkerVotes
from stream_engine.data.comparisons import Batch, Decoded, ExternalCounts
from stream_engine.data.mapped_arrays import Allocation
from stream_engine.order.partial_order import Verdicts

VOTES, PATTERNS = "worker_votes", "response_patterns"
OPTIONAL = {VOTES, PATTERNS}  # that states of one kind may keep or not
Kept = dict[str, Accumulator | Ledger]
_PLAIN_COUNTS = ("events", "records", "comparisons", "triplets", "quadruplets", "labels", "filtered", "empty")
# in a snapshot only where there is something
SELDOM: dict[str, Callable[[], Any]] = {"lost": dict, "dead_letters": dict, "history": list, "input": dict}
_NOT_COUNTED = ExternalCounts({}, np.empty((0, 4), np.int32), 0, 0, 0, 0)


class OverlappingStates(ValueError):
    """Two states that cannot be merged: they counted the same partition, whose events would count twice, or differ in
    kind. One line."""


def empty_counters() -> dict[str, Any]:
    """All counters at zero. `rejected` is by reason, `kinds` by event type, `progressive` by predictor, `lost` (records
    that were passed over with consent) by partition, `dead_letters` (which are in their folder no more) by what became
    of them: lost or removed; `history` is what operators did to the state, oldest first; `input` says how it was
    read."""
    return {
        **dict.fromkeys(_PLAIN_COUNTS, 0),
        "rejected": {},
        "kinds": {},
        "guard": dict.fromkeys(Verdicts._fields, 0),
        "unknown_fields": [],
        "progressive": {},
        **{name: empty() for name, empty in SELDOM.items()},
    }


def count(table: dict[str, int], more: Mapping[str, int]) -> None:
    """Add to a table of counts."""
    for key, n in more.items():
        table[key] = table.get(key, 0) + n


def count_block(counters: dict[str, Any], decoded: Decoded, batch: Batch, records: int) -> None:
    """Count the events, comparisons and rejections of a block of so many records."""
    counters["records"] += records
    counters["events"] += sum(decoded.events.values())
    elsewhere = decoded.counted or _NOT_COUNTED
    triplets, quadruplets = len(batch.triplets) + elsewhere.triplets, len(batch.quadruplets) + elsewhere.quadruplets
    counters["triplets"] += triplets
    counters["quadruplets"] += quadruplets
    counters["comparisons"] += triplets + quadruplets
    counters["labels"] += elsewhere.labels if decoded.counted else len(decoded.labels)
    counters["filtered"] += decoded.filtered
    counters["empty"] += decoded.empty
    count(counters["kinds"], decoded.events)
    for rejected in decoded.rejected:
        count(counters["rejected"], {rejected.reason: 1})
    if not decoded.unknown_fields <= set(counters["unknown_fields"]):
        counters["unknown_fields"] = sorted(decoded.unknown_fields.union(counters["unknown_fields"]))


def agreed(mine: Kept, theirs: Kept, my_counters: Mapping[str, Any], their_counters: Mapping[str, Any]) -> Kept:
    """What the first state has to keep for a sum of both, of which one keeps votes of workers or response patterns and
    the other none. Votes: where the latter read no worker's name; none where the former read none. Response patterns:
    where there are any, as they are figures of those answers that tell one. Raises `OverlappingStates`."""
    if (VOTES in mine) != (VOTES in theirs):
        mine = _with_votes(mine, theirs, my_counters, their_counters)
    if (PATTERNS in mine) != (PATTERNS in theirs):
        patterns = (mine if PATTERNS in mine else theirs)[PATTERNS]
        assert isinstance(patterns, ResponsePatterns)
        if not patterns.workers:
            return {name: each for name, each in mine.items() if name != PATTERNS}
        return {PATTERNS: ResponsePatterns(), **mine}
    return mine


def _with_votes(mine: Kept, theirs: Kept, my_counters: Mapping[str, Any], their_counters: Mapping[str, Any]) -> Kept:
    mine_keep = VOTES in mine
    votes = (mine if mine_keep else theirs)[VOTES]
    assert isinstance(votes, WorkerVotes)
    if not votes.workers:
        return {name: each for name, each in mine.items() if name != VOTES}
    without, counters = (theirs, their_counters) if mine_keep else (mine, my_counters)
    if "triplet_counts" not in mine:
        raise OverlappingStates(
            "one state keeps who answered what, and the other keeps no triplet counts to complete it"
        )
    if said := _named(without, counters):
        raise OverlappingStates(
            f"one state keeps who answered what ({len(votes.workers):,} workers); the other does not, and {said}: read "
            "its sources again, or both without worker_votes in accumulators"
        )
    nobodys = WorkerVotes()
    nobodys.leave_nobody_out()
    nobodys.add_nobodys(sum(n for kind, n in counters["kinds"].items() if kind != "label"))
    if mine_keep:
        votes.merge(nobodys)
        return mine
    return {**mine, VOTES: nobodys}


def _named(kept: Kept, counters: Mapping[str, Any]) -> str:
    """What stands against it that no event of this state named a worker; nothing where that is sure."""
    judgements = kept.get("judgements")
    if not isinstance(judgements, Judgements):
        return "cannot say whether its events named workers" if counters["events"] else ""
    if judgements.workers:
        return f"has read events of workers ({judgements.workers[0]!r})"
    return "" if judgements.complete else "holds too few of its judgements to say whether any named a worker"


def all_mergeable(accumulators: Kept) -> dict[str, Accumulator]:
    """The accumulators by name. Raises `OverlappingStates` where there is a ledger among them."""
    mergeable: dict[str, Accumulator] = {}
    for name, each in accumulators.items():
        if not each.mergeable:
            raise OverlappingStates(
                f"{name} depends on the order of arrival in one stream and cannot be merged"
                + ('; forgetting.by = "time" can' if each.forgets else "")
            )
        mergeable[name] = each
    return mergeable


def add(
    mergeable: Mapping[str, Accumulator],
    state_of: Callable[[str], Mapping[str, np.ndarray]],
    new_id: np.ndarray,
    allocation: Allocation,
) -> None:
    """Add a state of each accumulator, object i of theirs being new_id[i] here."""
    common_sums.part(mergeable, state_of)
    for name, mine in mergeable.items():
        if common_sums.holder(mine) is mine:
            mine.merge(type(mine).from_state(mine.renamed(state_of(name), new_id), allocation))


def summed(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """The counters of the sum of two states."""
    both = {**mine, **{name: mine[name] + theirs[name] for name in _PLAIN_COUNTS}}
    for name in ("rejected", "kinds", "guard", "lost", "dead_letters"):
        both[name] = {key: mine[name].get(key, 0) + theirs[name].get(key, 0) for key in mine[name] | theirs[name]}
    both["history"] = sorted([*mine["history"], *theirs["history"]], key=lambda deed: deed["time"])
    if mine["input"] != theirs["input"]:
        both["input"] = {}
    both["unknown_fields"] = sorted({*mine["unknown_fields"], *theirs["unknown_fields"]})
    return both


def without_optional(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a state without those accumulators that states of one kind may keep or not."""
    return {
        **settings,
        "accumulators": [name for name in settings["accumulators"] if name not in OPTIONAL],
    }
