"""Invariants of the guards and of their sequence, for tests and for `PartialOrder.check`. O(nodes + edges)."""

from itertools import pairwise

import numpy as np

from stream_engine.guard.graph import (
    BOOK,
    FREE,
    FROM,
    IN,
    KEPT_AB,
    KEPT_BA,
    LABEL,
    N_EDGES,
    N_SLOTS,
    OUT,
    POOL_USED,
    SEEN_AB,
    SEEN_BA,
    SUPPORT,
    TO,
    Graph,
)
from stream_engine.guard.hash_tables import ID_BITS, find_edge, find_pair, key_columns
from stream_engine.guard.order_maintenance import END, in_order
from stream_engine.guard.sifting_kernels import BLOCK, DEBT, DEGREE, GATE, LARGEST, VOTES, Votes
from stream_engine.guard.sifting_kernels import N_EDGES as N_VOTED


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
    start, length = g.node[:, side] >> 6, g.node[:, side + 1]
    return [(x, int(y)) for x in range(1, g.n_nodes + 1) for y in g.pool[start[x] : start[x] + length[x]]]


def check_pool(g: Graph) -> None:
    """Blocks in use and free blocks tile the used part of the pool exactly."""
    used = [(int(b) >> 6, 1 << (int(b) & 63)) for side in (OUT, IN) for b in g.node[1 : g.n_nodes + 1, side] if b & 63]
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
    own = np.zeros(g.n_nodes + 1, np.int64)
    for i, x in enumerate(g.book[SUPPORT:BOOK].tolist()):
        own[x] |= np.int64(1) << np.int64(i) if x else 0
    for field, pairs in ((FROM, [(v, u) for u, v in arcs]), (TO, arcs)):
        justified = own.copy()
        for x, y in pairs:
            justified[x] |= g.node[y, field]
        unjustified = np.flatnonzero(g.node[: g.n_nodes + 1, field] & ~justified)
        assert not len(unjustified), f"nodes {unjustified.tolist()} have unjustified bits in field {field}"


def check_graph(g: Graph) -> None:
    """Every invariant that graph, order_maintenance, hash_tables and reachability_masks state."""
    n = g.n_nodes
    check_sequence(g.node, g.link, n)
    check_pool(g)
    arcs = blocks(g, int(OUT))
    backward = {(u, v) for v, u in blocks(g, int(IN))}
    assert len(arcs) == len(set(arcs)) == g.book[N_EDGES], f"{len(arcs)} arcs, {g.book[N_EDGES]} counted: {arcs}"
    assert set(arcs) == backward, f"successors and predecessors differ: {set(arcs) ^ backward}"
    for u, v in arcs:
        assert g.node[u, LABEL] < g.node[v, LABEL], f"kept edge {u} -> {v} goes against the sequence"
    for x in range(1, n + 1):
        slot = find_pair(g.pair_table, g.key, g.key[x])
        assert g.pair_table[slot] == x, f"{key_columns(g.key[x : x + 1])} leads to node {g.pair_table[slot]}, not {x}"
    slots = np.flatnonzero(g.edge_key)
    assert len(slots) == g.book[N_SLOTS], f"{len(slots)} slots taken, {g.book[N_SLOTS]} counted"
    kept = set()
    for slot in slots.tolist():
        key, mark = int(g.edge_key[slot]), int(g.edge_mark[slot])
        a, b = key >> ID_BITS, key & ((1 << ID_BITS) - 1)
        assert a < b and find_edge(g.edge_key, g.edge_key[slot]) == slot, f"edge {a}, {b} is not found from its key"
        assert mark & (KEPT_AB | KEPT_BA) != KEPT_AB | KEPT_BA, f"both directions of {a}, {b} are kept"
        kept |= {(a, b)} if mark & KEPT_AB else {(b, a)} if mark & KEPT_BA else set()
        if mark & (SEEN_AB | SEEN_BA) == SEEN_AB | SEEN_BA:
            assert not mark & (KEPT_AB | KEPT_BA), f"{a}, {b} was said in both directions and is kept"
        if len(g.edge_net) > 1 and mark:
            net = int(g.edge_net[slot])
            assert net > 0 if mark & KEPT_AB else net < 0, f"{a}, {b} is kept against net votes {net}"
    assert kept == set(arcs), f"table and adjacency differ: {kept ^ set(arcs)}"
    check_masks(g, set(arcs))
    after: dict[int, set[int]] = {}
    for x in reversed(in_order(g.link, n).tolist()):
        after[x] = {x}.union(*(after[y] for u, y in arcs if u == x))
    for key in g.refused[g.refused != 0].tolist():
        u, v = key >> ID_BITS, key & ((1 << ID_BITS) - 1)
        assert u in after[v], f"{u} -> {v} is remembered as closing a cycle, but {v} does not reach {u}"


def check_votes(v: Votes) -> None:
    """Every invariant that sifting_kernels states."""
    n = v.n_nodes
    check_sequence(v.node, v.link, n)
    entries: dict[tuple[int, int], tuple[int, int]] = {}
    for x in range(1, n + 1):
        assert v.pair_table[find_pair(v.pair_table, v.key, v.key[x])] == x, f"node {x} is not found from its pair"
        start, degree = int(v.node[x, BLOCK]) >> 6, int(v.node[x, DEGREE])
        assert degree <= v.book[LARGEST], f"node {x} has degree {degree}, over the largest {v.book[LARGEST]}"
        entries |= {(x, int(v.neighbour[k])): (k - start, int(v.net[k])) for k in range(start, start + degree)}
        assert GATE * v.node[x, DEBT] <= v.node[x, VOTES], f"node {x} owes {v.node[x, DEBT]} of {v.node[x, VOTES]}"
    assert len(entries) == 2 * v.book[N_VOTED], f"{len(entries)} entries for {v.book[N_VOTED]} edges: {entries}"
    for (x, y), (place, net) in entries.items():
        assert entries[y, x][1] == -net, f"net votes {x} -> {y} {net} and back {entries[y, x][1]}"
        slot = find_edge(v.edge_key, min(x, y) << ID_BITS | max(x, y))
        assert v.edge_place[slot, int(x > y)] == place, (
            f"the table puts {x}, {y} at {v.edge_place[slot]}, it is at {place}"
        )
