"""The prior of lapse rates: those of most participants are small, those of participants who guess near 1.

    prior(lapse_w) = (1 - g) K(lapse_w) + g K(1 - lapse_w),   K(x) = x^a (1 - x)^b,   a, b = PRIOR,   prior(g) = K(g)

g is the share of the participants who guess, estimated with the other parameters (empirical Bayes; densities over the
logits). A single population would pull a guessing participant with 25 answers halfway towards the others. Answers
without a participant come from many people: their one lapse rate has the prior K.
"""

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.embedding.questions import NOBODY

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
    p = 1.0 / (1.0 + np.exp(-odds))
    p[NOBODY] = 0.0
    return p


@njit(cache=True, nogil=True)
def cost(lapse: np.ndarray, share: float) -> tuple[float, np.ndarray, float]:
    """- log prior of the lapses (n_workers,) and of the share, with its slopes in the logits of both."""
    a, b = PRIOR
    workers, slope, total, guessers = len(lapse) - 1, np.empty(len(lapse)), 0.0, 0.0
    for w in range(1 + workers):
        log_lapse, log_rest = np.log(lapse[w]), np.log1p(-lapse[w])
        total -= a * log_lapse + b * log_rest
        p_guesser = 0.0
        if w != NOBODY and share > 0.0:
            p_guesser = 1.0 / (1.0 + np.exp(-(np.log(share) - np.log1p(-share) + (b - a) * (log_lapse - log_rest))))
        if w != NOBODY:  # log of a sum: its first term over that term's part of it
            total -= np.log1p(-share) - np.log1p(-p_guesser)
        guessers += p_guesser
        slope[w] = ((1.0 - p_guesser) * b + p_guesser * a) * lapse[w] - ((1.0 - p_guesser) * a + p_guesser * b) * (
            1.0 - lapse[w]
        )
    share_slope = workers * share - guessers
    if workers:
        total -= a * np.log(share) + b * np.log1p(-share)
        share_slope += b * share - a * (1.0 - share)
    return total, slope, share_slope
