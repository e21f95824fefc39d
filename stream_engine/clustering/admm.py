"""Two-block ADMM (Douglas-Rachford) for both SDPs, with a rigorous gap between a feasible point and an upper bound as
its stopping rule."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stream_engine.clustering.anderson import Anderson
from stream_engine.clustering.dual_bounds import upper_bound
from stream_engine.clustering.feasible_points import feasible
from stream_engine.clustering.projection import SINGLE_PRECISION_ABOVE, Eigen, project_eigenvalues
from stream_engine.data.compiled import njit


@njit(cache=True)
def target(V, C, scale, out):
    """out = |V| + scale C; returns its row means. Like the next three, one pass over (n, n) matrices."""
    n = V.shape[0]
    means = np.empty(n)
    for i in range(n):
        total = 0.0
        for j in range(n):
            value = abs(V[i, j]) + scale * C[i, j]
            out[i, j] = value
            total += value
        means[i] = total / n
    return means


@njit(cache=True)
def reflect(V, X, flat, alpha, out):
    """out = V + alpha (X + flat - max(V, 0)); returns |X + flat - max(V, 0)|_F^2, least X + flat."""
    n = V.shape[0]
    squares, smallest = 0.0, np.inf
    for i in range(n):
        row_squares = 0.0
        for j in range(n):
            x = X[i, j] + flat
            v = V[i, j]
            r = x - v if v > 0.0 else x
            smallest = min(smallest, x)
            row_squares += r * r
            out[i, j] = v + alpha * r
        squares += row_squares
    return squares, smallest


@njit(cache=True)
def with_multiplier(V, C, rho, out):
    """out = C + N with N = rho max(-V, 0)."""
    n = V.shape[0]
    for i in range(n):
        for j in range(n):
            v = V[i, j]
            out[i, j] = C[i, j] - rho * v if v < 0.0 else C[i, j]


@njit(cache=True)
def rescale_multiplier(V, factor):
    """The negative part of V times `factor`, in place."""
    n = V.shape[0]
    for i in range(n):
        for j in range(n):
            if V[i, j] < 0.0:
                V[i, j] *= factor


RELAXATION = 1.6  # alpha, over-relaxation of each step
CHECK_EVERY = 10  # iterations from one gap to the next
ACCELERATE_EVERY = 5  # iterations from one accelerated point to the next
ACCELERATE_UP_TO = 1500  # objects; the history of more would take too much memory
PENALTY_STEP = 1.4  # factor by which rho moves
PENALTY_RANGE = 0.3, 300.0  # of rho


# The two sets are S1 = {X psd, X <= I, X 1 = 1 [, tr X = k]} (projection: one eigen step) and S2 = {X >= 0}. One matrix
# V carries primal and dual: Z = max(V, 0) is the nonnegative iterate, N = rho max(-V, 0) the multiplier of X >= 0, and
#
#     X = P_S1(|V| + C / rho),    V <- V + alpha (X - Z),    alpha = RELAXATION.
#
# C is W - lambda I, scaled to a spectral norm of about 1. Every CHECK_EVERY iterations the iterate is repaired to a
# strictly feasible point (lower bound), and N gives an upper bound on the optimum; rho is moved so that both sides of
# the gap close together. Memory: about 7 n^2 doubles, 15 with Anderson acceleration. One eigen step an iteration:
# O(n^2 r) while the rank r of X is small, O(n^3) otherwise.


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
    known_objective: float = -np.inf,
    progress: Callable[[int, float, float, float], bool | None] | None = None,
) -> Run:
    """Iterate on C (n, n), which is (W - lambda I) / scale, until (upper bound - best objective) <= tol * unit.

    `unit(X, objective)` is what the gap is measured against, in scaled terms. `known_objective` is the objective of a
    feasible point that the caller has already; it counts in the gap, although X here may be another point.
    `progress(iteration, gap, objective, bound)` ends the iteration where it returns True.
    """
    loop = _Loop(C, k, unit, tol, start, known_objective)
    while loop.iteration < max_iterations:
        loop.step()
        last = loop.iteration == max_iterations
        if loop.iteration % CHECK_EVERY == 0 or last:
            gap = loop.check(last)
            stop = progress and progress(
                loop.iteration, gap, max(loop.lower, known_objective) * scale, loop.upper * scale
            )
            if gap <= tol or stop:
                break
    return Run(
        loop.best, loop.lower * scale, loop.upper * scale, loop.factor, loop.x, State(loop.V, loop.rho), loop.iteration
    )


class _Loop:
    """The iteration's working memory. Invariant: `lower` <= optimum <= `upper`, and `best` is feasible with `lower`."""

    def __init__(self, C, k, unit, tol, start: State, known_objective: float):
        self.C, self.k, self.unit, self.tol, self.known_objective = C, k, unit, tol, known_objective
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
        expected_rank = self.eigen.n_expected
        values, vectors = self.eigen.leading(self.work, means)
        x = project_eigenvalues(values, self.k)
        count = int((x > 0).sum())
        self.eigen.remember(count, vectors)
        self.low_rank = expected_rank <= 0.08 * self.n
        self.factor, self.x = vectors[:, :count], x[:count]
        root = self.factor * np.sqrt(self.x)
        np.matmul(root, root.T, out=self.work)
        squares, _ = reflect(self.V, self.work, 1.0 / self.n, RELAXATION, self.next)
        if self.anderson is not None and not self.low_rank:
            self.anderson.offer(self.V, self.next, squares, self.iteration % ACCELERATE_EVERY == 0)
        self.V, self.next = self.next, self.V

    def check(self, last: bool) -> float:
        """Bring both bounds up to date; the gap relative to `unit`. Moves rho when one side lags behind."""
        self.work += 1.0 / self.n  # X of the last step
        iterate_objective = float(np.vdot(self.C, self.work))
        feasible_point = feasible(self.work, self.k)
        lower = float(np.vdot(self.C, feasible_point))
        if lower > self.lower:
            self.lower, self.best = lower, feasible_point.copy() if feasible_point is self.work else feasible_point
        size = self.unit(feasible_point, lower)
        with_multiplier(self.V, self.C, self.rho, self.work)
        slack = 0.2 * self.tol * size
        upper = upper_bound(self.work, self.k, slack, self.factor if self.low_rank or self.k else None)
        self.upper = min(self.upper, upper)
        # the lower bound lags by at most what the objective of the caller's point leaves open
        self._balance(
            min(abs(iterate_objective - lower), max(upper - self.known_objective, 0.5 * self.tol * size)),
            abs(upper - iterate_objective),
        )
        gap = max(0.0, self.upper - max(self.lower, self.known_objective)) / size
        self.eigen.single_precision &= gap > SINGLE_PRECISION_ABOVE
        return gap

    def _balance(self, primal: float, dual: float) -> None:
        factor = PENALTY_STEP if primal > 3 * dual else 1 / PENALTY_STEP if dual > 3 * primal else 1.0
        if factor != 1.0 and PENALTY_RANGE[0] <= self.rho * factor <= PENALTY_RANGE[1]:
            self.rho *= factor
            rescale_multiplier(self.V, 1 / factor)
            if self.anderson is not None:
                self.anderson.forget()
