"""k nearest neighbours of a similarity: the share of each class among the k most similar objects with a label.

Objects as similar as the k-th share the votes that are left, so neither ids nor arrival decide: with few comparisons
most similarities are 0, and then 1-NN is an honest tie. O(m L) for the k-th, O(m L Y) for the shares.
"""

import numpy as np


def shares(near: np.ndarray, labels: np.ndarray, classes: int, k: int) -> np.ndarray:
    """(m, classes) vote shares by `near` (m, L), larger is nearer, to L objects with `labels` (L,).

    >>> near = np.array([[3.0, 2.0, 2.0, 0.0]])
    >>> shares(near, np.array([0, 1, 0, 1]), 2, 1).tolist(), shares(near, np.array([0, 1, 0, 1]), 2, 2).tolist()
    ([[1.0, 0.0]], [[0.75, 0.25]])
    """
    L = near.shape[1]
    k = min(k, L)
    if not k:
        return np.full((len(near), classes), 1.0 / max(classes, 1))
    kth = np.partition(near, L - k, axis=1)[:, L - k, None]
    above, at = near > kth, near == kth
    left = k - above.sum(axis=1, keepdims=True)
    votes = above + at * (left / at.sum(axis=1, keepdims=True))
    return votes @ (labels[:, None] == np.arange(classes)) / k
