"""AddS-3 and triplet counts of a snapshot in which comparisons count once (`plain`), or by weights (`WEIGHTINGS`)."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stream_engine.counts import adds_similarity
from stream_engine.data.array_checks import MAX_COUNT
from stream_engine.data.triplet_columns import Columns, columns_from_triplets, columns_of_state
from stream_engine.state.snapshot import Snapshot, triplet_columns

if TYPE_CHECKING:  # it brings scipy, which an export of counts does without
    from stream_engine.evaluation.worker_reliability import ParticipantVotes

# weighting -> the words for it in descriptions of exports
WEIGHTINGS = {
    "window": "of the triplets in the sliding window",
    "decayed": "decayed by age",
    "weighted": "weighted by the events' weights",
    "trusted": "weighted by the reliability of workers",
}


class NotKept(LookupError):
    """The snapshot lacks the requested section; the message is one line."""


class AddS3(NamedTuple):
    """Entries i < j of W, and how many comparisons of weight 1 have as much noise: the sum of squared weights."""

    i: np.ndarray
    j: np.ndarray
    w: np.ndarray
    comparisons: int


def adds3(snapshot: Snapshot, how: str) -> AddS3:
    """AddS-3, `how`: a key of WEIGHTINGS, or "plain". Raises `NotKept`. `trusted` estimates the workers' reliability
    first, with default parameters."""
    if how == "plain":
        sums = _section(snapshot, "adds3")
        return AddS3(sums["i"], sums["j"], sums["w"], int(snapshot.counters["triplets"]))
    if how in ("decayed", "weighted"):
        sums = _section(snapshot, f"adds3_{how}")
        return AddS3(sums["i"], sums["j"], sums["w"], _whole(sums["squares"]))
    if how == "window":
        rows = _section(snapshot, "window")["rows"]
        ones = np.ones(len(rows), np.int64)
        i, j, w = adds_similarity.adds3(rows[:, 0], rows[:, 1], rows[:, 2], ones, len(snapshot.objects))
        return AddS3(i, j, w, len(rows))
    from stream_engine.evaluation import worker_reliability

    votes, weight = _votes_and_weights(snapshot)
    squares = float(weight**2 @ (votes.n_lo + votes.n_hi))
    return AddS3(*worker_reliability.adds(votes, weight), int(np.ceil(squares)))


def _whole(squares: np.ndarray) -> int:
    """A sum of squared weights as a number of comparisons; with weights that are very large, the sum can be
    infinite."""
    return int(np.ceil(np.nan_to_num(squares, nan=MAX_COUNT, posinf=MAX_COUNT).clip(0, MAX_COUNT)))


def counts(snapshot: Snapshot, how: str) -> Columns:
    """Triplet counts as columns; weighted counts are floats. Raises `NotKept`."""
    if how == "plain":
        return triplet_columns(snapshot)
    if how in ("decayed", "weighted"):
        return columns_of_state(_section(snapshot, f"triplet_counts_{how}"), len(snapshot.objects))
    if how == "window":
        return columns_from_triplets(_section(snapshot, "window")["rows"], len(snapshot.objects))
    from stream_engine.evaluation import worker_reliability

    return worker_reliability.counts(*_votes_and_weights(snapshot))


def _votes_and_weights(snapshot: Snapshot) -> tuple["ParticipantVotes", np.ndarray]:
    """The votes of all participants, and the weight of each by the reliability of its participant."""
    from stream_engine.evaluation import worker_reliability

    _section(snapshot, "worker_votes")
    votes = worker_reliability.votes_of(snapshot)
    return votes, worker_reliability.vote_weight(worker_reliability.estimate(votes).accuracy)[votes.worker]


def _section(snapshot: Snapshot, name: str) -> dict[str, np.ndarray]:
    arrays = snapshot.section(name)
    if not arrays:
        raise NotKept(f"{name} is not in this state; add it to `accumulators`")
    return arrays
