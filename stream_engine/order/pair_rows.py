"""Comparisons as rows near_i, near_j, far_i, far_j: numbered nodes, the canonical form, topological sorting.

Canonical: near_i < near_j, far_i < far_j, rows sorted, no row twice. All O(m + N log N) for m rows over N pairs.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit, read_only
from stream_engine.data.slot_tables import fits, table_size
from stream_engine.order.hash_tables import ID_BITS, ID_MASK, find_pair, key_columns, pair_key

MAX_IDS_PER_PAIR = 4  # ids for each pair, above which pairs are not sorted by counting


class NumberedPairs(NamedTuple):
    """Rows as edges between nodes 0 .. N - 1, which are numbered in increasing order of their pair (lo, hi)."""

    key: np.ndarray  # (N,) int64 pair keys, increasing
    near: np.ndarray  # (m,) int32
    far: np.ndarray  # (m,) int32


class Sorted(NamedTuple):
    """The same edges between topological positions 0 .. N - 1: near[e] < far[e]."""

    key: np.ndarray  # (N,) int64 pair keys, increasing
    order: np.ndarray  # (N,) int32: which key stands at each position
    position: np.ndarray  # (N,) int32: where each key stands
    near: np.ndarray  # (m,) int32
    far: np.ndarray  # (m,) int32


@njit(cache=True, nogil=True)
def first_invalid(rows):
    """The first row that names an object < 0, a pair of one object, or the same pair twice; -1 when all are valid."""
    for r in range(len(rows)):
        i, j, k, l = rows[r]
        if i < 0 or j < 0 or k < 0 or l < 0 or i == j or k == l or pair_key(i, j) == pair_key(k, l):
            return r
    return -1


@njit(cache=True, nogil=True)
def _number(rows, keys, table, edges):
    """Number the pairs of the rows by first appearance from 1 on; returns how many, or -1 when the table is full."""
    n = 0
    for r in range(len(rows)):
        for side in range(2):
            i, j = rows[r, 2 * side], rows[r, 2 * side + 1]
            if r > 0 and i == rows[r - 1, 2 * side] and j == rows[r - 1, 2 * side + 1]:  # sorted rows: runs of near
                edges[r, side] = edges[r - 1, side]
                continue
            key = pair_key(i, j)
            slot = find_pair(table, keys, key)
            if table[slot] == 0:
                if not fits(n + 1, table):
                    return -1
                n += 1
                table[slot] = n
                keys[n] = key
            edges[r, side] = table[slot]
    return n


@njit(cache=True, nogil=True)
def _number_by_table(rows, n, edges):
    """The same through a table of all n * n pairs of objects: (N,) keys, increasing, their ranks in (m, 2) edges."""
    rank = np.zeros(n * n, np.int32)
    for r in range(len(rows)):
        for side in range(2):
            i, j = np.int64(rows[r, 2 * side]), np.int64(rows[r, 2 * side + 1])
            cell = i * n + j if i < j else j * n + i
            rank[cell] = 1
            edges[r, side] = cell
    keys = np.empty(rank.sum(), np.int64)
    n_pairs = 0
    for cell in range(n * n):
        if rank[cell] != 0:
            keys[n_pairs] = pair_key(cell // n, cell % n)
            rank[cell] = n_pairs
            n_pairs += 1
    for r in range(len(rows)):
        edges[r, 0], edges[r, 1] = rank[edges[r, 0]], rank[edges[r, 1]]
    return keys


def numbered(rows: np.ndarray) -> NumberedPairs:
    """Number the pairs of (m, 4) rows; where there are few objects, without a hash table.

    >>> n = numbered(np.array([[2, 1, 0, 1]], np.int32))
    >>> key_columns(n.key).tolist(), n.near.tolist(), n.far.tolist()
    ([[0, 1], [1, 2]], [1], [0])
    """
    rows = read_only(rows, np.int32).reshape(-1, 4)
    edges = np.empty((len(rows), 2), np.int32)
    objects = int(rows.max(initial=-1)) + 1
    if 0 < objects * objects <= len(rows) and rows.min() >= 0:
        keys = _number_by_table(rows, objects, edges)
        return NumberedPairs(keys, edges[:, 0].copy(), edges[:, 1].copy())
    size = table_size(len(rows) // 64)
    while True:
        size *= 4
        keys = np.zeros(size, np.int64)
        n = _number(rows, keys, np.zeros(size, np.int32), edges)
        if n >= 0:
            break
    order = np.argsort(keys[1 : n + 1], kind="stable")
    rank = np.empty(n + 1, np.int32)
    rank[order + 1] = np.arange(n)
    return NumberedPairs(keys[1 : n + 1][order], rank[edges[:, 0]], rank[edges[:, 1]])


@njit(cache=True, nogil=True)
def by_column(values, n, before):
    """A stable counting sort: the permutation `before`, reordered so that values[before] in 0 .. n - 1 increases."""
    start = np.zeros(n + 1, np.int64)
    for x in values:
        start[x + 1] += 1
    for x in range(n):
        start[x + 1] += start[x]
    out = np.empty(len(before), before.dtype)
    for i in before:
        out[start[values[i]]] = i
        start[values[i]] += 1
    return out


def in_canonical_order(edges: NumberedPairs, *beside: np.ndarray) -> tuple[np.ndarray, ...]:
    """`(rows, *beside)`: the canonical rows of numbered edges, and the arrays beside them in the same order. Without
    any beside them, both numbers of an edge are one key: a sort of numbers takes a third of the time."""
    if not beside:
        return (_sorted_rows(edges.key, _edge_keys(edges.near, edges.far)),)
    n, m = len(edges.key), len(edges.near)
    order = by_column(edges.near, n, by_column(edges.far, n, np.arange(m)))
    return _rows(edges.key, _edge_keys(edges.near[order], edges.far[order])), *(array[order] for array in beside)


def _edge_keys(near: np.ndarray, far: np.ndarray) -> np.ndarray:
    """(m,) int64: both numbers of each edge, near << 32 | far."""
    both = near.astype(np.int64)
    both <<= 32
    both |= far
    return both


def _sorted_rows(key: np.ndarray, both: np.ndarray) -> np.ndarray:
    both.sort()
    return _rows(key, both)


@njit(cache=True, nogil=True)
def _rows(key, both):
    """(m, 4) int32 rows of edges, near << 32 | far, between nodes of these pair keys."""
    rows = np.empty((len(both), 4), np.int32)
    for e in range(len(both)):
        near, far = key[both[e] >> 32], key[both[e] & 0xFFFFFFFF]
        rows[e, 0], rows[e, 1] = near >> ID_BITS, near & ID_MASK
        rows[e, 2], rows[e, 3] = far >> ID_BITS, far & ID_MASK
    return rows


def canonical(rows: np.ndarray, *beside: np.ndarray) -> tuple[np.ndarray, ...]:
    """`(rows, *beside)`, the rows in canonical form and sorted, the arrays beside them in the same order.

    >>> rows, b = canonical(np.array([[2, 1, 0, 1], [0, 1, 3, 0]], np.int32), np.array([7, 8]))
    >>> rows.tolist(), b.tolist()
    ([[0, 1, 0, 3], [1, 2, 0, 1]], [8, 7])
    """
    return in_canonical_order(numbered(rows), *beside)


def _by_pair(keys: np.ndarray) -> np.ndarray:
    """The permutation that sorts pair keys. O(N) where ids are about as many as pairs or fewer: a sort by the second
    object, then by the first, half the time of a sort by comparisons."""
    second = (keys & ID_MASK).astype(np.int32)
    n = int(second.max(initial=0)) + 1
    if n > MAX_IDS_PER_PAIR * len(keys):
        return np.argsort(keys, kind="stable")
    order = by_column(second, n, np.arange(len(keys), dtype=np.int32))
    del second
    return by_column((keys >> ID_BITS).astype(np.int32), n, order)


def sorted_edges(keys: np.ndarray, edges: np.ndarray, *beside: np.ndarray) -> tuple[np.ndarray, ...]:
    """`(rows, *beside)`: canonical rows of (m, 2) edges between nodes 0 .. N - 1 that have these pair keys."""
    order = _by_pair(keys)
    rank, keys = np.empty(len(keys), np.int32), keys[order]
    rank[order] = np.arange(len(keys), dtype=np.int32)
    del order  # 40 MB where there are ten million pairs, and `rank` as much
    if not beside:
        both = _edge_keys(rank[edges[:, 0]], rank[edges[:, 1]])
        del rank
        return (_sorted_rows(keys, both),)
    near, far = rank[edges[:, 0]], rank[edges[:, 1]]
    return in_canonical_order(NumberedPairs(keys, near, far), *beside)


def lo_first(rows: np.ndarray) -> np.ndarray:
    """Each pair of (m, 4) or (m, 2) rows with its smaller object first.

    >>> lo_first(np.array([[2, 1, 0, 1]])).tolist()
    [[1, 2, 0, 1]]
    """
    return np.sort(rows.reshape(len(rows), rows.shape[1] // 2, 2), axis=2).reshape(rows.shape)


def near_first(rows: np.ndarray) -> np.ndarray:
    """(m, 4) rows with lo before hi, those turned round whose far pair comes before their near pair.

    >>> near_first(np.array([[1, 2, 0, 1]])).tolist()
    [[0, 1, 1, 2]]
    """
    later = (rows[:, 0] > rows[:, 2]) | ((rows[:, 0] == rows[:, 2]) & (rows[:, 1] > rows[:, 3]))
    return np.where(later[:, None], rows[:, [2, 3, 0, 1]], rows)


@njit(cache=True, nogil=True)
def adjacency(near, far, n):
    """`(start, targets)`: the successors of x are targets[start[x]:start[x + 1]], in the order of the edges."""
    start = np.zeros(n + 1, np.int64)
    for x in near:
        start[x + 1] += 1
    for x in range(n):
        start[x + 1] += start[x]
    filled = start.copy()
    targets = np.empty(len(near), np.int32)
    for e in range(len(near)):
        targets[filled[near[e]]] = far[e]
        filled[near[e]] += 1
    return start, targets


@njit(cache=True, nogil=True)
def sorted_nodes(near, far, n):
    """(k,) int32: nodes in topological order, sources first (Kahn 1962); k < n if there is a cycle."""
    start, targets = adjacency(near, far, n)
    waiting = np.zeros(n, np.int64)
    for y in far:
        waiting[y] += 1
    out = np.empty(n, np.int32)
    tail = 0
    for x in range(n):
        if waiting[x] == 0:
            out[tail] = x
            tail += 1
    head = 0
    while head < tail:
        x = out[head]
        head += 1
        for k in range(start[x], start[x + 1]):
            y = targets[k]
            waiting[y] -= 1
            if waiting[y] == 0:
                out[tail] = y
                tail += 1
    return out[:tail]


def topological_order(kept_rows: np.ndarray) -> np.ndarray:
    """(N, 2) int32: all pairs of the (m, 4) rows in a topological order (Kahn 1962), lo before hi. O(m + N log N).

    Raises `ValueError` when the rows hold a cycle.

    >>> topological_order(np.array([[0, 1, 0, 2], [1, 2, 0, 1]], np.int32)).tolist()
    [[1, 2], [0, 1], [0, 2]]
    """
    pairs = in_topological_order(kept_rows, "topological_order")
    return key_columns(pairs.key[pairs.order])


def in_topological_order(rows: np.ndarray, who: str) -> Sorted:
    """(m, 4) rows as edges between positions. Raises `ValueError`, which says `who`, for a cycle. O(m + N log N)."""
    edges = numbered(rows)
    n = len(edges.key)
    order = sorted_nodes(edges.near, edges.far, n)
    if len(order) < n:
        raise ValueError(f"{who}: the rows hold a cycle through some of {n - len(order)} pairs; give what a guard kept")
    position = np.empty(n, np.int32)
    position[order] = np.arange(n)
    return Sorted(edges.key, order, position, position[edges.near], position[edges.far])


def increasing_successors(near: np.ndarray, far: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """`adjacency`, the successors of each node increasing: edges are counted in by their far end first. O(m + n)."""
    in_start, sources = adjacency(far, near, n)
    sinks = np.repeat(np.arange(n, dtype=np.int32), np.diff(in_start))
    return adjacency(sources, sinks, n)
