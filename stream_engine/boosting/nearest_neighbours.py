"""k nearest neighbours of a similarity: the share of each class among the k most similar objects with a label."""

import numpy as np


def vote_shares(similarity: np.ndarray, labels: np.ndarray, classes: int, k: int) -> np.ndarray:
    """(m, classes) shares of the classes among the k objects of largest `similarity` (m, L), with `labels` (L,).

    Objects as similar as the k-th share the votes that are left, so neither ids nor order of arrival decide: with few
    comparisons most similarities are 0, and then 1-NN is a tie. O(m L) for the k-th, O(m L Y) for the shares.

    >>> similarity, labels = np.array([[3.0, 2.0, 2.0, 0.0]]), np.array([0, 1, 0, 1])
    >>> vote_shares(similarity, labels, 2, 1).tolist(), vote_shares(similarity, labels, 2, 2).tolist()
    ([[1.0, 0.0]], [[0.75, 0.25]])
    """
    L = similarity.shape[1]
    k = min(k, L)
    if not k:
        return np.full((len(similarity), classes), 1.0 / max(classes, 1))
    kth_similarity = np.partition(similarity, L - k, axis=1)[:, L - k, None]
    is_nearer, is_kth = similarity > kth_similarity, similarity == kth_similarity
    votes_left = k - is_nearer.sum(axis=1, keepdims=True)
    votes = is_nearer + is_kth * (votes_left / is_kth.sum(axis=1, keepdims=True))
    return votes @ (labels[:, None] == np.arange(classes)) / k
