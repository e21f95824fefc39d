"""Kernels that judge comparisons, each against all that are kept.

Verdict of p -> q, in this order: duplicate if p -> q is kept; contradiction if q -> p is kept; cycle if it would close
a longer cycle; else accepted. Nothing is ever taken away, so what is refused stays refused.
"""

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.hashing import mix64
from stream_engine.data.intrinsics import borrowed, prefetch
from stream_engine.order.cycle_search import put_before
from stream_engine.order.graph import (
    FROM,
    IN,
    IN_LEN,
    LABEL,
    N_EDGES,
    OUT,
    OUT_LEN,
    SOON,
    TO,
    WALKED,
    connect,
    edge_fits,
    nodes_of,
)
from stream_engine.order.hash_tables import ID_BITS, edge_entry, find_edge, pair_key
from stream_engine.order.reachability_masks import choose, edge_added

ACCEPTED, DUPLICATE, CONTRADICTION, CYCLE = range(4)
FEW = 256  # arcs of searches that are not worth choosing supports
AT_ONCE = 1024  # comparisons whose nodes are found before the first of them is judged


@njit(cache=True, nogil=True)
def _closes_cycle(g, u, v):
    """Whether v reaches u, by the masks, by an earlier search, or by a search; if not, u comes before v now."""
    if g.node[v, TO] & g.node[u, FROM] != 0:
        return True
    key = u << ID_BITS | v
    slot = mix64(np.uint64(key)) & np.uint64(len(g.refused) - 1)
    if g.refused[slot] == key:
        return True
    if put_before(g, u, v):
        g.refused[slot] = key
        return True
    return False


@njit(cache=True, nogil=True, inline="always")
def keep(g, u, v):
    """Whether u -> v closes no cycle; if so it is kept."""
    if g.node[v, LABEL] < g.node[u, LABEL] and _closes_cycle(g, u, v):
        if g.book[WALKED] > g.book[N_EDGES] + FEW:
            choose(g)  # better supports would have spared these searches
        return False
    connect(g, u, v)
    edge_added(g, u, v)
    return True


@njit(cache=True, nogil=True)
def offer(graph, rows, codes, start):
    """Judge rows[start:] in order; returns the first row that might not fit, or their number."""
    g = borrowed(graph)
    nodes = np.empty((min(AT_ONCE, len(rows) - start), 2), np.int64)
    while start < len(rows):
        found = nodes_of(g, rows, start, nodes)
        for i in range(found):
            if i + 2 * SOON < found:
                _ask_for_edge(g, nodes[i + 2 * SOON, 0], nodes[i + 2 * SOON, 1])
            if i + SOON < found:
                _ask_for_ends(g, nodes[i + SOON, 0], nodes[i + SOON, 1])
            verdict = _judge(g, nodes[i, 0], nodes[i, 1])
            if verdict < 0:
                return start + i
            codes[start + i] = verdict
        if found == 0:
            return start
        start += found
    return len(rows)


@njit(cache=True, nogil=True, inline="always")
def _ask_for_edge(g, u, v):
    """Ask for what `_judge` of u -> v will look at first."""
    prefetch(g.edge_table, mix64(np.uint64(pair_key(u, v))) & np.uint64(len(g.edge_table) - 1))
    for x in (u, v):
        prefetch(g.node, x)
        prefetch(g.link, x)


@njit(cache=True, nogil=True, inline="always")
def _ask_for_ends(g, u, v):
    """Ask for the places where an edge u -> v would be put, and for what stands beside u and v in the sequence; u and v
    have been asked for."""
    prefetch(g.node, g.link[u, 1])
    prefetch(g.link, g.link[u, 1])
    prefetch(g.link, g.link[v, 0])
    prefetch(g.link, g.link[v, 1])
    prefetch(g.pool, (g.node[u, OUT] >> 6) + g.node[u, OUT_LEN])
    prefetch(g.pool, (g.node[v, IN] >> 6) + g.node[v, IN_LEN])


@njit(cache=True, nogil=True, inline="always")
def _judge(g, u, v):
    """The verdict of u -> v, which is kept if accepted; -1, with nothing done, where it might not fit."""
    slot = find_edge(g.edge_table, pair_key(u, v))
    if g.edge_table[slot] != 0:
        return DUPLICATE if g.edge_table[slot] == edge_entry(u, v) else CONTRADICTION
    if not edge_fits(g, u, v):
        return -1
    if not keep(g, u, v):
        return CYCLE
    g.edge_table[slot] = edge_entry(u, v)
    return ACCEPTED
