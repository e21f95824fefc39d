"""Accelerated projected gradient with restart for the smooth (STE) loss; stops on the exact dual gap.

FISTA (Beck & Teboulle 2009) with backtracking in both directions and the gradient restart of O'Donoghue & Candes
(2015). Heim et al.'s Algorithm 1 is the same step without momentum and with one fixed length; it needs about 40 times
as many. One iteration is one adjoint, one projection (an eigendecomposition a PSD block) and one forward map: O(m + sum
r^3).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stream_engine.kernel_learning import problem as form
from stream_engine.kernel_learning.problem import Certificate, Problem


class Solution(NamedTuple):
    """A feasible point in the problem's own units, its excess, and how far from optimal it can be at most."""

    u: np.ndarray
    x: np.ndarray
    certificate: Certificate
    iterations: int
    converged: bool


def solve(
    problem: Problem,
    start: np.ndarray,
    tolerance: float = 1e-5,
    max_iterations: int = 5000,
    progress: Callable[..., None] = lambda done, total, **figures: None,
    check_every: int = 10,
) -> Solution:
    """Minimise a problem with the STE loss from the feasible `start`; done when the relative gap is <= `tolerance`.

    Cut short by `max_iterations` it gives the best point of those that were certified (every `check_every` iterations
    and after the last: the objective may rise in between), with the best bound.
    """
    if problem.loss != "ste":
        raise ValueError(f"fista.solve: loss {problem.loss!r} is not smooth; got it, expected 'ste'; use pdhg.solve")
    scaled, t = form.scaled(problem)
    cost = form.cost_vector(scaled)
    u = start / t
    x = form.forward(scaled, u)
    ranks = form.block_sizes(scaled)
    step = 4.0 / max(form.map_norm(scaled, np.sqrt(scaled.weight)) ** 2, 1e-300)
    v, x_v, momentum = u, x, 1.0
    best, iteration = Solution(u, x, _certificate(scaled, u, x), 0, False), 0
    while iteration < max_iterations and best.certificate.gap > tolerance:
        iteration += 1
        gradient = form.backward(scaled, form.slope(scaled, x_v))
        new, x_new, step, ranks = _descend(scaled, v, x_v, gradient, cost, step, ranks)
        if np.vdot(v - new, new - u) > 0:  # momentum points uphill: forget it
            momentum = 1.0
        following = (1.0 + np.sqrt(1.0 + 4.0 * momentum * momentum)) / 2.0
        push = (momentum - 1.0) / following
        v, x_v = new + push * (new - u), x_new + push * (x_new - x)  # the map is linear: no second evaluation
        u, x, momentum = new, x_new, following
        step *= 1.05
        if iteration % check_every == 0 or iteration == max_iterations:
            x = form.forward(scaled, u)  # afresh, so that rounding in the running sums never reaches the certificate
            best = _better(best, u, x, _certificate(scaled, u, x))
            progress(iteration, max_iterations, gap=best.certificate.gap, objective=best.certificate.objective)
    return best._replace(u=best.u * t, iterations=iteration, converged=best.certificate.gap <= tolerance)


def _better(best: Solution, u: np.ndarray, x: np.ndarray, new: Certificate) -> Solution:
    """The point with the smaller objective, with the larger bound."""
    old = best.certificate
    _, bound, dual = new if new.bound > old.bound else old
    if new.objective < old.objective:
        best = best._replace(u=u, x=x)
    return best._replace(certificate=Certificate(min(old.objective, new.objective), bound, dual))


def _certificate(problem: Problem, u: np.ndarray, x: np.ndarray) -> Certificate:
    y = form.slope(problem, x)
    return form.certify(problem, u, x, y, form.backward(problem, y))


def _descend(problem, v, x_v, gradient, cost, step, ranks):
    """One projected step from v, shortened until the quadratic model at v lies above the loss at the new point."""
    value = form.losses(problem, x_v)
    while True:
        new = v - step * (gradient + cost)
        ranks = form.project(problem, new, ranks)
        x_new = form.forward(problem, new)
        move = new - v
        model = value + np.vdot(gradient, move) + np.vdot(move, move) / (2.0 * step)
        if form.losses(problem, x_new) <= model + 1e-13 * abs(value):
            return new, x_new, step, ranks
        step /= 2.0
