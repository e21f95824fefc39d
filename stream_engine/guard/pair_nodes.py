"""Nodes, which stand for pairs of objects: found through the table of pairs, made at the end of the sequence.

Both guards hold them in the same way. Their records (`Graph`, `Votes`) have in common: `node` and `link` (see
order_maintenance), `key` (N,) int64 the pair key of each node, `pair_table` (see hash_tables), and `book`, whose
entry N_NODES counts the nodes. Nodes are numbered from 1.
"""

import numpy as np

from stream_engine.data.borrowed_arrays import borrowed
from stream_engine.data.compiled import njit
from stream_engine.data.open_addressing import fits
from stream_engine.guard.hash_tables import find_pair, pair_key
from stream_engine.guard.order_maintenance import insert_one

N_NODES = 0  # entry of `book`


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
def create_nodes(graph, keys):
    """New nodes for these pair keys, in this order; there must be room."""
    g = borrowed(graph)
    for key in keys:
        new_node(g, key)
