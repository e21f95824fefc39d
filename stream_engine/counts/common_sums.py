"""What two statistics have in common is stored once.

AddS-4 stands on AddS-3 while no quadruplet was seen, as both are then the same W; every batch is given to both, to
AddS-3 first. Votes of participants without a name are in the triplet counts, and not among the votes as well.
"""

from collections.abc import Callable, Mapping

import numpy as np

from stream_engine.counts import Accumulator, Ledger
from stream_engine.counts.adds_similarity import AddS3, AddS4
from stream_engine.counts.triplet_counts import TripletCounts
from stream_engine.counts.worker_votes import WorkerVotes


def share(accumulators: Mapping[str, Accumulator | Ledger]) -> None:
    """Let AddS-4 stand on AddS-3 if both are there and equal, and votes of workers leave nobody's to triplet counts.
    O(pairs).

    >>> one, two = AddS3(), AddS4()
    >>> share({"adds3": one, "adds4": two})
    >>> two.same is one
    True
    """
    votes, counts = accumulators.get("worker_votes"), accumulators.get("triplet_counts")
    if isinstance(votes, WorkerVotes) and isinstance(counts, TripletCounts):
        votes.leave_nobody_out()
    adds3, adds4 = accumulators.get("adds3"), accumulators.get("adds4")
    if not (isinstance(adds3, AddS3) and isinstance(adds4, AddS4)):
        return
    if adds4.same is None and _equal(adds3.state(), adds4.state()):
        adds4.stand_on(adds3)


def part(accumulators: Mapping[str, Accumulator | Ledger], state_of: Callable[[str], Mapping[str, np.ndarray]]) -> None:
    """Before states are merged into these: have AddS-4 hold its own, unless the states are equal, too. O(pairs)."""
    adds4 = accumulators.get("adds4")
    if isinstance(adds4, AddS4) and adds4.same is not None and not _equal(state_of("adds3"), state_of("adds4")):
        adds4.stand_alone()


def _equal(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> bool:
    return all(np.array_equal(array, other[name]) for name, array in one.items())


def holder(accumulator: Accumulator | Ledger) -> Accumulator | Ledger:
    """Who holds what this one counts: mostly itself."""
    return accumulator.same or accumulator if isinstance(accumulator, AddS4) else accumulator
