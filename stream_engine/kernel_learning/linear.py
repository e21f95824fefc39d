"""The hinge problem without PSD blocks, a linear program, by active columns, smoothing and L-BFGS-B.

    min e'mu + sum_t w_t max(0, 1 + (D mu)_t)    over mu >= 0

RCKL-MKL with the hinge (Heim et al. 2014, eq. 6; a handful of columns) and the diagonal form of MKPOE (McFee &
Lanckriet 2011, sec. 4.4; one column per kernel and object). Few columns carry weight, so the problem is solved on those
whose dual constraint e + D'y >= 0 fails, with the hinge rounded over a width delta: its minimiser gives a dual point y
for free, and then P - D <= delta / 4 * (weight of comparisons inside the rounding). delta shrinks until the exact gap
is small enough. Once it is near, or where rounding no longer is what keeps the gap open (huge weights, nearly dependent
columns), the active columns and the comparisons near their kink go to HiGHS: column generation from a good start.
One round is O(m * active) times the L-BFGS-B iterations, and one pass over all columns.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog, minimize
from scipy.sparse import csr_array, eye_array, hstack

from stream_engine.kernel_learning.problem import Certificate, largest_share

NEAR = 1e-2  # relative gap from which on HiGHS is faster than more smoothing
ROUNDS, INNER = 200, 300  # at most so many, with so many iterations of L-BFGS-B each


class ColumnMap(NamedTuple):
    """D as two functions, so that all of its columns need never stand in memory at once."""

    rows: int
    cost: np.ndarray  # (A,) float64 > 0: e
    take: Callable[[np.ndarray], np.ndarray]  # column numbers -> (m, c) dense
    back: Callable[[np.ndarray], np.ndarray]  # y (m,) -> D'y (A,)


class LinearSolution(NamedTuple):
    """The best point found, and what proves how good it is; `converged`: the gap is within the tolerance."""

    mu: np.ndarray  # (A,) >= 0
    x: np.ndarray  # (m,) D mu
    certificate: Certificate
    iterations: int
    converged: bool


def dense_map(columns: np.ndarray, cost: np.ndarray) -> ColumnMap:
    """The map of a matrix that is there."""
    return ColumnMap(len(columns), cost, lambda which: columns[:, which], lambda y: columns.T @ y)


def solve(
    columns: ColumnMap,
    weight: np.ndarray,
    tolerance: float = 1e-4,
    start: np.ndarray | None = None,
    max_iterations: int = 20000,
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
) -> LinearSolution:
    """Minimise the problem above; done when the relative exact gap is <= `tolerance`, or with the best point and the
    best bound after `max_iterations` of L-BFGS-B, where a program for HiGHS counts as one.

    >>> s = solve(dense_map(np.array([[-1.0], [-1.0]]), np.array([0.5])), np.ones(2))
    >>> s.mu.round(3).tolist(), round(s.certificate.objective, 3)
    ([1.0], 0.5)
    """
    mu = np.zeros(len(columns.cost)) if start is None else start.copy()
    active = np.flatnonzero(mu > 0)
    held = columns.take(active)
    delta, iterations, exact = 1.0, 0, False
    best = _certify(columns, weight, mu, held @ mu[active], weight.copy(), columns.back(weight))
    for _ in range(ROUNDS):
        if best.certificate.gap <= tolerance or iterations >= max_iterations:
            break
        if exact:
            mu[active], y = _vertex(held, weight, columns.cost[active], mu[active])
            iterations += 1
        else:
            most = min(INNER, max_iterations - iterations)
            mu[active], used = _smoothed(held, weight, columns.cost[active], mu[active], delta, most)
            iterations += max(used, 1)
            y = weight * np.clip((1.0 + held @ mu[active]) / delta, 0.0, 1.0)
        x, back = held @ mu[active], columns.back(y)
        candidate = _certify(columns, weight, mu, x, y, back)
        best = _merged(best, candidate)
        told = {"gap": best.certificate.gap, "objective": best.certificate.objective}
        if progress(iterations, max_iterations, **told):
            break
        kept, missing = _next_active(columns.cost + back, columns.cost, mu, active)
        rounding = _rounding(weight, 1.0 + x, y)
        if len(missing) == 0 or rounding > 0.5 * (candidate.certificate.objective - candidate.certificate.bound):
            delta *= 0.4
            exact |= rounding < 0.1 * tolerance * candidate.certificate.objective
        exact |= best.certificate.gap < NEAR and bool(mu.any())  # at 0 there is no good point to start from yet
        mu[np.setdiff1d(active, kept)] = 0.0
        held = np.concatenate([held[:, np.isin(active, kept)], columns.take(missing)], axis=1)
        active = np.concatenate([kept, missing])
    return best._replace(iterations=iterations, converged=best.certificate.gap <= tolerance)


def _vertex(held, weight, cost, mu) -> tuple[np.ndarray, np.ndarray]:
    """`(mu, y)` of the program over the active columns by HiGHS, near a good `mu`.

    Only comparisons near their kink can change sides: the others are fixed, violated ones at y = w as a linear cost,
    satisfied ones at y = 0. Whichever does cross joins the program and it is solved again, so that nothing is assumed
    in the end. The box keeps a program that has too few comparisons from running off.
    """
    c = held.shape[1]
    slack = 1.0 + held @ mu
    violated = slack > 0
    free = np.zeros(len(slack), bool)
    free[np.argsort(np.abs(slack), kind="stable")[: 3 * c + 50]] = True
    box = 10.0 * max(float(mu.max(initial=0.0)), 1e-300)
    while True:
        fixed, near = violated & ~free, np.flatnonzero(free)
        program = linprog(
            np.concatenate([cost + weight[fixed] @ held[fixed], weight[near]]),
            b_ub=-np.ones(len(near)),
            A_ub=hstack([csr_array(held[near]), -eye_array(len(near))]).tocsc(),
            method="highs-ds",
            bounds=[(0.0, box)] * c + [(0.0, None)] * len(near),
        )
        if program.status != 0:
            raise RuntimeError(f"linear: HiGHS on {c} columns and {len(near)} comparisons: {program.message}")
        mu = np.maximum(program.x[:c], 0.0)
        crossed = ~free & ((1.0 + held @ mu > 0) != violated)
        if not crossed.any():
            break
        free |= crossed
    y = np.where(fixed, weight, 0.0)
    y[near] = np.clip(-program.ineqlin.marginals, 0.0, weight[near])
    return mu, y


def _certify(columns, weight, mu, x, y, back) -> LinearSolution:
    """The exact objective at mu and the bound of y shrunk until e + D'y >= 0."""
    s = largest_share(columns.cost, back)
    objective = float(columns.cost @ mu + weight @ np.maximum(0.0, 1.0 + x))
    return LinearSolution(mu.copy(), x, Certificate(objective, float(s * y.sum()), s * y), 0, False)


def certified(
    columns: ColumnMap, weight: np.ndarray, mu: np.ndarray, y: np.ndarray, iterations: int, tolerance: float
) -> LinearSolution:
    """A point and a dual point that another solver found, with the proof of how good they are."""
    used, y = np.flatnonzero(mu > 0), np.clip(y, 0.0, weight)
    found = _certify(columns, weight, mu, columns.take(used) @ mu[used], y, columns.back(y))
    return found._replace(iterations=iterations, converged=found.certificate.gap <= tolerance)


def _merged(best: LinearSolution, candidate: LinearSolution) -> LinearSolution:
    primal = min(best, candidate, key=lambda c: c.certificate.objective)
    dual = max(best, candidate, key=lambda c: c.certificate.bound).certificate
    return primal._replace(certificate=Certificate(primal.certificate.objective, dual.bound, dual.dual))


def _rounding(weight, slack, y) -> float:
    """How much of the gap is the rounding of the hinge: sum w h(slack) - y slack, slack = 1 + x."""
    return float(weight @ np.maximum(0.0, slack) - y @ slack)


def _next_active(reduced, cost, mu, active) -> tuple[np.ndarray, np.ndarray]:
    """`(active columns to keep, columns to add)`: weight or a tight constraint stays, the worst violators come."""
    kept = active[(mu[active] > 0) | (reduced[active] < 0.1 * cost[active])]
    wanting = np.setdiff1d(np.flatnonzero(reduced < -1e-9 * cost), active)
    most = max(50, len(active) // 2)
    worst = wanting[np.argsort(reduced[wanting] / cost[wanting], kind="stable")[:most]]
    return kept, np.sort(worst)


def _smoothed(held, weight, cost, start, delta, most) -> tuple[np.ndarray, int]:
    """The minimiser over the active columns with the hinge rounded over `delta`, in units where columns have norm 1."""
    if held.shape[1] == 0:
        return start, 0
    unit = 1.0 / np.maximum(np.linalg.norm(held * np.sqrt(weight)[:, None], axis=0), 1e-300)
    scaled, scaled_cost = held * unit, cost * unit

    def value_and_gradient(v):
        slack = 1.0 + scaled @ v
        inside = np.clip(slack / delta, 0.0, 1.0)
        value = weight @ (inside * (slack - 0.5 * delta * inside))
        return scaled_cost @ v + value, scaled_cost + scaled.T @ (weight * inside)

    minimum = minimize(
        value_and_gradient,
        start / unit,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(unit),
        options={"maxiter": most, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-9, "maxfun": 2 * most},
    )
    return minimum.x * unit, minimum.nit
