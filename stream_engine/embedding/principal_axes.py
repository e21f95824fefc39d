"""Points about their mean, on their principal axes, each axis signed by a rule: equal answers give equal pictures."""

import numpy as np

from stream_engine.embedding.questions import Questions, asked_about


def on_principal_axes(points: np.ndarray, questions: Questions) -> np.ndarray:
    """(n, d): centred at the mean of the objects that were asked about, turned so that the axes are those of largest
    variance, in its order; the entry of largest size on each axis is positive. Objects never asked about lie at 0.
    Distances between the others do not change. O(n d^2).
    """
    has_answers = asked_about(questions)
    out = np.zeros(points.shape)
    if not has_answers.any():
        return out
    middle = points[has_answers] - points[has_answers].mean(axis=0)
    values, axes = np.linalg.eigh(middle.T @ middle)
    rotated = middle @ axes[:, np.argsort(-values, kind="stable")]
    out[has_answers] = rotated * _signs(rotated)
    return out + 0.0


def on_own_axes(points: np.ndarray, questions: Questions) -> tuple[np.ndarray, np.ndarray]:
    """(n, d) on the axes that they have, centred and signed likewise, and the (d,) order of the axes: by variance.
    O(n d)."""
    has_answers = asked_about(questions)
    out = np.zeros(points.shape)
    if not has_answers.any():
        return out, np.arange(points.shape[1])
    middle = points[has_answers] - points[has_answers].mean(axis=0)
    order = np.argsort(-middle.var(axis=0), kind="stable")
    out[has_answers] = middle[:, order] * _signs(middle[:, order])
    return out + 0.0, order


def _signs(points: np.ndarray) -> np.ndarray:
    """(d,) -1 of each axis whose entry of largest size is negative, else 1."""
    largest = np.argmax(np.abs(np.round(points, 9)), axis=0)  # rounded: mirror images of one size keep one winner
    return np.where(points[largest, np.arange(points.shape[1])] < 0, -1.0, 1.0)
