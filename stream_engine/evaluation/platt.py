"""From a margin to a probability: Platt's logistic fit (Platt 1999) without an intercept, which can be updated online.

P(the answer was predicted) = sigma(w . phi(x)), x being the margin over the predictor's scale.
"""

from collections.abc import Callable

import numpy as np

from stream_engine.evaluation import Predictor, Probability

STEPS_A_BLOCK, STEPS_OF_A_FIT = 2, 30  # Newton steps after each block of answers; of a fit to all answers at once
CONVERGED = 1e-9  # size of a step after which a further one would change nothing but rounding errors


def features(x: np.ndarray) -> np.ndarray:
    """(m, 2) phi(x): tanh(2x) and x / (1 + |x|).

    phi is odd: turning a question round turns the probability round, so there is no intercept. It saturates, because
    participants err however far apart two objects are.
    """
    return np.stack([np.tanh(2 * x), x / (1 + np.abs(x))], axis=1)


RECENT_ANSWERS = 2000  # the weights are fitted to so many answers, the last ones


class Calibration:
    """Weights w of phi, by Newton steps on the last answers, after they were predicted; before the first answer, every
    probability is near 1/2."""

    def __init__(self) -> None:
        self.weights = np.array([0.1, 0.1])
        self._recent = np.empty((0, 2))

    def probability(self, x: np.ndarray) -> np.ndarray:
        """(m,) probability of the answer that has the margin; 1/2 at 0, and never on the other side of 1/2 than it."""
        return 1 / (1 + np.exp(-np.maximum(features(np.abs(x)) @ self.weights, 0.0) * np.sign(x)))

    def learn(self, x: np.ndarray) -> None:
        """Update by margins of new answers: > 0 where the answer was predicted. O(RECENT_ANSWERS)."""
        latest = features(x[x != 0][-RECENT_ANSWERS:])
        self._recent = np.concatenate([self._recent, latest])[-RECENT_ANSWERS:]
        self._descend(self._recent, np.ones(len(self._recent)), STEPS_A_BLOCK)

    def _descend(self, phi: np.ndarray, times: np.ndarray, steps: int) -> None:
        # one more answer each way at x = 1 and a weak prior keep the weights finite if every answer was predicted
        usual = features(np.ones(1))[0]
        square = np.outer(usual, usual)
        for _ in range(steps if len(phi) else 0):
            p = 1 / (1 + np.exp(-phi @ self.weights))
            q = 1 / (1 + np.exp(-usual @ self.weights))
            slope = phi.T @ (times * (1 - p)) + usual * (1 - 2 * q) - 1e-2 * self.weights
            curve = (phi * (times * p * (1 - p))[:, None]).T @ phi + 2 * q * (1 - q) * square + 1e-2 * np.eye(2)
            step = np.linalg.solve(curve, slope)
            size = np.abs(step).max()
            self.weights = self.weights + step / max(1.0, size / 2)
            if size < CONVERGED:
                return


def calibrated(x: np.ndarray, times: np.ndarray) -> Calibration:
    """The calibration fitted to (m,) margins of answers, each given `times`; > 0 where it was predicted. O(m).

    >>> calibration = calibrated(np.array([1.0, -1.0]), np.array([800.0, 200.0]))
    >>> calibration.probability(np.array([1.0, 0.0, -1.0])).round(2).tolist()
    [0.8, 0.5, 0.2]
    """
    calibration, decided = Calibration(), (x != 0) & ~np.isnan(x)
    calibration._descend(features(x[decided]), times[decided], STEPS_OF_A_FIT)
    return calibration


def sigmoid_of(predictor: Predictor, slope: float) -> Probability:
    """P = sigma(slope * margin)."""
    from scipy.special import expit  # loaded slowly, and not needed for a calibration

    return _of_margins(predictor, lambda margin: expit(slope * margin))


def platt(predictor: Predictor, calibration: Calibration) -> Probability:
    """P by a calibration of margins in units of the predictor's scale."""
    return _of_margins(predictor, lambda margin: calibration.probability(margin / predictor.scale))


def _of_margins(predictor: Predictor, of_margin: Callable[[np.ndarray], np.ndarray]) -> Probability:
    """P by a function of a predictor's margins; NaN about unknown objects, whose id is -1."""

    def probability(rows: np.ndarray) -> np.ndarray:
        p = np.full(len(rows), np.nan)
        is_known = (rows >= 0).all(axis=1)
        p[is_known] = of_margin(predictor.margins(rows[is_known]))
        return p

    return probability
