"""The guard's arrays: nodes in a sequence, both adjacencies in one pool of growing blocks, and the table of edges.

Each kept edge u -> v stands in the edge table, and u before v in the sequence. It is also an arc, which stands once in
u's successors and once in v's predecessors, unless other arcs imply it (see `ALL_ARCS`). A kernel never grows an array:
it stops before the comparison that might not fit.
"""

from contextlib import suppress
from mmap import MADV_DONTNEED, MADV_HUGEPAGE, MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.hashing import mix64
from stream_engine.data.intrinsics import borrowed, prefetch
from stream_engine.data.slot_tables import fits, table_size
from stream_engine.order.hash_tables import (
    ID_BITS,
    ID_MASK,
    edge_entry,
    find_edge,
    find_pair,
    pair_key,
    rehash_edges,
    rehash_pairs,
)

# Order-maintenance list (Bender, Cole, Demaine, Farach-Colton & Zito 2002, "Two simplified algorithms for maintaining
# order in a list"): nodes in one total order with integer labels; x stands before y iff label x < label y. The circular
# doubly linked list `link[x]` = (previous, next) visits every node once from node 0, with strictly increasing labels in
# 1 .. 2^62 - 1. Where a gap is used up, the smallest enclosing aligned range of labels that is sparse enough is spread
# out evenly: O(log n) amortised labels per insertion.
END = 1 << 62  # the label that stands after the last node
LABEL_DENSITY = 1.5  # a range of 2^j labels may hold (2 / LABEL_DENSITY)^j nodes
APPEND = 1 << 31  # the largest gap that is ever chosen: what is left at the end is not halved away
# as int64, not as literals: numba would compile a kernel anew for every literal that it is called with
# Nodes are numbered from 1, each one a pair of objects. `node` is (N, 8) int64, one cache line per node; row x is
#     LABEL           its label in the sequence
#     FROM, TO        masks of supports, of two words each: bit i says "support i reaches x", "x reaches support i"
#     MARK            stamp of the last search that met it
#     OUT, IN         its blocks of successors and of predecessors in `pool`: start / 2 in 31 bits, how many there are
#                     in 27, exponent of the capacity in 5
# Blocks given up are chained by capacity through their first entry and used again.
LABEL, FROM, TO, MARK, OUT, IN = np.array([0, 1, 3, 5, 6, 7])
WORDS = 2  # of a mask
LENGTH, START = 5, 32  # the lowest bits of these in a block's word
MAX_POOL, MAX_NEIGHBOURS = 1 << 32, 1 << 26
# entries of `book`: counters (WALKED: see `judging.keep`; WIDEST: the largest exponent; ALL_ARCS: 1 where implied edges
# are arcs, too), then the first free block of each exponent (-1: none), then the 128 supports (0: none)
N_NODES, N_EDGES, N_ARCS, ALL_ARCS, POOL_USED, STAMP, WALKED, WIDEST = range(8)
FREE, SUPPORT, BOOK = 8, 40, 168
REFUSED = 1 << 16  # refusals remembered, half a megabyte; a later one takes the place of an earlier one
COPIED_ROWS = 1 << 18  # 16 MB of nodes: what is copied at once where they move
PREFETCH_DISTANCE = 8  # comparisons: how long before an entry of a table is needed it is asked for


@njit(cache=True, nogil=True, inline="always")
def label_after(node, link, x):
    """The label of the node after x, END when x is the last."""
    y = link[x, 1]
    return np.int64(END) if y == 0 else node[y, LABEL]


@njit(cache=True, nogil=True)
def unlink(link, x):
    """Take x out of the list."""
    before, after = link[x, 0], link[x, 1]
    link[before, 1] = after
    link[after, 0] = before


@njit(cache=True, nogil=True)
def _spread_out(node, link, x, extra):
    """Make room for at least `extra` labels right after x: even out the smallest sparse aligned range around it."""
    low = high = x
    count = 1  # nodes of the list in low .. high; the sentinel keeps label 0 and is never moved
    room = 1.0
    for bits in range(1, 63):
        room *= 2.0 / LABEL_DENSITY
        size = np.int64(1) << bits
        start = node[x, LABEL] & ~(size - 1)
        while link[low, 0] != 0 and low != 0 and node[link[low, 0], LABEL] >= start:
            low = link[low, 0]
            count += 1
        while link[high, 1] != 0 and node[link[high, 1], LABEL] < start + size:
            high = link[high, 1]
            count += 1
        if count + extra < room or bits == 62:
            break
    step = size // (count + extra + 2)
    label = start
    y = low
    for _ in range(count):
        if y != 0:
            label += step
            node[y, LABEL] = label
        if y == x:
            label += step * extra
        y = link[y, 1]


@njit(cache=True, nogil=True)
def insert_after(node, link, x, work, row, n):
    """Put work[row, :n] after node x (0: at the front), in this order."""
    if n == 0:
        return
    if label_after(node, link, x) - node[x, LABEL] <= n:
        _spread_out(node, link, x, n)
    low = node[x, LABEL]
    step = min((label_after(node, link, x) - low) // (n + 1), APPEND)
    after = link[x, 1]
    last = x
    for i in range(n):
        y = work[row, i]
        node[y, LABEL] = low + step * (i + 1)
        link[last, 1] = y
        link[y, 0] = last
        last = y
    link[last, 1] = after
    link[after, 0] = last


@njit(cache=True, nogil=True)
def insert_one(node, link, x, y):
    """Put y after node x (0: at the front)."""
    if label_after(node, link, x) - node[x, LABEL] <= 1:
        _spread_out(node, link, x, np.int64(1))
    low = node[x, LABEL]
    node[y, LABEL] = low + min((label_after(node, link, x) - low) // 2, APPEND)
    after = link[x, 1]
    link[x, 1] = y
    link[y, 0] = x
    link[y, 1] = after
    link[after, 0] = y


@njit(cache=True, nogil=True)
def even_out(node, link, n):
    """Space the labels of all n nodes evenly; the order stays. O(n)."""
    step = min(END // (n + 2), APPEND)
    x = np.int64(link[0, 1])
    label = step
    while x != 0:
        node[x, LABEL] = label
        label += step
        x = np.int64(link[x, 1])


@njit(cache=True, nogil=True)
def in_order(link, n):
    """(n,) int32: the nodes of the list from front to back; -1 where it is cut short."""
    out = np.full(n, -1, np.int32)
    x = link[0, 1]
    for i in range(n):
        if x == 0:
            break
        out[i] = x
        x = link[x, 1]
    return out


class Graph(NamedTuple):
    """All of it."""

    node: np.ndarray  # (N, 8) int64
    link: np.ndarray  # (N, 2) int32: the sequence
    pool: np.ndarray  # (E,) int32: blocks of neighbours
    book: np.ndarray  # (168,) int64
    work: np.ndarray  # (4, N) int32: room for the searches
    key: np.ndarray  # (N,) int64: which pair of objects
    pair_table: np.ndarray  # int32, power of two: pair of objects -> node
    edge_table: np.ndarray  # int64, power of two: the kept edges, see hash_tables
    refused: np.ndarray  # int64, power of two: u << 31 | v of edges that a search found to close a cycle

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return int(self.book[N_NODES])


def _zeros(shape: int | tuple[int, ...], dtype: type, large_pages: bool = True) -> np.ndarray:
    """Zeros in pages of their own, which all go back to the system with the array, or in pieces by `_moved`; so an
    array that was outgrown leaves no hole in the heap, and a node, which begins on a cache line, costs one miss."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    try:
        memory = mmap(-1, size, MAP_PRIVATE | MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"no memory for {size:,} bytes of the guard") from error
    if large_pages:
        with suppress(OSError):  # a kernel without them
            memory.madvise(MADV_HUGEPAGE)
    return np.ndarray(shape, dtype, memory)


def _work(nodes: int) -> np.ndarray:
    """Room for the searches; the four rows are hardly used beyond their beginning, of which large pages take 8 MB."""
    return _zeros((4, nodes), np.int32, large_pages=False)


def _moved(array: np.ndarray, size: int) -> np.ndarray:
    """The rows with more room. What was copied is given back at once: there is never twice as much."""
    out, old = _zeros((size, *array.shape[1:]), array.dtype.type), array.base
    for begin in range(0, len(array), COPIED_ROWS):
        piece = array[begin : begin + COPIED_ROWS]
        out[begin : begin + len(piece)] = piece
        if isinstance(old, mmap):  # not those of a guard that was copied
            old.madvise(MADV_DONTNEED, begin * array.strides[0], piece.nbytes)
    return out


def new_graph(nodes: int = 64, edges: int = 64) -> Graph:
    """An empty graph with room for so many nodes and edges."""
    book = np.zeros(BOOK, np.int64)
    book[FREE:SUPPORT] = -1
    return Graph(
        _zeros((nodes + 1, 8), np.int64),
        _zeros((nodes + 1, 2), np.int32),
        _zeros(4 * edges, np.int32),
        book,
        _work(nodes + 1),
        _zeros(nodes + 1, np.int64),
        _zeros(table_size(nodes), np.int32),
        _zeros(table_size(edges), np.int64),
        np.zeros(REFUSED, np.int64),
    )


def _longer(array: np.ndarray, size: int) -> np.ndarray:
    out = _zeros(size, array.dtype.type)  # not `_moved`: a capture may look at the old ones
    out[: len(array)] = array
    return out


def grown(g: Graph) -> Graph:
    """The same graph with twice the room wherever the next comparison might not fit."""
    n = g.n_nodes
    if n + 3 > len(g.node):
        size = 2 * len(g.node)
        g = g._replace(
            node=_moved(g.node, size),
            link=_moved(g.link, size),
            key=_longer(g.key, size),
            work=_work(size),
        )
    if not fits(n + 2, g.pair_table):
        table = _zeros(2 * len(g.pair_table), np.int32)
        rehash_pairs(table, g.key, n)
        g = g._replace(pair_table=table)
    needed = int(g.book[POOL_USED]) + _most_of_pool(g)
    if needed > MAX_POOL or 1 << int(g.book[WIDEST]) > MAX_NEIGHBOURS:
        raise MemoryError(
            f"the guard keeps {int(g.book[N_EDGES]):,} comparisons and has no place for more; run without it"
        )
    if needed > len(g.pool):
        g = g._replace(pool=_moved(g.pool, max(2 * len(g.pool), needed)))
    if not fits(g.book[N_EDGES] + 1, g.edge_table):
        table = _zeros(2 * len(g.edge_table), np.int64)
        rehash_edges(table, g.edge_table)
        g = g._replace(edge_table=table)
    return g


def _most_of_pool(g: Graph) -> int:
    """The most that one edge can take from the pool: two blocks twice as large as the largest."""
    return 4 << int(g.book[WIDEST])


@njit(cache=True, nogil=True)
def _new_node(g, key):
    """A node for a pair that has none yet, at the end of the sequence; there must be room."""
    g.book[N_NODES] += 1
    x = g.book[N_NODES]
    g.pair_table[find_pair(g.pair_table, g.key, key)] = x
    g.key[x] = key
    insert_one(g.node, g.link, np.int64(g.link[0, 0]), x)
    return x


@njit(cache=True, nogil=True)
def create_nodes(graph, keys):
    """New nodes for these pair keys, in this order; there must be room."""
    g = borrowed(graph)
    for key in keys:
        _new_node(g, key)


@njit(cache=True, nogil=True)
def nodes_of(g, rows, start, nodes):
    """Put the nodes of rows[start:] into (k, 2) `nodes`, in order; returns for how many rows, as far as there is room.

    Nodes come into being before the comparisons ahead of theirs are judged. That changes nothing: a node that has been
    in no comparison stands at the end of the sequence, behind whatever moves, wherever it moves.
    """
    n = min(len(rows) - start, len(nodes))
    for i in range(n):
        if g.book[N_NODES] + 3 > len(g.node) or not fits(g.book[N_NODES] + 2, g.pair_table):
            return i
        for side in range(2):
            if i + 2 * PREFETCH_DISTANCE < n:
                row = rows[start + i + 2 * PREFETCH_DISTANCE]
                prefetch(g.pair_table, _first_slot(g, row[2 * side], row[2 * side + 1]))
            if i + PREFETCH_DISTANCE < n:
                row = rows[start + i + PREFETCH_DISTANCE]
                slot = _first_slot(g, row[2 * side], row[2 * side + 1])
                prefetch(g.key, g.pair_table[slot])  # one of two pairs stands in its first slot, most in the next
                prefetch(g.key, g.pair_table[(slot + np.uint64(1)) & np.uint64(len(g.pair_table) - 1)])
            row = rows[start + i]
            key = pair_key(row[2 * side], row[2 * side + 1])
            x = np.int64(g.pair_table[find_pair(g.pair_table, g.key, key)])
            nodes[i, side] = x if x != 0 else _new_node(g, key)
    return n


@njit(cache=True, nogil=True, inline="always")
def _first_slot(g, i, j):
    return mix64(np.uint64(pair_key(i, j))) & np.uint64(len(g.pair_table) - 1)


@njit(cache=True, nogil=True, inline="always")
def start_of(block):
    """Where in the pool the neighbours begin."""
    return block >> START << 1


@njit(cache=True, nogil=True, inline="always")
def length_of(block):
    """How many neighbours there are."""
    return (block & ((1 << START) - 1)) >> LENGTH


@njit(cache=True, nogil=True, inline="always")
def _block_need(node, x, side):
    exponent = node[x, side] & 31
    return 2 << exponent if exponent == 0 or length_of(node[x, side]) == 1 << exponent else 0


@njit(cache=True, nogil=True, inline="always")
def edge_fits(g, u, v):
    """False when the edge table, or what is left of the pool, might be too small for u -> v."""
    need = _block_need(g.node, u, OUT) + _block_need(g.node, v, IN)
    return fits(g.book[N_EDGES] + 1, g.edge_table) and g.book[POOL_USED] + need <= len(g.pool)


@njit(cache=True, nogil=True)
def _larger_block(g, x, side):
    """Move a full block of x (side OUT or IN) to one twice as large; the old one is chained for later use."""
    node, pool, book = g.node, g.pool, g.book
    start, length, exponent = start_of(node[x, side]), length_of(node[x, side]), node[x, side] & 31
    larger = FREE + exponent + 1
    new = book[larger]
    if new >= 0:
        book[larger] = 2 * np.int64(pool[new]) if pool[new] >= 0 else -1
    else:
        new = book[POOL_USED]
        book[POOL_USED] += 2 << exponent
    for i in range(length):
        pool[new + i] = pool[start + i]
    if exponent > 0:  # blocks start at even places, so half of it fits an int32
        pool[start] = book[FREE + exponent] // 2 if book[FREE + exponent] >= 0 else -1
        book[FREE + exponent] = start
    node[x, side] = new >> 1 << START | length << LENGTH | (exponent + 1)
    book[WIDEST] = max(book[WIDEST], exponent + 1)


@njit(cache=True, nogil=True, inline="always")
def _push(g, x, side, y):
    """Add y to a block of x."""
    if _block_need(g.node, x, side) > 0:
        _larger_block(g, x, side)
    g.pool[start_of(g.node[x, side]) + length_of(g.node[x, side])] = y
    g.node[x, side] += 1 << LENGTH


@njit(cache=True, nogil=True, inline="always")
def connect(g, u, v):
    """Put u -> v into both adjacencies."""
    _push(g, u, OUT, v)
    _push(g, v, IN, u)
    g.book[N_ARCS] += 1


@njit(cache=True, nogil=True)
def make_room(graph, us, vs):
    """Blocks for all neighbours that the edges us[e] -> vs[e] give, of 2^k entries: all take at most 4 an edge."""
    g = borrowed(graph)
    n = g.book[N_NODES] + 1
    degree = np.zeros((n, 2), np.int64)
    for e in range(len(us)):
        degree[us[e], 0] += 1
        degree[vs[e], 1] += 1
    for x in range(1, n):
        new_block(g, x, OUT, degree[x, 0])
        new_block(g, x, IN, degree[x, 1])


@njit(cache=True, nogil=True, inline="always")
def new_block(g, x, side, size):
    """An empty block of x for so many neighbours; returns where it starts."""
    exponent = np.int64(1 if size > 0 else 0)
    while 1 << exponent < size:
        exponent += 1
    start = g.book[POOL_USED]
    g.node[x, side] = start >> 1 << START | exponent
    g.book[POOL_USED] += 1 << exponent if exponent > 0 else 0
    g.book[WIDEST] = max(g.book[WIDEST], exponent)
    return start


@njit(cache=True, nogil=True, inline="always")
def clear_pool(g):
    """Give up all blocks; those of all nodes must be new then."""
    g.book[POOL_USED] = g.book[WIDEST] = 0
    g.book[FREE:SUPPORT] = -1


@njit(cache=True, nogil=True)
def load_edges(graph, us, vs):
    """Put edges us[e] -> vs[e] that all go forward in the sequence into both adjacencies; there must be room."""
    g = borrowed(graph)
    for e in range(len(us)):
        ask_for_blocks(g, us, vs, e)
        connect(g, np.int64(us[e]), np.int64(vs[e]))


@njit(cache=True, nogil=True)
def enter_edges(graph, us, vs):
    """Put edges us[e] -> vs[e] into the edge table."""
    g = borrowed(graph)
    for e in range(len(us)):
        g.edge_table[find_edge(g.edge_table, pair_key(us[e], vs[e]))] = edge_entry(us[e], vs[e])
    g.book[N_EDGES] += len(us)


@njit(cache=True, nogil=True, inline="always")
def ask_for_blocks(g, us, vs, e):
    """Ask for the nodes of the edges behind us[e] -> vs[e], and for the places where these would be put."""
    if e + 2 * PREFETCH_DISTANCE < len(us):
        prefetch(g.node, np.int64(us[e + 2 * PREFETCH_DISTANCE]))
        prefetch(g.node, np.int64(vs[e + 2 * PREFETCH_DISTANCE]))
    if e + PREFETCH_DISTANCE < len(us):
        u, v = np.int64(us[e + PREFETCH_DISTANCE]), np.int64(vs[e + PREFETCH_DISTANCE])
        prefetch(g.link, u)
        prefetch(g.link, v)
        prefetch(g.pool, start_of(g.node[u, OUT]) + length_of(g.node[u, OUT]))
        prefetch(g.pool, start_of(g.node[v, IN]) + length_of(g.node[v, IN]))


@njit(cache=True, nogil=True)
def kept_edges(edges, n_edges):
    """(n_edges, 2) int32 node numbers, from 0, of the kept edges in the edge table."""
    out = np.empty((n_edges, 2), np.int32)
    m = 0
    for entry in edges:
        if entry != 0:
            turned, key = entry & 1, entry >> 1
            out[m, turned] = (key >> ID_BITS) - 1
            out[m, 1 - turned] = (key & ID_MASK) - 1
            m += 1
    return out
