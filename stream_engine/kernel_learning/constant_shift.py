"""Every partial order over distances has an embedding: Algorithm 5 and the constant shift (McFee & Lanckriet 2011, App.
A)."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from stream_engine.order.hash_tables import key_columns
from stream_engine.order.pair_rows import in_topological_order


class OrderEmbedding(NamedTuple):
    """Points that satisfy every comparison of an order."""

    gram: np.ndarray  # (n, n) PSD, centred: rank at most n - 1
    delta: np.ndarray  # (n, n) int64: Algorithm 5's dissimilarities
    shift: float  # -lambda_n(A) >= 0: squared distances are delta + 2 shift


def naive_order(rows: np.ndarray, n: int) -> np.ndarray:
    """Delta of Algorithm 5 for (m, 4) acyclic comparisons: (n, n) int64, symmetric, zero diagonal.

    Delta(k, l) is 1 for a pair that is the farther one in no comparison, else 1 more than the largest Delta of the
    pairs that are nearer than it. O(m log m + n^2). Raises `ValueError` for a cycle.

    >>> naive_order(np.array([[0, 1, 0, 2], [0, 2, 1, 2]], np.int32), 3).tolist()
    [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
    """
    delta = np.ones((n, n), np.int64) - np.eye(n, dtype=np.int64)
    if len(rows) == 0:
        return delta
    edges = in_topological_order(rows, "naive_order")
    depth = [1] * len(edges.key)
    by_near = np.argsort(edges.near, kind="stable")  # a pair's depth is final before a farther pair reads it
    for near, far in zip(edges.near[by_near].tolist(), edges.far[by_near].tolist()):
        depth[far] = max(depth[far], depth[near] + 1)
    lo, hi = key_columns(edges.key[edges.order]).T
    delta[lo, hi] = delta[hi, lo] = depth
    return delta


def embed_order(rows: np.ndarray, n: int) -> OrderEmbedding:
    """An embedding that satisfies every one of (m, 4) acyclic comparisons over n objects. O(m + n^3). Raises
    `ValueError` for a cycle.

    A = -1/2 H Delta H, with its smallest eigenvalue subtracted from the diagonal, is a Gram matrix whose squared
    distances are Delta + 2 |lambda_n|: every comparison holds, by at least 1. Delta takes the place of squared
    distances (Roth et al. 2003); squared once more it would break the argument.

    >>> from stream_engine.kernel_learning.gram_comparisons import excess
    >>> rows = np.array([[0, 1, 0, 2], [0, 2, 1, 2]], np.int32)
    >>> excess(embed_order(rows, 3).gram, rows).round(6).tolist()
    [-1.0, -1.0]
    """
    delta = naive_order(rows, n)
    if n < 2:
        return OrderEmbedding(np.zeros((n, n)), delta, 0.0)
    H = np.eye(n) - 1.0 / n
    A = -0.5 * (H @ delta @ H)
    A = (A + A.T) / 2
    smallest = float(eigh(A, eigvals_only=True, subset_by_index=(0, 0), driver="evr")[0])
    shift = max(0.0, -smallest)
    return OrderEmbedding(A + shift * H, delta, shift)  # H for I: the same distances, and centred
