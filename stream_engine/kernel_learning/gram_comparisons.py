"""Triplet counts as rows of comparisons, and the linear map between Gram matrices and comparisons with its adjoint."""

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.data.triplet_columns import Columns, pair_of_entry


def weighted_triplets(columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """`((m, 3) int32 anchor, near, far; (m,) float64 how often)`: every direction that was answered. O(K).

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> t, w = weighted_triplets(columns_from_triplets(np.array([[0, 1, 2], [0, 2, 1], [0, 1, 2]]), 3))
    >>> t.tolist(), w.tolist()
    ([[0, 1, 2], [0, 2, 1]], [2.0, 1.0])
    """
    pair = pair_of_entry(columns)
    lo, hi = columns.lo[pair], columns.hi[pair]
    triplets = np.concatenate([np.stack([columns.anchor, lo, hi], axis=1), np.stack([columns.anchor, hi, lo], axis=1)])
    weight = np.concatenate([columns.n_lo, columns.n_hi]).astype(np.float64)
    return triplets[weight > 0].astype(np.int32), weight[weight > 0]


# Comparison t = (i, j, k, l) claims d(i, j) < d(k, l). With B_t = E_ij - E_kl, E_ij = (e_i - e_j)(e_i - e_j)', its
# excess is x_t = <G, B_t> = d(i, j) - d(k, l); it is satisfied when x_t < 0. McFee & Lanckriet 2011, App. B.
@njit(cache=True)
def excess(gram: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(m,) float64: x_t = d(i, j) - d(k, l) with d(i, j) = G_ii + G_jj - 2 G_ij, from an (n, n) Gram matrix. O(m).

    >>> excess(np.diag([0.0, 1.0, 4.0]), np.array([[0, 1, 0, 2]])).tolist()
    [-3.0]
    """
    out = np.empty(len(rows))
    for t in range(len(rows)):
        i, j, k, l = rows[t, 0], rows[t, 1], rows[t, 2], rows[t, 3]
        near = gram[i, i] + gram[j, j] - 2 * gram[i, j]
        far = gram[k, k] + gram[l, l] - 2 * gram[k, l]
        out[t] = near - far
    return out


@njit(cache=True)
def adjoint(y: np.ndarray, rows: np.ndarray, n: int) -> np.ndarray:
    """(n, n) symmetric sum_t y_t B_t, so that <G, adjoint(y)> = <excess(G), y>. O(m + n^2).

    >>> adjoint(np.array([1.0]), np.array([[0, 1, 0, 2]]), 3).tolist()
    [[0.0, -1.0, 1.0], [-1.0, 1.0, 0.0], [1.0, 0.0, -1.0]]
    """
    out = np.zeros((n, n))
    for t in range(len(rows)):
        i, j, k, l = rows[t, 0], rows[t, 1], rows[t, 2], rows[t, 3]
        v = y[t]
        if v != 0.0:
            out[i, i] += v
            out[j, j] += v
            out[k, k] -= v
            out[l, l] -= v
            out[i, j] -= v
            out[k, l] += v
    for i in range(n):  # off-diagonal entries were counted on one side only
        for j in range(i):
            entry = out[i, j] + out[j, i]
            out[i, j] = entry
            out[j, i] = entry
    return out


def triplet_rows(triplets: np.ndarray) -> np.ndarray:
    """(m, 4) int32 rows anchor, near, anchor, far of (m, 3) triplets.

    >>> triplet_rows(np.array([[0, 1, 2]])).tolist()
    [[0, 1, 0, 2]]
    """
    return np.ascontiguousarray(np.asarray(triplets, np.int32).reshape(-1, 3)[:, [0, 1, 0, 2]])


def satisfied(gram: np.ndarray, rows: np.ndarray, weight: np.ndarray | None = None) -> float | None:
    """The (weighted) fraction of comparisons with d(i, j) < d(k, l), GAUC of McFee & Lanckriet 2011, App. C; None
    without comparisons. Ties count as not satisfied.

    >>> gram, rows = np.diag([0.0, 1.0, 4.0]), np.array([[0, 1, 0, 2], [0, 2, 0, 1]])
    >>> satisfied(gram, rows), satisfied(gram, rows, np.array([3.0, 1.0]))
    (0.5, 0.75)
    """
    if len(rows) == 0:
        return None
    return share_satisfied(gram, rows, np.ones(len(rows)) if weight is None else np.asarray(weight, float))


def share_satisfied(gram: np.ndarray, rows: np.ndarray, weight: np.ndarray) -> float:
    """`satisfied` of at least one comparison, with weights (m,)."""
    return float(weight[excess(np.ascontiguousarray(gram, dtype=float), rows) < 0].sum() / weight.sum())
