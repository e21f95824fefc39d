"""The same SDPs given to cvxpy: an interior-point method (Clarabel) for few objects, SCS for more.

Slow and general: the oracle of the tests. Memory and time grow like n^4 and n^6 for Clarabel, n^2 and n^3 an iteration
for SCS.
"""

import warnings
from typing import NamedTuple

import numpy as np

from stream_engine.clustering.dual_bounds import feasible, upper_bound
from stream_engine.clustering.projection import projected
from stream_engine.counts.spectral import centred

CLARABEL_UP_TO = 60


class Reference(NamedTuple):
    """X as the solver left it (feasible up to its tolerance) and its multiplier of X >= 0."""

    X: np.ndarray
    multiplier: np.ndarray
    objective: float
    solver: str
    iterations: int
    optimal: bool  # False where the solver stopped early


def solve(
    W: np.ndarray,
    k: int | None,
    lam: float | None,
    solver: str | None = None,
    tol: float = 1e-6,
    max_iterations: int = 20_000,
) -> Reference:
    """SDP-k or SDP-lambda by cvxpy. `solver`: "CLARABEL" or "SCS", by size when None; `tol` is the solver's own.

    >>> W = np.array([[0, 2, -1, -1], [2, 0, -1, -1], [-1, -1, 0, 2], [-1, -1, 2, 0.]])
    >>> round(solve(W, 2, None).objective, 4)
    4.0
    """
    import cvxpy as cp

    n, solver = len(W), solver or ("CLARABEL" if len(W) <= CLARABEL_UP_TO else "SCS")
    scale = float(np.abs(W).max()) or 1.0
    X = cp.Variable((n, n), PSD=True)
    positive = X >= 0
    goal = cp.trace((W / scale) @ X) - (0.0 if lam is None else lam / scale) * cp.trace(X)
    rules = [positive, cp.sum(X, axis=1) == 1] + ([cp.trace(X) == k] if k is not None else [])
    problem = cp.Problem(cp.Maximize(goal), rules)
    options = (
        {"eps_abs": tol, "eps_rel": tol, "max_iters": max_iterations}
        if solver == "SCS"
        else {"tol_gap_rel": tol, "tol_gap_abs": tol, "tol_feas": tol}
    )
    with warnings.catch_warnings():
        # cvxpy warns about an inaccurate solution; the caller gets `optimal` and a rigorous gap instead
        warnings.filterwarnings("ignore", message="Solution may be inaccurate", category=UserWarning)
        problem.solve(solver=solver, **options)
    if X.value is None:
        raise RuntimeError(f"cvxpy/{solver}: no solution, status {problem.status}; expected optimal")
    N = np.maximum(positive.dual_value, 0.0)
    return Reference(
        (X.value + X.value.T) / 2,
        (N + N.T) / 2 * scale,
        float(problem.value) * scale,
        solver,
        int(problem.solver_stats.num_iters or 0),
        problem.status == cp.OPTIMAL,
    )


def certified_gap(W: np.ndarray, k: int | None, lam: float | None, found: Reference) -> float:
    """What an answer is worth: the gap between X, repaired to a feasible point, and the bound of its own multiplier."""
    n, C = len(W), W - (lam or 0.0) * np.eye(len(W))
    values, vectors = np.linalg.eigh(centred(found.X) - 2.0 / n)
    x = projected(values[1:], k)
    X = feasible((vectors[:, 1:] * x) @ vectors[:, 1:].T + 1.0 / n, k)
    objective = float(np.vdot(C, X))
    bound = min(upper_bound(C + found.multiplier, k), upper_bound(C.copy(), k))
    penalty = (lam or 0.0) * float(np.trace(X))
    return max(bound - objective, 0.0) / max(abs(objective + penalty), abs(penalty))
