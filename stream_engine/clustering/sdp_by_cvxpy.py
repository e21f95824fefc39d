"""Both SDPs solved by cvxpy's interior-point method, and certified by the engine: the result is repaired to a strictly
feasible point, and its bound is the one of the ADMM (`dual_bounds`), so nothing depends on trusting the solver."""

from typing import NamedTuple

import numpy as np

from stream_engine.clustering import cascade
from stream_engine.clustering.cascade import Solution
from stream_engine.clustering.dual_bounds import upper_bound
from stream_engine.clustering.feasible_points import feasible
from stream_engine.clustering.projection import project_eigenvalues
from stream_engine.clustering.similarity_matrix import checked
from stream_engine.counts.spectral import dense, spectral_size, top_eigenpairs
from stream_engine.data import available_memory, interior_point


class Optimum(NamedTuple):
    """X as the interior-point method leaves it, feasible up to its accuracy, and its multiplier of X >= 0."""

    X: np.ndarray
    multiplier: np.ndarray
    objective: float
    iterations: int


def optimum(W: np.ndarray, k: int | None, lam: float | None) -> Optimum:
    """SDP-k or SDP-lambda of a dense W (Perrot et al. 2020, sec. 3), as cvxpy solves it. O(n^6) time, O(n^4) memory.

    >>> W = np.array([[0, 2, -1, -1], [2, 0, -1, -1], [-1, -1, 0, 2], [-1, -1, 2, 0.]])
    >>> round(optimum(W, 2, None).objective, 4)
    4.0
    """
    import cvxpy as cp

    scale = float(np.abs(W).max()) or 1.0
    upper = np.triu_indices(len(W), 1)
    X = cp.Variable(W.shape, PSD=True)
    positive = X[upper] >= 0  # the diagonal of a PSD matrix is
    goal = cp.trace((W / scale) @ X) - (0.0 if lam is None else lam / scale) * cp.trace(X)
    rules = [positive, cp.sum(X, axis=1) == 1] + ([cp.trace(X) == k] if k is not None else [])
    problem = cp.Problem(cp.Maximize(goal), rules)
    iterations = interior_point.solve(problem)
    N = np.zeros(W.shape)
    N[upper] = np.maximum(positive.dual_value, 0.0) / 2 * scale  # of the entries on both sides of the diagonal
    solution_matrix = np.asarray(X.value)
    return Optimum((solution_matrix + solution_matrix.T) / 2, N + N.T, float(problem.value) * scale, iterations)


MAX_OBJECTS = 100  # which take a minute and 1.6 GB
BYTES_PER_ENTRY = 16  # of the n^4


def solve(W, k: int | None = None, lam: float | None = None, tol: float = 1e-4) -> Solution:
    """SDP-k (k given) or SDP-lambda (lam given) as `cascade.solve`, by cvxpy. `certified`: the gap is at most `tol`.

    Raises `TooLarge` above `MAX_OBJECTS` and where memory does not suffice, and `interior_point.NotSolved`.

    >>> W = np.array([[0, 2, -1, -1], [2, 0, -1, -1], [-1, -1, 0, 2], [-1, -1, 2, 0.]])
    >>> s = solve(W, k=2)
    >>> s.certified, round(s.objective, 3), s.X.round(2).tolist()[0]
    (True, 4.0, [0.5, 0.5, 0.0, 0.0])
    """
    W = dense(checked(W))
    n = len(W)
    if n < 3 or k in (1, n) or not W.any():  # one point is feasible, or every one is as good
        return cascade.solve(W, k, lam, tol)
    next_step = "set solver='engine', or choose objects (objects=100)"
    interior_point.require_at_most("an SDP of so many objects", n, MAX_OBJECTS, next_step)
    available_memory.require(f"an SDP of {n} objects by cvxpy", BYTES_PER_ENTRY * n**4, next_step)
    relaxation = optimum(W, k, lam)
    values, vectors = top_eigenpairs(relaxation.X, n - 1)
    x = project_eigenvalues(values, k)
    factor, x = vectors[:, x > 0], x[x > 0]
    X = feasible((factor * x) @ factor.T + 1.0 / n, k)
    objective = float(np.vdot(W, X) - (lam or 0.0) * np.trace(X))
    upper = max(objective, upper_bound(W - (lam or 0.0) * np.eye(n) + relaxation.multiplier, k))
    trace = float(np.trace(X))
    gap = (upper - objective) / cascade.gap_unit(objective, lam, trace, spectral_size(W))
    proven = gap <= tol
    proof = "dual bound" if proven else ""
    residuals = cascade.residuals(X, k)
    return Solution(
        None, X, factor, x, trace, objective, upper, gap, residuals, proven, proof, relaxation.iterations, None
    )
