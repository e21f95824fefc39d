"""Which objects have too few comparisons to be placed on a map or in a group."""

import numpy as np

from stream_engine.data.triplet_columns import pair_of_entry
from stream_engine.evaluation.kept_responses import kept_responses
from stream_engine.state.snapshot import Snapshot, triplet_columns

MIN_COMPARISONS = 10  # of an object, below which little is known of its position


def comparisons_by_object(snapshot: Snapshot) -> np.ndarray | None:
    """(n,) int64 comparisons of each object; None where they are not all counted by object: those of four objects are
    in counts of their own, or among the judgements where all of these are there. O(K)."""
    n, counters, of_four = len(snapshot.objects), snapshot.counters, snapshot.section("quadruplet_counts")
    if counters["triplets"] and not snapshot.section("triplet_counts"):
        return None
    columns = triplet_columns(snapshot)
    pair = pair_of_entry(columns)
    members = [columns.anchor, columns.lo[pair], columns.hi[pair]]
    counts = _sum(members, columns.n_lo.astype(np.int64) + columns.n_hi, n)
    if of_four:
        return counts + _sum([of_four[key] for key in "ijkl"], of_four["n_lo"].astype(np.int64) + of_four["n_hi"], n)
    if not counters["quadruplets"]:
        return counts
    responses = kept_responses(snapshot)
    if responses is None or not responses.complete:
        return None
    four = responses.rows[:, 0] != responses.rows[:, 2]
    times = responses.times[responses.judgement[four]]
    return counts + _sum(list(responses.rows[four].T), times, n)


def _sum(members: list[np.ndarray], times: np.ndarray, n: int) -> np.ndarray:
    return sum((np.bincount(of, times, n) for of in members), np.zeros(n)).astype(np.int64)


def too_few(comparisons: np.ndarray | None, n: int) -> np.ndarray:
    """(n,) bool: objects with fewer than MIN_COMPARISONS; none while this holds for most objects, as
    early in a study, when the whole map is uncertain.

    >>> too_few(np.array([12, 2, 30, 11]), 4).tolist(), too_few(np.array([2, 3, 40]), 3).tolist()
    ([False, True, False, False], [False, False, False])
    """
    if comparisons is None or not n or np.median(comparisons) < MIN_COMPARISONS:
        return np.zeros(n, bool)
    return comparisons < MIN_COMPARISONS
