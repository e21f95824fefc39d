"""The response model of all embeddings: the probability of an answer, given points in d dimensions.

P(d(i, j) < d(k, l)) = lapse / 2 + (1 - lapse) sigma(Delta),    Delta = phi(|x_k - x_l|^2) - phi(|x_i - x_j|^2)
phi(s) = s (STE; van der Maaten & Weinberger 2012, eq. 1), or (alpha + 1) / 2 log(1 + s / alpha) (t-STE, eq. 3)
"""

import numpy as np

from stream_engine.data.compiled import njit, read_only

STE = 0.0  # the value of alpha that stands for the identity
LARGEST = 500.0  # |Delta| beyond which the likelihood no longer changes


def margins(points: np.ndarray, rows: np.ndarray, alpha: float = STE) -> np.ndarray:
    """(m,) float64 Delta of (m, 4) rows: above 0 where d(i, j) < d(k, l). O(m d).

    >>> margins(np.array([[0.0], [1.0], [3.0]]), np.array([[0, 1, 0, 2]])).tolist()
    [8.0]
    """
    points, rows = read_only(points, np.float64), read_only(rows, np.int32)
    delta = np.empty(len(rows))
    _margins(points, rows, alpha, delta)
    return delta


def probability(delta: np.ndarray, lapse: np.ndarray | float) -> np.ndarray:
    """(m,) P(d(i, j) < d(k, l)) = lapse / 2 + (1 - lapse) / (1 + exp(-Delta)).

    >>> probability(np.array([0.0, 900.0]), 0.1).round(6).tolist()
    [0.5, 0.95]
    """
    return lapse / 2 + (1.0 - lapse) / (1.0 + np.exp(-np.clip(delta, -LARGEST, LARGEST)))


def probabilities(
    points: np.ndarray,
    rows: np.ndarray,
    lapse: np.ndarray | float,
    alpha: float,
    worker: np.ndarray | None = None,
    scale: float = 1.0,
) -> np.ndarray:
    """(m,) P(d(i, j) < d(k, l)), by one lapse rate or by that of row worker + 1 of each; `scale` is multiplied by the
    margins to calibrate them (`embedding.calibration`). O(m d)."""
    lapses = lapse if worker is None else np.asarray(lapse)[worker + 1]
    return probability(scale * margins(points, rows, alpha), lapses)


def log_odds(p: np.ndarray) -> np.ndarray:
    """(m,) log p / (1 - p): the margin of a probability, whose slope is 1 (`evaluation.held_out.figures`).

    >>> log_odds(np.array([0.5, 0.75])).round(4).tolist()
    [0.0, 1.0986]
    """
    return np.log(np.maximum(p, 1e-300)) - np.log(np.maximum(1.0 - p, 1e-16))


@njit(cache=True, nogil=True, fastmath=True)
def _margins(points, rows, alpha, delta):
    for t in range(len(rows)):
        near, far = 0.0, 0.0
        for c in range(points.shape[1]):
            u = points[rows[t, 0], c] - points[rows[t, 1], c]
            v = points[rows[t, 2], c] - points[rows[t, 3], c]
            near += u * u
            far += v * v
        if alpha > 0.0:
            delta[t] = 0.5 * (alpha + 1.0) * (np.log(1.0 + far / alpha) - np.log(1.0 + near / alpha))
        else:
            delta[t] = far - near
