"""A low-rank metric of features: d(x, y) = |L (x - y)|^2, learned from comparisons with the loss of STE.

    min over L (d, D)    sum_t w_t log(1 + e^(s_t)) / sum_t w_t + ridge |L|_F^2,
    s_t = |L(x_i - x_j)|^2 - |L(x_k - x_l)|^2

so P(near) = sigmoid(-s). With L of full rank this is convex in M = L'L (the relative comparisons of Schultz & Joachims
2003, and of McFee & Lanckriet 2011 with K linear); with few rows it is not, and starts from the d leading principal
axes. It covers every object with features, compared or not. O(m d + n d D) per iteration of L-BFGS.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


class Metric(NamedTuple):
    """`map` (d, D): L; `objective`, of which `loss` is the mean log loss in nats an answer."""

    map: np.ndarray
    objective: float
    loss: float
    iterations: int


def fit(
    rows: np.ndarray,
    weight: np.ndarray,
    features: np.ndarray,
    d: int,
    ridge: float,
    start: np.ndarray | None = None,
    max_iterations: int = 300,
) -> Metric:
    """Learn L from rows d(i, j) < d(k, l), each `weight` times, about (n, D) features.

    >>> x = np.array([[0.0, 0.0], [1.0, 9.0], [4.0, 0.0]])  # the first feature tells, the second does not
    >>> found = fit(np.array([[0, 1, 0, 2]]), np.ones(1), x, 1, 0.01)
    >>> bool(abs(found.map[0, 0]) > 3 * abs(found.map[0, 1])), found.loss < 0.3
    (True, True)
    """
    first = principal(features, d) if start is None else start
    shape, total = first.shape, max(float(weight.sum()), 1e-300)

    def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradient = _loss(flat.reshape(shape), rows, weight, features)
        whole = loss / total + ridge * float(flat @ flat)
        return whole, gradient.ravel() / total + 2.0 * ridge * flat

    found = minimize(
        value_and_gradient, first.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": max_iterations}
    )
    made = found.x.reshape(shape)
    return Metric(made, float(found.fun), _loss(made, rows, weight, features)[0] / total, int(found.nit))


def principal(features: np.ndarray, d: int) -> np.ndarray:
    """(d', D), d' <= d: the leading principal axes, scaled so that objects are at a mean squared distance of 2 d'."""
    apart = features - features.mean(axis=0)
    _, sizes, axes = np.linalg.svd(apart, full_matrices=False)
    kept = max(min(d, int((sizes > 1e-9 * sizes.max(initial=0.0)).sum())), 1)
    axes = axes[:kept]
    spread = float(((apart @ axes.T) ** 2).sum() / max(len(features), 1))
    return axes * np.sqrt(kept / spread) if spread > 0 else axes


def _loss(made: np.ndarray, rows: np.ndarray, weight: np.ndarray, features: np.ndarray) -> tuple[float, np.ndarray]:
    """Sum of the losses, and its gradient by L (d, D)."""
    z = features @ made.T
    i, j, k, l = rows.T
    near, far = z[i] - z[j], z[k] - z[l]
    s = (near**2).sum(axis=1) - (far**2).sum(axis=1)
    pull = 2.0 * weight * expit(s)
    by_z = np.zeros_like(z)
    for column in range(z.shape[1]):
        a, b = pull * near[:, column], pull * far[:, column]
        by_z[:, column] = np.bincount(np.concatenate([i, j, k, l]), np.concatenate([a, -a, -b, b]), len(z))
    return float(weight @ np.logaddexp(0.0, s)), by_z.T @ features
