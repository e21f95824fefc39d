"""Supportive nodes: 64 central nodes, spread over the order, and for every node which of them reach it and which it
reaches.

Invariant (local justification): bit i of FROM[x] is set only if x is support i or some kept predecessor of x has the
bit; likewise TO with successors. As the kept edges are acyclic, each bit then stands for a path, so `TO[v] & FROM[u]`
proves that v reaches u. A missing bit proves nothing: exactness never depends on the masks, which may lag behind.
Hanauer, Henzinger & Schulz 2020, "Faster fully dynamic transitive closure in practice" (supportive vertices); here
chosen as in `supports`, and anew once the searches that they did not spare have cost as much as a choice: O(edges).
"""

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.intrinsics import prefetch
from stream_engine.order.graph import FROM, IN, N_EDGES, N_NODES, OUT, OUT_LEN, SOON, SUPPORT, TO, WALKED
from stream_engine.order.order_maintenance import in_order
from stream_engine.order.supports import central, masks_of

BUDGET = 4  # arcs followed to pass bits on when an edge is added


@njit(cache=True, nogil=True)
def _successors(g, order):
    """`(start, targets)` by positions in `order`: those of the k-th node are targets[start[k]:start[k + 1]]."""
    node, pool, n = g.node, g.pool, len(order)
    position = np.empty(n + 1, np.int32)
    for k in range(n):
        position[order[k]] = k
    start, targets = np.zeros(n + 1, np.int64), np.empty(g.book[N_EDGES], np.int32)
    m = 0
    for k in range(n):
        if k + 2 * SOON < n:
            prefetch(node, order[k + 2 * SOON])
        if k + SOON < n:
            prefetch(pool, node[order[k + SOON], OUT] >> 6)
        block, size = node[order[k], OUT] >> 6, node[order[k], OUT_LEN]
        for e in range(block, block + size):
            targets[m] = position[pool[e]]
            m += 1
        start[k + 1] = m
    return start, targets


@njit(cache=True, nogil=True)
def choose(g):
    """Choose the supports anew and set every mask exactly."""
    order = in_order(g.link, g.book[N_NODES])
    start, targets = _successors(g, order)
    chosen = central(start, targets, 64)
    before, after = masks_of(start, targets, chosen)
    for i in range(64):
        g.book[SUPPORT + i] = order[chosen[i]] if chosen[i] >= 0 else 0
    for k in range(len(order)):
        if k + SOON < len(order):
            prefetch(g.node, order[k + SOON])
        g.node[order[k], FROM] = np.int64(before[k, 0])
        g.node[order[k], TO] = np.int64(after[k, 0])
    g.book[WALKED] = 0


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
