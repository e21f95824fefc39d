"""Sifting, the local search of the canonical order: a total order of nodes moved towards net votes.

One node at a time moves to the slot among its neighbours where the most net votes agree (Rudell's sifting for variable
orders); ties go to the slot nearest to the old place. O(degree) per node.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.intrinsics import borrowed
from stream_engine.order.graph import LABEL, even_out, in_order, insert_one, unlink
from stream_engine.order.pair_rows import NumberedPairs

MAX_PASSES = 8
START, DEGREE = 1, 2  # columns of `node` after LABEL: where its block of neighbours begins, and how many there are


class Votes(NamedTuple):
    """The order and the net votes. Node numbers run from 1 in the order that the passes begin with."""

    node: np.ndarray  # (N + 1, 3) int64
    link: np.ndarray  # (N + 1, 2) int32: the order
    neighbour: np.ndarray  # (2 m,) int32: blocks of neighbours
    net: np.ndarray  # (2 m,) int64 beside it: net votes that the node stands before that neighbour
    work: np.ndarray  # (4, D) int64: room to sort the neighbours of one node


def sifted(
    edges: NumberedPairs, net: np.ndarray, order: np.ndarray, passes: int = MAX_PASSES
) -> tuple[np.ndarray, np.ndarray]:
    """`(order, agrees)`: nodes in the order after at most so many passes along `order`, and (m,) whether each edge
    agrees with it. Nodes are sifted in the order that they begin in."""
    n, m = len(order), len(net)
    place = np.empty(n, np.int64)
    place[order] = np.arange(1, n + 1)
    near, far = place[edges.near], place[edges.far]
    degree = np.bincount(near, minlength=n + 1) + np.bincount(far, minlength=n + 1)
    votes = Votes(
        np.zeros((n + 1, 3), np.int64),
        np.zeros((n + 1, 2), np.int32),
        np.empty(2 * m, np.int32),
        np.empty(2 * m, np.int64),
        np.empty((4, 2 * (int(degree.max()) + 2)), np.int64),
    )
    _lay_out(votes, near, far, net, degree)
    _settle(votes, passes)
    label = votes.node[:, LABEL]
    return order[in_order(votes.link, n) - 1], label[near] < label[far]


@njit(cache=True, nogil=True)
def _lay_out(votes, near, far, net, degree):
    """Nodes 1 .. n in the sequence as they are numbered, and the blocks of their neighbours."""
    v = borrowed(votes)
    n, begin = len(degree) - 1, 0
    filled = np.empty(n + 1, np.int64)
    for x in range(n + 1):
        v.link[x, 0], v.link[x, 1] = (x - 1 if x > 0 else n), (x + 1 if x < n else 0)
        v.node[x, START], v.node[x, DEGREE] = begin, degree[x]
        filled[x] = begin
        begin += degree[x]
    for e in range(len(near)):
        x, y = near[e], far[e]
        v.neighbour[filled[x]], v.net[filled[x]] = y, net[e]
        v.neighbour[filled[y]], v.net[filled[y]] = x, -np.int64(net[e])
        filled[x] += 1
        filled[y] += 1


@njit(cache=True, nogil=True)
def _settle(votes, passes):
    """Sift every node in turn, at most so many times or until nothing moves. A node stands best among its neighbours
    until one of them moves: till then it need not be looked at again. A pass that moves nothing ends it; the limit
    cuts it short on dense nets of random votes alone (150 pairs, every two compared: 5 to 11 passes)."""
    v = borrowed(votes)
    n = len(v.node) - 1
    waiting = np.ones(n + 1, np.bool_)
    even_out(v.node, v.link, n)
    for _ in range(passes):
        moved = False
        for x in range(1, n + 1):
            if not waiting[x]:
                continue
            waiting[x] = False
            if _sift(v, np.int64(x)):
                moved = True
                start = v.node[x, START]
                for k in range(start, start + v.node[x, DEGREE]):
                    waiting[v.neighbour[k]] = True
        if not moved:
            break
        even_out(v.node, v.link, n)  # for speed alone: neighbours are sorted by how far apart their labels are


@njit(cache=True, nogil=True)
def _sorted_neighbours(v, x):
    """work[0, :n] labels of x's n neighbours, increasing; work[1, :n] the nets beside them.

    Bucket sort by the labels' own spread, then insertion: O(degree), as labels are evened out now and then.
    """
    node, neighbour, net, work = v.node, v.neighbour, v.net, v.work
    start, n = node[x, START], node[x, DEGREE]
    low = high = node[neighbour[start], LABEL]
    for i in range(n):
        label = node[neighbour[start + i], LABEL]
        work[2, i], work[3, i] = label, net[start + i]
        low, high = min(low, label), max(high, label)
    scale = (n - 0.5) / (np.float64(high - low) + 1.0)
    half = work.shape[1] // 2  # rows 0 and 1 end with the buckets' starts until they are filled
    for i in range(n + 1):
        work[0, half + i] = 0
    for i in range(n):
        work[0, half + 1 + np.int64((work[2, i] - low) * scale)] += 1
    for i in range(n):
        work[0, half + i + 1] += work[0, half + i]
    for i in range(n):
        bucket = half + np.int64((work[2, i] - low) * scale)
        place = work[0, bucket]
        work[0, bucket] += 1
        work[0, place] = work[2, i]
        work[1, place] = work[3, i]
    for i in range(1, n):
        label, votes = work[0, i], work[1, i]
        j = i
        while j > 0 and work[0, j - 1] > label:
            work[0, j] = work[0, j - 1]
            work[1, j] = work[1, j - 1]
            j -= 1
        work[0, j] = label
        work[1, j] = votes


@njit(cache=True, nogil=True)
def _sift(v, x):
    """Move x to its best slot; returns whether it moved.

    With x after the first k neighbours, what agrees is a constant minus the sum of their nets: the best k has the
    smallest prefix sum. Among equally good ones the nearest to the old place is taken, then the smaller.
    """
    node, link, neighbour, work = v.node, v.link, v.neighbour, v.work
    n = node[x, DEGREE]
    _sorted_neighbours(v, x)
    place = 0
    while place < n and work[0, place] < node[x, LABEL]:
        place += 1
    best, here, least, prefix = 0, np.int64(0), np.int64(0), np.int64(0)
    for k in range(n + 1):
        if prefix < least or (prefix == least and abs(k - place) < abs(best - place)):
            best, least = k, prefix
        if k == place:
            here = prefix
        if k < n:
            prefix += work[1, k]
    if least == here:
        return False
    beside = work[0, best - 1] if best > place else work[0, best]
    start = node[x, START]
    y = np.int64(0)
    for k in range(start, start + n):
        if node[neighbour[k], LABEL] == beside:
            y = np.int64(neighbour[k])
    unlink(link, x)
    insert_one(node, link, y if best > place else np.int64(link[y, 0]), x)
    return True
