"""The hinge problem without PSD blocks, a linear program, by active columns, smoothing and L-BFGS-B."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog, minimize
from scipy.sparse import csr_array, eye_array, hstack

from stream_engine.kernel_learning.problem import Certificate, largest_share

#     min e'mu + sum_t w_t max(0, 1 + (D mu)_t)    over mu >= 0
#
# RCKL-MKL with the hinge (Heim et al. 2014, eq. 6; a handful of columns) and the diagonal form of MKPOE (McFee &
# Lanckriet 2011, sec. 4.4; one column per kernel and object). Few columns carry weight, so the problem is solved on
# those whose dual constraint e + D'y >= 0 fails, with the hinge rounded over a width delta: its minimiser gives a dual
# point y for free, and then P - D <= delta / 4 * (weight of comparisons inside the rounding). delta shrinks until the
# exact gap is small enough. Near the optimum, or if the gap stays open for other reasons than the rounding (huge
# weights, nearly dependent columns), the active columns and the comparisons near their kink go to HiGHS: column
# generation from a good start. One round is O(m * active) times the L-BFGS-B iterations, and one pass over all columns.
EXACT_BELOW = 1e-2  # relative gap below which HiGHS is faster than more smoothing
MAX_ROUNDS, MAX_INNER_ITERATIONS = 200, 300  # rounds, and iterations of L-BFGS-B in each


class ColumnMap(NamedTuple):
    """D as two functions, so that its columns are never all in memory."""

    rows: int
    cost: np.ndarray  # (A,) float64 > 0: e
    take: Callable[[np.ndarray], np.ndarray]  # column numbers -> (m, c) dense
    back: Callable[[np.ndarray], np.ndarray]  # y (m,) -> D'y (A,)


class LinearSolution(NamedTuple):
    """The best point, with its certificate; `converged`: the gap is within the tolerance."""

    mu: np.ndarray  # (A,) >= 0
    x: np.ndarray  # (m,) D mu
    certificate: Certificate
    iterations: int
    converged: bool


def dense_map(columns: np.ndarray, cost: np.ndarray) -> ColumnMap:
    """The map of a matrix in memory."""
    return ColumnMap(len(columns), cost, lambda numbers: columns[:, numbers], lambda y: columns.T @ y)


def solve(
    columns: ColumnMap,
    weight: np.ndarray,
    tolerance: float = 1e-4,
    start: np.ndarray | None = None,
    max_iterations: int = 20000,
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
) -> LinearSolution:
    """Minimise e'mu + sum_t w_t max(0, 1 + (D mu)_t) over mu >= 0, until the relative exact gap is <= `tolerance`.

    After `max_iterations` of L-BFGS-B, where a program for HiGHS counts as one, it returns the best point with the best
    bound.

    >>> s = solve(dense_map(np.array([[-1.0], [-1.0]]), np.array([0.5])), np.ones(2))
    >>> s.mu.round(3).tolist(), round(s.certificate.objective, 3)
    ([1.0], 0.5)
    """
    mu = np.zeros(len(columns.cost)) if start is None else start.copy()
    active = np.flatnonzero(mu > 0)
    active_columns = columns.take(active)
    delta, iterations, use_program = 1.0, 0, False
    best = _certify(columns, weight, mu, active_columns @ mu[active], weight.copy(), columns.back(weight))
    for _ in range(MAX_ROUNDS):
        if best.certificate.gap <= tolerance or iterations >= max_iterations:
            break
        if use_program:
            mu[active], y = _vertex(active_columns, weight, columns.cost[active], mu[active])
            iterations += 1
        else:
            inner_limit = min(MAX_INNER_ITERATIONS, max_iterations - iterations)
            mu[active], n_steps = _minimise_smoothed(
                active_columns, weight, columns.cost[active], mu[active], delta, inner_limit
            )
            iterations += max(n_steps, 1)
            y = weight * np.clip((1.0 + active_columns @ mu[active]) / delta, 0.0, 1.0)
        x, back = active_columns @ mu[active], columns.back(y)
        candidate = _certify(columns, weight, mu, x, y, back)
        best = _merge(best, candidate)
        status = {"gap": best.certificate.gap, "objective": best.certificate.objective}
        if progress(iterations, max_iterations, **status):
            break
        staying, missing = _next_active(columns.cost + back, columns.cost, mu, active)
        rounding = _rounding(weight, 1.0 + x, y)
        if len(missing) == 0 or rounding > 0.5 * (candidate.certificate.objective - candidate.certificate.bound):
            delta *= 0.4
            use_program |= rounding < 0.1 * tolerance * candidate.certificate.objective
        use_program |= best.certificate.gap < EXACT_BELOW and bool(mu.any())  # mu = 0 is no good start for a program
        mu[np.setdiff1d(active, staying)] = 0.0
        active_columns = np.concatenate([active_columns[:, np.isin(active, staying)], columns.take(missing)], axis=1)
        active = np.concatenate([staying, missing])
    return best._replace(iterations=iterations, converged=best.certificate.gap <= tolerance)


def _vertex(active_columns, weight, cost, mu) -> tuple[np.ndarray, np.ndarray]:
    """`(mu, y)` of the program over the active columns by HiGHS, near a good `mu`.

    Only comparisons near their kink can change sides: the others are fixed, violated ones at y = w as a linear cost,
    satisfied ones at y = 0. If others cross, they join the program, which is solved again, so that nothing is assumed
    in the end. The box bounds a program with too few comparisons.
    """
    c = active_columns.shape[1]
    slack = 1.0 + active_columns @ mu
    is_violated = slack > 0
    is_free = np.zeros(len(slack), bool)
    is_free[np.argsort(np.abs(slack), kind="stable")[: 3 * c + 50]] = True
    box = 10.0 * max(float(mu.max(initial=0.0)), 1e-300)
    while True:
        is_fixed, free_numbers = is_violated & ~is_free, np.flatnonzero(is_free)
        program = linprog(
            np.concatenate([cost + weight[is_fixed] @ active_columns[is_fixed], weight[free_numbers]]),
            b_ub=-np.ones(len(free_numbers)),
            A_ub=hstack([csr_array(active_columns[free_numbers]), -eye_array(len(free_numbers))]).tocsc(),
            method="highs-ds",
            bounds=[(0.0, box)] * c + [(0.0, None)] * len(free_numbers),
        )
        if program.status != 0:
            raise RuntimeError(f"linear: HiGHS on {c} columns and {len(free_numbers)} comparisons: {program.message}")
        mu = np.maximum(program.x[:c], 0.0)
        has_crossed = ~is_free & ((1.0 + active_columns @ mu > 0) != is_violated)
        if not has_crossed.any():
            break
        is_free |= has_crossed
    y = np.where(is_fixed, weight, 0.0)
    y[free_numbers] = np.clip(-program.ineqlin.marginals, 0.0, weight[free_numbers])
    return mu, y


def _certify(columns, weight, mu, x, y, back) -> LinearSolution:
    """The exact objective at mu and the bound of y shrunk until e + D'y >= 0."""
    s = largest_share(columns.cost, back)
    objective = float(columns.cost @ mu + weight @ np.maximum(0.0, 1.0 + x))
    return LinearSolution(mu.copy(), x, Certificate(objective, float(s * y.sum()), s * y), 0, False)


def certify(
    columns: ColumnMap, weight: np.ndarray, mu: np.ndarray, y: np.ndarray, iterations: int, tolerance: float
) -> LinearSolution:
    """A point and a dual point of another solver, with the proof of how good they are."""
    nonzero, y = np.flatnonzero(mu > 0), np.clip(y, 0.0, weight)
    solution = _certify(columns, weight, mu, columns.take(nonzero) @ mu[nonzero], y, columns.back(y))
    return solution._replace(iterations=iterations, converged=solution.certificate.gap <= tolerance)


def _merge(best: LinearSolution, candidate: LinearSolution) -> LinearSolution:
    """The point with the lower objective, with the higher bound."""
    primal = min(best, candidate, key=lambda c: c.certificate.objective)
    dual = max(best, candidate, key=lambda c: c.certificate.bound).certificate
    return primal._replace(certificate=Certificate(primal.certificate.objective, dual.bound, dual.dual))


def _rounding(weight, slack, y) -> float:
    """The part of the gap that is due to the rounding of the hinge: sum w h(slack) - y slack, slack = 1 + x."""
    return float(weight @ np.maximum(0.0, slack) - y @ slack)


def _next_active(reduced, cost, mu, active) -> tuple[np.ndarray, np.ndarray]:
    """`(active columns to keep, columns to add)`: those with weight or a tight constraint stay, the worst violators
    join."""
    staying = active[(mu[active] > 0) | (reduced[active] < 0.1 * cost[active])]
    violated_columns = np.setdiff1d(np.flatnonzero(reduced < -1e-9 * cost), active)
    limit = max(50, len(active) // 2)
    joining = violated_columns[np.argsort(reduced[violated_columns] / cost[violated_columns], kind="stable")[:limit]]
    return staying, np.sort(joining)


def _minimise_smoothed(active_columns, weight, cost, start, delta, inner_limit) -> tuple[np.ndarray, int]:
    """The minimiser over the active columns with the hinge rounded over `delta`, in units where columns have norm 1."""
    if active_columns.shape[1] == 0:
        return start, 0
    unit = 1.0 / np.maximum(np.linalg.norm(active_columns * np.sqrt(weight)[:, None], axis=0), 1e-300)
    unit_columns, unit_cost = active_columns * unit, cost * unit

    def value_and_gradient(v):
        slack = 1.0 + unit_columns @ v
        inside = np.clip(slack / delta, 0.0, 1.0)
        value = weight @ (inside * (slack - 0.5 * delta * inside))
        return unit_cost @ v + value, unit_cost + unit_columns.T @ (weight * inside)

    minimum = minimize(
        value_and_gradient,
        start / unit,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(unit),
        options={"maxiter": inner_limit, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-9, "maxfun": 2 * inner_limit},
    )
    return minimum.x * unit, minimum.nit
