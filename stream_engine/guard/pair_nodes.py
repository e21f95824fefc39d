"""Nodes, which stand for pairs of objects: found through the table of pairs, made at the end of the sequence.

Both guards hold them in the same way. Their records (`Graph`, `Votes`) have in common: `node` and `link` (see
order_maintenance), `key` (N,) int64 the pair key of each node, `pair_table` (see hash_tables), and `book`, whose
entry N_NODES counts the nodes. Nodes are numbered from 1.
"""

import numpy as np

from stream_engine.data.borrowed_arrays import borrowed
from stream_engine.data.compiled import njit
from stream_engine.data.integer_hash import mix64
from stream_engine.data.open_addressing import fits
from stream_engine.data.prefetch import prefetch
from stream_engine.guard.hash_tables import find_pair, pair_key
from stream_engine.guard.order_maintenance import insert_one

N_NODES = 0  # entry of `book`
AT_ONCE = 1024  # comparisons whose nodes are found before the first of them is judged
SOON = 8  # comparisons: how long before an entry of a table is needed it is asked for


@njit(cache=True, nogil=True, inline="always")
def two_nodes_fit(g):
    """False when there might not be room for the two nodes of one more comparison."""
    n = g.book[N_NODES]
    return n + 3 <= len(g.node) and fits(n + 2, g.pair_table)


@njit(cache=True, nogil=True)
def new_node(g, key):
    """A node for a pair that has none yet, at the end of the sequence; there must be room."""
    g.book[N_NODES] += 1
    x = g.book[N_NODES]
    g.pair_table[find_pair(g.pair_table, g.key, key)] = x
    g.key[x] = key
    insert_one(g.node, g.link, np.int64(g.link[0, 0]), x)
    return x


@njit(cache=True, nogil=True, inline="always")
def node_of(g, i, j):
    """The node of the pair {i, j}, a new one if it has none; there must be room."""
    key = pair_key(i, j)
    x = np.int64(g.pair_table[find_pair(g.pair_table, g.key, key)])
    if x == 0:
        x = new_node(g, key)
    return x


@njit(cache=True, nogil=True)
def nodes_of(g, rows, start, nodes):
    """Put the nodes of rows[start:] into (k, 2) `nodes`, in order; returns for how many rows, as far as there is room.

    Nodes come into being before the comparisons ahead of theirs are judged. That changes nothing: a node that has been
    in no comparison stands at the end of the sequence, behind whatever moves, wherever it moves.
    """
    n = min(len(rows) - start, len(nodes))
    for i in range(n):
        if not two_nodes_fit(g):
            return i
        for side in range(2):
            if i + 2 * SOON < n:
                row = rows[start + i + 2 * SOON]
                prefetch(g.pair_table, _first_slot(g, row[2 * side], row[2 * side + 1]))
            if i + SOON < n:
                row = rows[start + i + SOON]
                prefetch(g.key, g.pair_table[_first_slot(g, row[2 * side], row[2 * side + 1])])
            row = rows[start + i]
            nodes[i, side] = node_of(g, row[2 * side], row[2 * side + 1])
    return n


@njit(cache=True, nogil=True, inline="always")
def _first_slot(g, i, j):
    return mix64(np.uint64(pair_key(i, j))) & np.uint64(len(g.pair_table) - 1)


@njit(cache=True, nogil=True)
def create_nodes(graph, keys):
    """New nodes for these pair keys, in this order; there must be room."""
    g = borrowed(graph)
    for key in keys:
        new_node(g, key)
