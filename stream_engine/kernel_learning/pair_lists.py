"""Comparisons as numbers of pairs, and the maps between points, distances and comparisons.

With the distinct pairs p = {i, j} listed once, a comparison is two of their numbers: its excess is d[near] - d[far],
and B*(y) = sum_t y_t B_t = sum_p s_p E_ij with s = `shares` of y: a graph Laplacian with signed weights, which is built
explicitly only to compute its smallest eigenvalue. Points Z represent the Gram matrix Z Z'. For P pairs, m comparisons
and Z (n, r): O(P r) and O(m), never n^2.

Triplet counts of a snapshot as what kernel learning takes: rows with multiplicities.

The linear map between Gram matrices and comparisons, and its adjoint.

Comparison t = (i, j, k, l) claims d(i, j) < d(k, l). With B_t = E_ij - E_kl, E_ij = (e_i - e_j)(e_i - e_j)', its
*excess* is x_t = <G, B_t> = d(i, j) - d(k, l); it is satisfied when x_t < 0. McFee & Lanckriet 2011, App. B. O(m) and
O(m + n^2).
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from stream_engine.data.compiled import njit
from stream_engine.data.triplet_columns import Columns, pair_of_entry


class PairLists(NamedTuple):
    """Pairs i < j in lexicographic order; `near` and `far` (m,) are numbers of pairs."""

    n: int
    i: np.ndarray  # (P,) int32
    j: np.ndarray  # (P,) int32
    near: np.ndarray  # (m,) int32
    far: np.ndarray  # (m,) int32


def of_rows(rows: np.ndarray, n: int) -> PairLists:
    """The pairs of (m, 4) comparisons near_i, near_j, far_i, far_j over n objects. O(m log m).

    >>> lists = of_rows(np.array([[0, 2, 0, 1], [2, 0, 2, 1]]), 3)
    >>> lists.i.tolist(), lists.j.tolist(), lists.near.tolist(), lists.far.tolist()
    ([0, 0, 1], [1, 2, 2], [1, 1], [0, 2])
    """
    ends = np.sort(np.asarray(rows, np.int64).reshape(-1, 2), axis=1)
    code, number = np.unique(ends[:, 0] * n + ends[:, 1], return_inverse=True)
    number = number.reshape(-1, 2).astype(np.int32)
    i, j = (code // n).astype(np.int32), (code % n).astype(np.int32)
    return PairLists(n, i, j, np.ascontiguousarray(number[:, 0]), np.ascontiguousarray(number[:, 1]))


def excess_of_points(lists: PairLists, points: np.ndarray) -> np.ndarray:
    """(m,): x_t = |Z_i - Z_j|^2 - |Z_k - Z_l|^2 of points Z (n, r). O(P r + m).

    >>> excess_of_points(of_rows(np.array([[0, 1, 0, 2]]), 3), np.array([[0.0], [1.0], [2.0]])).tolist()
    [-3.0]
    """
    d = np.empty(len(lists.i))
    _distances(np.ascontiguousarray(points), lists.i, lists.j, d)
    return d[lists.near] - d[lists.far]


def shares(lists: PairLists, y: np.ndarray) -> np.ndarray:
    """(P,): s_p, the sum of y over comparisons whose near pair is p, less that over those whose far pair it is. O(m).

    >>> shares(of_rows(np.array([[0, 1, 0, 2]]), 3), np.array([2.0])).tolist()
    [2.0, -2.0]
    """
    s = np.zeros(len(lists.i))
    _share(y, lists.near, lists.far, s)
    return s


def pull(lists: PairLists, s: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(n, r): S Z for S = sum_p s_p E_ij: half the gradient of s'd in Z. O(P r).

    >>> pull(of_rows(np.array([[0, 1, 0, 2]]), 3), np.array([1.0, 0.0]), np.array([[0.0], [1.0], [2.0]])).tolist()
    [[-1.0], [1.0], [0.0]]
    """
    out = np.zeros(points.shape)
    _pull(np.ascontiguousarray(points), s, lists.i, lists.j, out)
    return out


def laplacian(lists: PairLists, s: np.ndarray) -> csr_array:
    """(n, n) sparse symmetric S = sum_p s_p E_ij. O(P log P).

    >>> laplacian(of_rows(np.array([[0, 1, 0, 2]]), 3), np.array([1.0, -1.0])).toarray().tolist()
    [[0.0, -1.0, 1.0], [-1.0, 1.0, 0.0], [1.0, 0.0, -1.0]]
    """
    n, every = lists.n, np.arange(lists.n, dtype=np.int32)
    own = np.bincount(lists.i, s, n) + np.bincount(lists.j, s, n)
    row, column = np.concatenate([lists.i, lists.j, every]), np.concatenate([lists.j, lists.i, every])
    return csr_array((np.concatenate([-s, -s, own]), (row, column)), shape=(n, n))


@njit(cache=True, nogil=True, fastmath=True)
def _distances(points, i, j, out):
    for p in range(len(i)):
        one, other, total = points[i[p]], points[j[p]], 0.0
        for q in range(points.shape[1]):
            e = one[q] - other[q]
            total += e * e
        out[p] = total


@njit(cache=True, nogil=True)
def _share(y, near, far, s):
    for t in range(len(y)):
        s[near[t]] += y[t]
        s[far[t]] -= y[t]


@njit(cache=True, nogil=True, fastmath=True)
def _pull(points, s, i, j, out):
    for p in range(len(i)):
        a, b, v = i[p], j[p], s[p]
        if v != 0.0:
            for q in range(points.shape[1]):
                e = v * (points[a, q] - points[b, q])
                out[a, q] += e
                out[b, q] -= e


def weighted_triplets(columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """`((m, 3) int32 anchor, near, far; (m,) float64 how often)`: every direction that was seen. O(K).

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
            both = out[i, j] + out[j, i]
            out[i, j] = both
            out[j, i] = both
    return out


def triplet_rows(triplets: np.ndarray) -> np.ndarray:
    """(m, 4) int32 rows anchor, near, anchor, far of (m, 3) triplets.

    >>> triplet_rows(np.array([[0, 1, 2]])).tolist()
    [[0, 1, 0, 2]]
    """
    return np.ascontiguousarray(np.asarray(triplets, np.int32).reshape(-1, 3)[:, [0, 1, 0, 2]])


def satisfied(gram: np.ndarray, rows: np.ndarray, weight: np.ndarray | None = None) -> float | None:
    """The (weighted) fraction of comparisons with d(i, j) < d(k, l), GAUC of McFee & Lanckriet 2011, App. C; None for
    none.

    Ties count as not satisfied.

    >>> satisfied(np.diag([0.0, 1.0, 4.0]), np.array([[0, 1, 0, 2], [0, 2, 0, 1]]))
    0.5
    """
    if len(rows) == 0:
        return None
    return share_satisfied(gram, rows, np.ones(len(rows)) if weight is None else np.asarray(weight, float))


def share_satisfied(gram: np.ndarray, rows: np.ndarray, weight: np.ndarray) -> float:
    """`satisfied` for one comparison at least, with weights (m,)."""
    return float(weight[excess(np.ascontiguousarray(gram, dtype=float), rows) < 0].sum() / weight.sum())
