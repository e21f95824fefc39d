"""Kernels of the exact guard: the verdict of each comparison in order, and what it does to the graph.

Verdict of p -> q, in this order: duplicate if p -> q is kept; contradiction if q -> p is kept (drop-both: if q -> p was
ever said; majority: also if the net vote is not for p -> q); cycle if it would close a longer cycle; else accepted.
`_plan` decides from what is known of the pair of nodes alone, `_keep` by search; nothing else changes the graph.
"""

import numpy as np
from numba import njit

from stream_engine.guard.cycle_search import put_before
from stream_engine.guard.graph import (
    FROM,
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
    has_room,
    new_node,
    pool_has_room,
)
from stream_engine.guard.hash_tables import ID_BITS, find_edge, find_pair, pair_key, spread
from stream_engine.guard.reachability_masks import choose, edge_added, edge_removed

ACCEPTED, DUPLICATE, CONTRADICTION, CYCLE = range(4)
FIRST, DROP_BOTH, MAJORITY = range(3)
KEPT, REFUSED, STRUCK = range(3)  # groups of edges in a state


@njit(cache=True, nogil=True, inline="always")
def edge_key(u, v):
    """The key of the unordered pair of nodes {u, v}."""
    return (min(u, v) << ID_BITS) | max(u, v)


@njit(cache=True, nogil=True)
def _closes_cycle(node, link, pool, book, work, refused, u, v):
    """Whether v reaches u, by the masks, by an earlier search, or by a search; if not, u comes before v now.

    Where no edge is ever taken away, what closed a cycle once does so for ever.
    """
    if node[v, TO] & node[u, FROM] != 0:
        return True
    if len(refused) == 0:
        return put_before(node, link, pool, book, work, u, v)
    key = u << ID_BITS | v
    at = spread(key, len(refused) - 1)
    if refused[at] == key:
        return True
    if put_before(node, link, pool, book, work, u, v):
        refused[at] = key
        return True
    return False


@njit(cache=True, nogil=True, inline="always")
def _keep(node, link, pool, book, work, refused, u, v):
    """Keep u -> v unless it closes a cycle: ACCEPTED or CYCLE."""
    if node[v, LABEL] < node[u, LABEL] and _closes_cycle(node, link, pool, book, work, refused, u, v):
        return CYCLE
    connect(node, pool, book, u, v)
    edge_added(node, pool, work, u, v)
    if book[N_EDGES] >= book[REFRESH_AT]:
        choose(node, link, pool, book)
    return ACCEPTED


@njit(cache=True, nogil=True)
def _plan(mark, before, weight, forward, policy):
    """What a comparison that is said `weight` times does, from what is known of it: `(verdict, take away the opposite
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
def offer(
    node, link, pool, book, work, keys, pair_table, edges, marks, nets, refused, rows, weights, codes, start, policy
):
    """Judge rows[start:] in order; returns the first row that might not fit, or their number."""
    for r in range(start, len(rows)):
        if not has_room(node, book, pair_table, edges):
            return r
        near, far = pair_key(rows[r, 0], rows[r, 1]), pair_key(rows[r, 2], rows[r, 3])
        u = np.int64(pair_table[find_pair(pair_table, keys, near)])
        if u == 0:
            u = new_node(node, link, book, keys, pair_table, near)
        v = np.int64(pair_table[find_pair(pair_table, keys, far)])
        if v == 0:
            v = new_node(node, link, book, keys, pair_table, far)
        slot = find_edge(edges, edge_key(u, v))
        forward = u < v
        weight = weights[r] if len(weights) > 0 else np.int64(1)
        before = np.int64(0)
        if policy == MAJORITY:
            before = nets[slot] if forward else -nets[slot]
        verdict, take, attempt, seen = _plan(marks[slot], before, weight, forward, policy)
        if attempt and not pool_has_room(node, pool, book, u, v):
            return r
        if policy == MAJORITY:
            nets[slot] += weight if forward else -weight
        mark = marks[slot] | seen
        if take:
            disconnect(node, pool, book, v, u)
            edge_removed(node, pool, book, work, v, u)
            mark &= ~(KEPT_AB | KEPT_BA)
        if attempt:
            outcome = _keep(node, link, pool, book, work, refused, u, v)
            if outcome == ACCEPTED:
                mark |= KEPT_AB if forward else KEPT_BA
            if verdict == DUPLICATE:
                verdict = outcome
        marks[slot] = mark
        codes[r] = verdict
        if edges[slot] == 0 and (mark != 0 or policy == MAJORITY):  # a refused edge of `first` takes no slot
            edges[slot] = edge_key(u, v)
            book[N_SLOTS] += 1
    return len(rows)


@njit(cache=True, nogil=True)
def load_edges(node, pool, book, edges, marks, nets, us, vs, votes, kind, policy, start):
    """Put edges us[start:] -> vs[start:] between existing nodes back as they were in a state, without judging."""
    for r in range(start, len(us)):
        u, v = np.int64(us[r]), np.int64(vs[r])
        if 8 * (book[N_SLOTS] + 1) > 5 * len(edges) or not pool_has_room(node, pool, book, u, v):
            return r
        slot = find_edge(edges, edge_key(u, v))
        mark = 0
        if kind == KEPT:
            connect(node, pool, book, u, v)
            mark = KEPT_AB if u < v else KEPT_BA
        if policy == DROP_BOTH:
            mark |= SEEN_AB | SEEN_BA if kind == STRUCK else SEEN_AB if u < v else SEEN_BA
        elif policy == MAJORITY:
            nets[slot] = votes[r] if u < v else -votes[r]
        edges[slot] = edge_key(u, v)
        marks[slot] = mark
        book[N_SLOTS] += 1
    return len(us)


@njit(cache=True, nogil=True)
def create_nodes(node, link, book, keys, pair_table, new):
    """Nodes for these pair keys in this order; there must be room."""
    for key in new:
        new_node(node, link, book, keys, pair_table, key)


@njit(cache=True, nogil=True)
def kept_edges(node, pool, book):
    """(m, 2) int32 node numbers, from 0, of the kept edges."""
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
def votes_for(edges, nets, kept):
    """(m,) int64: the net votes for each of (m, 2) edges between nodes numbered from 0."""
    out = np.empty(len(kept), np.int64)
    for e in range(len(kept)):
        u, v = np.int64(kept[e, 0]) + 1, np.int64(kept[e, 1]) + 1
        net = nets[find_edge(edges, edge_key(u, v))]
        out[e] = net if u < v else -net
    return out
