"""Scores as probabilities of classes, by temperature scaling (Guo et al. 2017, sec. 4.2)."""

import numpy as np
from scipy.special import logsumexp, softmax


def temperature(scores: np.ndarray, truth: np.ndarray) -> float:
    """The t >= 0 with the least log loss of P(c) = exp(t s_c) / sum_b exp(t s_b), for (m, Y) scores. O(m Y) a step.

    The scores are of objects that the model was not fitted to. The loss is convex in t, so bisection finds it. One more
    object each way at a usual margin keeps t finite if all objects have their largest score at the true class.

    >>> round(temperature(np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]), np.array([0, 0, 1])), 4)  # log(3 / 2)
    0.4055
    """
    if not len(scores) or scores.shape[1] < 2:
        return 0.0
    sorted_scores = np.sort(scores, axis=1)
    margin = float(np.sqrt(np.mean((sorted_scores[:, -1] - sorted_scores[:, -2]) ** 2)))
    if margin == 0.0:
        return 0.0
    true_scores = scores[np.arange(len(scores)), truth]

    def rise(t: float) -> float:
        mean_scores = (softmax(t * scores, axis=1) * scores).sum(axis=1)
        return float((true_scores - mean_scores).sum() - margin * np.tanh(t * margin / 2))

    low, high = 0.0, 1.0 / margin
    if rise(0.0) <= 0:
        return 0.0
    while rise(high) > 0 and high < 1e9 / margin:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rise(middle) > 0 else (low, middle)
    return (low + high) / 2


def of_scores(scores: np.ndarray, t: float, abstained: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """(m, Y) probabilities from (m, Y) scores; if the model abstained, the classes' shares `prior` (Y,)."""
    shares_of_classes = softmax(t * scores, axis=1)
    shares_of_classes[abstained] = prior
    return shares_of_classes


def losses(scores: np.ndarray, t: float, abstained: np.ndarray, prior: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """(m,) -log P(truth), in nats."""
    rows = np.arange(len(truth))
    log_losses = logsumexp(t * scores, axis=1) - t * scores[rows, truth]
    return np.where(abstained, -np.log(prior[truth]), log_losses)


def decide_classes(scores: np.ndarray, abstained: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """(m,) int32 the class of the largest score; among equal scores, and if the model abstained, the class with the
    largest share (among equal shares, the first).

    >>> decide_classes(np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([False, False]), np.array([0.75, 0.25])).tolist()
    [1, 0]
    """
    top = (scores == scores.max(axis=1, keepdims=True)) | abstained[:, None]
    return np.where(top, prior, -1.0).argmax(axis=1).astype(np.int32)


def class_shares(labels: np.ndarray, classes: int) -> np.ndarray:
    """(classes,) shares of the classes, with half an object added to each, so that none is impossible.

    >>> class_shares(np.array([0, 0, 1]), 2).tolist()
    [0.625, 0.375]
    """
    counts = np.bincount(labels, minlength=classes) + 0.5
    return counts / counts.sum()
