"""What follows from an order without having been said: its transitive closure over triplets.

T-trans = T-infinity \\ T (Heim et al. 2014, sec. 3, Def. 1 and 2): the triplets {a, b} -> ... -> {a, c} that a path of
kept comparisons implies. O(m words) to prepare; a question takes nanoseconds where a support answers, else a search.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.order.hash_tables import pair_keys
from stream_engine.order.pair_rows import in_topological_order, increasing_successors
from stream_engine.order.reachability_masks import Supports, may_reach, passes_a_third, supports_of


class Order(NamedTuple):
    """A finished order that can be asked. Nodes are topological positions 0 .. N - 1."""

    key: np.ndarray  # (N,) int64 pair keys, increasing
    position: np.ndarray  # (N,) int32: where the pair of each key stands
    start: np.ndarray  # (N + 1,) int64: successors of x are targets[start[x]:start[x + 1]], increasing
    targets: np.ndarray  # (m,) int32
    supports: Supports


def order_of(rows: np.ndarray) -> Order:
    """Make acyclic rows (m, 4) ready. Raises `ValueError` for a cycle. O(m words + N log N)."""
    pairs = in_topological_order(rows, "implied")
    start, targets = increasing_successors(pairs.near, pairs.far, len(pairs.key))
    return Order(pairs.key, pairs.position, start, targets, supports_of(start, targets))


def answers(order: Order, questions: np.ndarray) -> np.ndarray:
    """(q,) int8 for (q, 3) questions anchor, b, c: 1 where "b is nearer" follows (or was said), -1 where "c is nearer"
    does, 0 where nothing follows: those are left to ask.

    >>> order = order_of(np.array([[0, 1, 0, 2], [0, 2, 1, 2]]))
    >>> answers(order, np.array([[1, 0, 2], [1, 2, 0], [2, 0, 1], [0, 1, 3]])).tolist()
    [1, -1, 1, 0]
    """
    a, b, c = np.asarray(questions, np.int64).T
    one, other = _positions(order, a, b), _positions(order, a, c)
    forward = _reaches(*order[2:4], *order.supports, np.minimum(one, other), np.maximum(one, other))
    return (forward * np.where(one < other, 1, -1)).astype(np.int8)


def _positions(order: Order, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """(q,) int32 of the pairs {i, j}; -1 for one that no comparison names."""
    key = pair_keys(np.sort(np.stack([i, j], axis=1), axis=1))
    at = np.minimum(np.searchsorted(order.key, key), max(len(order.key) - 1, 0))
    if not len(order.key):
        return np.full(len(key), -1, np.int32)
    return np.where(order.key[at] == key, order.position[at], -1).astype(np.int32)


@njit(cache=True, nogil=True)
def _reaches(start, targets, before, after, number, one, other):
    """(q,) bool: whether position one[q] >= 0 reaches other[q] > one[q]."""
    n = len(start) - 1
    met, stack = np.full(n, -1, np.int64), np.empty(n, np.int32)
    out = np.zeros(len(one), np.bool_)
    for q in range(len(one)):
        x, v = one[q], other[q]
        if x < 0 or x == v or not may_reach(before, after, x, v):
            continue
        out[q] = passes_a_third(before, after, number, x, v)
        if out[q]:
            continue
        depth = 1
        stack[0] = x
        while depth > 0 and not out[q]:
            depth -= 1
            y = stack[depth]
            for k in range(start[y], start[y + 1]):
                z = targets[k]
                if z >= v:  # successors increase, and nothing behind v reaches it
                    out[q] = z == v
                    break
                if met[z] != q and may_reach(before, after, z, v):
                    met[z] = q
                    stack[depth] = z
                    depth += 1
    return out
