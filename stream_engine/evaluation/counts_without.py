"""The counts of a snapshot without some of its answers: the training counts when these are held out.

Subtracting keeps answers that a bounded sample of responses lacks, so the counts are exact whether or not it is whole.
"""

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.data.triplet_columns import Columns, first_of_equal, pair_of_entry, state_of_columns
from stream_engine.state.snapshot import Snapshot, triplet_columns


def without(snapshot: Snapshot, answers: Answers) -> Snapshot:
    """The snapshot without these answers: subtracted from triplet and quadruplet counts, not from other sections; ids
    stay. O(keys + m log keys)."""
    arrays = dict(snapshot.arrays)
    if snapshot.section("triplet_counts"):
        columns = triplet_columns(snapshot)
        entry, forward = _entries(columns, answers.rows)
        counts_left = _subtracted(columns.n_lo, columns.n_hi, entry, forward, answers.times)
        arrays |= {
            f"triplet_counts/{name}": array
            for name, array in state_of_columns(_nonempty_columns(columns, *counts_left)).items()
        }
    if quadruplets := snapshot.section("quadruplet_counts"):
        entry, forward = _quadruplet_entries(quadruplets, answers.rows, len(snapshot.objects))
        n_lo, n_hi = _subtracted(quadruplets["n_lo"], quadruplets["n_hi"], entry, forward, answers.times)
        is_left = n_lo + n_hi > 0
        quadruplets_left = {name: quadruplets[name][is_left] for name in "ijkl"} | {
            "n_lo": n_lo[is_left],
            "n_hi": n_hi[is_left],
        }
        arrays |= {f"quadruplet_counts/{name}": array for name, array in quadruplets_left.items()}
    return snapshot._replace(arrays=arrays)


def are_counted(snapshot: Snapshot, answers: Answers) -> bool:
    """Whether the triplet counts contain every answer to a triplet, as often as it was given. Comparisons of four
    objects can be held out without counts."""
    columns = triplet_columns(snapshot)
    entry, forward = _entries(columns, answers.rows)
    if (entry[answers.rows[:, 0] == answers.rows[:, 2]] < 0).any():
        return False
    counted = entry >= 0
    for counts, direction in ((columns.n_lo, forward), (columns.n_hi, ~forward)):
        if (np.bincount(entry[counted & direction], answers.times[counted & direction], len(counts)) > counts).any():
            return False
    return True


def _entries(columns: Columns, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`((m,) the entry of each triplet in the columns, -1 for none; (m,) bool whether lo is the nearer)`."""
    anchor, near, far = (rows[:, c].astype(np.int64) for c in (0, 1, 3))
    lo, hi, n = np.minimum(near, far), np.maximum(near, far), columns.n_objects
    pair = _index_in(columns.lo.astype(np.int64) * n + columns.hi, lo * n + hi)
    entry = _index_in(pair_of_entry(columns) * n + columns.anchor, pair * n + anchor)
    return np.where((pair >= 0) & (rows[:, 0] == rows[:, 2]), entry, -1), near < far


def _quadruplet_entries(quadruplets: dict[str, np.ndarray], rows: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """`_entries` of comparisons of four objects in quadruplet counts."""
    near, far = np.sort(rows[:, :2].astype(np.int64), axis=1), np.sort(rows[:, 2:].astype(np.int64), axis=1)
    near, far = near[:, 0] * n + near[:, 1], far[:, 0] * n + far[:, 1]
    first, second = (quadruplets[a].astype(np.int64) * n + quadruplets[b] for a, b in ("ij", "kl"))
    pair_codes = np.unique(np.concatenate([first, second]))
    pairs = [_index_in(pair_codes, pair) for pair in (np.minimum(near, far), np.maximum(near, far))]
    keys = np.searchsorted(pair_codes, first) * len(pair_codes) + np.searchsorted(pair_codes, second)
    entry = _index_in(keys, pairs[0] * len(pair_codes) + pairs[1])
    return np.where((pairs[0] >= 0) & (pairs[1] >= 0) & (rows[:, 0] != rows[:, 2]), entry, -1), near < far


def _index_in(increasing: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(m,) int64: the index of each value in an increasing array, -1 if it is not there."""
    if not len(increasing):
        return np.full(len(values), -1)
    index = np.minimum(np.searchsorted(increasing, values), len(increasing) - 1)
    return np.where(increasing[index] == values, index, -1)


def _subtracted(n_lo, n_hi, entry: np.ndarray, forward: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    counts_left = []
    for counts, direction in ((n_lo, forward), (n_hi, ~forward)):
        selected = direction & (entry >= 0)
        counts_left.append(counts - np.bincount(entry[selected], times[selected], len(counts)).astype(counts.dtype))
    return counts_left[0], counts_left[1]


def _nonempty_columns(columns: Columns, n_lo: np.ndarray, n_hi: np.ndarray) -> Columns:
    """The columns with these counts, without keys whose counts are zero."""
    is_left, pair = n_lo + n_hi > 0, pair_of_entry(columns)
    pairs = pair[is_left]
    begins = np.flatnonzero(first_of_equal(pairs)) if len(pairs) else np.empty(0, np.int64)
    start = np.append(begins, len(pairs)).astype(np.int64)
    first = pairs[begins]
    return Columns(
        columns.lo[first],
        columns.hi[first],
        start,
        columns.anchor[is_left],
        n_lo[is_left],
        n_hi[is_left],
        columns.n_objects,
    )
