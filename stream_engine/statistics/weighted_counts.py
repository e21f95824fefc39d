"""AddS-3 and triplet counts of a snapshot in which comparisons do not all count once: recent, decayed, weighted, trusted."""

from typing import NamedTuple

import numpy as np

from stream_engine.data.triplet_columns import Columns, columns_from_triplets
from stream_engine.state.snapshot import Snapshot
from stream_engine.statistics import worker_reliability

HOWS = {
    "window": "of the triplets in the sliding window",
    "decayed": "decayed by age",
    "weighted": "weighted by the events' weights",
    "trusted": "weighted by the reliability of workers",
}


class NotKept(LookupError):
    """The snapshot does not keep what is asked for; one line."""


class AddS3(NamedTuple):
    """Entries i < j of W, and how many comparisons of weight 1 would make as much noise: the sum of squared weights."""

    i: np.ndarray
    j: np.ndarray
    w: np.ndarray
    comparisons: int


def adds3(snapshot: Snapshot, how: str) -> AddS3:
    """AddS-3, `how` a key of HOWS. Raises `NotKept`. `trusted` judges the workers first, with default parameters."""
    if how in ("decayed", "weighted"):
        room = _room(snapshot, f"adds3_{how}")
        return AddS3(room["i"], room["j"], room["w"], int(np.ceil(room["squares"])))
    if how == "window":
        rows, n = _room(snapshot, "window")["rows"].astype(np.int64), max(len(snapshot.objects), 1)
        a, b = np.concatenate([rows[:, 0], rows[:, 0]]), np.concatenate([rows[:, 1], rows[:, 2]])
        pair, at = np.unique(np.minimum(a, b) * n + np.maximum(a, b), return_inverse=True)
        w = np.rint(np.bincount(at, np.repeat([1, -1], len(rows)), len(pair))).astype(np.int64)
        keep = w != 0
        return AddS3((pair[keep] // n).astype(np.int32), (pair[keep] % n).astype(np.int32), w[keep], len(rows))
    votes, weight = _trusted(snapshot)
    squares = float(weight**2 @ (votes.n_lo + votes.n_hi))
    return AddS3(*worker_reliability.adds(votes, weight), int(np.ceil(squares)))


def counts(snapshot: Snapshot, how: str) -> Columns:
    """Triplet counts as columns; floats but for the window. Raises `NotKept`."""
    if how in ("decayed", "weighted"):
        room = _room(snapshot, f"triplet_counts_{how}")
        return Columns(*(room[key] for key in Columns._fields[:-1]), len(snapshot.objects))
    if how == "window":
        return columns_from_triplets(_room(snapshot, "window")["rows"], len(snapshot.objects))
    return worker_reliability.counts(*_trusted(snapshot))


def _trusted(snapshot: Snapshot) -> tuple[worker_reliability.Votes, np.ndarray]:
    _room(snapshot, "worker_votes")
    votes = worker_reliability.votes_of(snapshot)
    return votes, worker_reliability.trust(worker_reliability.estimate(votes).accuracy)[votes.worker]


def _room(snapshot: Snapshot, name: str) -> dict[str, np.ndarray]:
    room = snapshot.room(name)
    if not room:
        raise NotKept(f"{name} is not kept in this state; add it to `accumulators`")
    return room
