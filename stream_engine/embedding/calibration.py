"""Calibrated probabilities of an embedding for answers that it was not fitted to: scale and lapse rate.

What lapses are like before anybody answers: of most people small, of those who guess near 1.

    prior(lapse_w) = (1 - g) K(lapse_w) + g K(1 - lapse_w),   K(x) = x^a (1 - x)^b,   a, b = PRIOR,   prior(g) = K(g)

g is the share of the workers who guess, estimated with the rest (empirical Bayes; densities over the logits). One
population alone would draw a guesser of 25 answers halfway back to those who know. Answers that name nobody are many
people's: their one lapse has the prior K.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

from stream_engine.embedding.questions import NOBODY
from stream_engine.evaluation.answer_probabilities import probability

PRIOR = (0.5, 4.5)  # pseudo-answers of guessing and of knowing
FIRST = 0.05  # lapse, and share of the workers who guess, that a descent begins at
LEAST, MOST = 1e-4, 0.99  # both stay between


def guesses(lapse: np.ndarray, share: float) -> np.ndarray:
    """(n_workers,) probability that each is one of those who guess, given that they are this share; 0 for `NOBODY`.

    >>> guesses(np.array([0.9, 0.1, 0.9]), 0.1).round(3).tolist()
    [0.0, 0.0, 0.999]
    """
    if share <= 0.0:
        return np.zeros(len(lapse))
    a, b = PRIOR
    odds = np.log(share) - np.log1p(-share) + (b - a) * (np.log(lapse) - np.log1p(-lapse))
    found = 1.0 / (1.0 + np.exp(-odds))
    found[NOBODY] = 0.0
    return found


def cost(lapse: np.ndarray, share: float) -> tuple[float, np.ndarray, float]:
    """- log prior of the lapses (n_workers,) and of the share, with its slopes in the logits of both."""
    a, b = PRIOR
    known, lost, who = np.log(lapse), np.log1p(-lapse), guesses(lapse, share)
    workers = len(lapse) - 1
    own = a * known + b * lost
    own[1:] += np.log1p(-share) - np.log1p(-who[1:])  # log of a sum: its first term over that term's part of it
    total = -float(own.sum())
    slope = ((1 - who) * b + who * a) * lapse - ((1 - who) * a + who * b) * (1 - lapse)
    share_slope = workers * share - float(who.sum())
    if workers:
        total -= float(a * np.log(share) + b * np.log1p(-share))
        share_slope += b * share - a * (1 - share)
    return total, slope, share_slope


WORTH = 20.0  # answers, the weight of the prior of the scale


class Calibration(NamedTuple):
    """P(near) = lapse / 2 + (1 - lapse) sigma(scale Delta) of an unknown participant. A ridge shrinks distances: fits
    to few answers are underconfident, fits with many dimensions overconfident."""

    scale: float
    lapse: float


def calibrate(delta: np.ndarray, times: np.ndarray, fitted: float) -> Calibration:
    """The scale and the lapse with the least log loss of answers with these margins, > 0 expected, that the fit did not
    have: Platt's scaling with a lapse. Few answers leave them near 1 and the `fitted` lapse. O(20 m).

    >>> made = calibrate(np.array([2.0, -2.0]), np.array([90_000.0, 10_000.0]), 0.05)
    >>> round(float(made.lapse / 2 + (1 - made.lapse) / (1 + np.exp(-2 * made.scale))), 2)
    0.9
    """
    a, b = PRIOR[0] + WORTH * fitted, PRIOR[1] + WORTH * (1.0 - fitted)

    def loss(at: np.ndarray) -> float:
        scale, lapse = np.exp(at[0]), expit(at[1])
        p = probability(scale * delta, lapse)
        prior = WORTH / 4 * at[0] ** 2 - a * np.log(lapse) - b * np.log1p(-lapse)
        return float(-(times @ np.log(np.maximum(p, 1e-300))) + prior)

    bounds = [(-np.log(10.0), np.log(10.0)), (logit(LEAST), logit(MOST))]
    found = minimize(loss, np.array([0.0, logit(FIRST)]), bounds=bounds, method="L-BFGS-B")
    return Calibration(float(np.exp(found.x[0])), float(expit(found.x[1])))
