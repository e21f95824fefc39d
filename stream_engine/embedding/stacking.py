"""A participant's log odds as a sum of those of the group's map and of their own, shrunk to the group's.

    logit P = a group + b own,   (a, b) ~ N((1, 0), tau^2 I)

Predictions of answers that neither map was fitted to (`differences`) fit a and b, one participant at a time, at each
tau of a grid; tau = 0 is the group's map as it is. How likely each tau is a priori is fitted over the participants (EM
on Laplace's marginal likelihoods, with a prior that is worth two participants), so that where people are alike, all
stay at the group's map, however few answers each gave. A participant's (a, b) is the mean over tau given their answers.
"""

import numpy as np

TAUS = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6)
PRIOR_PARTICIPANTS = np.array(
    [1.0, *[1 / (len(TAUS) - 1)] * (len(TAUS) - 1)]
)  # participants' worth of prior, half of it alike
GROUP = (1.0, 0.0)
STEPS, PASSES = 12, 100  # of Newton's method; of EM
MAX_COEFFICIENT = 3.0  # neither coefficient is larger


def stack_coefficients(group: list[np.ndarray], own: list[np.ndarray], times: list[np.ndarray]) -> np.ndarray:
    """(p, 2) coefficients a, b of participants, by the log odds (m_p,) of the answers that each gave, > 0 predicted.

    >>> odds = np.tile([2.0, 2.0, 2.0, -2.0], 200)
    >>> coefficients = stack_coefficients([0 * odds, odds], [odds, 0.5 * odds], [np.ones(800)] * 2)
    >>> bool(abs(coefficients[0, 1] - 0.55) < 0.05), bool(abs(coefficients[1] @ [1, 0.5] - 0.55) < 0.05)
    (True, True)
    """
    if not group:
        return np.zeros((0, 2))
    coefficients, evidence = zip(
        *(_candidates(np.stack([column, own_column], 1), n) for column, own_column, n in zip(group, own, times))
    )
    logs = np.array(evidence)
    prior = PRIOR_PARTICIPANTS / PRIOR_PARTICIPANTS.sum()
    for _ in range(PASSES):
        share = _shares(logs, prior)
        prior = (share.sum(axis=0) + PRIOR_PARTICIPANTS) / (len(logs) + PRIOR_PARTICIPANTS.sum())
    return np.einsum("pt,ptk->pk", _shares(logs, prior), np.array(coefficients))


def _shares(logs: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """(p, t) probability of each tau for each participant."""
    odds = logs + np.log(prior)
    share = np.exp(odds - odds.max(axis=1, keepdims=True))
    return share / share.sum(axis=1, keepdims=True)


def _candidates(odds: np.ndarray, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(t, 2) coefficients at each tau, and (t,) log marginal likelihoods, by Laplace's method."""
    coefficients, logs = np.tile(GROUP, (len(TAUS), 1)), np.zeros(len(TAUS))
    logs[0] = -loss(odds @ coefficients[0], times)
    for at, tau in enumerate(TAUS[1:], 1):
        precision, point = 1 / tau**2, coefficients[at - 1].copy()
        for _ in range(STEPS):
            p = 1 / (1 + np.exp(-np.clip(odds @ point, -500, 500)))
            slope = odds.T @ (times * (1 - p)) - precision * (point - GROUP)
            curve = (odds * (times * p * (1 - p))[:, None]).T @ odds + precision * np.eye(2)
            point = np.clip(point + np.linalg.solve(curve, slope), -MAX_COEFFICIENT, MAX_COEFFICIENT)
        coefficients[at] = point
        prior = precision / 2 * float(((point - GROUP) ** 2).sum()) - np.log(precision)
        logs[at] = -loss(odds @ point, times) - prior - np.linalg.slogdet(curve)[1] / 2
    return coefficients, logs


def loss(odds: np.ndarray, times: np.ndarray) -> float:
    """The log loss of answers with these log odds, > 0 predicted."""
    return float(times @ losses(odds))


def losses(odds: np.ndarray) -> np.ndarray:
    """(m,) log loss of each answer.

    >>> losses(np.array([0.0, 800.0, -800.0])).round(3).tolist()
    [0.693, 0.0, 800.0]
    """
    return np.maximum(-odds, 0.0) + np.log1p(np.exp(-np.abs(odds)))
