"""Comparisons as numbers of pairs, and the maps between points, distances and comparisons that need no (n, n) array."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from stream_engine.data.compiled import njit


class PairLists(NamedTuple):
    """Pairs i < j in lexicographic order; a comparison t claims that pair near[t] is closer than pair far[t].

    Its excess is d[near] - d[far], and B*(y) = sum_t y_t B_t = sum_p s_p E_ij with s = `shares` of y: a graph Laplacian
    with signed weights. Points Z (n, r) stand for the Gram matrix Z Z'. For P pairs and m comparisons: O(P r), O(m).
    """

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
    n, objects = lists.n, np.arange(lists.n, dtype=np.int32)
    diagonal = np.bincount(lists.i, s, n) + np.bincount(lists.j, s, n)
    row, column = np.concatenate([lists.i, lists.j, objects]), np.concatenate([lists.j, lists.i, objects])
    return csr_array((np.concatenate([-s, -s, diagonal]), (row, column)), shape=(n, n))


@njit(cache=True, nogil=True, fastmath=True)
def _distances(points, i, j, out):
    for p in range(len(i)):
        a, b, total = points[i[p]], points[j[p]], 0.0
        for q in range(points.shape[1]):
            difference = a[q] - b[q]
            total += difference * difference
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
