"""The state of a guard after an object, or a worker, is forgotten: what it holds of their comparisons is dropped.

What is kept stays acyclic. Comparisons that had been refused because of those that leave do not come back, so this is
not the guard of a stream without the object; no guard can be, as what it refused was never kept. Under sift, debts
begin at 0 and each pair has the votes that are left around it.
"""

from collections.abc import Mapping

import numpy as np


def without_object(state: Mapping[str, np.ndarray], gone: int, policy: str) -> dict[str, np.ndarray]:
    """The state without the rows that name object `gone`; later ids are one lower. Rows stay in order. O(rows).

    >>> state = {"kept": np.array([[0, 1, 0, 2], [0, 2, 0, 3]], np.int32)}
    >>> without_object(state, 1, "first")["kept"].tolist()
    [[0, 1, 0, 2]]
    """
    if policy == "sift":
        return _sifted(state, gone)
    left = {}
    for name in (name for name in ("kept", "refused", "struck") if name in state):
        stays = _stay(state[name], gone)
        left[name] = _lower(state[name][stays], gone)
        if f"{name}_net" in state:
            left[f"{name}_net"] = state[f"{name}_net"][stays]
    return left


def without_uncounted(
    state: Mapping[str, np.ndarray], lo: np.ndarray, hi: np.ndarray, anchor: np.ndarray, policy: str
) -> dict[str, np.ndarray] | None:
    """The state without triplets that nobody answered so any more, given the answers that are left as rows: to
    `anchor`, `lo` was nearer than `hi`. None under policies that weigh votes, as they do not know whose these were.

    Rows that name four objects stay. O(rows log rows).
    """
    if policy not in ("first", "drop-both"):
        return None
    n = max((int(rows.max(initial=0)) for rows in (*state.values(), lo, hi, anchor)), default=0) + 1
    counted = _codes(anchor, lo, hi, n)
    left = {}
    for name, rows in state.items():
        stays = _answered(rows, counted, n)
        if name == "struck":  # seen in both directions
            stays |= _answered(rows[:, [2, 3, 0, 1]], counted, n)
        left[name] = rows[stays]
    return left


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


def _stay(rows: np.ndarray, gone: int) -> np.ndarray:
    return ~(rows == gone).any(axis=1)


def _lower(rows: np.ndarray, gone: int) -> np.ndarray:
    return (rows - (rows > gone)).astype(rows.dtype)


def _sifted(state: Mapping[str, np.ndarray], gone: int) -> dict[str, np.ndarray]:
    stays = _stay(state["voted"], gone)
    voted, net = _lower(state["voted"][stays], gone), state["net"][stays]
    order = _lower(state["order"][_stay(state["order"], gone)], gone)
    return {
        "order": order,
        "debt": np.zeros(len(order), np.int64),
        "votes": _votes_around(order, voted, net),
        "voted": voted,
        "net": net,
    }


def _votes_around(order: np.ndarray, voted: np.ndarray, net: np.ndarray) -> np.ndarray:
    """(N,) int64: the net votes between each pair and all others."""
    if not len(voted):
        return np.zeros(len(order), np.int64)
    n = np.int64(order.max()) + 1
    codes = order[:, 0] * n + order[:, 1]
    sought = np.argsort(codes)
    ends = np.concatenate([voted[:, 0] * n + voted[:, 1], voted[:, 2] * n + voted[:, 3]])
    place = sought[np.searchsorted(codes[sought], ends)]
    return np.bincount(place, np.concatenate([net, net]), len(order)).astype(np.int64)
