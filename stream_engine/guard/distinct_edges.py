"""Edges between numbered nodes, each offered once and never against its opposite: `Exact` under `first` without tables.

For whoever has numbered the nodes and merged what says the same, as the canonical order has. The verdicts, and the
sequence of the nodes after them, are those of `Exact` for the same comparisons in the same order (a test holds the two
beside each other): accepted edges move nodes by the same search. Half its time a comparison, as nothing is hashed.
Nodes are 0 .. n - 1 outside, one more within: node 0 of a graph is the sentinel of its sequence.
"""

import numpy as np

from stream_engine.data.borrowed_arrays import borrowed
from stream_engine.data.compiled import njit
from stream_engine.data.prefetch import prefetch
from stream_engine.guard.cycle_search import put_before
from stream_engine.guard.graph import (
    FROM,
    IN,
    IN_LEN,
    LABEL,
    N_EDGES,
    OUT,
    OUT_LEN,
    POOL_USED,
    REFRESH_AT,
    TO,
    connect,
    new_graph,
)
from stream_engine.guard.order_maintenance import in_order, insert_one
from stream_engine.guard.pair_nodes import N_NODES
from stream_engine.guard.reachability_masks import choose, edge_added

SOON = 8  # edges: how long before an edge is offered its blocks are asked for


class DistinctEdges:
    """A growing acyclic set of edges; see the module."""

    def __init__(self, order: np.ndarray, near: np.ndarray, far: np.ndarray):
        """No edges yet; (n,) `order` is the sequence of the nodes 0 .. n - 1 to begin with. All edges that will come
        are among near[e] -> far[e]: every node gets the room that its neighbours may need, once and for all."""
        self.graph = new_graph(max(64, len(order) + 1), max(64, len(near)))
        _line_up(self.graph, np.asarray(order, np.int32))
        _make_room(self.graph, near, far)

    def load(self, near: np.ndarray, far: np.ndarray) -> None:
        """Keep edges that all go forward in the sequence."""
        _load(self.graph, near, far)
        choose(self.graph)

    def offer(self, near: np.ndarray, far: np.ndarray) -> np.ndarray:
        """(m,) bool: which of the edges near[e] -> far[e], in their order, are kept, as they close no cycle."""
        kept = np.empty(len(near), bool)
        _offer(self.graph, near, far, kept)
        return kept

    def order(self) -> np.ndarray:
        """(n,) int32: the nodes in the sequence, which every kept edge follows."""
        return in_order(self.graph.link, self.graph.n_nodes) - np.int32(1)


@njit(cache=True, nogil=True)
def by_first_appearance(near, far, n):
    """(n,) int32: the nodes 0 .. n - 1 as they first appear in near[0], far[0], near[1], ... All must appear."""
    out, met, found = np.empty(n, np.int32), np.zeros(n, np.bool_), 0
    for e in range(len(near)):
        for x in (near[e], far[e]):
            if not met[x]:
                met[x] = True
                out[found] = x
                found += 1
    return out[:found]


@njit(cache=True, nogil=True)
def _line_up(graph, order):
    g = borrowed(graph)
    for x in order:
        insert_one(g.node, g.link, np.int64(g.link[0, 0]), np.int64(x) + 1)
    g.book[N_NODES] = len(order)


@njit(cache=True, nogil=True)
def _make_room(graph, near, far):
    """Blocks for all neighbours that the edges give, of 2^k entries: all of them take at most 4 an edge."""
    g = borrowed(graph)
    n = g.book[N_NODES] + 1
    degree = np.zeros((n, 2), np.int64)
    for e in range(len(near)):
        degree[near[e] + 1, 0] += 1
        degree[far[e] + 1, 1] += 1
    for x in range(1, n):
        for k, side in enumerate((OUT, IN)):
            exponent = np.int64(1)
            while 1 << exponent < degree[x, k]:
                exponent += 1
            if degree[x, k] > 0:
                g.node[x, side] = g.book[POOL_USED] << 6 | exponent
                g.book[POOL_USED] += 1 << exponent


@njit(cache=True, nogil=True)
def _load(graph, near, far):
    """Keep edges without judging them."""
    g = borrowed(graph)
    for e in range(len(near)):
        _ask_for(g, near, far, e)
        connect(g, np.int64(near[e]) + 1, np.int64(far[e]) + 1)


@njit(cache=True, nogil=True)
def _offer(graph, near, far, kept):
    """Judge edges."""
    g = borrowed(graph)
    for e in range(len(near)):
        _ask_for(g, near, far, e)
        kept[e] = _keep(g, np.int64(near[e]) + 1, np.int64(far[e]) + 1)


@njit(cache=True, nogil=True, inline="always")
def _ask_for(g, near, far, e):
    """Ask for the nodes of edges to come, and for the places where they would be put."""
    if e + 2 * SOON < len(near):
        prefetch(g.node, np.int64(near[e + 2 * SOON]) + 1)
        prefetch(g.node, np.int64(far[e + 2 * SOON]) + 1)
    if e + SOON < len(near):
        u, v = np.int64(near[e + SOON]) + 1, np.int64(far[e + SOON]) + 1
        prefetch(g.link, u)
        prefetch(g.link, v)
        prefetch(g.pool, (g.node[u, OUT] >> 6) + g.node[u, OUT_LEN])
        prefetch(g.pool, (g.node[v, IN] >> 6) + g.node[v, IN_LEN])


@njit(cache=True, nogil=True, inline="always")
def _keep(g, u, v):
    """Whether u -> v closes no cycle; if so it is kept."""
    node, book = g.node, g.book
    if node[v, LABEL] < node[u, LABEL] and (node[v, TO] & node[u, FROM] != 0 or put_before(g, u, v)):
        return False
    connect(g, u, v)
    edge_added(g, u, v)
    if book[N_EDGES] >= book[REFRESH_AT] and book[N_EDGES] > book[N_NODES]:
        choose(g)
    return True
