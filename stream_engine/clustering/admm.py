"""Two-block ADMM (Douglas-Rachford) for both SDPs, with a rigorous gap as its stopping rule.

The two sets are S1 = {X psd, X <= I, X 1 = 1 [, tr X = k]} (projection: one eigen step) and S2 = {X >= 0}. One matrix V
carries primal and dual: Z = max(V, 0) is the nonnegative iterate, N = rho max(-V, 0) the multiplier of X >= 0, and

    X = P_S1(|V| + C / rho),    V <- V + alpha (X - Z),    alpha = 1.6.

C is W - lambda I scaled to unit spectral norm about. Every `CHECK` iterations the iterate is repaired to a strictly
feasible point (lower bound) and N gives an upper bound on the optimum; rho is moved so that both sides of the gap
close together. Anderson acceleration on V is used where the eigen step dominates. Memory: about 7 n^2 doubles, 15 with
acceleration. Per iteration one eigen step: O(n^2 r) while the rank r of X is small, O(n^3) otherwise.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stream_engine.clustering.admm_kernels import reflected, rescaled, target, with_multiplier
from stream_engine.clustering.anderson import Anderson
from stream_engine.clustering.dual_bounds import upper_bound
from stream_engine.clustering.feasible_point import feasible
from stream_engine.clustering.projection import Eigen, projected

ALPHA = 1.6
CHECK = 10
ACCELERATE_EVERY = 5
ACCELERATE_UP_TO = 1500  # objects: above, its history would not fit beside the rest
BALANCE = 1.4
PENALTY = 0.3, 300.0  # where the balance may move rho to


class State(NamedTuple):
    """What a later run can start from: primal and dual in one matrix, for W / scale and the penalty rho."""

    V: np.ndarray  # (n, n)
    rho: float


class Run(NamedTuple):
    """How the ADMM ended. `X` is strictly feasible; the last iterate is 1 1'/n + factor diag(x) factor'."""

    X: np.ndarray
    objective: float  # <C, X>, unscaled
    upper_bound: float
    factor: np.ndarray  # (n, r)
    x: np.ndarray  # (r,)
    state: State
    iterations: int


def run(
    C: np.ndarray,
    k: int | None,
    scale: float,
    unit: Callable[[np.ndarray, float], float],
    tol: float,
    max_iterations: int,
    start: State,
    known: float = -np.inf,
    progress: Callable[[int, float, float, float], None] | None = None,
) -> Run:
    """Iterate on C (n, n), which is (W - lambda I) / scale, until (upper bound - best objective) <= tol * unit.

    `unit(X, objective)` is what the gap is measured against, in scaled terms. `known`: objective of a feasible point
    that the caller holds (it counts in the gap, though X here may be another). `progress(iteration, gap, objective,
    bound)`.
    """
    loop = _Loop(C, k, unit, tol, start, known)
    while loop.iteration < max_iterations:
        loop.step()
        last = loop.iteration == max_iterations
        if loop.iteration % CHECK == 0 or last:
            gap = loop.check(last)
            if progress:
                progress(loop.iteration, gap, max(loop.lower, known) * scale, loop.upper * scale)
            if gap <= tol:
                break
    return Run(
        loop.best, loop.lower * scale, loop.upper * scale, loop.factor, loop.x, State(loop.V, loop.rho), loop.iteration
    )


class _Loop:
    """The iteration's working memory. Invariant: `lower` <= optimum <= `upper`, and `best` is feasible with `lower`."""

    def __init__(self, C, k, unit, tol, start: State, known: float):
        self.C, self.k, self.unit, self.tol, self.known = C, k, unit, tol, known
        self.n = len(C)
        self.V, self.rho = np.array(start.V), start.rho
        self.work, self.next = np.empty_like(self.V), np.empty_like(self.V)
        self.eigen = Eigen(self.n)
        self.anderson = Anderson(self.V.size) if self.n <= ACCELERATE_UP_TO else None
        self.iteration, self.lower, self.upper = 0, -np.inf, np.inf
        self.best = np.empty((0, 0))  # none before the first check
        self.factor, self.x, self.low_rank = np.empty((self.n, 0)), np.empty(0), False  # X = 1 1'/n

    def step(self) -> None:
        """One iteration: V becomes V + alpha (X - Z), or an accelerated point."""
        self.iteration += 1
        means = target(self.V, self.C, 1.0 / self.rho, self.work)
        before = self.eigen.expected
        values, vectors = self.eigen.leading(self.work, means)
        x = projected(values, self.k)
        count = int((x > 0).sum())
        self.eigen.used(count, vectors)
        self.low_rank = before <= 0.08 * self.n
        self.factor, self.x = vectors[:, :count], x[:count]
        half = self.factor * np.sqrt(self.x)
        np.matmul(half, half.T, out=self.work)
        squares, _ = reflected(self.V, self.work, 1.0 / self.n, ALPHA, self.next)
        if self.anderson is not None and not self.low_rank:
            self.anderson.offer(self.V, self.next, squares, self.iteration % ACCELERATE_EVERY == 0)
        self.V, self.next = self.next, self.V

    def check(self, last: bool) -> float:
        """Bring both bounds up to date; the gap relative to `unit`. Moves rho when one side lags behind."""
        self.work += 1.0 / self.n  # X of the last step
        value = float(np.vdot(self.C, self.work))
        point = feasible(self.work, self.k)
        lower = float(np.vdot(self.C, point))
        if lower > self.lower:
            self.lower, self.best = lower, point.copy() if point is self.work else point
        size = self.unit(point, lower)
        with_multiplier(self.V, self.C, self.rho, self.work)
        slack = 0.2 * self.tol * size
        upper = upper_bound(self.work, self.k, slack, self.factor if self.low_rank else None)
        self.upper = min(self.upper, upper)
        # the lower side lags by no more than what the caller's own point leaves open
        self._balance(min(abs(value - lower), max(upper - self.known, 0.5 * self.tol * size)), abs(upper - value))
        return max(0.0, self.upper - max(self.lower, self.known)) / size

    def _balance(self, primal: float, dual: float) -> None:
        factor = BALANCE if primal > 3 * dual else 1 / BALANCE if dual > 3 * primal else 1.0
        if factor != 1.0 and PENALTY[0] <= self.rho * factor <= PENALTY[1]:
            self.rho *= factor
            rescaled(self.V, 1 / factor)
            if self.anderson is not None:
                self.anderson.forget()
