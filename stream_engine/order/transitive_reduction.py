"""Transitive reduction: the unique smallest set of comparisons with the same consequences.

An edge x -> v is redundant iff a longer path leads from x to v (Aho, Garey & Ullman 1972). Edges that a path through a
support replaces go first (four in five in large orders); for the rest a search looks at nodes before v alone.
"""

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.order.pair_rows import (
    NumberedPairs,
    in_canonical_order,
    in_topological_order,
    increasing_successors,
)
from stream_engine.order.reachability_masks import may_reach, passes_a_third, supports_of


@njit(cache=True, nogil=True)
def _without_supported(start, targets, before, after, number):
    """(n,) int64 `end`: the edges of x that no path through a support replaces are moved to targets[start[x]:end[x]],
    in their order."""
    n = len(start) - 1
    end = np.empty(n, np.int64)
    for x in range(n):
        end[x] = start[x]
        for k in range(start[x], start[x + 1]):
            v = targets[k]
            if not passes_a_third(before, after, number, x, v):
                targets[end[x]] = v
                end[x] += 1
    return end


@njit(cache=True, nogil=True)
def _reached_otherwise(start, end, targets, before, after, x, k, met, stack):
    """Whether a successor of x before v = targets[k] reaches v. met[y] == k + 1: y was met in this search."""
    v = targets[k]
    depth = 0
    for j in range(start[x], k):
        y = targets[j]
        if may_reach(before, after, y, v):
            met[y] = k + 1
            stack[depth] = y
            depth += 1
    while depth > 0:
        depth -= 1
        y = stack[depth]
        for j in range(start[y], end[y]):
            z = targets[j]
            if z >= v:  # successors increase, and nothing behind v reaches it
                if z == v:
                    return True
                break
            if met[z] != k + 1 and may_reach(before, after, z, v):
                met[z] = k + 1
                stack[depth] = z
                depth += 1
    return False


@njit(cache=True, nogil=True)
def _survivors(start, end, targets, before, after):
    """(m,) bool: which of the edges targets[start[x]:end[x]], successors increasing, are needed."""
    needed = np.zeros(len(targets), np.bool_)
    met, stack = np.zeros(len(end), np.int64), np.empty(len(end), np.int32)
    for x in range(len(end)):
        for k in range(start[x], end[x]):
            needed[k] = not _reached_otherwise(start, end, targets, before, after, x, k, met, stack)
    return needed


def _reduced(near: np.ndarray, far: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """`(near, far)` of the needed ones of the edges near[e] < far[e] between topological positions 0 .. n - 1."""
    start, targets = increasing_successors(near, far, n)
    masks = supports_of(start, targets)
    end = _without_supported(start, targets, *masks)
    needed = _survivors(start, end, targets, masks.before, masks.after)
    return np.repeat(np.arange(n, dtype=np.int32), np.diff(start))[needed], targets[needed]


def transitive_reduction(kept_rows: np.ndarray) -> np.ndarray:
    """(r, 4) int32: those of the (m, 4) rows that do not follow from the others, canonical and sorted.

    Raises `ValueError` when the rows hold a cycle. Source: Aho, Garey & Ullman 1972; McFee & Lanckriet 2011, sec. 2.

    >>> transitive_reduction(np.array([[0, 1, 0, 2], [0, 2, 1, 2], [0, 1, 1, 2]], np.int32)).tolist()
    [[0, 1, 0, 2], [0, 2, 1, 2]]
    """
    pairs = in_topological_order(kept_rows, "transitive_reduction")
    near, far = _reduced(pairs.near, pairs.far, len(pairs.key))
    return in_canonical_order(NumberedPairs(pairs.key, pairs.order[near], pairs.order[far]))[0]
