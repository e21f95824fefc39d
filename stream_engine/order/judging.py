"""Kernels that judge comparisons, each against all that are kept.

Verdict of p -> q, in this order: duplicate if p -> q is kept; contradiction if q -> p is kept; cycle if it would close
a longer cycle; else accepted. Nothing is ever removed, so what is refused stays refused.
"""

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.hashing import mix64
from stream_engine.data.intrinsics import borrowed, prefetch
from stream_engine.order.graph import (
    ALL_ARCS,
    FROM,
    IN,
    LABEL,
    MARK,
    N_ARCS,
    N_EDGES,
    OUT,
    PREFETCH_DISTANCE,
    STAMP,
    TO,
    WALKED,
    WORDS,
    connect,
    edge_fits,
    insert_after,
    length_of,
    nodes_of,
    start_of,
    unlink,
)
from stream_engine.order.hash_tables import ID_BITS, edge_entry, find_edge, pair_key
from stream_engine.order.reachability_masks import choose, edge_added, reaches_by_support

AHEAD, BEHIND = np.int64(0), np.int64(1)  # rows of `work`: the nodes of a front
HEAPS = np.int64(2)  # rows from here on: their heaps
UP, DOWN = np.int64(1), np.int64(-1)  # smallest or largest label first
NONE, NOBODY = np.int64(0), np.int64(-1)
PREFETCHED_NEIGHBOURS = 16  # neighbours that are asked for ahead
ACCEPTED, DUPLICATE, CONTRADICTION, CYCLE = range(4)
MAX_SEARCHED_ARCS = 256  # arcs of searches that are not worth choosing supports
MAX_NODES_AT_ONCE = 1024  # comparisons whose nodes are found before the first of them is judged


@njit(cache=True, nogil=True)
def _heap_push(node, work, row, n, x, sign):
    """Put x on the heap of n entries in this row: first the smallest label (sign 1) or the largest (-1)."""
    i = n
    key = sign * node[x, LABEL]
    while i > 0 and sign * node[work[row, (i - 1) >> 1], LABEL] > key:
        work[row, i] = work[row, (i - 1) >> 1]
        i = (i - 1) >> 1
    work[row, i] = x


@njit(cache=True, nogil=True)
def _heap_pop(node, work, row, n, sign):
    """The first of n entries; n - 1 are left."""
    top = np.int64(work[row, 0])
    n -= 1
    x = work[row, n]
    key = sign * node[x, LABEL]
    i = 0
    while 2 * i + 1 < n:
        child = 2 * i + 1
        if child + 1 < n and sign * node[work[row, child + 1], LABEL] < sign * node[work[row, child], LABEL]:
            child += 1
        if sign * node[work[row, child], LABEL] >= key:
            break
        work[row, i] = work[row, child]
        i = child
    work[row, i] = x
    return top


@njit(cache=True, nogil=True, inline="always")
def _ask_for_neighbours(node, pool, x, side):
    """Ask for the first neighbours of x, which are looked at one after the other."""
    start = start_of(node[x, side])
    for k in range(start, start + min(length_of(node[x, side]), PREFETCHED_NEIGHBOURS)):
        prefetch(node, pool[k])


@njit(cache=True, nogil=True, inline="always")
def _walk_arc(node, pool, x, i, side, along, against):
    """The node at the end of arc i of x. x gains the bits of that node's masks `along` the search; that node gains
    those of x `against` it."""
    y = np.int64(pool[start_of(node[x, side]) + i])
    for w in range(WORDS):
        node[x, along + w] |= node[y, along + w]
        node[y, against + w] |= node[x, against + w]
    return y


@njit(cache=True, nogil=True, inline="always")
def _add(node, link, pool, work, row, n, n_heap, y, side, sign):
    """Note y as the n-th node of a front, and on its heap if it has arcs; returns the size of the heap."""
    work[row, n] = y
    prefetch(link, y)
    if length_of(node[y, side]) > 0:
        prefetch(pool, start_of(node[y, side]))
        _heap_push(node, work, HEAPS + row, n_heap, y, sign)
        n_heap += 1
    return n_heap


@njit(cache=True, nogil=True, inline="always")
def _next(node, pool, work, row, n_heap, side, sign):
    """The next node of a front whose arcs are walked; NOBODY when its heap is empty."""
    x = NOBODY
    if n_heap > 0:
        x = _heap_pop(node, work, HEAPS + row, n_heap, sign)
        _ask_for_neighbours(node, pool, x, side)
        if n_heap > 1:  # most likely the next one
            _ask_for_neighbours(node, pool, np.int64(work[HEAPS + row, 0]), side)
    return x


# Two-way compatible search (Bender, Fineman, Gilbert & Tarjan 2016, "A new approach to incremental cycle detection and
# related problems"; Haeupler, Kavitha, Mathew, Sen & Tarjan 2012): forward from v in increasing, backward from u in
# decreasing order, one arc each in turn, until the two fronts pass each other. O(sqrt(m) log n) amortised per accepted
# edge; the supports' masks spare most searches for refused ones. The sequence is a topological order of the kept edges
# before and after.
@njit(cache=True, nogil=True)
def put_before(g, u, v):
    """True if v reaches u, hence u -> v would close a cycle; else the sequence now has u before v.

    Called with v before u in the sequence, and where the masks say nothing. They gain the bits that the walked arcs
    justify.
    """
    node, link, pool, book, work = g.node, g.link, g.pool, g.book, g.work
    book[STAMP] += 2
    ahead = book[STAMP]  # mark of nodes that v reaches; ahead + 1: nodes that reach u
    node[v, MARK] = ahead
    node[u, MARK] = ahead + 1
    work[AHEAD, 0], work[BEHIND, 0] = v, u
    n_f = n_b = np.int64(1)
    in_f = in_b = NONE
    low, high = node[v, LABEL], node[u, LABEL]
    reached, reached_too, reaching, reaching_too = node[v, TO], node[v, TO + 1], node[u, FROM], node[u, FROM + 1]
    _ask_for_neighbours(node, pool, v, OUT)
    _ask_for_neighbours(node, pool, u, IN)
    x = v if length_of(node[v, OUT]) > 0 else NOBODY
    z = u if length_of(node[u, IN]) > 0 else NOBODY
    i = j = NONE
    walked = NONE
    while x >= 0 and z >= 0 and node[x, LABEL] < node[z, LABEL]:
        walked += 1
        y = _walk_arc(node, pool, x, i, OUT, TO, FROM)
        i += 1
        if node[y, MARK] == ahead + 1:
            book[WALKED] += walked
            return True
        if node[y, MARK] != ahead and node[y, LABEL] < high:
            node[y, MARK] = ahead
            in_f = _add(node, link, pool, work, AHEAD, n_f, in_f, y, OUT, UP)
            n_f += 1
            reached |= node[y, TO]
            reached_too |= node[y, TO + 1]
        if i == length_of(node[x, OUT]):
            i = NONE
            x = _next(node, pool, work, AHEAD, in_f, OUT, UP)
            in_f -= 1
        y = _walk_arc(node, pool, z, j, IN, FROM, TO)
        j += 1
        if node[y, MARK] == ahead:
            book[WALKED] += walked
            return True
        if node[y, MARK] != ahead + 1 and node[y, LABEL] > low:
            node[y, MARK] = ahead + 1
            in_b = _add(node, link, pool, work, BEHIND, n_b, in_b, y, IN, DOWN)
            n_b += 1
            reaching |= node[y, FROM]
            reaching_too |= node[y, FROM + 1]
        if reached & reaching | reached_too & reaching_too != 0:
            book[WALKED] += walked
            return True
        if j == length_of(node[z, IN]):
            j = NONE
            z = _next(node, pool, work, BEHIND, in_b, IN, DOWN)
            in_b -= 1
    _reorder(g, u, x, n_f, n_b)
    return False


@njit(cache=True, nogil=True)
def _cut_out(g, row, n, limit, sign):
    """Keep of work[row, :n] those with sign * label < sign * limit, sort them by label, take them off the sequence."""
    node, link, work = g.node, g.link, g.work
    spare = HEAPS + row
    m = NONE
    for i in range(n):
        if sign * node[work[row, i], LABEL] < sign * limit:
            x = np.int64(work[row, i])
            _heap_push(node, work, spare, m, x, UP)
            prefetch(link, np.int64(link[x, 0]))
            prefetch(link, np.int64(link[x, 1]))
            m += 1
    for i in range(m):
        work[row, i] = _heap_pop(node, work, spare, m - i, UP)
        unlink(link, np.int64(work[row, i]))
    return m


@njit(cache=True, nogil=True)
def _reorder(g, u, x, n_f, n_b):
    """Move the finished part of both searches to where the fronts met.

    t is the first node ahead with arcs left (x), or u when there is none. Nodes ahead that stand before t go right
    before t (right after, when t is u); nodes behind that stand after t go before those. Relative order is kept.
    """
    node, link, work = g.node, g.link, g.work
    t = x if x >= 0 else u
    limit = node[t, LABEL]
    n_f = _cut_out(g, AHEAD, n_f, limit, UP)
    n_b = _cut_out(g, BEHIND, n_b, limit, DOWN)
    if x < 0:
        insert_after(node, link, u, work, AHEAD, n_f)
        return
    insert_after(node, link, np.int64(link[t, 0]), work, AHEAD, n_f)
    first = np.int64(work[AHEAD, 0]) if n_f > 0 else t
    insert_after(node, link, np.int64(link[first, 0]), work, BEHIND, n_b)


@njit(cache=True, nogil=True)
def _closes_cycle(g, u, v):
    """Whether v reaches u, by the masks, by an earlier search, or by a search; if not, u comes before v now."""
    if reaches_by_support(g.node, v, u):
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
        if g.book[WALKED] > g.book[N_ARCS] + MAX_SEARCHED_ARCS:
            choose(g)  # better supports would have spared these searches
        return False
    g.book[N_EDGES] += 1
    if g.book[ALL_ARCS] or not reaches_by_support(g.node, u, v):
        connect(g, u, v)
        edge_added(g, u, v)
    return True


@njit(cache=True, nogil=True)
def offer(graph, rows, codes, start):
    """Judge rows[start:] in order; returns the first row that might not fit, or their number."""
    g = borrowed(graph)
    nodes = np.empty((min(MAX_NODES_AT_ONCE, len(rows) - start), 2), np.int64)
    while start < len(rows):
        n_found = nodes_of(g, rows, start, nodes)
        for i in range(n_found):
            if i + 2 * PREFETCH_DISTANCE < n_found:
                _ask_for_edge(g, nodes[i + 2 * PREFETCH_DISTANCE, 0], nodes[i + 2 * PREFETCH_DISTANCE, 1])
            if i + PREFETCH_DISTANCE < n_found:
                _ask_for_ends(g, nodes[i + PREFETCH_DISTANCE, 0], nodes[i + PREFETCH_DISTANCE, 1])
            if i + PREFETCH_DISTANCE // 2 < n_found:
                _ask_for_search(g, nodes[i + PREFETCH_DISTANCE // 2, 0], nodes[i + PREFETCH_DISTANCE // 2, 1])
            verdict = _judge(g, nodes[i, 0], nodes[i, 1])
            if verdict < 0:
                return start + i
            codes[start + i] = verdict
        if n_found == 0:
            return start
        start += n_found
    return len(rows)


@njit(cache=True, nogil=True, inline="always")
def _ask_for_edge(g, u, v):
    """Ask for what `_judge` of u -> v will look at first."""
    prefetch(g.edge_table, mix64(np.uint64(pair_key(u, v))) & np.uint64(len(g.edge_table) - 1))
    prefetch(g.node, u)
    prefetch(g.node, v)


@njit(cache=True, nogil=True, inline="always")
def _is_open(g, u, v):
    """Whether the masks do not say how u and v stand to each other."""
    return not reaches_by_support(g.node, u, v) and not reaches_by_support(g.node, v, u)


@njit(cache=True, nogil=True, inline="always")
def _ask_for_ends(g, u, v):
    """Ask for the places where an edge u -> v would be put, and for where a search would begin; u and v have been asked
    for."""
    if _is_open(g, u, v):
        prefetch(g.pool, start_of(g.node[u, OUT]) + length_of(g.node[u, OUT]))
        prefetch(g.pool, start_of(g.node[v, IN]) + length_of(g.node[v, IN]))
        if g.node[v, LABEL] < g.node[u, LABEL]:
            prefetch(g.link, u)
            prefetch(g.link, v)
            prefetch(g.pool, start_of(g.node[v, OUT]))
            prefetch(g.pool, start_of(g.node[u, IN]))


@njit(cache=True, nogil=True, inline="always")
def _ask_for_search(g, u, v):
    """Ask for what a search would look at first: the neighbours of u and v, in the graph and in the sequence."""
    if g.node[v, LABEL] < g.node[u, LABEL] and _is_open(g, u, v):
        prefetch(g.node, g.link[u, 1])
        prefetch(g.link, g.link[u, 1])
        prefetch(g.link, g.link[v, 0])
        prefetch(g.link, g.link[v, 1])
        _ask_for_neighbours(g.node, g.pool, v, OUT)
        _ask_for_neighbours(g.node, g.pool, u, IN)


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
