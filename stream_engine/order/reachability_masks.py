"""Supportive nodes: 64 well-connected nodes, spread over the order, and for every node which of them reach it and which
it reaches.

Invariant (local justification): bit i of FROM[x] is set only if x is support i or some kept predecessor of x has the
bit; likewise TO with successors. As the kept edges are acyclic, each bit then stands for a path, so `TO[v] & FROM[u]`
proves that v reaches u. A missing bit proves nothing: exactness never depends on the masks, which may lag behind.
Hanauer, Henzinger & Schulz 2020, "Faster fully dynamic transitive closure in practice" (supportive vertices); here
re-chosen by current degrees whenever the graph has grown by an eighth. O(edges) a choice, O(1) amortised an edge.
"""

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.intrinsics import prefetch
from stream_engine.order.graph import FROM, IN, IN_LEN, N_EDGES, N_NODES, OUT, OUT_LEN, REFRESH_AT, SOON, SUPPORT, TO
from stream_engine.order.order_maintenance import in_order

GROWTH = 8  # supports are chosen anew when the edges have grown by one part in so many
BUDGET = 4  # arcs followed to pass bits on when an edge is added


@njit(cache=True, nogil=True)
def _pick(g, order):
    """Take as supports, from each of 64 stretches of the sequence that hold equally many nodes with neighbours on both
    sides, the node with the largest in-degree x out-degree; clear every mask."""
    node, book = g.node, g.book
    inner = 0
    for x in order:
        node[x, FROM] = 0
        node[x, TO] = 0
        if node[x, IN_LEN] > 0 and node[x, OUT_LEN] > 0:
            inner += 1
    book[SUPPORT : SUPPORT + 64] = 0
    i = seen = best = 0
    for x in order:
        score = node[x, IN_LEN] * node[x, OUT_LEN]
        if score == 0:
            continue
        if score > best:
            best = score
            book[SUPPORT + i] = x
        seen += 1
        while 64 * seen >= (i + 1) * inner and i < 63:
            i += 1
            best = 0
    for i in range(64):
        x = book[SUPPORT + i]
        if x != 0:
            node[x, FROM] = np.int64(1) << i
            node[x, TO] = np.int64(1) << i


@njit(cache=True, nogil=True)
def _sweep(g, order, field, side):
    """Pass the bits of every node on to its neighbours on `side`, in this order."""
    node, pool, n = g.node, g.pool, len(order)
    for i in range(n):
        if i + 3 * SOON < n:
            prefetch(node, order[i + 3 * SOON])
        if i + 2 * SOON < n:
            prefetch(pool, node[order[i + 2 * SOON], side] >> 6)
        if i + SOON < n:
            soon = order[i + SOON]
            if node[soon, side + 1] > 0:
                prefetch(node, pool[node[soon, side] >> 6])
        x = order[i]
        start, bits = node[x, side] >> 6, node[x, field]
        if bits != 0:
            for k in range(start, start + node[x, side + 1]):
                node[pool[k], field] |= bits


@njit(cache=True, nogil=True)
def choose(g):
    """Choose the supports anew and set every mask exactly."""
    order = in_order(g.link, g.book[N_NODES])
    _pick(g, order)
    _sweep(g, order, FROM, OUT)
    _sweep(g, order[::-1].copy(), TO, IN)
    g.book[REFRESH_AT] = g.book[N_EDGES] + max(g.book[N_EDGES] // GROWTH, 256)


@njit(cache=True, nogil=True)
def _pass_on(g, x, field, side):
    """Give the bits of x to its neighbours on `side`, and on from those that gained, within the budget."""
    node, pool, work = g.node, g.pool, g.work
    work[0, 0] = x
    head, tail, budget = 0, 1, BUDGET
    while head < tail and budget > 0:
        x = np.int64(work[0, head])
        head += 1
        start, bits = node[x, side] >> 6, node[x, field]
        for k in range(start, start + min(node[x, side + 1], budget)):
            y = pool[k]
            if bits & ~node[y, field] != 0:
                node[y, field] |= bits
                work[0, tail] = y
                tail += 1
        budget -= node[x, side + 1]


@njit(cache=True, nogil=True, inline="always")
def edge_added(g, u, v):
    """u -> v is kept now: v is reached by what reaches u, u reaches what v reaches."""
    if g.node[u, FROM] & ~g.node[v, FROM] != 0:
        g.node[v, FROM] |= g.node[u, FROM]
        _pass_on(g, v, FROM, OUT)
    if g.node[v, TO] & ~g.node[u, TO] != 0:
        g.node[u, TO] |= g.node[v, TO]
        _pass_on(g, u, TO, IN)
