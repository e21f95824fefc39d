"""Scores as probabilities: P(c) = exp(t s_c) / sum_b exp(t s_b), with one t >= 0 (temperature scaling, Guo et al. 2017,
sec. 4.2), fitted to scores of objects that the model had not learned from. The order of the classes stays."""

import numpy as np
from scipy.special import logsumexp, softmax


def temperature(scores: np.ndarray, truth: np.ndarray) -> float:
    """The t with the least log loss of (m, Y) scores; by bisection, the loss is convex in t. O(m Y) a step.

    One more object each way at a usual margin keeps t finite while all comes as expected.

    >>> round(temperature(np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]), np.array([0, 0, 1])), 4)  # log(3 / 2)
    0.4055
    """
    if not len(scores) or scores.shape[1] < 2:
        return 0.0
    top = np.sort(scores, axis=1)
    margin = float(np.sqrt(np.mean((top[:, -1] - top[:, -2]) ** 2)))
    if margin == 0.0:
        return 0.0
    own = scores[np.arange(len(scores)), truth]

    def rise(t: float) -> float:
        expected = (softmax(t * scores, axis=1) * scores).sum(axis=1)
        return float((own - expected).sum() - margin * np.tanh(t * margin / 2))

    low, high = 0.0, 1.0 / margin
    if rise(0.0) <= 0:
        return 0.0
    while rise(high) > 0 and high < 1e9 / margin:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if rise(middle) > 0 else (low, middle)
    return (low + high) / 2


def probabilities(scores: np.ndarray, t: float, abstained: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """(m, Y) of (m, Y) scores; where a model abstained the classes' shares `prior` (Y,)."""
    made = softmax(t * scores, axis=1)
    made[abstained] = prior
    return made


def losses(scores: np.ndarray, t: float, abstained: np.ndarray, prior: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """(m,) -log P(truth), in nats."""
    at = np.arange(len(truth))
    said = logsumexp(t * scores, axis=1) - t * scores[at, truth]
    return np.where(abstained, -np.log(prior[truth]), said)


def decided(scores: np.ndarray, abstained: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """(m,) int32 the class of the largest score; among equal ones, and where a model abstained, the one with the larger
    share (of equal shares the first).

    >>> decided(np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([False, False]), np.array([0.75, 0.25])).tolist()
    [1, 0]
    """
    top = (scores == scores.max(axis=1, keepdims=True)) | abstained[:, None]
    return np.where(top, prior, -1.0).argmax(axis=1).astype(np.int32)


def shares(labels: np.ndarray, classes: int) -> np.ndarray:
    """(classes,) shares of the classes, each counted half a time more: none is impossible.

    >>> shares(np.array([0, 0, 1]), 2).tolist()
    [0.625, 0.375]
    """
    counts = np.bincount(labels, minlength=classes) + 0.5
    return counts / counts.sum()
