"""Points about their mean, on their principal axes, each axis signed by a rule: equal answers give equal pictures."""

import numpy as np

from stream_engine.embedding.questions import Questions, asked_about


def on_principal_axes(points: np.ndarray, questions: Questions) -> np.ndarray:
    """(n, d): centred at the mean of the objects that were asked about, turned so that the axes are those of largest
    variance, in its order; the entry of largest size on each axis is positive. Objects never asked about lie at 0.
    Distances between the others do not change. O(n d^2).
    """
    seen = asked_about(questions)
    out = np.zeros(points.shape)
    if not seen.any():
        return out
    middle = points[seen] - points[seen].mean(axis=0)
    values, axes = np.linalg.eigh(middle.T @ middle)
    turned = middle @ axes[:, np.argsort(-values, kind="stable")]
    largest = np.argmax(np.abs(np.round(turned, 9)), axis=0)  # rounded: mirror images of one size keep one winner
    out[seen] = turned * np.where(turned[largest, np.arange(turned.shape[1])] < 0, -1.0, 1.0)
    return out + 0.0
