"""Kernels of the exact guard: the verdict of each comparison in order, and what it does to the graph.

Verdict of p -> q, in this order: duplicate if p -> q is kept; contradiction if q -> p is kept (drop-both: if q -> p was
ever seen; majority: also if the net vote is not for p -> q); cycle if it would close a longer cycle; else accepted.
`_plan` decides from what is known of the pair of nodes alone, `_keep` by search; nothing else changes the graph.
"""

import numpy as np

from stream_engine.data.borrowed_arrays import borrowed
from stream_engine.data.compiled import njit
from stream_engine.data.integer_hash import mix64
from stream_engine.data.open_addressing import fits
from stream_engine.data.prefetch import prefetch
from stream_engine.guard.cycle_search import put_before
from stream_engine.guard.graph import (
    FROM,
    IN,
    IN_LEN,
    KEPT_AB,
    KEPT_BA,
    LABEL,
    N_EDGES,
    N_NODES,
    N_SLOTS,
    OUT,
    OUT_LEN,
    REFRESH_AT,
    SEEN_AB,
    SEEN_BA,
    TO,
    connect,
    disconnect,
    pool_has_room,
)
from stream_engine.guard.hash_tables import ID_BITS, find_edge, pair_key
from stream_engine.guard.pair_nodes import AT_ONCE, SOON, nodes_of
from stream_engine.guard.reachability_masks import choose, edge_added, edge_removed

ACCEPTED, DUPLICATE, CONTRADICTION, CYCLE = range(4)
FIRST, DROP_BOTH, MAJORITY = range(3)
KEPT, REFUSED, STRUCK = range(3)  # groups of edges in a state


@njit(cache=True, nogil=True)
def _closes_cycle(g, u, v):
    """Whether v reaches u, by the masks, by an earlier search, or by a search; if not, u comes before v now.

    Where no edge is ever taken away, what closed a cycle once does so for ever.
    """
    if g.node[v, TO] & g.node[u, FROM] != 0:
        return True
    if len(g.refused) == 0:
        return put_before(g, u, v)
    key = u << ID_BITS | v
    slot = mix64(np.uint64(key)) & np.uint64(len(g.refused) - 1)
    if g.refused[slot] == key:
        return True
    if put_before(g, u, v):
        g.refused[slot] = key
        return True
    return False


@njit(cache=True, nogil=True, inline="always")
def _keep(g, u, v):
    """Keep u -> v unless it closes a cycle: ACCEPTED or CYCLE."""
    if g.node[v, LABEL] < g.node[u, LABEL] and _closes_cycle(g, u, v):
        return CYCLE
    connect(g, u, v)
    edge_added(g, u, v)
    if g.book[N_EDGES] >= g.book[REFRESH_AT] and g.book[N_EDGES] > g.book[N_NODES]:
        choose(g)
    return ACCEPTED


@njit(cache=True, nogil=True)
def _plan(mark, before, weight, forward, policy):
    """What a comparison that counts `weight` times does, from what is known of it: `(verdict, take away the opposite
    edge?, try to keep it?, what it marks as seen)`. The verdict of a comparison that is tried is settled by the try."""
    same = mark & (KEPT_AB if forward else KEPT_BA) != 0
    opposite = mark & (KEPT_BA if forward else KEPT_AB) != 0
    if policy == DROP_BOTH:
        seen = SEEN_AB if forward else SEEN_BA
        if mark & (SEEN_BA if forward else SEEN_AB) != 0:
            return CONTRADICTION, opposite, False, seen
        return DUPLICATE, False, not same, seen
    if policy == MAJORITY:
        after = before + weight
        if opposite:
            return CONTRADICTION, after >= 0, after > 0, 0
        if not same and after <= 0:
            return CONTRADICTION, False, False, 0
        return DUPLICATE, False, not same, 0
    return CONTRADICTION if opposite else DUPLICATE, False, not same and not opposite, 0


@njit(cache=True, nogil=True)
def offer(graph, rows, weights, codes, start, policy):
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
            weight = weights[start + i] if len(weights) > 0 else np.int64(1)
            verdict = _judge(g, nodes[i, 0], nodes[i, 1], weight, policy)
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
    slot = mix64(np.uint64(pair_key(u, v))) & np.uint64(len(g.edge_key) - 1)
    prefetch(g.edge_key, slot)
    prefetch(g.edge_mark, slot)
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
def _judge(g, u, v, weight, policy):
    """The verdict of u -> v, with all that it changes; -1, with nothing done, where the edge might not fit."""
    slot = find_edge(g.edge_key, pair_key(u, v))
    forward = u < v
    before = np.int64(0)
    if policy == MAJORITY:
        before = g.edge_net[slot] if forward else -g.edge_net[slot]
    verdict, take, attempt, seen = _plan(g.edge_mark[slot], before, weight, forward, policy)
    if not fits(g.book[N_SLOTS] + 1, g.edge_key) or (attempt and not pool_has_room(g, u, v)):
        return -1
    if policy == MAJORITY:
        g.edge_net[slot] += weight if forward else -weight
    mark = g.edge_mark[slot] | seen
    if take:
        disconnect(g, v, u)
        edge_removed(g, v, u)
        mark &= ~(KEPT_AB | KEPT_BA)
    if attempt:
        outcome = _keep(g, u, v)
        if outcome == ACCEPTED:
            mark |= KEPT_AB if forward else KEPT_BA
        if verdict == DUPLICATE:
            verdict = outcome
    g.edge_mark[slot] = mark
    if g.edge_key[slot] == 0 and (mark != 0 or policy == MAJORITY):  # a refused edge of `first` takes no slot
        g.edge_key[slot] = pair_key(u, v)
        g.book[N_SLOTS] += 1
    return verdict


@njit(cache=True, nogil=True)
def load_edges(graph, us, vs, votes, kind, policy, start):
    """Put edges us[start:] -> vs[start:] between existing nodes back as they were in a state, without judging."""
    g = borrowed(graph)
    for r in range(start, len(us)):
        u, v = np.int64(us[r]), np.int64(vs[r])
        if not fits(g.book[N_SLOTS] + 1, g.edge_key) or not pool_has_room(g, u, v):
            return r
        slot = find_edge(g.edge_key, pair_key(u, v))
        mark = 0
        if kind == KEPT:
            connect(g, u, v)
            mark = KEPT_AB if u < v else KEPT_BA
        if policy == DROP_BOTH:
            mark |= SEEN_AB | SEEN_BA if kind == STRUCK else SEEN_AB if u < v else SEEN_BA
        elif policy == MAJORITY:
            g.edge_net[slot] = votes[r] if u < v else -votes[r]
        g.edge_key[slot] = pair_key(u, v)
        g.edge_mark[slot] = mark
        g.book[N_SLOTS] += 1
    return len(us)


@njit(cache=True, nogil=True)
def kept_edges(g):
    """(m, 2) int32 node numbers, from 0, of the kept edges."""
    node, pool, book = g.node, g.pool, g.book
    out = np.empty((book[N_EDGES], 2), np.int32)
    m = 0
    for x in range(1, book[N_NODES] + 1):
        start = node[x, OUT] >> 6
        for k in range(start, start + node[x, OUT_LEN]):
            out[m, 0] = x - 1
            out[m, 1] = pool[k] - 1
            m += 1
    return out


@njit(cache=True, nogil=True)
def votes_for(g, kept):
    """(m,) int64: the net votes for each of (m, 2) edges between nodes numbered from 0."""
    out = np.empty(len(kept), np.int64)
    for e in range(len(kept)):
        u, v = np.int64(kept[e, 0]) + 1, np.int64(kept[e, 1]) + 1
        net = g.edge_net[find_edge(g.edge_key, pair_key(u, v))]
        out[e] = net if u < v else -net
    return out
