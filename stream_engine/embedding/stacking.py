"""A participant's log odds as a sum of those of the group's map and of their own, shrunk to the group's.

    logit P = a group + b own,   (a, b) ~ N((1, 0), tau^2 I)

Predictions of answers that neither map was fitted to (`differences`) fit a and b, one participant at a time, at each
tau of a grid; tau = 0 is the group's map as it is. How likely each tau is a priori is fitted over the participants (EM
on Laplace's marginal likelihoods, with a prior that is worth two participants), so that where people are alike, all
stay at the group's map, however few answers each gave. A participant's (a, b) is the mean over tau given their answers.
"""

import numpy as np

from stream_engine.data.compiled import njit

TAUS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6)
PRIOR_PARTICIPANTS = np.array(
    [1.0, *[1 / (len(TAUS) - 1)] * (len(TAUS) - 1)]
)  # participants' worth of prior, half of it alike
GROUP = (1.0, 0.0)
STEPS, PASSES = 12, 100  # of Newton's method at most; of EM
CONVERGED = 1e-4  # length of the last step of Newton's method
MAX_COEFFICIENT = 1.0  # neither coefficient is larger: a multiple of own log odds is too certain of few answers


def stack_coefficients(
    group: np.ndarray, own: np.ndarray, times: np.ndarray, participant: np.ndarray, n: int
) -> np.ndarray:
    """(n, 2) coefficients a, b of participants, by the log odds (m,) of the answers that each gave, > 0 predicted.

    >>> odds = np.tile([2.0, 2.0, 2.0, -2.0], 200)
    >>> group, own = np.concatenate([0 * odds, odds]), np.concatenate([odds, 0.5 * odds])
    >>> coefficients = stack_coefficients(group, own, np.ones(1600), np.repeat([0, 1], 800), 2)
    >>> bool(abs(coefficients[0, 1] - 0.55) < 0.05), bool(abs(coefficients[1] @ [1, 0.5] - 0.55) < 0.05)
    (True, True)
    """
    order = np.argsort(participant, kind="stable")
    first = np.searchsorted(participant[order], np.arange(n + 1))
    coefficients, logs = _candidates(group[order], own[order], times[order], first)
    prior = PRIOR_PARTICIPANTS / PRIOR_PARTICIPANTS.sum()
    for _ in range(PASSES):
        share = _shares(logs, prior)
        prior = (share.sum(axis=0) + PRIOR_PARTICIPANTS) / (len(logs) + PRIOR_PARTICIPANTS.sum())
    return np.einsum("pt,ptk->pk", _shares(logs, prior), coefficients)


def _shares(logs: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """(p, t) probability of each tau for each participant."""
    odds = logs + np.log(prior)
    share = np.exp(odds - odds.max(axis=1, keepdims=True))
    return share / share.sum(axis=1, keepdims=True)


@njit(cache=True, nogil=True)
def _candidates(group, own, times, first):
    """(p, t, 2) coefficients of each participant, whose answers are those from first[p] on, at each tau, and (p, t) log
    marginal likelihoods, by Laplace's method."""
    participants = len(first) - 1
    coefficients, logs = np.empty((participants, len(TAUS), 2)), np.empty((participants, len(TAUS)))
    for number in range(participants):
        odds = group[first[number] : first[number + 1]], own[first[number] : first[number + 1]]
        n = times[first[number] : first[number + 1]]
        a, b = GROUP
        coefficients[number, 0, 0], coefficients[number, 0, 1] = a, b
        logs[number, 0] = -_sums(odds[0], odds[1], n, a, b)[0]
        for at in range(1, len(TAUS)):
            precision, determinant = 1.0 / TAUS[at] ** 2, 1.0
            for _ in range(STEPS):
                _, slope_a, slope_b, curve_a, curve_b, cross = _sums(odds[0], odds[1], n, a, b)
                slope_a, slope_b = slope_a - precision * (a - GROUP[0]), slope_b - precision * (b - GROUP[1])
                curve_a, curve_b = curve_a + precision, curve_b + precision
                determinant = curve_a * curve_b - cross * cross
                step_a = (curve_b * slope_a - cross * slope_b) / determinant
                step_b = (curve_a * slope_b - cross * slope_a) / determinant
                a = min(max(a + step_a, -MAX_COEFFICIENT), MAX_COEFFICIENT)
                b = min(max(b + step_b, -MAX_COEFFICIENT), MAX_COEFFICIENT)
                if step_a * step_a + step_b * step_b < CONVERGED * CONVERGED:
                    break
            coefficients[number, at, 0], coefficients[number, at, 1] = a, b
            prior = precision / 2 * ((a - GROUP[0]) ** 2 + (b - GROUP[1]) ** 2) - np.log(precision)
            logs[number, at] = -_sums(odds[0], odds[1], n, a, b)[0] - prior - np.log(determinant) / 2
    return coefficients, logs


@njit(cache=True, nogil=True)
def _sums(group, own, times, a, b):
    """The log loss of answers with log odds a group + b own, > 0 predicted, what it falls by along a and b, and its
    curvature along a, along b and along both."""
    loss = slope_a = slope_b = curve_a = curve_b = cross = 0.0
    for t in range(len(group)):
        odds = a * group[t] + b * own[t]
        e = np.exp(-abs(odds))
        loss += times[t] * (max(-odds, 0.0) + np.log1p(e))
        push = times[t] * (e if odds > 0.0 else 1.0) / (1.0 + e)
        curve = times[t] * e / (1.0 + e) ** 2
        slope_a += push * group[t]
        slope_b += push * own[t]
        curve_a += curve * group[t] ** 2
        curve_b += curve * own[t] ** 2
        cross += curve * group[t] * own[t]
    return loss, slope_a, slope_b, curve_a, curve_b, cross


def losses(odds: np.ndarray) -> np.ndarray:
    """(m,) log loss of each answer.

    >>> losses(np.array([0.0, 800.0, -800.0])).round(3).tolist()
    [0.693, 0.0, 800.0]
    """
    return np.maximum(-odds, 0.0) + np.log1p(np.exp(-np.abs(odds)))
