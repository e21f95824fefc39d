"""Partitions: a spectral start, batch kernel-k-means on the exact objective, and the value of a partition.

The value of a partition into clusters C_1 .. C_k is sum_a B_aa / n_a, with B_aa the sum of W within C_a: it is <W, X>
at the partition's own feasible X, hence a lower bound on the SDP. The invariant of `refined`: the value never falls,
no cluster becomes empty, and at the end no single object gains by moving.
"""

import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.clustering.similarity_matrix import Blocks, blocks
from stream_engine.counts.spectral import top_eigenpairs

STARTS = 4  # of k-means where a refinement follows
MOST = 24  # clusters tried as a start for SDP-lambda


def value(W, labels: np.ndarray) -> float:
    """sum_a B_aa / n_a over the clusters in `labels`. O(nnz).

    >>> value(np.array([[0., 3., 0.], [3., 0., 0.], [0., 0., 0.]]), np.array([0, 0, 1]))
    3.0
    """
    labels = compact(labels)
    of = blocks(W, labels, int(labels.max()) + 1)
    return float((np.diag(of.sums) / of.sizes).sum())


def compact(labels: np.ndarray) -> np.ndarray:
    """Cluster numbers 0 .. k - 1 in order of first appearance, as int32.

    >>> compact(np.array([7, 7, 3, 7, 5])).tolist()
    [0, 0, 1, 0, 2]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[inverse.reshape(-1)]


def normalised(labels: np.ndarray) -> np.ndarray:
    """The (n, n) matrix X of a partition: 1/|C| within a cluster C, 0 elsewhere.

    >>> normalised(np.array([0, 0, 1])).tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    """
    weight = 1.0 / np.bincount(labels)[labels]
    return (labels[:, None] == labels) * weight


def k_means(rows: np.ndarray, k: int, seed: int, starts: int = 10) -> np.ndarray:
    """Labels of k-means on the rows, best of `starts` k-means++ starts, numbered by first appearance.

    Fewer than k distinct rows give fewer than k clusters: two equal objects are not told apart by chance.
    """
    return _k_means(rows, k, n_init=starts, random_state=seed)


def k_means_from(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Labels of k-means on the rows, from the means of these clusters, numbered by first appearance."""
    sizes = np.bincount(labels)
    means = np.stack([np.bincount(labels, column) for column in rows.T], axis=1) / sizes[:, None]
    return _k_means(rows, len(sizes), init=means, n_init=1)


def _k_means(rows: np.ndarray, k: int, **options: Any) -> np.ndarray:
    """On one thread: scikit-learn loads a pool of its own, which a caller's earlier limit does not reach."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    with threadpool_limits(1), warnings.catch_warnings():
        # scikit-learn warns when there are fewer distinct rows than k; that is an answer here, not an accident
        warnings.simplefilter("ignore", ConvergenceWarning)
        return compact(KMeans(k, **options).fit(rows).labels_)


def spectral_partition(W, k: int, seed: int = 0) -> np.ndarray:
    """k-means on the k - 1 leading eigenvectors of PWP: the SDP without X >= 0, rounded. Labels (n,) int32."""
    n = W.shape[0]
    if k <= 1 or n <= 1:
        return np.zeros(n, np.int32)
    if k >= n:
        return np.arange(n, dtype=np.int32)
    return k_means(top_eigenpairs(W, k - 1, tol=1e-4)[1], k, seed, STARTS)


def candidates(W, lam: float, seed: int = 0) -> list[np.ndarray]:
    """Refined spectral partitions worth trying for SDP-lambda: one for each number of clusters from 1 on, as long as
    value - lambda k has not fallen twice, and never more than one beyond the eigenvalues of PWP above lambda (the
    rank of the relaxation without X >= 0) or `MOST` clusters."""
    n = W.shape[0]
    partitions, best, fallen = [np.zeros(n, np.int32)], -np.inf, 0
    if n < 2:
        return partitions
    values, vectors = top_eigenpairs(W, min(n - 1, MOST - 1), tol=1e-4)
    for k in range(2, min(n - 1, MOST, int((values > lam).sum()) + 2) + 1 if values[0] > lam else 2):
        partitions.append(refined(W, k_means(vectors[:, : k - 1], k, seed, STARTS)))
        reached = value(W, partitions[-1]) - lam * k
        best, fallen = (reached, 0) if reached > best else (best, fallen + 1)
        if fallen == 2:
            break
    return partitions


def refined(W, labels: np.ndarray, rounds: int = 200) -> np.ndarray:
    """The partition after batch kernel-k-means on its exact value, never worse, with as many clusters as before.

    Each round computes for every object the exact gain of moving it alone, moves those with the largest gains, fewer
    and fewer until the value rises. O(nnz + nk) a round.

    >>> W = np.array([[0, 2, -1, -1], [2, 0, -1, -1], [-1, -1, 0, 2], [-1, -1, 2, 0.]])
    >>> refined(W, np.array([0, 1, 1, 1])).tolist()
    [0, 0, 1, 1]
    """
    labels = compact(labels)
    k = int(labels.max(initial=0)) + 1
    if k == 1 or k == len(labels):
        return labels
    of = blocks(W, labels, k)
    for _ in range(rounds):
        moved = _better(W, labels, of)
        if moved is None:
            break
        labels, of = moved
    return compact(labels)


def _better(W, labels: np.ndarray, of: Blocks) -> tuple[np.ndarray, Blocks] | None:
    """A partition of larger value by moving objects along their single-move gains, or None at a local optimum."""
    k = len(of.sizes)
    gain, target = _gains(labels, of)
    now = float((np.diag(of.sums) / of.sizes).sum())
    slack = 1e-12 * (1.0 + np.abs(of.sums).sum())
    movers = np.flatnonzero(gain > slack)
    movers = movers[np.argsort(-gain[movers], kind="stable")]
    count = len(movers)
    while count:
        trial = labels.copy()
        trial[movers[:count]] = target[movers[:count]]
        if np.bincount(trial, minlength=k).min():
            after = blocks(W, trial, k)
            if (np.diag(after.sums) / after.sizes).sum() > now + slack:
                return trial, after
        count //= 2
    return None


def _gains(labels: np.ndarray, of: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """For each object the gain of its best single move (-inf for the last one of its cluster) and where to."""
    n, own, size = len(labels), np.diag(of.sums), of.sizes
    at = np.arange(n)
    joining = (own + 2 * of.rows) / (size + 1) - own / size
    joining[at, labels] = -np.inf
    target = joining.argmax(axis=1)
    home = size[labels]
    left = np.where(home > 1, (own[labels] - 2 * of.rows[at, labels]) / np.maximum(home - 1, 1), 0.0)
    gain = joining[at, target] + left - own[labels] / home
    return np.where(home > 1, gain, -np.inf), target.astype(labels.dtype)
