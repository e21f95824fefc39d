"""The solvers that the papers print, as references: slow, with a step length to guess, and without a certificate.

Heim et al. 2014, Algorithm 1 (projected gradient with a fixed step) and McFee & Lanckriet 2011, App. B (projected
subgradient, here with the step a / sqrt(t) and the best iterate kept). Both minimise what `fista`, `pdhg` and `linear`
minimise; at large beta the second is percents to multiples above the optimum after thousands of steps.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.kernel_learning import problem as form
from stream_engine.kernel_learning.distance_operator import adjoint, excess
from stream_engine.kernel_learning.problem import Problem


class Descended(NamedTuple):
    u: np.ndarray
    objective: float
    trace: np.ndarray  # (steps,) objective of the best iterate so far


def projected_gradient(problem: Problem, start: np.ndarray, rate: float, steps: int) -> Descended:
    """Heim et al. 2014, Algorithm 1: u <- project(u - rate * (gradient of loss + cost)), `steps` times."""
    return _descend(problem, start, steps, lambda t, gradient: rate)


def projected_subgradient(problem: Problem, start: np.ndarray, rate: float, steps: int) -> Descended:
    """McFee & Lanckriet 2011, App. B, with step rate / (sqrt(t) |gradient|), t = 1, 2, ...; returns the best
    iterate."""
    return _descend(
        problem, start, steps, lambda t, gradient: rate / (np.sqrt(t) * max(np.linalg.norm(gradient), 1e-300))
    )


def _descend(problem, start, steps, length) -> Descended:
    u, cost = start.copy(), form.cost_vector(problem)
    ranks, best, trace = form.block_sizes(problem), (np.inf, start), []
    for t in range(1, steps + 1):
        x = form.forward(problem, u)
        objective = form.linear_cost(problem, u) + form.losses(problem, x)
        if objective < best[0]:
            best = objective, u.copy()
        trace.append(best[0])
        gradient = form.backward(problem, form.slope(problem, x)) + cost
        u = u - length(t, gradient) * gradient
        ranks = form.project(problem, u, ranks)
    return Descended(best[1], best[0], np.array(trace))


def poe_subgradient(
    kernels: list[np.ndarray], rows: np.ndarray, beta: float, diagonal: bool, rate: float, steps: int
) -> tuple[list[np.ndarray], float]:
    """`(W^p, objective)` of MKPOE in the paper's own variables, step by step as App. B writes it.

    d/dW^p = K^p + beta / |C| * K^p (sum over violated E_ij - E_kl) K^p; then W^p is projected (eigenvalues, or W_ii, >=
    0).
    """
    n = len(kernels[0])
    weights = [np.zeros((n, n)) for _ in kernels]
    best = np.inf, weights
    for t in range(1, steps + 1):
        gram = sum(k @ w @ k for k, w in zip(kernels, weights))
        slack = 1.0 + excess(np.ascontiguousarray(gram), rows)
        value = sum(np.vdot(w, k) for w, k in zip(weights, kernels)) + beta / len(rows) * np.maximum(slack, 0).sum()
        if value < best[0]:
            best = float(value), [w.copy() for w in weights]
        violated = adjoint((slack > 0).astype(float), rows, n) * (beta / len(rows))
        gradients = [k + k @ violated @ k for k in kernels]
        if diagonal:
            gradients = [np.diag(np.diag(g)) for g in gradients]
        size = np.sqrt(sum(np.vdot(g, g) for g in gradients))
        weights = [_project(w - rate / (np.sqrt(t) * size) * g, diagonal) for w, g in zip(weights, gradients)]
    return best[1], best[0]


def _project(w: np.ndarray, diagonal: bool) -> np.ndarray:
    return np.maximum(w, 0.0) if diagonal else form.project_psd(w, len(w))[0]
