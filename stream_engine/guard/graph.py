"""The guard's arrays: one cache line a node, both adjacencies in one pool of growing blocks, and the table of edges.

`node` is (N, 8) int64, row x =
    LABEL           its label in the sequence
    FROM, TO        masks of supports: bit i says "support i reaches x", "x reaches support i"
    MARK            stamp of the last search that met it
    OUT, OUT_LEN    its block of successors in `pool`: start << 6 | exponent of the capacity, and how many there are
    IN, IN_LEN      its block of predecessors
Invariant: each kept edge u -> v stands once in u's successors, once in v's predecessors and in the edge table, and u
stands before v in the sequence. Blocks given up are chained by capacity through their first entry and used again.
A kernel never grows an array: it stops before the comparison that might not fit, and Python doubles what is short.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from stream_engine.guard.hash_tables import find_edge, find_pair, rehash_pairs, table_size
from stream_engine.guard.order_maintenance import insert_one

# as int64, not as literals: numba would compile a kernel anew for every literal that it is called with
LABEL, FROM, TO, MARK, OUT, OUT_LEN, IN, IN_LEN = np.arange(8)
# entries of `book`: counters, then the first free block of each exponent (-1: none), then the 64 supports (0: none)
N_NODES, N_EDGES, N_SLOTS, POOL_USED, STAMP, REFRESH_AT = range(6)
FREE, SUPPORT, BOOK = 8, 40, 104
# what the table knows of an unordered pair of nodes a < b: which direction is kept, which have been seen
KEPT_AB, KEPT_BA, SEEN_AB, SEEN_BA = 1, 2, 4, 8
REFUSED = 1 << 16  # refusals remembered, half a megabyte; a later one takes the place of an earlier one


class Graph(NamedTuple):
    """All of it. Node numbers run from 1."""

    node: np.ndarray  # (N, 8) int64
    link: np.ndarray  # (N, 2) int32: the sequence
    pool: np.ndarray  # (E,) int32: blocks of neighbours
    book: np.ndarray  # (104,) int64
    work: np.ndarray  # (4, N) int32: room for the searches
    key: np.ndarray  # (N,) int64: which pair of objects
    pair_table: np.ndarray  # int32, power of two
    edge_key: np.ndarray  # int64, power of two: a << 31 | b with a < b
    edge_mark: np.ndarray  # uint8 beside it
    edge_net: np.ndarray  # int64 beside it: net votes for a -> b (majority only, else one entry)
    refused: np.ndarray  # int64, power of two: u << 31 | v of edges that a search found to close a cycle (first only)

    @property
    def n_nodes(self) -> int:
        return int(self.book[N_NODES])


def _rows_of_a_line(rows: int) -> np.ndarray:
    """(rows, 8) int64 zeros that start on a cache line, so that meeting a node costs one miss."""
    raw = np.zeros(8 * rows + 8, np.int64)
    skip = -raw.ctypes.data % 64 // 8
    return raw[skip : skip + 8 * rows].reshape(rows, 8)


def new_graph(nodes: int = 64, edges: int = 64, weighted: bool = False, lasting: bool = False) -> Graph:
    """An empty graph with room for so many nodes and edges; `lasting` when no edge will ever be taken away."""
    book = np.zeros(BOOK, np.int64)
    book[FREE:SUPPORT] = -1
    book[REFRESH_AT] = 256
    size = table_size(edges)
    return Graph(
        _rows_of_a_line(nodes + 1),
        np.zeros((nodes + 1, 2), np.int32),
        np.zeros(4 * edges, np.int32),
        book,
        np.zeros((4, nodes + 1), np.int32),
        np.zeros(nodes + 1, np.int64),
        np.zeros(table_size(nodes), np.int32),
        np.zeros(size, np.int64),
        np.zeros(size, np.uint8),
        np.zeros(size if weighted else 1, np.int64),
        np.zeros(REFUSED if lasting else 0, np.int64),
    )


def _longer(array: np.ndarray, size: int) -> np.ndarray:
    out = _rows_of_a_line(size) if array.shape[1:] == (8,) else np.zeros((size, *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out


def grown(g: Graph) -> Graph:
    """The same graph with twice the room wherever the next comparison might not fit."""
    n = g.n_nodes
    if n + 3 > len(g.node):
        size = 2 * len(g.node)
        g = g._replace(
            node=_longer(g.node, size),
            link=_longer(g.link, size),
            key=_longer(g.key, size),
            work=np.zeros((4, size), np.int32),
        )
    if 8 * (n + 2) > 5 * len(g.pair_table):
        table = np.zeros(2 * len(g.pair_table), np.int32)
        rehash_pairs(table, g.key, n)
        g = g._replace(pair_table=table)
    needed = int(g.book[POOL_USED]) + _most_of_pool(g)
    if needed > len(g.pool):
        g = g._replace(pool=_longer(g.pool, max(2 * len(g.pool), needed)))
    if 8 * (g.book[N_SLOTS] + 1) > 5 * len(g.edge_key):
        size = 2 * len(g.edge_key)
        new = g._replace(
            edge_key=np.zeros(size, np.int64),
            edge_mark=np.zeros(size, np.uint8),
            edge_net=np.zeros(size if len(g.edge_net) > 1 else 1, np.int64),
        )
        g.book[N_SLOTS] = _rehash_edges(g.edge_key, g.edge_mark, g.edge_net, new.edge_key, new.edge_mark, new.edge_net)
        g = new
    return g


def _most_of_pool(g: Graph) -> int:
    """The most that one edge can take from the pool: two blocks twice as large as the largest."""
    return 4 << int(max((g.node[:, OUT] & 63).max(), (g.node[:, IN] & 63).max()))


@njit(cache=True, nogil=True)
def _rehash_edges(old_key, old_mark, old_net, key, mark, net):
    """Fill an empty edge table and return its entries; edges of which nothing is known any more are left behind."""
    weighted = len(old_net) > 1
    n = 0
    for slot in range(len(old_key)):
        if old_key[slot] != 0 and (old_mark[slot] != 0 or (weighted and old_net[slot] != 0)):
            at = find_edge(key, old_key[slot])
            key[at] = old_key[slot]
            mark[at] = old_mark[slot]
            if weighted:
                net[at] = old_net[slot]
            n += 1
    return n


@njit(cache=True, nogil=True, inline="always")
def has_room(node, book, pair_table, edge_key):
    """False when the next comparison might need more nodes or table slots than there are."""
    n = book[N_NODES]
    return n + 3 <= len(node) and 8 * (n + 2) <= 5 * len(pair_table) and 8 * (book[N_SLOTS] + 1) <= 5 * len(edge_key)


@njit(cache=True, nogil=True)
def new_node(node, link, book, keys, pair_table, key):
    """A node for a pair that has none yet, at the end of the sequence; there must be room."""
    book[N_NODES] += 1
    x = book[N_NODES]
    pair_table[find_pair(pair_table, keys, key)] = x
    keys[x] = key
    insert_one(node, link, np.int64(link[0, 0]), x)
    return x


@njit(cache=True, nogil=True, inline="always")
def _block_need(node, x, side):
    exponent = node[x, side] & 63
    return 2 << exponent if exponent == 0 or node[x, side + 1] == 1 << exponent else 0


@njit(cache=True, nogil=True, inline="always")
def pool_has_room(node, pool, book, u, v):
    """False when putting u -> v into the adjacencies might need more of the pool than is left."""
    return book[POOL_USED] + _block_need(node, u, OUT) + _block_need(node, v, IN) <= len(pool)


@njit(cache=True, nogil=True)
def _larger_block(node, pool, book, x, side):
    """Move a full block of x (side OUT or IN) to one twice as large; the old one is chained for later use."""
    start, exponent = node[x, side] >> 6, node[x, side] & 63
    larger = FREE + exponent + 1
    new = book[larger]
    if new >= 0:
        book[larger] = 2 * np.int64(pool[new]) if pool[new] >= 0 else -1
    else:
        new = book[POOL_USED]
        book[POOL_USED] += 2 << exponent
    for i in range(node[x, side + 1]):
        pool[new + i] = pool[start + i]
    if exponent > 0:  # blocks start at even places, so half of it fits an int32
        pool[start] = book[FREE + exponent] // 2 if book[FREE + exponent] >= 0 else -1
        book[FREE + exponent] = start
    node[x, side] = new << 6 | (exponent + 1)


@njit(cache=True, nogil=True, inline="always")
def _push(node, pool, book, x, side, y):
    """Add y to a block of x."""
    if _block_need(node, x, side) > 0:
        _larger_block(node, pool, book, x, side)
    pool[(node[x, side] >> 6) + node[x, side + 1]] = y
    node[x, side + 1] += 1


@njit(cache=True, nogil=True)
def _drop(node, pool, x, side, y):
    """Take y out of a block of x; the last one takes its place."""
    start, last = node[x, side] >> 6, node[x, side + 1] - 1
    at = start
    while pool[at] != y:
        at += 1
    pool[at] = pool[start + last]
    node[x, side + 1] = last


@njit(cache=True, nogil=True, inline="always")
def connect(node, pool, book, u, v):
    """Put u -> v into both adjacencies."""
    _push(node, pool, book, u, OUT, v)
    _push(node, pool, book, v, IN, u)
    book[N_EDGES] += 1


@njit(cache=True, nogil=True)
def disconnect(node, pool, book, u, v):
    """Take u -> v out of both adjacencies."""
    _drop(node, pool, u, OUT, v)
    _drop(node, pool, v, IN, u)
    book[N_EDGES] -= 1
