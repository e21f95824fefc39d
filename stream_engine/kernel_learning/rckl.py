"""Relative comparison kernel learning (Heim et al. 2014): T, MKL and AK, each with the STE loss or the GNMDS hinge.

    min  E(K'', T) + lambda1 tr K0 + lambda2 sum mu     K'' = K0 + sum_a mu_a K_a,  K0 PSD,  mu >= 0       (eq. 9)
    E_STE = sum_t w_t log(1 + e^(x_t)),   E_hinge = sum_t w_t max(0, 1 + x_t),   x_t = d(a, b) - d(a, c)

T has no auxiliary kernels (eq. 3), MKL has no K0 (eq. 6), AK has both; all convex. E is a sum over triplets, not a
mean, w_t counts repetitions. Every answer carries its exact dual gap. An iteration costs O(m r) for a K0 of rank r by
factors, O(m + n^3) for few objects, MKL alone O(m A).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.kernel_learning import factored, fista, linear, pair_lists, pdhg
from stream_engine.kernel_learning import problem as form
from stream_engine.kernel_learning.distance_operator import excess, satisfied, triplet_rows
from stream_engine.kernel_learning.problem import Certificate, Problem

FORMS = ("t", "mkl", "ak")
LOSSES = ("ste", "hinge")
LARGE = {"ste": 64, "hinge": 200}  # objects or directions from which on factors are faster than whole blocks
ROUNDED, MOST = 1e-3, 3000  # relative gap and iterations down and up to which factors take the hinge, before `pdhg`
TINY = 1e-6  # relative size below which a weight or an eigenvalue may be trimmed to exactly 0


class Learned(NamedTuple):
    """`gram` is K''. `dual` is the certificate's y: the start of the next solve of the hinge."""

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
    """The problem above in the common form. `kernels` are (n, n); K0 is a PSD block with the identity as its factor."""
    if variant not in FORMS or loss not in LOSSES:
        raise ValueError(f"rckl: got form {variant!r} and loss {loss!r}; expected one of {FORMS} and one of {LOSSES}")
    rows = triplet_rows(triplets)
    weight = np.ones(len(rows)) if weight is None else np.asarray(weight, np.float64)
    used = [] if variant == "t" else [excess(np.ascontiguousarray(k, dtype=np.float64), rows) for k in kernels]
    columns = np.stack(used, axis=1) if used else np.empty((len(rows), 0))
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
    first = 0.0
    if problem.factors:
        lists = pair_lists.of_rows(problem.rows, problem.n)
        values, _ = factored.smallest_eigenvalues(pair_lists.laplacian(lists, pair_lists.shares(lists, y)), 1)
        first = max(0.0, -float(values[0]))
    return first, max((-problem.columns.T @ y).tolist(), default=0.0)


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
    progress: Callable[..., None] = lambda done, total, **figures: None,
) -> Learned:
    """Learn a kernel from (m, 3) triplets over n objects and auxiliary kernels (n, n) of unit trace.

    `form` is "t", "mkl" or "ak"; lambda1, lambda2 > 0; `weight` (m,) counts repetitions. Stops when the relative dual
    gap is <= `tolerance`, or unconverged (said in the result) after `max_iterations`.

    >>> learned = fit(np.array([[0, 1, 2]]), 3, loss="hinge", lambda1=0.1)
    >>> round(learned.objective, 4), learned.rank, learned.satisfied
    (0.0577, 1, 1.0)
    """
    if not (lambda1 > 0 and lambda2 > 0):
        raise ValueError(
            f"rckl.fit: got lambda1 {lambda1}, lambda2 {lambda2}; expected both > 0 (at 0 no gap can be certified)"
        )
    problem = build(triplets, weight, kernels, n, form, loss, lambda1, lambda2)
    return solve(problem, kernels if form != "t" else (), start, tolerance, max_iterations, progress)


def solve(
    problem: Problem,
    kernels: Sequence[np.ndarray],
    start: Start | None,
    tolerance: float,
    max_iterations: int,
    progress: Callable[..., None],
) -> Learned:
    """Solve a problem that `build` made; `kernels` are those behind its columns."""
    u = np.zeros(form.point_size(problem))
    blocks, mu = form.parts(problem, u)
    if start is not None:
        if blocks:
            blocks[0][:] = start.k0
        mu[:] = start.mu[: len(mu)]
    dual = start.dual if start is not None else None
    if problem.loss == "hinge" and not blocks:
        columns = linear.dense_map(problem.columns, problem.column_cost)
        s = linear.solve(columns, problem.weight, tolerance, mu, max_iterations, progress)
        solution = fista.Solution(s.mu, s.x, s.certificate, s.iterations, s.converged)
        return _learned(problem, kernels, *trimmed(problem, solution, tolerance))
    return _learned(problem, kernels, *optimum(problem, u, dual, tolerance, max_iterations, progress))


def optimum(
    problem: Problem,
    u: np.ndarray,
    dual: np.ndarray | None,
    tolerance: float,
    max_iterations: int,
    progress: Callable[..., None],
) -> tuple[fista.Solution, list[int]]:
    """`(solution, ranks)` from u: by factors where a block is large, by a solver that keeps blocks whole where they are
    small or where factors do not reach the tolerance."""
    done = 0
    if max(form.block_sizes(problem), default=0) >= LARGE[problem.loss]:
        near, most = (tolerance, max_iterations) if problem.loss == "ste" else (max(tolerance, ROUNDED), MOST)
        start, most = factored.of_whole(problem, u), min(most, max_iterations)
        found = factored.solve(problem, start, dual, near, most, progress)
        u, dual, done = factored.whole(problem, found.point), found.certificate.dual, found.iterations
        if found.gap <= tolerance or done >= max_iterations:
            ranks = [root.shape[1] for root in found.point.roots]
            return fista.Solution(u, found.x, found.certificate, done, found.gap <= tolerance), ranks
    if problem.loss == "ste":
        solution = fista.solve(problem, u, tolerance, max_iterations - done, progress)
    else:
        solution = pdhg.solve(problem, u, dual, tolerance, max_iterations - done, progress)
    return trimmed(problem, solution._replace(iterations=solution.iterations + done), tolerance)


def trimmed(problem: Problem, solution: fista.Solution, tolerance: float) -> tuple[fista.Solution, list[int]]:
    """`(solution, ranks)` with tiny weights and eigenvalues at exactly 0, if the certificate still holds.

    An average of iterates has full rank and no zero weight although the optimum it approaches has; what is below 1e-6
    of the largest goes, unless that would open the gap beyond the tolerance (or beyond what it was).
    """
    u = solution.u.copy()
    blocks, mu = form.parts(problem, u)
    ranks = []
    for block in blocks:
        values, vectors = np.linalg.eigh(block)
        keep = values > TINY * max(values[-1], 0.0)
        root = vectors[:, keep] * np.sqrt(values[keep])
        block[:] = root @ root.T
        ranks.append(int(keep.sum()))
    if len(mu):
        mu[mu < TINY * mu.max()] = 0.0
    x = form.forward(problem, u)
    certificate = solution.certificate._replace(objective=form.linear_cost(problem, u) + form.losses(problem, x))
    if certificate.gap <= max(tolerance, solution.certificate.gap):
        return solution._replace(u=u, x=x, certificate=certificate), ranks
    kept, _ = form.parts(problem, solution.u)
    return solution, [int(np.linalg.matrix_rank(block, hermitian=True)) for block in kept]


def _learned(problem: Problem, kernels, solution: fista.Solution, ranks: list[int]) -> Learned:
    blocks, mu = form.parts(problem, solution.u)
    k0 = blocks[0].copy() if blocks else np.zeros((problem.n, problem.n))
    gram = k0 + sum((weight * kernel for weight, kernel in zip(mu, kernels)), np.zeros_like(k0))
    fraction = satisfied(gram, problem.rows, problem.weight)
    c = solution.certificate
    return Learned(
        gram,
        k0,
        mu.copy(),
        sum(ranks),
        fraction if fraction is not None else 0.0,
        c.objective,
        c.bound,
        solution.iterations,
        solution.converged,
        c.dual,
    )
