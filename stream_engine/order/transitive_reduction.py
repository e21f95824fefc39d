"""Transitive reduction: the unique smallest set of comparisons with the same consequences.

An edge x -> v is redundant iff a path of two or more edges leads from x to v (Aho, Garey & Ullman 1972). Nodes are
numbered in topological order. Edges that a path through a *support* (see supports) replaces go first, without a search:
on large orders four in five. What is left has the same consequences, so x -> v is redundant iff v can be reached from a
successor of x that stands before v; the search for it leaves out every node whose masks say that it does not reach v.
O(m words) for m edges, and for the few edges with a path but no support on it a search of what may lie between.

What a transitive reduction loses and how it is kept: votes and margins carried along the path that stands in.

A comparison x -> v with w votes and margin m follows from a path of L comparisons that are kept. Since
    max(0, m + d_x - d_v)  <=  sum over the path of max(0, m / L + d_near - d_far),
asking each comparison of the path for m / L with w votes asks for no less than x -> v did, and does not make chains
spread: the margins along the path sum to m, not to L. A comparison that stays has its own votes and all that passes it,
and the mean of the margins, each with its votes. The path is a shortest one, of these the one found first when
successors are tried by increasing topological position. O(sources of removed comparisons x reduced comparisons).
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.order.pair_rows import (
    NumberedPairs,
    adjacency,
    in_canonical_order,
    in_topological_order,
    increasing_successors,
    numbered,
    sorted_nodes,
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


def transitive_reduction(kept: np.ndarray) -> np.ndarray:
    """(r, 4) int32: those of the (m, 4) rows that do not follow from the others, canonical and sorted.

    Raises `ValueError` when the rows hold a cycle. Source: Aho, Garey & Ullman 1972; McFee & Lanckriet 2011, sec. 2.

    >>> transitive_reduction(np.array([[0, 1, 0, 2], [0, 2, 1, 2], [0, 1, 1, 2]], np.int32)).tolist()
    [[0, 1, 0, 2], [0, 2, 1, 2]]
    """
    found = in_topological_order(kept, "transitive_reduction")
    near, far = _reduced(found.near, found.far, len(found.key))
    return in_canonical_order(NumberedPairs(found.key, found.order[near], found.order[far]))[0]


class ReducedOrder(NamedTuple):
    """The transitive reduction with what each comparison of it bears."""

    rows: np.ndarray  # (r, 4) int32 canonical rows
    votes: np.ndarray  # (r,) float64: its own, and those of the comparisons whose path it is on
    margin: np.ndarray  # (r,) float64 in (0, 1]


def reduced_with_votes(rows: np.ndarray, votes: np.ndarray) -> ReducedOrder:
    """The transitive reduction of acyclic rows (m, 4), no row twice, with votes (m,) > 0 and margin 1 each.

    Raises `ValueError` when the rows hold a cycle.

    >>> rows = np.array([[0, 1, 0, 2], [0, 2, 1, 2], [0, 1, 1, 2]], np.int32)
    >>> kept = reduced_with_votes(rows, np.array([1.0, 1.0, 2.0]))         # the third follows from the other two
    >>> kept.rows.tolist(), kept.votes.tolist(), kept.margin.round(3).tolist()
    ([[0, 1, 0, 2], [0, 2, 1, 2]], [3.0, 3.0], [0.667, 0.667])
    """
    edges = numbered(rows)
    n = len(edges.key)
    needed = np.zeros(len(rows), bool)
    needed[_found(edges, numbered(transitive_reduction(rows)))] = True
    order = sorted_nodes(edges.near, edges.far, n)
    position = np.empty(n, np.int32)
    position[order] = np.arange(n)
    near, far = position[edges.near], position[edges.far]
    kept, gone = _by_source(near, far, needed), _by_source(near, far, ~needed)
    total, moment = votes[kept].astype(float), votes[kept].astype(float)
    start, targets = adjacency(near[kept], far[kept], n)
    _carry(start, targets, near[gone], far[gone], votes[gone].astype(float), total, moment)
    return ReducedOrder(
        *in_canonical_order(NumberedPairs(edges.key, edges.near[kept], edges.far[kept]), total, moment / total)
    )


def _found(edges: NumberedPairs, reduced: NumberedPairs) -> np.ndarray:
    """(r,) where each edge of the reduction stands among all of them; both name the same pairs."""
    n = len(edges.key)
    where = np.searchsorted(edges.key, reduced.key)
    code = edges.near.astype(np.int64) * n + edges.far
    order = np.argsort(code, kind="stable")
    return order[np.searchsorted(code, where[reduced.near] * n + where[reduced.far], sorter=order)]


def _by_source(near: np.ndarray, far: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Numbers of the edges of the mask, by near and then by far."""
    chosen = np.flatnonzero(mask)
    return chosen[np.lexsort((far[chosen], near[chosen]))]


@njit(cache=True, nogil=True)
def _carry(start, targets, near, far, votes, total, moment):
    """Add the votes of each edge near[e] -> far[e], sorted by near, to every edge of a shortest path from its near to
    its far end, and votes / length to their moments. Successors targets[start[x]:start[x + 1]] stand behind x."""
    n = len(start) - 1
    by, source = np.full(n, -1, np.int64), np.empty(n, np.int32)  # the edge that x was reached by, and from where
    met, queue = np.full(n, -1, np.int32), np.empty(n, np.int32)
    e = 0
    while e < len(near):
        x, last = near[e], e
        while last < len(near) and near[last] == x:
            last += 1
        furthest, left = far[last - 1], last - e
        for k in range(e, last):
            by[far[k]] = -2  # asked for
        head, tail = 0, 1
        queue[0], met[x] = x, x
        while head < tail and left > 0:
            y = queue[head]
            head += 1
            for k in range(start[y], start[y + 1]):
                z = targets[k]
                if z > furthest:
                    break
                if met[z] != x:
                    if by[z] == -2:
                        left -= 1
                    met[z], by[z], source[z] = x, k, y
                    queue[tail] = z
                    tail += 1
        for k in range(e, last):
            length, z = 0, far[k]
            while z != x:
                length, z = length + 1, source[z]
            z = far[k]
            while z != x:
                total[by[z]] += votes[k]
                moment[by[z]] += votes[k] / length
                z = source[z]
        e = last
