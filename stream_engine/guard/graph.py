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

from stream_engine.data.compiled import njit
from stream_engine.data.open_addressing import fits, table_size
from stream_engine.guard.hash_tables import find_edge, rehash_pairs
from stream_engine.guard.pair_nodes import N_NODES

# as int64, not as literals: numba would compile a kernel anew for every literal that it is called with
LABEL, FROM, TO, MARK, OUT, OUT_LEN, IN, IN_LEN = np.arange(8)
# entries of `book`: counters, then the first free block of each exponent (-1: none), then the 64 supports (0: none)
N_EDGES, N_SLOTS, POOL_USED, STAMP, REFRESH_AT = range(N_NODES + 1, N_NODES + 6)
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
    if not fits(n + 2, g.pair_table):
        table = np.zeros(2 * len(g.pair_table), np.int32)
        rehash_pairs(table, g.key, n)
        g = g._replace(pair_table=table)
    needed = int(g.book[POOL_USED]) + _most_of_pool(g)
    if needed > len(g.pool):
        g = g._replace(pool=_longer(g.pool, max(2 * len(g.pool), needed)))
    if not fits(g.book[N_SLOTS] + 1, g.edge_key):
        size = 2 * len(g.edge_key)
        larger = g._replace(
            edge_key=np.zeros(size, np.int64),
            edge_mark=np.zeros(size, np.uint8),
            edge_net=np.zeros(size if len(g.edge_net) > 1 else 1, np.int64),
        )
        g.book[N_SLOTS] = _rehash_edges(g, larger)
        g = larger
    return g


def _most_of_pool(g: Graph) -> int:
    """The most that one edge can take from the pool: two blocks twice as large as the largest."""
    return 4 << int(max((g.node[:, OUT] & 63).max(), (g.node[:, IN] & 63).max()))


@njit(cache=True, nogil=True)
def _rehash_edges(graph, larger):
    """Fill the empty edge table of `larger` and return how many entries it has. Edges of which nothing is known any
    more are left behind."""
    keys, marks, nets = graph.edge_key, graph.edge_mark, graph.edge_net
    new_keys, new_marks, new_nets = larger.edge_key, larger.edge_mark, larger.edge_net
    weighted = len(nets) > 1
    n = 0
    for slot in range(len(keys)):
        if keys[slot] != 0 and (marks[slot] != 0 or (weighted and nets[slot] != 0)):
            new_slot = find_edge(new_keys, keys[slot])
            new_keys[new_slot] = keys[slot]
            new_marks[new_slot] = marks[slot]
            if weighted:
                new_nets[new_slot] = nets[slot]
            n += 1
    return n


@njit(cache=True, nogil=True, inline="always")
def _block_need(node, x, side):
    exponent = node[x, side] & 63
    return 2 << exponent if exponent == 0 or node[x, side + 1] == 1 << exponent else 0


@njit(cache=True, nogil=True, inline="always")
def pool_has_room(g, u, v):
    """False when putting u -> v into the adjacencies might need more of the pool than is left."""
    return g.book[POOL_USED] + _block_need(g.node, u, OUT) + _block_need(g.node, v, IN) <= len(g.pool)


@njit(cache=True, nogil=True)
def _larger_block(g, x, side):
    """Move a full block of x (side OUT or IN) to one twice as large; the old one is chained for later use."""
    node, pool, book = g.node, g.pool, g.book
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
def _push(g, x, side, y):
    """Add y to a block of x."""
    if _block_need(g.node, x, side) > 0:
        _larger_block(g, x, side)
    g.pool[(g.node[x, side] >> 6) + g.node[x, side + 1]] = y
    g.node[x, side + 1] += 1


@njit(cache=True, nogil=True)
def _drop(g, x, side, y):
    """Take y out of a block of x; the last one takes its place."""
    node, pool = g.node, g.pool
    start, last = node[x, side] >> 6, node[x, side + 1] - 1
    place = start
    while pool[place] != y:
        place += 1
    pool[place] = pool[start + last]
    node[x, side + 1] = last


@njit(cache=True, nogil=True, inline="always")
def connect(g, u, v):
    """Put u -> v into both adjacencies."""
    _push(g, u, OUT, v)
    _push(g, v, IN, u)
    g.book[N_EDGES] += 1


@njit(cache=True, nogil=True)
def disconnect(g, u, v):
    """Take u -> v out of both adjacencies."""
    _drop(g, u, OUT, v)
    _drop(g, v, IN, u)
    g.book[N_EDGES] -= 1
