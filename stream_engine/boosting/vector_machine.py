"""Support vector machines on a precomputed kernel (scikit-learn's libsvm, one against one, votes as scores).

The kernel is shifted by its least eigenvalue first (Kleindessner & von Luxburg 2017, sec. 2.1: diagonal dominance) and
divided by half the mean squared distance in feature space that it had before, so that one grid of C serves every
similarity.

k nearest neighbours of a similarity: the share of each class among the k most similar objects with a label.

Objects as similar as the k-th share the votes that are left, so neither ids nor arrival decide: with few comparisons
most similarities are 0, and then 1-NN is an honest tie. O(m L) for the k-th, O(m L Y) for the shares.
"""

import numpy as np


def prepared(kernel: np.ndarray, labelled: np.ndarray) -> np.ndarray:
    """(n, L) kernel values for the machine, from those `kernel` (n, L) to the labelled objects (ids, L): lambda_min of
    the labelled block is taken from its diagonal, and all divided by what the mean of (K_aa + K_bb - 2 K_ab) / 2 was.
    Labels play no part; every block of the result over labelled objects is positive semidefinite. O(L^3).

    >>> prepared(np.array([[1.0, 0.5], [0.5, 1.0], [0.25, 0.0]]), np.array([0, 1])).round(12).tolist()
    [[1.0, 1.0], [1.0, 1.0], [0.5, 0.0]]
    """
    from scipy.linalg import eigvalsh

    made, L = np.array(kernel, np.float64), len(labelled)
    block = made[labelled]
    smallest = float(eigvalsh(block, subset_by_index=[0, 0])[0]) if L else 0.0
    off = (block.sum() - np.trace(block)) / max(L * (L - 1), 1)
    spread = float(np.trace(block)) / max(L, 1) - off
    made[labelled, np.arange(L)] -= smallest
    scale = spread if spread > 0 else 1.0
    return made / scale


def scores(
    kernel: np.ndarray,
    train: tuple[np.ndarray, np.ndarray],
    labels: np.ndarray,
    asked: np.ndarray,
    classes: int,
    C: float,
) -> np.ndarray:
    """(m, classes) scores of the rows `asked` of `kernel` (n, L), trained on the columns whose rows are `train` ((l,)
    ids, (l,) columns) with `labels` (l,); a class that is not among these has the least score."""
    from sklearn.svm import SVC

    rows, columns = train
    there, number = np.unique(labels, return_inverse=True)
    least = -1.0
    if len(there) == 1:
        made = np.full((len(asked), classes), least)
        made[:, there[0]] = 1.0
        return made
    machine = SVC(C=C, kernel="precomputed", decision_function_shape="ovr", cache_size=64, random_state=0)
    machine.fit(np.ascontiguousarray(kernel[np.ix_(rows, columns)]), number)
    found = machine.decision_function(np.ascontiguousarray(kernel[np.ix_(asked, columns)]))
    found = np.stack([-found, found], axis=1) if found.ndim == 1 else found
    made = np.full((len(asked), classes), min(least, float(found.min(initial=0.0)) + least))
    made[:, there] = found
    return made


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
