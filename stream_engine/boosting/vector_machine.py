"""Support vector machines on a precomputed kernel (scikit-learn's libsvm, one against one, votes as scores)."""

import numpy as np


def prepare_kernel(kernel: np.ndarray, labelled_ids: np.ndarray) -> np.ndarray:
    """(n, L) kernel values for the machine, from the `kernel` (n, L) of all objects with the labelled ones (L,).
    O(L^3).

    The least eigenvalue of the labelled block is subtracted from its diagonal (Kleindessner & von Luxburg 2017, sec.
    2.1: diagonal dominance), so every block over labelled objects is positive semidefinite. Everything is divided by
    the mean of (K_aa + K_bb - 2 K_ab) / 2 before that, so that one grid of C serves every similarity. Labels are not
    used.

    >>> prepare_kernel(np.array([[1.0, 0.5], [0.5, 1.0], [0.25, 0.0]]), np.array([0, 1])).round(12).tolist()
    [[1.0, 1.0], [1.0, 1.0], [0.5, 0.0]]
    """
    from scipy.linalg import eigvalsh

    scaled, L = np.array(kernel, np.float64), len(labelled_ids)
    block = scaled[labelled_ids]
    smallest = float(eigvalsh(block, subset_by_index=[0, 0])[0]) if L else 0.0
    mean_product = (block.sum() - np.trace(block)) / max(L * (L - 1), 1)
    mean_distance = float(np.trace(block)) / max(L, 1) - mean_product
    scaled[labelled_ids, np.arange(L)] -= smallest
    scale = mean_distance if mean_distance > 0 else 1.0
    return scaled / scale


def scores(
    kernel: np.ndarray,
    training: tuple[np.ndarray, np.ndarray],
    labels: np.ndarray,
    query_ids: np.ndarray,
    classes: int,
    C: float,
) -> np.ndarray:
    """(m, classes) scores of the rows `query_ids` of `kernel` (n, L).

    The machine is trained on the objects `training`, ((l,) ids, (l,) their columns), with `labels` (l,); a class that
    is not among these has the least score.
    """
    from sklearn.svm import SVC

    rows, columns = training
    present_classes, number = np.unique(labels, return_inverse=True)
    min_score = -1.0
    if len(present_classes) == 1:
        class_scores = np.full((len(query_ids), classes), min_score)
        class_scores[:, present_classes[0]] = 1.0
        return class_scores
    machine = SVC(C=C, kernel="precomputed", decision_function_shape="ovr", cache_size=64, random_state=0)
    machine.fit(np.ascontiguousarray(kernel[np.ix_(rows, columns)]), number)
    decision = machine.decision_function(np.ascontiguousarray(kernel[np.ix_(query_ids, columns)]))
    decision = np.stack([-decision, decision], axis=1) if decision.ndim == 1 else decision
    class_scores = np.full((len(query_ids), classes), min(min_score, float(decision.min(initial=0.0)) + min_score))
    class_scores[:, present_classes] = decision
    return class_scores
