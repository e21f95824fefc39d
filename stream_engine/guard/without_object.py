"""The state of a guard after an object is forgotten: what it holds of comparisons that name it is dropped.

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
