"""How people may answer, given where objects lie: more than one, since nobody knows which it is.

    P(d(i, j) < d(k, l)) = lapse / 2 + (1 - lapse) F(scale delta)
    ste     delta = |x_k - x_l|^2 - |x_i - x_j|^2,   F logistic    (van der Maaten & Weinberger 2012)
    t-ste   delta = log(1 + |x_k - x_l|^2 / v) - log(1 + |x_i - x_j|^2 / v),   F logistic; v the spread of the points
    probit  delta = |x_k - x_l| - |x_i - x_j|,   F the normal distribution    (Thurstone 1927)
    city block  as probit, with the sum of the differences along each axis for |.|,   F logistic    (Attneave 1950)

The scale is that under which the study's own answers are likeliest, with objects and workers' lapses where the
embedding has them.
"""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

MODELS = ("ste", "t-ste", "probit", "city block")


def differences(model: str, points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(q,) delta of (q, 4) rows: above 0 where d(i, j) < d(k, l).

    >>> differences("probit", np.array([[0.0], [1.0], [3.0]]), np.array([[0, 1, 0, 2]])).tolist()
    [2.0]
    """
    i, j, k, l = rows.T
    if model == "city block":
        return np.abs(points[k] - points[l]).sum(axis=1) - np.abs(points[i] - points[j]).sum(axis=1)
    near, far = (((points[one] - points[other]) ** 2).sum(axis=1) for one, other in ((i, j), (k, l)))
    if model == "ste":
        return far - near
    if model == "probit":
        return np.sqrt(far) - np.sqrt(near)
    spread = max(float(points.var(axis=0).sum()), 1e-300)
    return np.log1p(far / spread) - np.log1p(near / spread)


def probability(model: str, delta: np.ndarray, lapse: np.ndarray | float) -> np.ndarray:
    """(q,) P(yes) of scaled differences."""
    p = ndtr(np.clip(delta, -30, 30)) if model == "probit" else 1 / (1 + np.exp(-np.clip(delta, -500, 500)))
    return lapse / 2 + (1 - lapse) * p


def scale(model: str, delta: np.ndarray, yes: np.ndarray, no: np.ndarray, lapse: np.ndarray) -> float:
    """Of the differences, by maximum likelihood, from questions (q,) that were answered `yes` and `no` so often."""
    unit = float(np.sqrt((delta**2).mean())) or 1.0

    def cost(at: float) -> float:
        p = probability(model, np.exp(at) / unit * delta, lapse)
        return -float(yes @ np.log(np.maximum(p, 1e-12)) + no @ np.log(np.maximum(1 - p, 1e-12)))

    return float(np.exp(minimize_scalar(cost, bounds=(-5, 7), method="bounded").x)) / unit
