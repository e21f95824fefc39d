"""The same SDPs given to cvxpy, whose interior-point method (Clarabel) is slow and general: the oracle of the tests."""

import warnings
from typing import NamedTuple

import numpy as np


class Reference(NamedTuple):
    """X as the solver left it (feasible up to its tolerance) and its multiplier of X >= 0."""

    X: np.ndarray
    multiplier: np.ndarray
    objective: float


def solve(W: np.ndarray, k: int | None, lam: float | None, tol: float = 1e-9) -> Reference:
    """SDP-k or SDP-lambda of few objects: memory and time grow like n^4 and n^6.

    >>> W = np.array([[0, 2, -1, -1], [2, 0, -1, -1], [-1, -1, 0, 2], [-1, -1, 2, 0.]])
    >>> round(solve(W, 2, None).objective, 4)
    4.0
    """
    import cvxpy as cp

    scale = float(np.abs(W).max()) or 1.0
    X = cp.Variable(W.shape, PSD=True)
    positive = X >= 0
    goal = cp.trace((W / scale) @ X) - (0.0 if lam is None else lam / scale) * cp.trace(X)
    rules = [positive, cp.sum(X, axis=1) == 1] + ([cp.trace(X) == k] if k is not None else [])
    problem = cp.Problem(cp.Maximize(goal), rules)
    with warnings.catch_warnings():  # tests compare with a tolerance of their own
        warnings.filterwarnings("ignore", message="Solution may be inaccurate", category=UserWarning)
        problem.solve(solver="CLARABEL", tol_gap_rel=tol, tol_gap_abs=tol, tol_feas=tol)
    if X.value is None:
        raise RuntimeError(f"cvxpy: no solution, status {problem.status}; expected optimal")
    N = np.maximum(positive.dual_value, 0.0)
    return Reference((X.value + X.value.T) / 2, (N + N.T) / 2 * scale, float(problem.value) * scale)
