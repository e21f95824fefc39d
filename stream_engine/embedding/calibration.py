"""Calibrated probabilities of an embedding for answers that it was not fitted to: scale and lapse rate."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit, logit

from stream_engine.embedding.descent import minimise
from stream_engine.embedding.lapse_prior import FIRST, LEAST, MOST, PRIOR
from stream_engine.evaluation.answer_probabilities import LARGEST

PRIOR_ANSWERS = 20.0  # answers, the weight of the prior of the scale


class Calibration(NamedTuple):
    """P(near) = lapse / 2 + (1 - lapse) sigma(scale Delta) of an unknown participant. A ridge shrinks distances: fits
    to few answers are underconfident, fits with many dimensions overconfident."""

    scale: float
    lapse: float


def calibrate(delta: np.ndarray, times: np.ndarray, fitted_lapse: float) -> Calibration:
    """The scale and the lapse with the least log loss of answers with these margins, > 0 expected, that the fit did not
    have: Platt's scaling with a lapse. Few answers leave them near 1 and the `fitted_lapse`. O(20 m).

    >>> calibration = calibrate(np.array([2.0, -2.0]), np.array([90_000.0, 10_000.0]), 0.05)
    >>> round(float(calibration.lapse / 2 + (1 - calibration.lapse) / (1 + np.exp(-2 * calibration.scale))), 2)
    0.9
    """
    a, b = PRIOR[0] + PRIOR_ANSWERS * fitted_lapse, PRIOR[1] + PRIOR_ANSWERS * (1.0 - fitted_lapse)

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        scale, lapse = np.exp(at[0]), expit(at[1])
        sigma = expit(np.clip(scale * delta, -LARGEST, LARGEST))
        p = np.maximum(lapse / 2 + (1 - lapse) * sigma, 1e-300)
        prior = PRIOR_ANSWERS / 4 * at[0] ** 2 - a * log_expit(at[1]) - b * log_expit(-at[1])
        by_scale = -(times / p) @ ((1 - lapse) * sigma * (1 - sigma) * scale * delta) + PRIOR_ANSWERS / 2 * at[0]
        by_lapse = -(times / p) @ (0.5 - sigma) * lapse * (1 - lapse) - a * (1 - lapse) + b * lapse
        return float(-(times @ np.log(p)) + prior), np.array([by_scale, by_lapse])

    scale, lapse = minimise(loss, np.array([0.0, logit(FIRST)]), tolerance=1e-9, max_iterations=100).x
    return Calibration(float(np.clip(np.exp(scale), 0.1, 10.0)), float(np.clip(expit(lapse), LEAST, MOST)))
