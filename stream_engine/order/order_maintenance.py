"""Order-maintenance list: nodes in one total order with integer labels; x stands before y iff label x < label y.

Invariant: the circular doubly linked list from node 0 visits every node once and its labels strictly increase, all in
1 .. 2^62 - 1. Where a gap is used up, the smallest enclosing aligned range of labels that is sparse enough is spread
out evenly. Bender, Cole, Demaine, Farach-Colton & Zito 2002, "Two simplified algorithms for maintaining order in a
list": O(log n) amortised labels an insertion. `node[x, LABEL]` is the label, `link[x]` = (previous, next).
"""

import numpy as np

from stream_engine.data.compiled import njit

LABEL = 0
END = 1 << 62  # the label that stands after the last node
SPARSE = 1.5  # a range of 2^j labels may hold (2 / SPARSE)^j nodes
APPEND = 1 << 31  # the largest gap that is ever chosen: what is left at the end is not halved away


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
        room *= 2.0 / SPARSE
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
