"""Edges between numbered nodes, each offered once and never against its opposite: a guard without tables.

For whoever has numbered the nodes and merged what says the same, as the canonical order has. The verdicts, and the
sequence of the nodes after them, are those of `PartialOrder` for the same comparisons in the same order (a test holds
the two beside each other): accepted edges move nodes by the same search. Half its time a comparison, as nothing is
hashed. Nodes are 0 .. n - 1 outside, one more within: node 0 of a graph is the sentinel of its sequence.
"""

import numpy as np

from stream_engine.data.borrowed_arrays import borrowed
from stream_engine.data.compiled import njit
from stream_engine.order.graph import N_NODES, ask_for_blocks, load_edges, make_room, new_graph
from stream_engine.order.judging import keep
from stream_engine.order.order_maintenance import in_order, insert_one
from stream_engine.order.reachability_masks import choose


class DistinctEdges:
    """A growing acyclic set of edges; see the module."""

    def __init__(self, order: np.ndarray, near: np.ndarray, far: np.ndarray):
        """No edges yet; (n,) `order` is the sequence of the nodes 0 .. n - 1 to begin with. All edges that will come
        are among near[e] -> far[e]: every node gets the room that its neighbours may need, once and for all."""
        self.graph = new_graph(max(64, len(order) + 1), max(64, len(near)))
        _line_up(self.graph, np.asarray(order, np.int32))
        make_room(self.graph, near + np.int32(1), far + np.int32(1))

    def load(self, near: np.ndarray, far: np.ndarray) -> None:
        """Keep edges that all go forward in the sequence."""
        load_edges(self.graph, near + np.int32(1), far + np.int32(1))
        choose(self.graph)

    def offer(self, near: np.ndarray, far: np.ndarray) -> np.ndarray:
        """(m,) bool: which of the edges near[e] -> far[e], in their order, are kept, as they close no cycle."""
        kept = np.empty(len(near), bool)
        _offer(self.graph, near + np.int32(1), far + np.int32(1), kept)
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
def _offer(graph, us, vs, kept):
    """Judge edges between nodes numbered from 1."""
    g = borrowed(graph)
    for e in range(len(us)):
        ask_for_blocks(g, us, vs, e)
        kept[e] = keep(g, np.int64(us[e]), np.int64(vs[e]))
