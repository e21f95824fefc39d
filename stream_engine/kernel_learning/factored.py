"""The convex problem of `problem` by factors: A_p = L_p L_p' with few columns, L-BFGS, and an exact dual gap (Burer &
Monteiro 2003)."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from stream_engine.kernel_learning import pair_lists
from stream_engine.kernel_learning import problem as form
from stream_engine.kernel_learning.dual_proof import dual_block, shrink_to_proven, smallest_eigenvalues
from stream_engine.kernel_learning.pair_lists import PairLists
from stream_engine.kernel_learning.problem import Certificate, Problem

# The optimum has low rank, and a point of L in which no direction descends and S + c I is PSD is the optimum of the
# convex problem (Journee et al. 2010). The gap decides whether that holds: y is a dual point; its Laplacian S = B*(y)
# has its smallest eigenvalue estimated by Lanczos, and the estimate is proven by a Cholesky factor of s_p R_p' S R_p +
# b I (`dual_proof`) before the answer is certified. Directions below -c_p are those in which the objective still falls:
# they join L as new columns.
#
# STE is smooth, and y = w loss'(x). The hinge is solved by the method of multipliers (Rockafellar 1976): with
# multipliers y0 and steps r, it is replaced by max over 0 <= y <= w of y (1 + x) - (y - y0)^2 / 2r, which is smooth in
# x; its maximiser y = clip(y0 + r (1 + x), 0, w) becomes the next y0. Steps grow while the multipliers still move, so
# any weight, however large, is reached. Every point is scaled to the best multiple of itself before its objective
# counts: along a ray the objective is piecewise linear.
#
# An iteration is O(P r + m) for P distinct pairs and rank r (`pair_lists`); a certificate is about 50 products with S
# and one Cholesky factor, O(n^3 / 3).


class Point(NamedTuple):
    """L_p (r_p, k_p) of every block, and the weights of the columns."""

    roots: list[np.ndarray]
    mu: np.ndarray


class Solution(NamedTuple):
    """A point with its certificate; `converged`: the gap is at most the tolerance."""

    point: Point
    x: np.ndarray  # (m,)
    certificate: Certificate
    iterations: int
    converged: bool

    @property
    def gap(self) -> float:
        """(objective - bound) / objective."""
        return self.certificate.gap


class _DualStep(NamedTuple):
    """A dual point y, and the directions in which the objective still falls."""

    y: np.ndarray
    s: float  # factor by which y is feasible, by Lanczos's estimate
    directions: list[np.ndarray]  # (r_p, k) of every block
    columns: np.ndarray  # (A,) bool


class _Smoothing(NamedTuple):
    """The hinge's multipliers y0 and their steps r, (m,) each; not used for STE."""

    center: np.ndarray
    step: np.ndarray


def origin(problem: Problem) -> Point:
    """A = 0, mu = 0."""
    roots = [np.zeros((r, 0)) for r in form.block_sizes(problem)]
    return Point(roots, np.zeros(problem.columns.shape[1]))


FIRST_GAIN, MIN_GAIN = (
    1e-3,
    1e-17,
)  # a descent ends at a step that gains less: first this share of the gap, at last this
GAIN_FACTOR = 0.2  # of that gain, after a round that brought little
MAX_INNER_ITERATIONS = 300  # of L-BFGS between two gaps
RENEW_MOVE = 0.01  # movement of the multipliers, relative to what y lacks in feasibility, from which they are renewed
RENEW_RATIO = 4.0  # of what the point lacks to what y lacks, from which they are renewed
FIRST_STEP, STEP_GROWTH, MIN_MOVE_RATIO = 100.0, 1.5, 0.9  # steps of multipliers; they grow if these moved no less


def solve(
    problem: Problem,
    start: Point | None = None,
    dual: np.ndarray | None = None,
    tolerance: float = 1e-4,
    max_iterations: int = 20000,
    progress: Callable[..., bool | None] = lambda n_done, total, **figures: None,
) -> Solution:
    """Minimise a problem, from `start` and a `dual` point, until the relative gap is proven <= `tolerance`.

    After `max_iterations` of L-BFGS, if `progress` returns True, or if rounding ends the progress, it returns the best
    point with the best bound, and `converged` is False.

    >>> rows, none = np.array([[0, 1, 0, 2]], np.int32), np.empty((1, 0))
    >>> gnmds = Problem(3, rows, np.array([1e6]), "hinge", (None,), np.ones(1), np.ones(1), none, np.empty(0))
    >>> found = solve(gnmds, tolerance=1e-6)
    >>> round(found.certificate.objective, 4), found.converged
    (0.5774, True)
    """
    lists = pair_lists.of_rows(problem.rows, problem.n)
    current = best = _evaluate(problem, lists, start or origin(problem))
    smoothing = _Smoothing(np.zeros(len(current.x)), np.zeros(len(current.x)))
    first_dual = problem.weight if problem.loss == "hinge" else _slope(problem, current.x, smoothing)[1]
    y = first_dual if dual is None else np.clip(dual, 0.0, problem.weight)
    feasible_share = _within_columns(problem, y) if dual is not None else _dual_step(problem, lists, y).s
    best = _improve_bound(problem, lists, best, feasible_share * y, np.inf)
    if problem.loss == "hinge":
        share = best.certificate.bound / float(problem.weight.sum())
        center = 0 * best.certificate.dual if dual is None else best.certificate.dual
        smoothing = _Smoothing(center, FIRST_STEP * max(share, 1e-9) * problem.weight)
    n_done, min_gain, earlier_moves = 0, FIRST_GAIN * tolerance, np.full(len(y), np.inf)
    while True:
        y = _slope(problem, current.x, smoothing)[1]
        dual_step = _dual_step(problem, lists, y)
        best = _improve_bound(problem, lists, best, dual_step.s * y, tolerance)
        status = {"gap": best.gap, "objective": best.certificate.objective}
        stop = progress(min(n_done, max_iterations), max_iterations, **status)
        if best.gap <= tolerance or n_done >= max_iterations or min_gain < MIN_GAIN or stop:
            break
        if n_done:
            moves = _multiplier_moves(problem, y, smoothing)
            # how far y is from feasible, and the point from optimal
            dual_lack, value = 1.0 - dual_step.s, form.dual_value(problem, y)
            primal_lack = 1.0 - value / current.certificate.objective
            if moves.sum() > RENEW_MOVE * dual_lack * value or (moves.any() and RENEW_RATIO * dual_lack < primal_lack):
                step_factors = np.where(moves > MIN_MOVE_RATIO * earlier_moves, STEP_GROWTH, 1.0)
                smoothing, earlier_moves = _Smoothing(y, step_factors * smoothing.step), moves
                min_gain = min(min_gain / GAIN_FACTOR, FIRST_GAIN * tolerance)
            else:
                min_gain *= GAIN_FACTOR
        point = _add_directions(problem, current.point, dual_step)
        scale, limit = best.certificate.objective, min(MAX_INNER_ITERATIONS, max_iterations - n_done)
        point, n_steps = _descend(problem, lists, point, smoothing, scale, min_gain, limit)
        n_done += max(n_steps, 1)
        current = _trim(problem, lists, point, tolerance)
        best = _better(best, _best_multiple(problem, current))
    dual = shrink_to_proven(problem, lists, best.certificate.dual)
    certificate = Certificate(best.certificate.objective, max(0.0, form.dual_value(problem, dual)), dual)
    return best._replace(certificate=certificate, iterations=n_done, converged=certificate.gap <= tolerance)


def certify(problem: Problem, point: Point, y: np.ndarray, iterations: int, tolerance: float) -> Solution:
    """A point and a dual point of another solver, with the proof of how good they are. O(m + sum r_p^3)."""
    lists, y = pair_lists.of_rows(problem.rows, problem.n), np.clip(y, 0.0, problem.weight)
    solution = _evaluate(problem, lists, point)
    dual = shrink_to_proven(problem, lists, _within_columns(problem, y) * y)
    proof = Certificate(solution.certificate.objective, max(0.0, form.dual_value(problem, dual)), dual)
    return solution._replace(certificate=proof, iterations=iterations, converged=proof.gap <= tolerance)


def _better(best: Solution, new: Solution) -> Solution:
    """The point with the lower objective, with the bound of `best`."""
    if new.certificate.objective >= best.certificate.objective:
        return best
    return new._replace(certificate=best.certificate._replace(objective=new.certificate.objective))


def _best_multiple(problem: Problem, solution: Solution) -> Solution:
    """The best multiple t of a solution of the hinge: the objective t C + sum w max(0, 1 + t x) is least where its
    slope changes sign."""
    if problem.loss != "hinge":
        return solution
    cost = solution.certificate.objective - form.losses(problem, solution.x)
    falls = solution.x < 0
    turn = 1.0 / -solution.x[falls]
    pulls = problem.weight[falls] * -solution.x[falls]
    order = np.argsort(turn)
    slopes = cost + float(problem.weight[~falls] @ solution.x[~falls]) - pulls.sum() + np.cumsum(pulls[order])
    turn_index = int(np.searchsorted(slopes >= 0, True))
    if not len(slopes) or cost + float(problem.weight @ solution.x) >= 0 or turn_index == len(slopes):
        return solution
    t = float(turn[order][turn_index])
    point, x = Point([np.sqrt(t) * root for root in solution.point.roots], t * solution.point.mu), t * solution.x
    return solution._replace(
        point=point, x=x, certificate=solution.certificate._replace(objective=t * cost + form.losses(problem, x))
    )


def _improve_bound(problem: Problem, lists: PairLists, best: Solution, dual: np.ndarray, tolerance: float) -> Solution:
    """`best` with the better of its bound and that of `dual`, which is proven if it would reach the tolerance."""
    objective, bound, earlier_dual = best.certificate
    value = form.dual_value(problem, dual)
    if value <= bound:
        return best
    if value >= (1.0 - tolerance) * objective:
        dual = shrink_to_proven(problem, lists, dual)
        value = form.dual_value(problem, dual)
    return best._replace(certificate=Certificate(objective, value, dual))


def pivoted_cholesky(gram: np.ndarray, tiny: float) -> np.ndarray:
    """(n, k): L with L L' = gram but for pivots below `tiny` of the largest entry of its diagonal. O(n k^2).

    >>> pivoted_cholesky(np.array([[1.0, 2.0], [2.0, 4.0]]), 1e-9).tolist()
    [[1.0], [2.0]]
    """
    remainder, columns = np.diag(gram).copy(), np.empty((len(gram), 0))
    min_pivot = tiny * max(float(remainder.max(initial=0.0)), 1e-300)
    while columns.shape[1] < len(gram) and remainder.max() > min_pivot:
        pivot = int(np.argmax(remainder))
        column = (gram[:, pivot] - columns @ columns[pivot]) / np.sqrt(remainder[pivot])
        columns = np.concatenate([columns, column[:, None]], axis=1)
        remainder -= column * column
    return columns


def _points(problem: Problem, roots: list[np.ndarray]) -> np.ndarray:
    """Z (n, sum k_p) with Z Z' = sum_p s_p R_p A_p R_p'."""
    side_by_side = [np.empty((problem.n, 0))]
    for factor, scale, root in zip(problem.factors, problem.block_scale, roots):
        side_by_side.append(np.sqrt(scale) * (root if factor is None else factor @ root))
    return np.concatenate(side_by_side, axis=1)


def _evaluate(problem: Problem, lists: PairLists, point: Point) -> Solution:
    """The point with its exact objective and no bound yet."""
    x = problem.columns @ point.mu + pair_lists.excess_of_points(lists, _points(problem, point.roots))
    trace = sum(c * float(np.vdot(root, root)) for c, root in zip(problem.trace_cost, point.roots))
    objective = float(trace + problem.column_cost @ point.mu + form.losses(problem, x))
    return Solution(point, x, Certificate(objective, 0.0, np.zeros(len(x))), 0, False)


def _slope(problem: Problem, x: np.ndarray, smoothing: _Smoothing) -> tuple[float, np.ndarray]:
    """`(losses, y)` at x, those of the hinge smoothed."""
    if problem.loss == "hinge":
        slack, (center, step) = 1.0 + x, smoothing
        y = np.clip(center + step * slack, 0.0, problem.weight)
        move = y - center
        return float(y @ slack - 0.5 * np.sum(move * move / np.where(step > 0, step, 1.0))), y
    e = np.exp(-np.abs(x))
    value = float(problem.weight @ (np.maximum(x, 0.0) + np.log(1.0 + e)))
    return value, problem.weight * np.where(x > 0, 1.0, e) / (1.0 + e)


def _multiplier_moves(problem: Problem, y: np.ndarray, smoothing: _Smoothing) -> np.ndarray:
    """(m,): how far the multipliers of the hinge would move, (y - y0)^2 / r; zeros for STE."""
    if problem.loss != "hinge":
        return np.zeros(len(y))
    return np.asarray((y - smoothing.center) ** 2 / smoothing.step)


def _within_columns(problem: Problem, y: np.ndarray) -> float:
    """The largest s <= 1 with e + s D'y >= 0."""
    return form.largest_share(problem.column_cost, problem.columns.T @ y)


MAX_NEW_COLUMNS = 24  # that join a block at once


def _dual_step(problem: Problem, lists: PairLists, y: np.ndarray) -> _DualStep:
    """The feasible share of y, and the directions in which the objective falls, by Lanczos."""
    s, directions = _within_columns(problem, y), []
    for p, cost in enumerate(problem.trace_cost):
        block = dual_block(problem, lists, pair_lists.shares(lists, y), p)
        values, vectors = smallest_eigenvalues(block, 1)
        if values[0] < -cost * 1.001 and block.shape[0] > 1:
            values, vectors = smallest_eigenvalues(block, min(MAX_NEW_COLUMNS, block.shape[0]), 1e-2)
        if values[0] < -cost:
            s = min(s, -cost / float(values[0]))
        directions.append(vectors[:, values < -cost * (1.0 + 1e-6)])
    return _DualStep(y, s, directions, problem.columns.T @ y < -problem.column_cost)


def _add_directions(problem: Problem, point: Point, dual_step: _DualStep) -> Point:
    """The point with short new columns of L, and small positive weights mu, where the objective falls."""
    roots = []
    for factor, scale, root, directions in zip(problem.factors, problem.block_scale, point.roots, dual_step.directions):
        size = 0.1 * float(np.sqrt((root**2).sum(axis=0).mean())) if root.shape[1] else 0.0
        if size == 0.0 and directions.shape[1]:
            reach = scale * np.mean((directions if factor is None else factor @ directions) ** 2)
            size = 0.2 / np.sqrt(max(float(reach), 1e-300) * directions.shape[1])
        roots.append(np.concatenate([root, size * directions], axis=1))
    reach = np.sqrt(np.mean(problem.columns**2, axis=0)) if len(point.mu) else point.mu
    min_weight = np.where(dual_step.columns & (reach > 0), 0.01 / np.maximum(reach, 1e-300), 0.0)
    return Point(roots, np.maximum(point.mu, min_weight))


def _descend(
    problem, lists, point: Point, smoothing: _Smoothing, scale: float, min_gain: float, max_iterations: int
) -> tuple[Point, int]:
    """`(where L-BFGS ends, iterations)`; mu = unit * v^2, so that every column of the problem has length 1."""
    length = np.linalg.norm(problem.columns * np.sqrt(problem.weight)[:, None], axis=0)
    unit = 1.0 / np.where(length > 0, length, 1.0)

    def parts(v: np.ndarray) -> Point:
        roots, at = [], 0
        for root in point.roots:
            roots.append(v[at : at + root.size].reshape(root.shape))
            at += root.size
        return Point(roots, unit * v[at:] ** 2)

    value_at_first = _smooth(problem, lists, point, smoothing)[0]
    scale = max(scale, 1e-300)

    def value_and_gradient(v: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _smooth(problem, lists, parts(v), smoothing)
        of_columns = 2.0 * unit * v[len(v) - len(unit) :] * gradient.mu
        whole_gradient = np.concatenate([*(root.ravel() for root in gradient.roots), of_columns])
        return (value - value_at_first) / scale, whole_gradient / scale

    first = np.concatenate([*(root.ravel() for root in point.roots), np.sqrt(point.mu / unit)])
    options = {"maxiter": max_iterations, "maxfun": 2 * max_iterations, "maxcor": 20, "ftol": min_gain, "gtol": 1e-20}
    minimum = minimize(value_and_gradient, first, jac=True, method="L-BFGS-B", options=options)
    return parts(minimum.x), int(minimum.nit)


def _smooth(problem: Problem, lists: PairLists, point: Point, smoothing: _Smoothing) -> tuple[float, Point]:
    """The smoothed objective, and its gradient."""
    points = _points(problem, point.roots)
    x = problem.columns @ point.mu + pair_lists.excess_of_points(lists, points)
    value, y = _slope(problem, x, smoothing)
    value += float(problem.column_cost @ point.mu)
    pulled, at, gradient = pair_lists.pull(lists, pair_lists.shares(lists, y), points), 0, []
    for factor, scale, cost, root in zip(problem.factors, problem.block_scale, problem.trace_cost, point.roots):
        block_pull = np.sqrt(scale) * pulled[:, at : at + root.shape[1]]
        gradient.append(2.0 * ((block_pull if factor is None else factor.T @ block_pull) + cost * root))
        value += cost * float(np.vdot(root, root))
        at += root.shape[1]
    return value, Point(gradient, problem.column_cost + problem.columns.T @ y)


MIN_RELATIVE_SIZE = 1e-6  # of an axis or a weight that stays, relative to the largest


def _trim(problem: Problem, lists: PairLists, point: Point, tolerance: float) -> Solution:
    """The point on its principal axes, without negligible ones unless that raises its objective."""
    whole, roots = _evaluate(problem, lists, point), []
    for root in point.roots:
        values, vectors = np.linalg.eigh(root.T @ root)
        roots.append(
            np.ascontiguousarray((root @ vectors)[:, values > MIN_RELATIVE_SIZE * values.max(initial=0.0)][:, ::-1])
        )
    mu = np.where(point.mu > MIN_RELATIVE_SIZE * point.mu.max(initial=0.0), point.mu, 0.0)
    trimmed_solution = _evaluate(problem, lists, Point(roots, mu))
    max_objective = whole.certificate.objective * (1.0 + 0.02 * tolerance)
    return trimmed_solution if trimmed_solution.certificate.objective <= max_objective else whole
