"""Supports of a finished acyclic graph: some nodes, and exactly which of them reach every node and are reached by it.

Nodes are topological positions 0 .. n - 1. Bit i of before[x]: support i reaches x or is x; of after[x]: x reaches
support i or is it. Hence, without a search:
    after[x] & before[v] != 0          x reaches v through a support (or one of them is that support)
    x reaches v  =>  before[x] is a subset of before[v], and after[v] of after[x]
Invariant: the masks are exact for the edges that they were made of. Where every node is a support they say everything.
Hanauer, Henzinger & Schulz 2020, "Faster fully dynamic transitive closure in practice" (supportive vertices), and the
subset test as in reachability labels (Yildirim, Chaoji & Zaki 2010, GRAIL). O(edges x words) time, 16 n words bytes.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit

ROOM = 192 << 20  # bytes for the masks of one graph
FEWEST_WORDS, MOST_WORDS = 2, 16


class Supports(NamedTuple):
    """See the module; `number[x]` is x's number among the supports, -1 where it is none."""

    before: np.ndarray  # (n, words) uint64
    after: np.ndarray  # (n, words) uint64
    number: np.ndarray  # (n,) int32


def words_for(n: int) -> int:
    """How many words of supports the nodes of such a graph get."""
    return max(1, min(-(-n // 64), max(FEWEST_WORDS, min(MOST_WORDS, ROOM // (16 * max(n, 1))))))


def supports_of(start: np.ndarray, targets: np.ndarray, words: int | None = None) -> Supports:
    """Supports of the graph in which x's successors are targets[start[x]:start[x + 1]], all after x: from each of 64
    `words` stretches of the nodes that have neighbours on both sides, the one with the most in-degree x out-degree.

    >>> supports_of(np.array([0, 1, 2, 2]), np.array([1, 2], np.int32)).after.tolist()
    [[1], [1], [0]]
    """
    n = len(start) - 1
    words = words_for(n) if words is None else words
    crossing = np.diff(start) * np.bincount(targets, minlength=n)
    inner = np.flatnonzero(crossing)
    stretches = [each for each in np.array_split(inner, 64 * words) if len(each)]
    chosen = np.array([each[np.argmax(crossing[each])] for each in stretches], np.int64)
    number = np.full(n, -1, np.int32)
    number[chosen] = np.arange(len(chosen))
    masks = np.zeros((n, words), np.uint64)
    masks[chosen, number[chosen] >> 6] = np.uint64(1) << (number[chosen] & 63).astype(np.uint64)
    before, after = masks, masks.copy()
    _pass_forward(start, targets, before)
    _pass_backward(start, targets, after)
    return Supports(before, after, number)


@njit(cache=True, nogil=True)
def _pass_forward(start, targets, before):
    """What reaches x reaches its successors."""
    n, words = before.shape
    for x in range(n):
        for k in range(start[x], start[x + 1]):
            y = targets[k]
            for w in range(words):
                before[y, w] |= before[x, w]


@njit(cache=True, nogil=True)
def _pass_backward(start, targets, after):
    """What a successor of x reaches x reaches."""
    n, words = after.shape
    for x in range(n - 1, -1, -1):
        for k in range(start[x], start[x + 1]):
            y = targets[k]
            for w in range(words):
                after[x, w] |= after[y, w]


@njit(cache=True, nogil=True, inline="always")
def may_reach(before, after, x, v):
    """False only where x does not reach v."""
    for w in range(before.shape[1]):
        if before[x, w] & ~before[v, w] != 0 or after[v, w] & ~after[x, w] != 0:
            return False
    return True


@njit(cache=True, nogil=True, inline="always")
def passes_a_third(before, after, number, x, v):
    """True only where x reaches v through a support that is neither of them."""
    for w in range(before.shape[1]):
        both = after[x, w] & before[v, w]
        if both != 0:
            if number[x] >= 0 and number[x] >> 6 == w:
                both &= ~(np.uint64(1) << np.uint64(number[x] & 63))
            if number[v] >= 0 and number[v] >> 6 == w:
                both &= ~(np.uint64(1) << np.uint64(number[v] & 63))
            if both != 0:
                return True
    return False
