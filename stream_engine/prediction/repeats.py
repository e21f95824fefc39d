"""The majority of the earlier answers to the same question: a ceiling for every similarity, where questions are repeated."""

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.prediction import Predictor
from stream_engine.state.published import Published
from stream_engine.state.snapshot import triplet_columns
from stream_engine.statistics.gram_matrices import read_only


def repeats(published: Published) -> Predictor | None:
    """log (n_near + 1) / (n_far + 1) for a triplet whose key was counted; NaN for one that was never asked. O(log K) each."""
    columns = triplet_columns(published.snapshot)
    if not len(columns.anchor):
        return None
    held = [
        read_only(a, dtype)
        for a, dtype in (
            (columns.lo, np.int32),
            (columns.hi, np.int32),
            (columns.start, np.int64),
            (columns.anchor, np.int32),
        )
    ]

    def margins(rows: np.ndarray) -> np.ndarray:
        found = np.full(len(rows), np.nan)
        three = rows[:, 0] == rows[:, 2]
        anchor, near, far = rows[three][:, [0, 1, 3]].T
        asked = anchor, np.minimum(near, far), np.maximum(near, far)
        at = places(*held, *(read_only(column, np.int64) for column in asked))
        seen = at >= 0
        votes = np.log((columns.n_lo[at[seen]] + 1.0) / (columns.n_hi[at[seen]] + 1.0))
        of_three = np.full(len(at), np.nan)
        of_three[seen] = np.where(near[seen] < far[seen], votes, -votes)
        found[three] = of_three
        return found

    return Predictor(margins)


@njit(cache=True, nogil=True)
def places(lo, hi, start, anchor, of_anchor, of_lo, of_hi):
    """(m,) int64: the entry of each key in columns sorted by (lo, hi) and then anchor, -1 where it is not there."""
    found = np.full(len(of_anchor), -1, np.int64)
    for q in range(len(of_anchor)):
        left, right = 0, len(lo)
        while left < right:
            middle = (left + right) // 2
            if lo[middle] < of_lo[q] or (lo[middle] == of_lo[q] and hi[middle] < of_hi[q]):
                left = middle + 1
            else:
                right = middle
        if left == len(lo) or lo[left] != of_lo[q] or hi[left] != of_hi[q]:
            continue
        first, last = start[left], start[left + 1]
        end = last
        while first < last:
            middle = (first + last) // 2
            if anchor[middle] < of_anchor[q]:
                first = middle + 1
            else:
                last = middle
        if first < end and anchor[first] == of_anchor[q]:
            found[q] = first
    return found
