"""Supportive nodes (Hanauer, Henzinger & Schulz 2020, "Faster fully dynamic transitive closure in practice").

Of 128 central nodes, masks say which reach a node and which it reaches, so that many searches are spared. In the live
graph a missing bit proves nothing; the supports of a finished graph are exact.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.intrinsics import prefetch
from stream_engine.order.graph import (
    ALL_ARCS,
    FROM,
    IN,
    LENGTH,
    N_ARCS,
    N_NODES,
    OUT,
    PREFETCH_DISTANCE,
    SUPPORT,
    TO,
    WALKED,
    WORDS,
    clear_pool,
    in_order,
    length_of,
    new_block,
    start_of,
)

MASK_BYTES = 192 << 20  # bytes for the masks of one graph
MIN_WORDS, MAX_WORDS = 2, 16
NEAR_BY, BRANCHING = 8, 1.0  # see `central`
MAX_FOLLOWED_ARCS = 4  # arcs followed to pass bits on when an edge is added


# Nodes are topological positions 0 .. n - 1. Bit i of before[x]: support i reaches x or is x; of after[x]: x reaches
# support i or is it. Hence, without a search:
#     after[x] & before[v] != 0          x reaches v through a support (or one of them is that support)
#     x reaches v  =>  before[x] is a subset of before[v], and after[v] of after[x]
# (the subset test as in GRAIL, Yildirim, Chaoji & Zaki 2010). O(edges x words) time, 16 n words bytes.
class Supports(NamedTuple):
    """See the module; `number[x]` is x's number among the supports, -1 where it is none."""

    before: np.ndarray  # (n, words) uint64
    after: np.ndarray  # (n, words) uint64
    number: np.ndarray  # (n,) int32


def words_for(n: int) -> int:
    """How many words of supports the nodes of such a graph get."""
    return max(1, min(-(-n // 64), max(MIN_WORDS, min(MAX_WORDS, MASK_BYTES // (16 * max(n, 1))))))


def supports_of(start: np.ndarray, targets: np.ndarray, words: int | None = None) -> Supports:
    """Supports of the graph in which x's successors are targets[start[x]:start[x + 1]], all after x: from each of 64
    `words` stretches of nodes with neighbours on both sides, the most `central` one.

    >>> supports_of(np.array([0, 1, 2, 2]), np.array([1, 2], np.int32)).after.tolist()
    [[1], [1], [0]]
    """
    n = len(start) - 1
    chosen = central(start, targets, 64 * (words_for(n) if words is None else words))
    number = np.full(n, -1, np.int32)
    supports = np.flatnonzero(chosen >= 0)
    number[chosen[supports]] = supports
    before, after = masks_of(start, targets, chosen)
    return Supports(before, after, number)


@njit(cache=True, nogil=True)
def _paths_near_by(start, targets):
    """`(above, below)`: the weighted numbers of paths to every node and away from it; see `central`."""
    n = len(start) - 1
    window = n // NEAR_BY + 1
    near = 0
    for x in range(n):
        for k in range(start[x], start[x + 1]):
            near += targets[k] - x < window
    weight = min(1.0, BRANCHING * n / max(near, 1))
    above, below = np.ones(n), np.ones(n)
    for x in range(n):
        share = weight * above[x]
        for k in range(start[x], start[x + 1]):
            if targets[k] - x < window:
                above[targets[k]] += share
    for x in range(n - 1, -1, -1):
        for k in range(start[x], start[x + 1]):
            if targets[k] - x < window:
                below[x] += weight * below[targets[k]]
    return above, below


@njit(cache=True, nogil=True)
def central(start, targets, most):
    """(most,) int32: from each of `most` stretches with equally many of the nodes that have neighbours on both sides,
    the one on most paths; -1 for a stretch without nodes. The first of equals.

    Whether one node reaches another far away, almost any support in between says. So the paths that count are those
    of short edges, over at most one `NEAR_BY`-th of the nodes, and each edge multiplies the weight of a path by
    `BRANCHING` over the mean number of such edges of a node (Katz 1953, "A new status index").
    """
    n = len(start) - 1
    above, below = _paths_near_by(start, targets)
    entered = np.zeros(n, np.bool_)
    for y in targets:
        entered[y] = True
    inner = 0
    for x in range(n):
        inner += entered[x] and start[x + 1] > start[x]
    chosen = np.full(most, -1, np.int32)
    stretch, n_near, best = 0, 0, 0.0
    for x in range(n):
        if not entered[x] or start[x + 1] == start[x]:
            continue
        if above[x] * below[x] > best:
            best = above[x] * below[x]
            chosen[stretch] = x
        n_near += 1
        while most * n_near >= (stretch + 1) * inner and stretch < most - 1:
            stretch += 1
            best = 0.0
    return chosen


@njit(cache=True, nogil=True)
def masks_of(start, targets, chosen):
    """`(before, after)` (n, words) uint64 of the supports at these positions, of which there are 64 a word."""
    n, words = len(start) - 1, len(chosen) // 64
    before, after = np.zeros((n, words), np.uint64), np.zeros((n, words), np.uint64)
    for i in range(len(chosen)):
        if chosen[i] >= 0:
            before[chosen[i], i >> 6] |= np.uint64(1) << np.uint64(i & 63)
            after[chosen[i], i >> 6] |= np.uint64(1) << np.uint64(i & 63)
    for x in range(n):
        for k in range(start[x], start[x + 1]):
            for w in range(words):
                before[targets[k], w] |= before[x, w]
    for x in range(n - 1, -1, -1):
        for k in range(start[x], start[x + 1]):
            for w in range(words):
                after[x, w] |= after[targets[k], w]
    return before, after


@njit(cache=True, nogil=True, inline="always")
def may_reach(before, after, x, v):
    """False only where x does not reach v."""
    for w in range(before.shape[1]):
        if before[x, w] & ~before[v, w] != 0 or after[v, w] & ~after[x, w] != 0:
            return False
    return True


@njit(cache=True, nogil=True, inline="always")
def passes_a_third(before, after, number, x, v):
    """True only where x reaches v through a support that is neither of them."""
    for w in range(before.shape[1]):
        both = after[x, w] & before[v, w]
        if both != 0:
            if number[x] >= 0 and number[x] >> 6 == w:
                both &= ~(np.uint64(1) << np.uint64(number[x] & 63))
            if number[v] >= 0 and number[v] >> 6 == w:
                both &= ~(np.uint64(1) << np.uint64(number[v] & 63))
            if both != 0:
                return True
    return False


@njit(cache=True, nogil=True)
def _successors(g, order):
    """`(start, targets)` by positions in `order`: those of the k-th node are targets[start[k]:start[k + 1]]."""
    node, pool, n = g.node, g.pool, len(order)
    position = np.empty(n + 1, np.int32)
    for k in range(n):
        position[order[k]] = k
    start, targets = np.zeros(n + 1, np.int64), np.empty(g.book[N_ARCS], np.int32)
    m = 0
    for k in range(n):
        if k + 2 * PREFETCH_DISTANCE < n:
            prefetch(node, order[k + 2 * PREFETCH_DISTANCE])
        if k + PREFETCH_DISTANCE < n:
            prefetch(pool, start_of(node[order[k + PREFETCH_DISTANCE], OUT]))
        block, size = start_of(node[order[k], OUT]), length_of(node[order[k], OUT])
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
    chosen = central(start, targets, 64 * WORDS)
    before, after = masks_of(start, targets, chosen)
    for i in range(64 * WORDS):
        g.book[SUPPORT + i] = order[chosen[i]] if chosen[i] >= 0 else 0
    for k in range(len(order)):
        if k + PREFETCH_DISTANCE < len(order):
            prefetch(g.node, order[k + PREFETCH_DISTANCE])
        for w in range(WORDS):
            g.node[order[k], FROM + w] = np.int64(before[k, w])
            g.node[order[k], TO + w] = np.int64(after[k, w])
    g.book[WALKED] = 0
    if not g.book[ALL_ARCS]:
        _drop_implied(start, targets, chosen, before, after)
        _lay_out(g, order, start, targets)


@njit(cache=True, nogil=True)
def _drop_implied(start, targets, chosen, before, after):
    """Leave only the successors that their node does not reach through a third one, a support, as well. The masks lose
    what a support says of itself."""
    for i in range(len(chosen)):
        if chosen[i] >= 0:
            before[chosen[i], i >> 6] &= ~(np.uint64(1) << np.uint64(i & 63))
            after[chosen[i], i >> 6] &= ~(np.uint64(1) << np.uint64(i & 63))
    m = begin = np.int64(0)
    for k in range(len(start) - 1):
        end = start[k + 1]
        for e in range(begin, end):
            if e + PREFETCH_DISTANCE < len(targets):
                prefetch(before, targets[e + PREFETCH_DISTANCE])
            y = targets[e]
            implied = np.uint64(0)
            for w in range(WORDS):
                implied |= after[k, w] & before[y, w]
            if implied == 0:
                targets[m] = y
                m += 1
        begin = end
        start[k + 1] = m


@njit(cache=True, nogil=True)
def _lay_out(g, order, start, targets):
    """Put these successors, by positions in `order`, into both adjacencies in place of all that is there: blocks of
    nodes near each other in the sequence lie near each other in the pool."""
    n = len(order)
    n_before = np.zeros(n, np.int32)
    for e in range(start[n]):
        n_before[targets[e]] += 1
    clear_pool(g)
    place = np.empty(n, np.int64)
    for k in range(n):
        if k + PREFETCH_DISTANCE < n:
            prefetch(g.node, order[k + PREFETCH_DISTANCE])
        first = new_block(g, order[k], OUT, start[k + 1] - start[k])
        for e in range(start[k], start[k + 1]):
            g.pool[first + e - start[k]] = order[targets[e]]
        g.node[order[k], OUT] |= (start[k + 1] - start[k]) << LENGTH
        place[k] = new_block(g, order[k], IN, np.int64(n_before[k]))
        g.node[order[k], IN] |= np.int64(n_before[k]) << LENGTH
    for k in range(n):
        for e in range(start[k], start[k + 1]):
            g.pool[place[targets[e]]] = order[k]
            place[targets[e]] += 1
    g.book[N_ARCS] = start[n]


@njit(cache=True, nogil=True, inline="always")
def _give(node, x, y, field):
    """Give the bits of x to y; whether y gained any."""
    gained = False
    for w in range(WORDS):
        if node[x, field + w] & ~node[y, field + w] != 0:
            node[y, field + w] |= node[x, field + w]
            gained = True
    return gained


@njit(cache=True, nogil=True)
def _pass_on(g, x, field, side):
    """Give the bits of x to its neighbours on `side`, and on from those that gained, within the budget."""
    node, pool, work = g.node, g.pool, g.work
    work[0, 0] = x
    head, tail, budget = 0, 1, MAX_FOLLOWED_ARCS
    while head < tail and budget > 0:
        x = np.int64(work[0, head])
        head += 1
        start, length = start_of(node[x, side]), length_of(node[x, side])
        for k in range(start, start + min(length, budget)):
            if _give(node, x, pool[k], field):
                work[0, tail] = pool[k]
                tail += 1
        budget -= length


@njit(cache=True, nogil=True, inline="always")
def reaches_by_support(node, x, y):
    """Whether x reaches y by the masks of the live graph: through a support, which may be one of them."""
    return (node[x, TO] & node[y, FROM]) | (node[x, TO + 1] & node[y, FROM + 1]) != 0


# Local justification: bit i of FROM[x] is set only if x is support i or a kept predecessor of x has the bit; likewise
# TO with successors. Kept edges are acyclic, so each bit stands for a path, and `TO[v] & FROM[u]` proves that v reaches
# u. Supports are chosen anew once the searches that they did not spare have cost as much as a choice: O(edges).
@njit(cache=True, nogil=True, inline="always")
def edge_added(g, u, v):
    """u -> v is kept now: v is reached by what reaches u, u reaches what v reaches."""
    if _give(g.node, u, v, FROM):
        _pass_on(g, v, FROM, OUT)
    if _give(g.node, v, u, TO):
        _pass_on(g, u, TO, IN)
