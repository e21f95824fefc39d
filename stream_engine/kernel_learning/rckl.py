"""Relative comparison kernel learning (Heim et al. 2014): T, MKL and AK, each with the STE loss or the GNMDS hinge.

    min  E(K'', T) + lambda1 tr K0 + lambda2 sum mu     K'' = K0 + sum_a mu_a K_a,  K0 PSD,  mu >= 0       (eq. 9)
    E_STE = sum_t w_t log(1 + e^(x_t)),   E_hinge = sum_t w_t max(0, 1 + x_t),   x_t = d(a, b) - d(a, c)

T has no auxiliary kernels (eq. 3), MKL has no K0 (eq. 6), AK has both; all convex. E is a sum over triplets, not a
mean, w_t counts repetitions. Every answer carries its exact dual gap. An iteration costs O(m r) for a K0 of rank r,
O(m A) for A kernels.

Selection of lambda1 and lambda2: the lowest held-out log loss on a grid that grows if its edge is best.

Log loss instead of the error rate: on easy data, errors stop decreasing long before the distances match the confidence
of the answers, and ten to thirty times too much regularisation looks equally good. Losses are compared response by
response, so a difference has its own standard error, far smaller than that of either loss. A path starts at the largest
lambda1, where the fit is weakest, and ends at the first that is worse by more than one such standard error.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.kernel_learning import factored, pair_lists, programs
from stream_engine.kernel_learning import problem as form
from stream_engine.kernel_learning.pair_lists import excess, satisfied, triplet_rows
from stream_engine.kernel_learning.problem import Certificate, Problem

FORMS = ("t", "mkl", "ak")
LOSSES = ("ste", "hinge")
TINY = 1e-6  # pivots below this fraction of the largest entry of a start's diagonal are 0
OF_OPTIMUM = 1e-9  # the same of what an interior-point method found, which leaves nothing at exactly 0


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
    solver: str = "engine",
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
) -> Learned:
    """Learn a kernel from (m, 3) triplets over n objects and auxiliary kernels (n, n) of unit trace.

    `form` is "t", "mkl" or "ak"; lambda1, lambda2 > 0; `weight` (m,) counts repetitions. Stops when the relative dual
    gap is <= `tolerance`, or unconverged (said in the result) after `max_iterations`. `solver` "cvxpy" solves the
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
        return _learned(problem, kernels if form != "t" else (), _checked_optimum(problem, optimum, tolerance))
    dual = None if start is None or loss == "ste" else start.dual
    found = factored.solve(problem, _started(start, problem), dual, tolerance, max_iterations, progress)
    return _learned(problem, kernels if form != "t" else (), found)


def _checked_optimum(problem: Problem, optimum: programs.Optimum, tolerance: float) -> factored.Solution:
    """What another solver found by factors, with the proof of how good it is."""
    roots = [] if optimum.kernel is None else [factored.pivoted_cholesky(optimum.kernel, OF_OPTIMUM)]
    mu = np.concatenate([*optimum.weights, np.empty(0)])
    point = factored.Point(roots, np.where(mu > OF_OPTIMUM * mu.max(initial=0.0), mu, 0.0))
    return factored.certified(problem, point, optimum.y, optimum.iterations, tolerance)


def _started(start: Start | None, problem: Problem) -> factored.Point | None:
    """An earlier solve's point by factors."""
    if start is None:
        return None
    roots = [factored.pivoted_cholesky(start.k0, TINY)] if problem.factors else []
    return factored.Point(roots, start.mu[: problem.columns.shape[1]].copy())


def _learned(problem: Problem, kernels: Sequence[np.ndarray], solution: factored.Solution) -> Learned:
    roots, mu = solution.point
    k0 = roots[0] @ roots[0].T if roots else np.zeros((problem.n, problem.n))
    gram = k0 + sum((weight * kernel for weight, kernel in zip(mu, kernels)), np.zeros_like(k0))
    c = solution.certificate
    return Learned(
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


BEYOND, ABOVE = 6, 2  # how many values below the grid, and above it, are tried while its edge wins


class Lambdas(NamedTuple):
    """The weights of the trace of K0 and of the sum of mu."""

    lambda1: float
    lambda2: float


class Losses(NamedTuple):
    """Held-out losses by judgement (or comparison): sums (c,) in nats, and over how many answers (c,)."""

    sums: np.ndarray
    answers: np.ndarray

    @property
    def mean(self) -> float:
        """Log loss in nats an answer."""
        return float(self.sums.sum() / self.answers.sum())

    def clearly_above(self, best: "Losses") -> bool:
        """Whether the mean is above that of `best` by more than one standard error of the difference, both on the same
        answers.

        >>> one = np.ones(4)
        >>> worse, noisy = Losses(one + 0.1, one), Losses(np.array([0.0, 2.0, 0.0, 2.2]), one)
        >>> worse.clearly_above(Losses(one, one)), noisy.clearly_above(Losses(one, one))
        (True, False)
        """
        apart = self.sums - best.sums
        mean = apart.sum() / self.answers.sum()
        off = apart - mean * self.answers
        return bool(mean > np.sqrt(off @ off) / self.answers.sum())


class Attempt(NamedTuple):
    """One pair of lambdas, its losses, its solution as a start for the next, and the calibration slope: of margins
    in units of the kernel's scale."""

    lambdas: Lambdas
    losses: Losses
    start: Start
    sure: float


Try = Callable[[Lambdas, Start | None], Attempt]


class Grid(NamedTuple):
    """Values from the largest on, and the one at which nothing is learned any more, below which they may grow."""

    values: list[float]
    largest: float

    @property
    def fixed(self) -> bool:
        """Whether there is nothing to choose."""
        return len(self.values) == 1

    def below(self, value: float) -> float:
        """The next smaller value than the smallest, in the grid's last ratio."""
        return value * self.values[-1] / self.values[-2]

    def above(self, value: float) -> float:
        """The next larger value than the largest: half the way to where nothing is learned, by ratio."""
        return float(np.sqrt(value * self.largest))


def grid(given: float | None, fractions: tuple[float, ...], largest: float, tuned: bool = True) -> Grid:
    """The value that is given, or fractions of the smallest one at which nothing is learned; 1 where the data sets no
    scale. Not `tuned` (it weighs nothing): one of them.

    >>> grid(None, (0.1, 0.5), 4.0).values, grid(2.0, (0.1, 0.5), 4.0).values, grid(None, (0.1, 0.5), 0.0).values
    ([2.0, 0.4], [2.0], [1.0])
    """
    if given is not None:
        return Grid([given], max(given, largest))
    values = [largest * fraction for fraction in sorted(fractions, reverse=True)] if largest > 0 else [1.0]
    return Grid(values if tuned else values[:1], max(largest, values[0]))


def best_lambdas(attempt: Try, first: Grid, second: Grid) -> Attempt:
    """The attempt with the least loss, of equal ones the first: over the grid, then beyond its edges while these
    win."""
    winner = _least(_over(attempt, first, second))
    winner = _grown(attempt, winner, first, "lambda1")
    return _grown(attempt, winner, second, "lambda2")


def _least(attempts: Iterator[Attempt]) -> Attempt:
    return min(attempts, key=lambda each: each.losses.mean)


def _over(attempt: Try, first: Grid, second: Grid) -> Iterator[Attempt]:
    """The grid, each lambda1 started from the one before, until one is clearly worse than another of its lambda2."""
    for lambda2 in second.values:
        start, least = None, None
        for lambda1 in first.values:
            done = attempt(Lambdas(lambda1, lambda2), start)
            start = done.start
            yield done
            if least is not None and done.losses.clearly_above(least):
                break
            least = done.losses if least is None or done.losses.mean < least.mean else least


def _grown(attempt: Try, winner: Attempt, along: Grid, name: str) -> Attempt:
    """Beyond the edge of one axis for as long as the edge is the best place."""
    if along.fixed:
        return winner
    for edge, further, most in ((along.values[-1], along.below, BEYOND), (along.values[0], along.above, ABOVE)):
        if getattr(winner.lambdas, name) != edge:
            continue
        for _ in range(most):
            value = further(getattr(winner.lambdas, name))
            beyond = attempt(winner.lambdas._replace(**{name: value}), winner.start)
            if beyond.losses.mean >= winner.losses.mean:
                break
            winner = beyond
    return winner
