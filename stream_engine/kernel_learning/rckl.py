"""Relative comparison kernel learning (Heim et al. 2014): T, MKL and AK, each with the STE loss or the GNMDS hinge."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.kernel_learning import dual_proof, factored, pair_lists, programs
from stream_engine.kernel_learning import problem as form
from stream_engine.kernel_learning.gram_comparisons import excess, satisfied, triplet_rows
from stream_engine.kernel_learning.problem import Certificate, Problem

#     min  E(K'', T) + lambda1 tr K0 + lambda2 sum mu     K'' = K0 + sum_a mu_a K_a,  K0 PSD,  mu >= 0       (eq. 9)
#     E_STE = sum_t w_t log(1 + e^(x_t)),   E_hinge = sum_t w_t max(0, 1 + x_t),   x_t = d(a, b) - d(a, c)
#
# T has no auxiliary kernels (eq. 3), MKL has no K0 (eq. 6), AK has both; all convex. E is a sum over triplets, not a
# mean; w_t counts repetitions. Every answer carries its exact dual gap. An iteration costs O(m r) for a K0 of rank r,
# O(m A) for A kernels.
FORMS = ("t", "mkl", "ak")
LOSSES = ("ste", "hinge")


class LearnedKernel(NamedTuple):
    """A learned kernel: `gram` is K''. `dual` is the certificate's y: the start of the next solve of the hinge."""

    gram: np.ndarray  # (n, n)
    k0: np.ndarray  # (n, n), zero for MKL
    mu: np.ndarray  # (A,)
    rank: int  # of K0
    satisfied: float  # fraction of the (weighted) training triplets
    objective: float
    bound: float
    iterations: int
    converged: bool
    dual: np.ndarray  # (m,)

    @property
    def gap(self) -> float:
        """(objective - bound) / objective: no kernel is better by more than this fraction."""
        return Certificate(self.objective, self.bound, self.dual).gap


class Start(NamedTuple):
    """A point of an earlier solve; any PSD k0 and non-negative mu will do. `dual` only helps the hinge."""

    k0: np.ndarray
    mu: np.ndarray
    dual: np.ndarray | None = None


def build(
    triplets: np.ndarray,
    weight: np.ndarray | None,
    kernels: Sequence[np.ndarray],
    n: int,
    variant: str,
    loss: str,
    lambda1: float,
    lambda2: float,
) -> Problem:
    """The problem of eq. 9 as a `Problem`. `kernels` are (n, n); K0 is a PSD block with the identity as its factor."""
    if variant not in FORMS or loss not in LOSSES:
        raise ValueError(f"rckl: got form {variant!r} and loss {loss!r}; expected one of {FORMS} and one of {LOSSES}")
    rows = triplet_rows(triplets)
    weight = np.ones(len(rows)) if weight is None else np.asarray(weight, np.float64)
    kernel_columns = (
        [] if variant == "t" else [excess(np.ascontiguousarray(k, dtype=np.float64), rows) for k in kernels]
    )
    columns = np.stack(kernel_columns, axis=1) if kernel_columns else np.empty((len(rows), 0))
    blocks = 0 if variant == "mkl" else 1
    return Problem(
        n,
        rows,
        weight,
        loss,
        (None,) * blocks,
        np.full(blocks, lambda1),
        np.ones(blocks),
        columns,
        np.full(columns.shape[1], lambda2),
    )


def largest_lambdas(problem: Problem) -> tuple[float, float]:
    """`(lambda1, lambda2)` from which on K0 = 0, mu = 0 is optimal: the scale for grids. One smallest eigenvalue.

    At K'' = 0 the dual point is w/2 (STE) or w (hinge); it is feasible exactly from these values on.
    """
    y = form.slope(problem, np.zeros(len(problem.rows)))
    lambda1 = 0.0
    if problem.factors:
        lists = pair_lists.of_rows(problem.rows, problem.n)
        values, _ = dual_proof.smallest_eigenvalues(pair_lists.laplacian(lists, pair_lists.shares(lists, y)), 1)
        lambda1 = max(0.0, -float(values[0]))
    return lambda1, max((-problem.columns.T @ y).tolist(), default=0.0)


def fit(
    triplets: np.ndarray,
    n: int,
    kernels: Sequence[np.ndarray] = (),
    *,
    form: str = "ak",
    loss: str = "ste",
    lambda1: float = 1.0,
    lambda2: float = 1.0,
    weight: np.ndarray | None = None,
    start: Start | None = None,
    tolerance: float = 1e-4,
    max_iterations: int = 20000,
    solver: str = "engine",
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
) -> LearnedKernel:
    """Learn a kernel from (m, 3) triplets over n objects and auxiliary kernels (n, n) of unit trace.

    `form` is "t", "mkl" or "ak"; lambda1, lambda2 > 0; `weight` (m,) counts repetitions. Stops when the relative dual
    gap is <= `tolerance`, or after `max_iterations` (then `converged` is False). `solver` "cvxpy" solves the
    program as `programs.rckl` declares it, for few objects, without a start; raises `TooLarge` and `NotSolved`.

    >>> learned = fit(np.array([[0, 1, 2]]), 3, loss="hinge", lambda1=0.1)
    >>> round(learned.objective, 4), learned.rank, learned.satisfied
    (0.0577, 1, 1.0)
    """
    if not (lambda1 > 0 and lambda2 > 0):
        raise ValueError(
            f"rckl.fit: got lambda1 {lambda1}, lambda2 {lambda2}; expected both > 0 (at 0 no gap can be certified)"
        )
    problem = build(triplets, weight, kernels, n, form, loss, lambda1, lambda2)
    if solver == "cvxpy":
        optimum = programs.rckl(triplets, n, kernels, form, loss, lambda1, lambda2, problem.weight)
        return _learned_kernel(problem, kernels if form != "t" else (), _checked_optimum(problem, optimum, tolerance))
    dual = None if start is None or loss == "ste" else start.dual
    solution = factored.solve(problem, _starting_point(start, problem), dual, tolerance, max_iterations, progress)
    return _learned_kernel(problem, kernels if form != "t" else (), solution)


MIN_OPTIMUM_PIVOT = 1e-9  # relative, of an interior-point solution, in which nothing is exactly 0


def _checked_optimum(problem: Problem, optimum: programs.Optimum, tolerance: float) -> factored.Solution:
    """Another solver's solution by factors, with the proof of how good it is."""
    roots = [] if optimum.kernel is None else [factored.pivoted_cholesky(optimum.kernel, MIN_OPTIMUM_PIVOT)]
    mu = np.concatenate([*optimum.weights, np.empty(0)])
    point = factored.Point(roots, np.where(mu > MIN_OPTIMUM_PIVOT * mu.max(initial=0.0), mu, 0.0))
    return factored.certify(problem, point, optimum.y, optimum.iterations, tolerance)


MIN_START_PIVOT = 1e-6  # relative, of an earlier K0


def _starting_point(start: Start | None, problem: Problem) -> factored.Point | None:
    """An earlier solve's point by factors."""
    if start is None:
        return None
    roots = [factored.pivoted_cholesky(start.k0, MIN_START_PIVOT)] if problem.factors else []
    return factored.Point(roots, start.mu[: problem.columns.shape[1]].copy())


def _learned_kernel(problem: Problem, kernels: Sequence[np.ndarray], solution: factored.Solution) -> LearnedKernel:
    """The kernel of a solution."""
    roots, mu = solution.point
    k0 = roots[0] @ roots[0].T if roots else np.zeros((problem.n, problem.n))
    gram = k0 + sum((weight * kernel for weight, kernel in zip(mu, kernels)), np.zeros_like(k0))
    c = solution.certificate
    return LearnedKernel(
        gram,
        k0,
        mu,
        roots[0].shape[1] if roots else 0,
        satisfied(gram, problem.rows, problem.weight) or 0.0,
        c.objective,
        c.bound,
        solution.iterations,
        solution.converged,
        c.dual,
    )
