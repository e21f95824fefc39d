"""Transitive reduction: the unique smallest set of comparisons with the same consequences.

An edge x -> v is redundant iff a path of two or more edges leads from x to v (Aho, Garey & Ullman 1972). Nodes are
numbered in topological order and columns v taken a few thousand at a time, in that order. Every ancestor x of such a
chunk, last first, gets a bit row R[x] = the chunk's nodes that x reaches: its successors y, in topological order,
either stand in the row already, then x -> y is redundant and R[y] adds nothing, or give their bit and R[y].
So only edges that survive cost a row: O(r N / 64) word operations at worst for r survivors, and the rows of one chunk,
at most `ROOM` bytes, of memory beside a few numbers an edge.
"""

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.guard.pair_rows import Numbered, adjacency, in_canonical_order, numbered, sorted_nodes

MIN_CHUNK, MAX_CHUNK = 256, 4096  # multiples of 64
ROOM = 192 << 20  # bytes for the rows of one chunk


@njit(cache=True, nogil=True)
def _ancestors(first, end, start, length, sources, row_of, ancestors):
    """Number the nodes first .. end - 1, and before them those ancestors that can lie on a path that matters here.

    A path that makes x -> v redundant never goes before x, so what lies before every x of this chunk is left out.
    Fills row_of (-1: none) and ancestors; returns how many there are, and the lowest of them.
    """
    lowest, n = first, 0
    for x in range(first, end):
        row_of[x] = n
        ancestors[n] = x
        n += 1
        for k in range(start[x], start[x] + length[x]):
            lowest = min(lowest, sources[k])
    head = 0
    while head < n:
        x = ancestors[head]
        head += 1
        for k in range(start[x], start[x] + length[x]):
            y = sources[k]
            if y >= lowest and row_of[y] < 0:
                row_of[y] = n
                ancestors[n] = y
                n += 1
    return n, lowest


@njit(cache=True, nogil=True)
def _survivors(in_start, in_length, sources, out_start, targets, done, here, bits, row_of, ancestors, reaches_some):
    """Leave in targets[out_start[x]:done[x]] only the successors of x that are needed.

    sources[in_start[v]:][:in_length[v]] are the predecessors of v, targets[out_start[x]:out_start[x + 1]] the
    successors of x, increasing; `done` and `here` start as out_start: those from here[x] on are not looked at yet.
    Room, one entry a node: rows of `bits`, row_of (-1), ancestors, and `reaches_some`: any bit set in its row?
    """
    n, chunk = len(in_length), 64 * bits.shape[1]
    for first in range(0, n, chunk):
        end = min(first + chunk, n)
        n_ancestors, lowest = _ancestors(first, end, in_start, in_length, sources, row_of, ancestors)
        for x in range(first, end):
            in_length[x] = 0  # the survivors come back below
        words = (end - first + 63) // 64
        for x in range(end - 1, lowest - 1, -1):
            r = row_of[x]
            if r < 0:
                continue
            for w in range(words):
                bits[r, w] = 0
            reaches_some[x] = False
            for k in range(out_start[x], done[x]):
                y = targets[k]
                if row_of[y] >= 0 and reaches_some[y]:
                    reaches_some[x] = True
                    for w in range(words):
                        bits[r, w] |= bits[row_of[y], w]
            while here[x] < out_start[x + 1] and targets[here[x]] < end:
                y = targets[here[x]]
                here[x] += 1
                bit = y - first
                if bits[r, bit >> 6] >> np.uint64(bit & 63) & np.uint64(1) != 0:
                    continue
                if reaches_some[y]:
                    for w in range(bit >> 6, words):
                        bits[r, w] |= bits[row_of[y], w]
                bits[r, bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
                reaches_some[x] = True
                targets[done[x]] = y
                done[x] += 1
                sources[in_start[y] + in_length[y]] = x
                in_length[y] += 1
        for i in range(n_ancestors):
            row_of[ancestors[i]] = -1


def _reduced(near: np.ndarray, far: np.ndarray, n: int, chunk: int) -> tuple[np.ndarray, np.ndarray]:
    """`(near, far)` of the needed ones of the edges near[e] < far[e] between topological positions 0 .. n - 1."""
    in_start, sources = adjacency(far, near, n)
    in_length = np.diff(in_start)
    out_start, targets = adjacency(sources, np.repeat(np.arange(n, dtype=np.int32), in_length), n)
    done = out_start[:-1].copy()
    bits = np.empty((n, chunk // 64), np.uint64)
    _survivors(
        in_start,
        in_length,
        sources,
        out_start,
        targets,
        done,
        done.copy(),
        bits,
        np.full(n, -1, np.int32),
        np.empty(n, np.int32),
        np.empty(n, np.bool_),
    )
    near = np.repeat(np.arange(n, dtype=np.int32), np.diff(out_start))
    needed = np.arange(len(near)) < done[near]
    return near[needed], targets[needed]


def transitive_reduction(kept: np.ndarray) -> np.ndarray:
    """(r, 4) int32: those of the (m, 4) rows that do not follow from the others, canonical and sorted.

    Raises `ValueError` when the rows hold a cycle. Source: Aho, Garey & Ullman 1972; McFee & Lanckriet 2011, sec. 2.

    >>> transitive_reduction(np.array([[0, 1, 0, 2], [0, 2, 1, 2], [0, 1, 1, 2]], np.int32)).tolist()
    [[0, 1, 0, 2], [0, 2, 1, 2]]
    """
    edges = numbered(kept)
    n = len(edges.key)
    order = sorted_nodes(edges.near, edges.far, n)
    if len(order) < n:
        raise ValueError(
            f"transitive_reduction: the rows hold a cycle through some of {n - len(order)} pairs; "
            "reduce what a guard has kept"
        )
    position = np.empty(n, np.int32)
    position[order] = np.arange(n)
    chunk = int(np.clip(ROOM * 8 // max(n, 1), MIN_CHUNK, MAX_CHUNK)) // 64 * 64
    near, far = _reduced(position[edges.near], position[edges.far], n, chunk)
    return in_canonical_order(Numbered(edges.key, order[near], order[far]))[0]
