"""The state of a guard after an object, or a participant, is forgotten: it drops what it holds of their comparisons.

What is kept stays acyclic. Comparisons that had been refused because of those that leave do not come back, so this is
not the guard of a stream without the object; no guard can be, as what it refused was never kept.
"""

from collections.abc import Mapping

import numpy as np


def without_object(state: Mapping[str, np.ndarray], gone: int) -> dict[str, np.ndarray]:
    """The state without the rows that name object `gone`; later ids are one lower. Rows stay in order. O(rows).

    >>> state = {"kept": np.array([[0, 1, 0, 2], [0, 2, 0, 3]], np.int32)}
    >>> without_object(state, 1)["kept"].tolist()
    [[0, 1, 0, 2]]
    """
    rows = state["kept"][~(state["kept"] == gone).any(axis=1)]
    return {"kept": (rows - (rows > gone)).astype(rows.dtype)}


def without_uncounted(
    state: Mapping[str, np.ndarray], lo: np.ndarray, hi: np.ndarray, anchor: np.ndarray
) -> dict[str, np.ndarray]:
    """The state without the kept triplets for which no answer remains; comparisons of four objects stay.

    The remaining answers: `lo[r]` was nearer to `anchor[r]` than `hi[r]`. O(rows log rows).
    """
    kept_rows = state["kept"]
    n = max(int(rows.max(initial=0)) for rows in (kept_rows, lo, hi, anchor)) + 1
    return {"kept": kept_rows[_answered(kept_rows, _codes(anchor, lo, hi, n), n)]}


def _codes(anchor: np.ndarray, near: np.ndarray, far: np.ndarray, n: int) -> np.ndarray:
    return np.stack([anchor.astype(np.int64) * n + near, far.astype(np.int64)], axis=1).astype("<i8").view("<i8,<i8")


def _answered(rows: np.ndarray, counted: np.ndarray, n: int) -> np.ndarray:
    """(m,) bool: whether a row near_i, near_j, far_i, far_j is no triplet, or one that is counted."""
    stays = np.ones(len(rows), bool)
    for a, b in ((0, 2), (0, 3), (1, 2), (1, 3)):  # where the object stands that both pairs share
        shared = np.flatnonzero(rows[:, a] == rows[:, b])
        codes = _codes(rows[shared, a], rows[shared, 1 - a], rows[shared, 5 - b], n)
        stays[shared] = np.isin(codes.ravel(), counted.ravel())
    return stays
