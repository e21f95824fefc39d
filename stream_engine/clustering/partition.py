"""Partitions: a spectral start, batch kernel k-means on the exact objective, and the value of a partition."""

import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.clustering.similarity_matrix import Blocks, blocks
from stream_engine.counts.spectral import top_eigenpairs


def value(W, labels: np.ndarray) -> float:
    """sum_a B_aa / n_a over the clusters in `labels`, B_aa the sum of W within cluster a. O(nnz).

    It is <W, X> at the partition's own feasible X, hence a lower bound on the SDP.

    >>> value(np.array([[0., 3., 0.], [3., 0., 0.], [0., 0., 0.]]), np.array([0, 0, 1]))
    3.0
    """
    labels = compact(labels)
    block_sums = blocks(W, labels, int(labels.max()) + 1)
    return float((np.diag(block_sums.sums) / block_sums.sizes).sum())


def compact(labels: np.ndarray) -> np.ndarray:
    """Cluster numbers 0 .. k - 1 in order of first appearance, as int32.

    >>> compact(np.array([7, 7, 3, 7, 5])).tolist()
    [0, 0, 1, 0, 2]
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[inverse.reshape(-1)]


def normalised_matrix(labels: np.ndarray) -> np.ndarray:
    """The (n, n) matrix X of a partition: 1/|C| within a cluster C, 0 elsewhere.

    >>> normalised_matrix(np.array([0, 0, 1])).tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    """
    weight = 1.0 / np.bincount(labels)[labels]
    return (labels[:, None] == labels) * weight


def k_means(rows: np.ndarray, k: int, seed: int, starts: int = 10) -> np.ndarray:
    """Labels of k-means on the rows, best of `starts` k-means++ starts, numbered by first appearance.

    Fewer than k distinct rows give fewer than k clusters: equal objects are not separated at random.
    """
    return _k_means(rows, k, n_init=starts, random_state=seed)


def k_means_from(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Labels of k-means on the rows, from the means of these clusters, numbered by first appearance."""
    sizes = np.bincount(labels)
    means = np.stack([np.bincount(labels, column) for column in rows.T], axis=1) / sizes[:, None]
    return _k_means(rows, len(sizes), init=means, n_init=1)


def _k_means(rows: np.ndarray, k: int, **options: Any) -> np.ndarray:
    """scikit-learn's k-means, on one thread."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    # scikit-learn loads a thread pool of its own, which a caller's earlier limit does not reach
    with threadpool_limits(1), warnings.catch_warnings():
        # scikit-learn warns when there are fewer distinct rows than k; that is a valid result here
        warnings.simplefilter("ignore", ConvergenceWarning)
        return compact(KMeans(k, **options).fit(rows).labels_)


STARTS = 4  # of k-means, if a refinement follows


def spectral_partition(W, k: int, seed: int = 0) -> np.ndarray:
    """k-means on the k - 1 leading eigenvectors of PWP: the SDP without X >= 0, rounded. Labels (n,) int32."""
    n = W.shape[0]
    if k <= 1 or n <= 1:
        return np.zeros(n, np.int32)
    if k >= n:
        return np.arange(n, dtype=np.int32)
    return k_means(top_eigenpairs(W, k - 1, tol=1e-4)[1], k, seed, STARTS)


MAX_CLUSTERS = 24  # of a start for SDP-lambda


def candidates(W, lam: float, seed: int = 0) -> list[np.ndarray]:
    """Refined spectral partitions worth trying for SDP-lambda: one for each number of clusters from 1 on, as long as
    value - lambda k has not fallen twice, and never more than one beyond the eigenvalues of PWP above lambda (the
    rank of the relaxation without X >= 0) or `MAX_CLUSTERS` clusters."""
    n = W.shape[0]
    partitions, best_value, n_falls = [np.zeros(n, np.int32)], -np.inf, 0
    if n < 2:
        return partitions
    values, vectors = top_eigenpairs(W, min(n - 1, MAX_CLUSTERS - 1), tol=1e-4)
    for k in range(2, min(n - 1, MAX_CLUSTERS, int((values > lam).sum()) + 2) + 1 if values[0] > lam else 2):
        partitions.append(refine(W, k_means(vectors[:, : k - 1], k, seed, STARTS)))
        penalised_value = value(W, partitions[-1]) - lam * k
        best_value, n_falls = (penalised_value, 0) if penalised_value > best_value else (best_value, n_falls + 1)
        if n_falls == 2:
            break
    return partitions


def refine(W, labels: np.ndarray, rounds: int = 200) -> np.ndarray:
    """The partition after batch kernel-k-means on its exact value, never worse, with as many clusters as before.

    Each round computes for every object the exact gain of moving it alone, and moves those with the largest gains,
    fewer and fewer until the value rises. No cluster becomes empty, and at the end no single object gains by moving.
    O(nnz + nk) a round.

    >>> W = np.array([[0, 2, -1, -1], [2, 0, -1, -1], [-1, -1, 0, 2], [-1, -1, 2, 0.]])
    >>> refine(W, np.array([0, 1, 1, 1])).tolist()
    [0, 0, 1, 1]
    """
    labels = compact(labels)
    k = int(labels.max(initial=0)) + 1
    if k == 1 or k == len(labels):
        return labels
    block_sums = blocks(W, labels, k)
    for _ in range(rounds):
        improvement = _better_partition(W, labels, block_sums)
        if improvement is None:
            break
        labels, block_sums = improvement
    return compact(labels)


def _better_partition(W, labels: np.ndarray, block_sums: Blocks) -> tuple[np.ndarray, Blocks] | None:
    """A partition of larger value by moving objects along their single-move gains, or None at a local optimum."""
    k = len(block_sums.sizes)
    gain, target = _gains(labels, block_sums)
    current_value = float((np.diag(block_sums.sums) / block_sums.sizes).sum())
    slack = 1e-12 * (1.0 + np.abs(block_sums.sums).sum())
    movers = np.flatnonzero(gain > slack)
    movers = movers[np.argsort(-gain[movers], kind="stable")]
    count = len(movers)
    while count:
        trial = labels.copy()
        trial[movers[:count]] = target[movers[:count]]
        if np.bincount(trial, minlength=k).min():
            trial_sums = blocks(W, trial, k)
            if (np.diag(trial_sums.sums) / trial_sums.sizes).sum() > current_value + slack:
                return trial, trial_sums
        count //= 2
    return None


def _gains(labels: np.ndarray, block_sums: Blocks) -> tuple[np.ndarray, np.ndarray]:
    """For each object the gain of its best single move (-inf for the last one of its cluster) and where to."""
    n, own_sums, sizes = len(labels), np.diag(block_sums.sums), block_sums.sizes
    at = np.arange(n)
    gain_of_joining = (own_sums + 2 * block_sums.rows) / (sizes + 1) - own_sums / sizes
    gain_of_joining[at, labels] = -np.inf
    target = gain_of_joining.argmax(axis=1)
    home_size = sizes[labels]
    loss_of_leaving = np.where(
        home_size > 1, (own_sums[labels] - 2 * block_sums.rows[at, labels]) / np.maximum(home_size - 1, 1), 0.0
    )
    gain = gain_of_joining[at, target] + loss_of_leaving - own_sums[labels] / home_size
    return np.where(home_size > 1, gain, -np.inf), target.astype(labels.dtype)
