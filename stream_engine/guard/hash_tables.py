"""Two open-addressing hashes with linear probing: pair of objects -> node, and pair of nodes -> slot of a comparison.

Invariant: every node's pair is found from its key, every remembered edge from its two nodes; a table is at most 5/8
full. Object ids up to 2^31 - 1 make 62-bit pair keys, node numbers below 2^31 make 62-bit edge keys: nothing can
overflow. Node 0 is never a pair (it is the sentinel of the sequence), so 0 marks an empty slot in both tables.
O(1) expected a look-up; 4 bytes a slot and 8 a node for pairs, 8 bytes a slot for edges.
"""

import numpy as np
from numba import njit

ID_BITS = 31
_LOW = (1 << ID_BITS) - 1
_MIX_1 = np.uint64(0xFF51AFD7ED558CCD)
_MIX_2 = np.uint64(0xC4CEB9FE1A85EC53)
_S33 = np.uint64(33)


@njit(cache=True, nogil=True, inline="always")
def pair_key(i, j):
    """lo << 31 | hi of the unordered pair {i, j}, as int64."""
    a, b = np.int64(i), np.int64(j)
    return (a << ID_BITS | b) if a < b else (b << ID_BITS | a)


@njit(cache=True, nogil=True, inline="always")
def spread(key, mask):
    """A slot in 0..mask for a non-negative int64 key (the finaliser of MurmurHash3)."""
    h = np.uint64(key)
    h ^= h >> _S33
    h *= _MIX_1
    h ^= h >> _S33
    h *= _MIX_2
    h ^= h >> _S33
    return np.int64(h & np.uint64(mask))


@njit(cache=True, nogil=True, inline="always")
def find_pair(table, keys, key):
    """The slot in `table` that holds the node with this key, or the empty slot where it belongs."""
    mask = len(table) - 1
    at = spread(key, mask)
    while table[at] != 0 and keys[table[at]] != key:
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True, inline="always")
def find_edge(edges, key):
    """The slot in `edges` that holds this edge key, or the empty slot (0) where it belongs."""
    mask = len(edges) - 1
    at = spread(key, mask)
    while edges[at] != 0 and edges[at] != key:
        at = (at + 1) & mask
    return at


@njit(cache=True, nogil=True)
def rehash_pairs(table, keys, n_nodes):
    """Fill an empty `table` with nodes 1 .. n_nodes."""
    for x in range(1, n_nodes + 1):
        table[find_pair(table, keys, keys[x])] = x


def table_size(items: int) -> int:
    """The power of two that holds `items` at most 5/8 full (and is at least 16).

    >>> table_size(10), table_size(11), table_size(1000)
    (16, 32, 2048)
    """
    size = 16
    while 5 * size < 8 * items:
        size *= 2
    return size


def key_columns(keys: np.ndarray) -> np.ndarray:
    """(m, 2) int32 object ids lo, hi of (m,) pair keys.

    >>> key_columns(np.array([3 << 31 | 8])).tolist()
    [[3, 8]]
    """
    return np.stack([keys >> ID_BITS, keys & _LOW], axis=1).astype(np.int32)


def pair_keys(pairs: np.ndarray) -> np.ndarray:
    """(m,) int64 keys of (m, 2) pairs, lo before hi: the inverse of `key_columns`.

    >>> key_columns(pair_keys(np.array([[3, 8]], np.int32))).tolist()
    [[3, 8]]
    """
    pairs = np.asarray(pairs, np.int64)
    return pairs[:, 0] << ID_BITS | pairs[:, 1]
