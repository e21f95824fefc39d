"""Invariants of the guard and of its sequence. O(nodes + edges)."""

from itertools import pairwise

import numpy as np

from stream_engine.order.graph import (
    BOOK,
    END,
    FREE,
    FROM,
    IN,
    LABEL,
    LENGTH,
    N_ARCS,
    N_EDGES,
    OUT,
    POOL_USED,
    START,
    SUPPORT,
    TO,
    WALKED,
    WORDS,
    Graph,
    in_order,
)
from stream_engine.order.hash_tables import ID_BITS, find_edge, find_pair, key_columns
from stream_engine.order.judging import MAX_SEARCHED_ARCS
from stream_engine.order.partial_order import PartialOrder


def reaches(after: dict, a, b) -> bool:
    """Whether a path of these edges, {from: {to, ...}}, leads from a to b."""
    stack, met = [a], {a}
    while stack:
        x = stack.pop()
        if x == b:
            return True
        new = after.get(x, set()) - met
        met |= new
        stack += new
    return False


def sequence(guard: PartialOrder) -> np.ndarray:
    """The pairs in the live sequence, by their keys."""
    return guard.graph.key[in_order(guard.graph.link, guard.graph.n_nodes)]


def check_sequence(node: np.ndarray, link: np.ndarray, n: int) -> None:
    """The list visits nodes 1 .. n once, both ways, and labels strictly increase within 1 .. END - 1."""
    order = in_order(link, n)
    assert sorted(order.tolist()) == list(range(1, n + 1)), f"the sequence visits {order.tolist()}, expected 1 .. {n}"
    ring = [0, *order.tolist(), 0]
    assert all(link[y, 0] == x for x, y in pairwise(ring)), f"links back differ from links on along {ring}"
    labels = [0, *node[order, LABEL].tolist(), END]
    assert all(a < b for a, b in pairwise(labels)), f"labels do not increase: {labels}"


def blocks(g: Graph, side: int) -> list[tuple[int, int]]:
    """All arcs (x, neighbour) of one side."""
    start, length = g.node[:, side] >> START << 1, (g.node[:, side] & (1 << START) - 1) >> LENGTH
    return [(x, int(y)) for x in range(1, g.n_nodes + 1) for y in g.pool[start[x] : start[x] + length[x]]]


def check_pool(g: Graph) -> None:
    """Blocks in use and free blocks tile the used part of the pool exactly."""
    words = [int(word) for side in (OUT, IN) for word in g.node[1 : g.n_nodes + 1, side]]
    used = [(word >> START << 1, 1 << (word & 31)) for word in words if word & 31]
    for exponent in range(SUPPORT - FREE):
        free = int(g.book[FREE + exponent])
        while free >= 0:
            used.append((free, 1 << exponent))
            free = 2 * int(g.pool[free]) if g.pool[free] >= 0 else -1
    end = 0
    for start, size in sorted(used):
        assert start == end, f"pool blocks {sorted(used)} overlap or leave a hole at {end}"
        end += size
    assert end == g.book[POOL_USED] <= len(g.pool), f"pool used {g.book[POOL_USED]}, blocks end at {end}"


def check_masks(g: Graph, arcs: set[tuple[int, int]]) -> None:
    """Local justification: every bit is the node's own as a support, or comes from a neighbour that has it."""
    own = np.zeros((WORDS, g.n_nodes + 1), np.int64)
    for i, x in enumerate(g.book[SUPPORT:BOOK].tolist()):
        own[i // 64, x] |= np.int64(1) << np.int64(i % 64) if x else 0
    both = [(FROM, [(v, u) for u, v in arcs]), (TO, arcs)]
    for word, field, pairs in ((word, field + word, pairs) for word in range(WORDS) for field, pairs in both):
        justified = own[word].copy()
        for x, y in pairs:
            justified[x] |= g.node[y, field]
        unjustified = np.flatnonzero(g.node[: g.n_nodes + 1, field] & ~justified)
        assert not len(unjustified), f"nodes {unjustified.tolist()} have unjustified bits in field {field}"


def check_guard(guard: PartialOrder) -> None:
    """Every invariant that graph, hash_tables and reachability_masks state."""
    g = guard.graph
    n = g.n_nodes
    check_sequence(g.node, g.link, n)
    check_pool(g)
    arcs = blocks(g, int(OUT))
    backward = {(u, v) for v, u in blocks(g, int(IN))}
    assert len(arcs) == len(set(arcs)) == g.book[N_ARCS], f"{len(arcs)} arcs, {g.book[N_ARCS]} counted: {arcs}"
    assert set(arcs) == backward, f"successors and predecessors differ: {set(arcs) ^ backward}"
    for u, v in arcs:
        assert g.node[u, LABEL] < g.node[v, LABEL], f"kept edge {u} -> {v} goes against the sequence"
    for x in range(1, n + 1):
        slot = find_pair(g.pair_table, g.key, g.key[x])
        assert g.pair_table[slot] == x, f"{key_columns(g.key[x : x + 1])} leads to node {g.pair_table[slot]}, not {x}"
    kept = set()
    for slot in np.flatnonzero(g.edge_table).tolist():
        key, turned = int(g.edge_table[slot]) >> 1, int(g.edge_table[slot]) & 1
        a, b = key >> ID_BITS, key & ((1 << ID_BITS) - 1)
        assert a < b and find_edge(g.edge_table, np.int64(key)) == slot, f"edge {a}, {b} is not found from its key"
        kept.add((b, a) if turned else (a, b))
    assert len(kept) == g.book[N_EDGES], f"{len(kept)} edges in the table, {g.book[N_EDGES]} counted"
    assert set(arcs) <= kept, f"arcs that are not in the table: {set(arcs) - kept}"
    check_masks(g, set(arcs))
    assert g.book[WALKED] <= g.book[N_ARCS] + MAX_SEARCHED_ARCS, (
        f"{g.book[WALKED]} arcs walked, supports not chosen anew"
    )
    after: dict[int, set[int]] = {}
    for x in reversed(in_order(g.link, n).tolist()):
        after[x] = {x}.union(*(after[y] for u, y in arcs if u == x))
    lost = [(u, v) for u, v in kept if v not in after[u]]
    assert not lost, f"kept edges that are no arcs and that no arcs imply: {lost}"
    for key in g.refused[g.refused != 0].tolist():
        u, v = key >> ID_BITS, key & ((1 << ID_BITS) - 1)
        assert u in after[v], f"{u} -> {v} is remembered as closing a cycle, but {v} does not reach {u}"
