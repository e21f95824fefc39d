"""The two hash tables of the guard, with open addressing: pair of objects -> node, pair of nodes -> kept edge.

    pair table      slots hold node numbers; the pair's key stands with the node
    edge table      slots hold key << 1 | direction

Ids below 2^31 make 62-bit keys. Node 0 is the sentinel of the sequence and never a pair: 0 marks an empty slot.
"""

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.hashing import mix64
from stream_engine.data.slot_tables import find_slot

ID_BITS = 31
ID_MASK = (1 << ID_BITS) - 1


@njit(cache=True, nogil=True, inline="always")
def pair_key(i, j):
    """lo << 31 | hi of the unordered pair {i, j}, as int64: of objects, or of nodes."""
    a, b = np.int64(i), np.int64(j)
    return (a << ID_BITS | b) if a < b else (b << ID_BITS | a)


@njit(cache=True, nogil=True, inline="always")
def _has_key(node, sought):
    keys, key = sought
    return keys[node] == key


@njit(cache=True, nogil=True, inline="always")
def find_pair(table, keys, key):
    """The slot in `table` that holds the node with this key, or the empty slot where it belongs."""
    return find_slot(table, mix64(np.uint64(key)), _has_key, (keys, key))


@njit(cache=True, nogil=True, inline="always")
def edge_entry(u, v):
    """What the edge table holds of u -> v."""
    return pair_key(u, v) << 1 | (u > v)


@njit(cache=True, nogil=True, inline="always")
def _is_between(entry, key):
    return entry >> 1 == key


@njit(cache=True, nogil=True, inline="always")
def find_edge(edges, key):
    """The slot in `edges` that holds the edge, of either direction, between the nodes with this pair key, or the empty
    slot (0) where it belongs."""
    return find_slot(edges, mix64(np.uint64(key)), _is_between, key)


@njit(cache=True, nogil=True)
def rehash_pairs(table, keys, n_nodes):
    """Fill an empty `table` with nodes 1 .. n_nodes."""
    for x in range(1, n_nodes + 1):
        table[find_pair(table, keys, keys[x])] = x


@njit(cache=True, nogil=True)
def rehash_edges(table, edges):
    """Fill an empty `table` with what a smaller one holds."""
    for entry in edges:
        if entry != 0:
            table[find_edge(table, entry >> 1)] = entry


def key_columns(keys: np.ndarray) -> np.ndarray:
    """(m, 2) int32 object ids lo, hi of (m,) pair keys.

    >>> key_columns(np.array([3 << 31 | 8])).tolist()
    [[3, 8]]
    """
    out = np.empty((len(keys), 2), np.int32)
    np.right_shift(keys, ID_BITS, out=out[:, 0], casting="unsafe")  # no array of int64 in between
    np.bitwise_and(keys, ID_MASK, out=out[:, 1], casting="unsafe")
    return out


def pair_keys(pairs: np.ndarray) -> np.ndarray:
    """(m,) int64 keys of (m, 2) pairs, lo before hi: the inverse of `key_columns`.

    >>> key_columns(pair_keys(np.array([[3, 8]], np.int32))).tolist()
    [[3, 8]]
    """
    pairs = np.asarray(pairs, np.int64)
    return pairs[:, 0] << ID_BITS | pairs[:, 1]
