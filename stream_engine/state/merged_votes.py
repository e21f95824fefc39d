"""Votes of workers in the sum of two states of which one keeps none: exact, or not at all.

Nobody's votes stand in the triplet counts. So a state in which nobody was named can be summed with one that keeps
votes, whether it keeps them or not. Who was named in a state without votes is known from its judgements, if all of them
are held.
"""

from collections.abc import Mapping
from typing import Any

from stream_engine.counts import Accumulator, Ledger
from stream_engine.counts.judgements import Judgements
from stream_engine.counts.response_patterns import ResponsePatterns
from stream_engine.counts.worker_votes import WorkerVotes

VOTES, PATTERNS = "worker_votes", "response_patterns"
OPTIONAL = {VOTES, PATTERNS}  # that states of one kind may keep or not
Kept = dict[str, Accumulator | Ledger]


class VotesUnknown(ValueError):
    """The votes of the sum cannot be told. One line."""


def agreed(mine: Kept, theirs: Kept, my_counters: Mapping[str, Any], their_counters: Mapping[str, Any]) -> Kept:
    """What the first state has to keep for a sum of both, of which one keeps votes of workers or response patterns and
    the other none. Votes: where the latter read no worker's name; none where the former read none. Response patterns:
    where there are any, as they are figures of those answers that tell one. Raises `VotesUnknown`."""
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
        raise VotesUnknown("one state keeps who answered what, and the other keeps no triplet counts to complete it")
    if said := _named(without, counters):
        raise VotesUnknown(
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
