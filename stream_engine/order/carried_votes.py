"""What a transitive reduction loses and how it is kept: votes and margins carried along the path that stands in.

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
from stream_engine.order.pair_rows import NumberedPairs, adjacency, in_canonical_order, numbered, sorted_nodes
from stream_engine.order.transitive_reduction import transitive_reduction


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
