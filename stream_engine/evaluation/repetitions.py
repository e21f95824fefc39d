"""A predictor by earlier answers to the same question."""

import numpy as np

from stream_engine.data.compiled import for_size, njit, read_only
from stream_engine.evaluation import Predictor
from stream_engine.state.published import Published
from stream_engine.state.snapshot import triplet_columns


def repeats(published: Published) -> Predictor | None:
    """By earlier answers to the same question: log (n_near + 1) / (n_far + 1) for a triplet that has some, else NaN.
    The ceiling of every similarity, where questions repeat. O(log K) each."""
    columns = triplet_columns(published.snapshot)
    if not len(columns.anchor):
        return None
    lo, hi = read_only(columns.lo, np.int32), read_only(columns.hi, np.int32)
    start, anchors = read_only(columns.start, np.int64), read_only(columns.anchor, np.int32)

    def margins(rows: np.ndarray) -> np.ndarray:
        is_triplet = rows[:, 0] == rows[:, 2]
        anchor, near, far = rows[is_triplet][:, [0, 1, 3]].T
        key = (read_only(ids, np.int64) for ids in (anchor, np.minimum(near, far), np.maximum(near, far)))
        entry = for_size(entries, 10 * len(anchor))(lo, hi, start, anchors, *key)
        counted = entry >= 0
        votes = np.log((columns.n_lo[entry[counted]] + 1.0) / (columns.n_hi[entry[counted]] + 1.0))
        of_triplet = np.full(len(entry), np.nan)
        of_triplet[counted] = np.where(near[counted] < far[counted], votes, -votes)
        margin = np.full(len(rows), np.nan)
        margin[is_triplet] = of_triplet
        return margin

    return Predictor(margins)


@njit(cache=True, nogil=True)
def entries(lo, hi, start, anchor, of_anchor, of_lo, of_hi):
    """(m,) int64: the entry of each key in columns sorted by (lo, hi) and then anchor, -1 if it is not there."""
    entry = np.full(len(of_anchor), -1, np.int64)
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
            entry[q] = first
    return entry
