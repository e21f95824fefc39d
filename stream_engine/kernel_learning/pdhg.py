"""Restarted primal-dual hybrid gradient for the hinge loss; stops on the exact dual gap.

    min_u max_{0 <= y <= w}  cost'u + y'(m + A u)        u in the cone, m the margins

Chambolle & Pock 2011, with the restarts to the better of last and average iterate and the primal weight of Applegate et
al. 2021 (PDLP), here with the certificate of `problem.certify` as the measure of progress. One iteration costs what one
of FISTA does. Smoothing the hinge and running FISTA was slower in every case tried.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stream_engine.kernel_learning import problem as form
from stream_engine.kernel_learning.fista import Solution
from stream_engine.kernel_learning.problem import Certificate, Problem

ENOUGH = 0.2  # restart as soon as the gap fell to this fraction of the last restart's
SOME = 0.8  # or to this one when it is rising again


class _Candidate(NamedTuple):
    u: np.ndarray
    y: np.ndarray
    x: np.ndarray
    back: np.ndarray
    certificate: Certificate

    @property
    def slack(self) -> float:
        return self.certificate.objective - self.certificate.bound


def solve(
    problem: Problem,
    start: np.ndarray,
    dual: np.ndarray | None = None,
    tolerance: float = 1e-4,
    max_iterations: int = 20000,
    progress: Callable[..., None] = lambda done, total, **figures: None,
    check_every: int = 20,
) -> Solution:
    """Minimise a problem with the hinge loss from the feasible `start` (and a dual point in [0, w], if there is one).

    `Solution.certificate.dual` is the y to start from next time.
    """
    if problem.loss != "hinge":
        raise ValueError(f"pdhg.solve: got loss {problem.loss!r}, expected 'hinge'; use fista.solve")
    scaled, t = form.scaled(problem)
    y = np.clip(np.zeros(len(problem.rows)) if dual is None else dual, 0.0, scaled.weight)
    norm = max(form.map_norm(scaled, np.ones(len(problem.rows))), 1e-300) * 1.02  # power iteration is from below
    anchor = best = _candidate(scaled, start / t, y, form.forward(scaled, start / t))
    balance = float(np.linalg.norm(form.cost_vector(scaled))) / max(
        float(np.linalg.norm(np.ones(len(problem.rows)))), 1e-300
    )
    done = 0

    def tell_from(before: int) -> Callable[[int, Certificate], None]:
        return lambda its, c: progress(before + its, max_iterations, gap=c.gap, objective=c.objective)

    while done < max_iterations and best.certificate.gap > tolerance:
        anchor_before = anchor
        anchor, best, used = _epoch(
            scaled,
            anchor,
            best,
            norm,
            balance,
            tolerance,
            max_iterations - done,
            check_every,
            tell_from(done),
        )
        done += used
        balance = _rebalanced(balance, anchor_before, anchor)
    x = form.forward(scaled, best.u)
    return Solution(best.u * t, x, best.certificate, done, best.certificate.gap <= tolerance)


def _candidate(problem: Problem, u, y, x) -> _Candidate:
    back = form.backward(problem, y)
    return _Candidate(u, y, x, back, form.certify(problem, u, x, y, back))


def _rebalanced(balance: float, before: _Candidate, after: _Candidate) -> float:
    """The primal weight: how far y moved per move of u, smoothed in the logarithm (PDLP, sec. 3.3)."""
    moved_u, moved_y = np.linalg.norm(after.u - before.u), np.linalg.norm(after.y - before.y)
    if moved_u < 1e-12 or moved_y < 1e-12:
        return balance
    return float(np.exp(0.5 * np.log(moved_y / moved_u) + 0.5 * np.log(balance)))


def _epoch(problem, anchor, best, norm, balance, tolerance, budget, check_every, report):
    """Iterate from `anchor` until a restart is due; `(where to restart, the best certified so far, iterations)`."""
    cost, ranks = form.cost_vector(problem), form.block_sizes(problem)
    tau, sigma = 1.0 / (norm * balance), balance / norm
    u, y, x, back = anchor.u, anchor.y, anchor.x, anchor.back
    sums = [np.zeros_like(a) for a in (u, y, x)]
    previous, k = np.inf, 0
    while True:
        k += 1
        new = u - tau * (cost + back)
        ranks = form.project(problem, new, ranks)
        x_new = form.forward(problem, new)
        y = np.clip(y + sigma * (problem.margin + 2.0 * x_new - x), 0.0, problem.weight)
        u, x, back = new, x_new, form.backward(problem, y)
        for total, value in zip(sums, (u, y, x)):
            total += value
        if k % check_every and k < budget:
            continue
        last = _Candidate(u, y, x, back, form.certify(problem, u, x, y, back))
        mean = _candidate(problem, *(total / k for total in sums))
        better = min(last, mean, key=lambda c: c.slack)
        best = _merged(best, last, mean)
        report(k, best.certificate)
        due = better.slack <= ENOUGH * anchor.slack or (better.slack <= SOME * anchor.slack and better.slack > previous)
        if best.certificate.gap <= tolerance or due or k >= budget:
            return better, best, k
        previous = better.slack


def _merged(best: _Candidate, *others: _Candidate) -> _Candidate:
    """The best primal with the best bound: they need not come from the same iterate."""
    primal = min((best, *others), key=lambda c: c.certificate.objective)
    dual = max((best, *others), key=lambda c: c.certificate.bound)
    certificate = Certificate(primal.certificate.objective, dual.certificate.bound, dual.certificate.dual)
    return _Candidate(primal.u, dual.y, primal.x, dual.back, certificate)
