"""The counts of a snapshot as if some of its answers had never come.

Training counts are the snapshot's less those of the answers that are held out. So answers that a bounded sample of
responses does not hold go on training, and the counts are exact whether or not the sample is whole.
"""

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.data.triplet_columns import Columns, first_of_equal, pair_of_entry, state_of_columns
from stream_engine.state.snapshot import Snapshot, triplet_columns


def without(snapshot: Snapshot, held: Answers) -> Snapshot:
    """The snapshot as if these answers had never come: their counts subtracted. Only counts that kernels and orders are
    learned from; ids stay. O(keys + m log keys)."""
    columns, arrays = triplet_columns(snapshot), dict(snapshot.arrays)
    at, forward = _entries(columns, held.rows)
    less = _subtracted(columns.n_lo, columns.n_hi, at, forward, held.times)
    arrays |= {f"triplet_counts/{name}": array for name, array in state_of_columns(_left(columns, *less)).items()}
    if four := snapshot.section("quadruplet_counts"):
        at, forward = _quadruplet_entries(four, held.rows, len(snapshot.objects))
        n_lo, n_hi = _subtracted(four["n_lo"], four["n_hi"], at, forward, held.times)
        some = n_lo + n_hi > 0
        left = {name: four[name][some] for name in "ijkl"} | {"n_lo": n_lo[some], "n_hi": n_hi[some]}
        arrays |= {f"quadruplet_counts/{name}": array for name, array in left.items()}
    return snapshot._replace(arrays=arrays)


def are_counted(snapshot: Snapshot, found: Answers) -> bool:
    """Whether every answer is among the snapshot's counts, as often as it was given. Quadruplets need no counts of
    their own to be held out."""
    columns = triplet_columns(snapshot)
    at, forward = _entries(columns, found.rows)
    if (at[found.rows[:, 0] == found.rows[:, 2]] < 0).any():
        return False
    there = at >= 0
    for counts, way in ((columns.n_lo, forward), (columns.n_hi, ~forward)):
        if (np.bincount(at[there & way], found.times[there & way], len(counts)) > counts).any():
            return False
    return True


def _entries(columns: Columns, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`((m,) the entry of each triplet in the columns, -1 for none; (m,) bool whether lo is the nearer)`."""
    anchor, near, far = (rows[:, c].astype(np.int64) for c in (0, 1, 3))
    lo, hi, n = np.minimum(near, far), np.maximum(near, far), columns.n_objects
    pair = _found(columns.lo.astype(np.int64) * n + columns.hi, lo * n + hi)
    entry = _found(pair_of_entry(columns) * n + columns.anchor, pair * n + anchor)
    return np.where((pair >= 0) & (rows[:, 0] == rows[:, 2]), entry, -1), near < far


def _quadruplet_entries(four: dict[str, np.ndarray], rows: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """`_entries` of comparisons of four objects in quadruplet counts."""
    near, far = np.sort(rows[:, :2].astype(np.int64), axis=1), np.sort(rows[:, 2:].astype(np.int64), axis=1)
    near, far = near[:, 0] * n + near[:, 1], far[:, 0] * n + far[:, 1]
    first, second = (four[a].astype(np.int64) * n + four[b] for a, b in ("ij", "kl"))
    numbers = np.unique(np.concatenate([first, second]))
    pairs = [_found(numbers, pair) for pair in (np.minimum(near, far), np.maximum(near, far))]
    keys = np.searchsorted(numbers, first) * len(numbers) + np.searchsorted(numbers, second)
    entry = _found(keys, pairs[0] * len(numbers) + pairs[1])
    return np.where((pairs[0] >= 0) & (pairs[1] >= 0) & (rows[:, 0] != rows[:, 2]), entry, -1), near < far


def _found(rising: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(m,) int64: where each wanted number stands in a rising array, -1 where it does not."""
    if not len(rising):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(rising, wanted), len(rising) - 1)
    return np.where(rising[at] == wanted, at, -1)


def _subtracted(n_lo, n_hi, at: np.ndarray, forward: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    left = []
    for counts, way in ((n_lo, forward), (n_hi, ~forward)):
        mine = way & (at >= 0)
        left.append(counts - np.bincount(at[mine], times[mine], len(counts)).astype(counts.dtype))
    return left[0], left[1]


def _left(columns: Columns, n_lo: np.ndarray, n_hi: np.ndarray) -> Columns:
    """The columns with these counts, without keys that have none."""
    some, pair = n_lo + n_hi > 0, pair_of_entry(columns)
    pairs = pair[some]
    begins = np.flatnonzero(first_of_equal(pairs)) if len(pairs) else np.empty(0, np.int64)
    start = np.append(begins, len(pairs)).astype(np.int64)
    first = pairs[begins]
    return Columns(
        columns.lo[first],
        columns.hi[first],
        start,
        columns.anchor[some],
        n_lo[some],
        n_hi[some],
        columns.n_objects,
    )
