"""Every partial order over distances has an embedding: Algorithm 5 and the constant shift (McFee & Lanckriet 2011, App.
A).

Delta(k, l) = 1 for a source of the order, else 1 + the largest Delta before it; pairs that no comparison names get 1. A
= -1/2 H Delta H, shifted by its smallest eigenvalue, is a Gram matrix whose squared distances are Delta + 2 |lambda_n|
off the diagonal: every comparison holds with a margin of 1. Delta is used as it stands (Roth et al. 2003 call it a
dissimilarity of *squared* distances); squaring it first would break the argument. O(m + n^3).
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from stream_engine.data.compiled import njit


class Cyclic(ValueError):
    """The comparisons close a cycle, so no embedding satisfies them all."""


class Shifted(NamedTuple):
    gram: np.ndarray  # (n, n) PSD, rank <= n - 1
    delta: np.ndarray  # (n, n) int64 dissimilarities
    shift: float  # -lambda_n(A) >= 0; squared distances are delta + 2 shift


def naive_order(rows: np.ndarray, n: int) -> np.ndarray:
    """Delta of Algorithm 5 for (m, 4) acyclic comparisons: (n, n) int64, symmetric, zero diagonal. O(m log m + n^2).

    Raises `Cyclic`.

    >>> naive_order(np.array([[0, 1, 0, 2], [0, 2, 1, 2]]), 3).tolist()
    [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    """
    delta = np.ones((n, n), np.int64) - np.eye(n, dtype=np.int64)
    if len(rows) == 0:
        return delta
    i, j, k, l = np.asarray(rows, np.int64).T
    near, far = np.minimum(i, j) * n + np.maximum(i, j), np.minimum(k, l) * n + np.maximum(k, l)
    pairs, at = np.unique(np.concatenate([near, far]), return_inverse=True)
    at = at.reshape(-1)
    order = np.argsort(at[: len(near)], kind="stable")
    start = np.searchsorted(at[: len(near)][order], np.arange(len(pairs) + 1))
    depth, done = _depths(start, at[len(near) :][order], len(pairs))
    if done < len(pairs):
        raise Cyclic(
            f"naive_order: {len(pairs) - done} of {len(pairs)} pairs lie on or behind a cycle; expected an acyclic "
            "order, next: take the canonical order or the guard's"
        )
    delta[pairs // n, pairs % n] = delta[pairs % n, pairs // n] = depth
    return delta


@njit(cache=True)
def _depths(start, target, n_nodes):
    """`(longest path to each node counted in nodes, nodes that a topological order reaches)`; Kahn's algorithm."""
    waiting = np.zeros(n_nodes, np.int64)
    for e in range(len(target)):
        waiting[target[e]] += 1
    depth = np.ones(n_nodes, np.int64)
    queue = np.empty(n_nodes, np.int64)
    tail = 0
    for v in range(n_nodes):
        if waiting[v] == 0:
            queue[tail] = v
            tail += 1
    head = 0
    while head < tail:
        v = queue[head]
        head += 1
        for e in range(start[v], start[v + 1]):
            w = target[e]
            depth[w] = max(depth[w], depth[v] + 1)
            waiting[w] -= 1
            if waiting[w] == 0:
                queue[tail] = w
                tail += 1
    return depth, tail


def embed_order(rows: np.ndarray, n: int) -> Shifted:
    """A Gram matrix that satisfies every one of (m, 4) acyclic comparisons over n objects. Raises `Cyclic`. O(m + n^3).

    >>> from stream_engine.kernel_learning.distance_operator import excess
    >>> rows = np.array([[0, 1, 0, 2], [0, 2, 1, 2]])
    >>> excess(embed_order(rows, 3).gram, rows).round(6).tolist()
    [-1.0, -1.0]
    """
    delta = naive_order(rows, n)
    if n < 2:
        return Shifted(np.zeros((n, n)), delta, 0.0)
    h = np.eye(n) - 1.0 / n
    a = -0.5 * (h @ delta @ h)
    least = eigh((a + a.T) / 2, eigvals_only=True, subset_by_index=(0, 0), driver="evr")[0]
    shift = max(0.0, -float(least))
    # H instead of I: same distances, and centred (rank <= n - 1)
    return Shifted((a + a.T) / 2 + shift * h, delta, shift)
