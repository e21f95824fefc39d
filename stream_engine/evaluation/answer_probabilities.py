"""How likely points in d dimensions make an answer: the response model that all embeddings share.

P(d(i, j) < d(k, l)) = lapse / 2 + (1 - lapse) sigma(Delta),    Delta = phi(|x_k - x_l|^2) - phi(|x_i - x_j|^2)
phi(s) = s (STE; van der Maaten & Weinberger 2012, eq. 1), or (alpha + 1) / 2 log(1 + s / alpha) (t-STE, eq. 3)

From a margin to the probability that the answer comes as expected: Platt's logistic fit, kept up online.

P(expected) = sigma(w . phi(x)), x the margin over the predictor's scale, phi odd: turning a question round turns the
probability round, so there is no intercept (Platt 1999 without one). phi has a part that saturates, because judges err
however far apart two things are. Fitted by Newton steps on the last answers, after they were predicted.
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
    out = np.empty(len(rows))
    _margins(points, rows, alpha, out)
    return out


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
    """(m,) P(d(i, j) < d(k, l)), by one lapse or by the lapse of row worker + 1 of each; `scale` of the margins says
    confidence of the points (`calibration`). O(m d)."""
    who = lapse if worker is None else np.asarray(lapse)[worker + 1]
    return probability(scale * margins(points, rows, alpha), who)


def log_odds(p: np.ndarray) -> np.ndarray:
    """(m,) log p / (1 - p): the margin at slope 1 by which `evaluation.held_out` makes figures of probabilities.

    >>> log_odds(np.array([0.5, 0.75])).round(4).tolist()
    [0.0, 1.0986]
    """
    return np.log(np.maximum(p, 1e-300)) - np.log(np.maximum(1.0 - p, 1e-16))


@njit(cache=True, nogil=True, fastmath=True)
def _margins(points, rows, alpha, out):
    for t in range(len(rows)):
        near, far = 0.0, 0.0
        for c in range(points.shape[1]):
            u = points[rows[t, 0], c] - points[rows[t, 1], c]
            v = points[rows[t, 2], c] - points[rows[t, 3], c]
            near += u * u
            far += v * v
        if alpha > 0.0:
            out[t] = 0.5 * (alpha + 1.0) * (np.log(1.0 + far / alpha) - np.log(1.0 + near / alpha))
        else:
            out[t] = far - near


HELD = 2000  # answers that the fit sees
STEPS = 2  # of Newton after each block
WHOLE = 30  # of Newton where all answers are there at once


def features(x: np.ndarray) -> np.ndarray:
    """(m, 2): tanh(2x) and x / (1 + |x|), odd in x."""
    return np.stack([np.tanh(2 * x), x / (1 + np.abs(x))], axis=1)


class Calibration:
    """Weights of phi; at first every decided answer has probability near 1/2."""

    def __init__(self) -> None:
        self.weights = np.array([0.1, 0.1])
        self._held = np.empty((0, 2))

    def probability(self, x: np.ndarray) -> np.ndarray:
        """(m,) probability of the answer that the margin is for; 1/2 at 0, and never against the margin's sign."""
        return 1 / (1 + np.exp(-np.maximum(features(np.abs(x)) @ self.weights, 0.0) * np.sign(x)))

    def learn(self, x: np.ndarray) -> None:
        """Margins of answers that came: > 0 came as expected. O(HELD)."""
        self._held = np.concatenate([self._held, features(x[x != 0][-HELD:])])[-HELD:]
        self._descend(self._held, np.ones(len(self._held)), STEPS)

    def _descend(self, held: np.ndarray, times: np.ndarray, steps: int) -> None:
        for _ in range(steps if len(held) else 0):
            p = 1 / (1 + np.exp(-held @ self.weights))
            # one more answer each way at x = 1 and a weak prior keep the weights finite while all comes as expected
            one = features(np.ones(1))[0]
            q = 1 / (1 + np.exp(-one @ self.weights))
            slope = held.T @ (times * (1 - p)) + one * (1 - 2 * q) - 1e-2 * self.weights
            curve = (
                (held * (times * p * (1 - p))[:, None]).T @ held
                + 2 * q * (1 - q) * np.outer(one, one)
                + 1e-2 * np.eye(2)
            )
            step = np.linalg.solve(curve, slope)
            self.weights = self.weights + step / max(1.0, np.abs(step).max() / 2)


def calibrated(x: np.ndarray, times: np.ndarray) -> Calibration:
    """The calibration that (m,) margins of answers ask for, each `times` over; > 0 came as expected. O(m).

    >>> made = calibrated(np.array([1.0, -1.0]), np.array([800.0, 200.0]))
    >>> made.probability(np.array([1.0, 0.0, -1.0])).round(2).tolist()
    [0.8, 0.5, 0.2]
    """
    made, decided = Calibration(), (x != 0) & ~np.isnan(x)
    made._descend(features(x[decided]), times[decided], WHOLE)
    return made
