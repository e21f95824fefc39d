"""The convex problem of `problem` by factors: A_p = L_p L_p' with few columns, L-BFGS, and an exact dual gap.

Burer & Monteiro 2003: the optimum has low rank, and a point of L in which no direction descends and S + c I is PSD is
the optimum of the convex problem (Journee et al. 2010). The gap decides whether that holds: y is a dual point; its
Laplacian S = B*(y) has its smallest eigenvalue estimated by Lanczos, and the estimate is *proven* by a Cholesky factor
of s_p R_p' S R_p + b I before the answer is called certified. Directions below -c_p are those in which the objective
still falls: they join L as new columns.

STE is smooth, and y = w loss'(x). The hinge is solved by the method of multipliers (Rockafellar 1976): with
multipliers y0 and steps r, it is replaced by max over 0 <= y <= w of y (1 + x) - (y - y0)^2 / 2r, which is smooth in x;
its maximiser y = clip(y0 + r (1 + x), 0, w) becomes the next y0. Steps grow while the multipliers still move, so any
weight, however large, is reached. Every point is scaled to the best multiple of itself before its objective counts:
along a ray the objective is piecewise linear.

An iteration is O(P r + m) for P distinct pairs and rank r (`pair_lists`); a certificate is some 50 products with S and
one Cholesky factor, O(n^3 / 3).
"""

import inspect
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cholesky
from scipy.optimize import minimize
from scipy.sparse.linalg import ArpackError, eigsh

from stream_engine.kernel_learning import pair_lists
from stream_engine.kernel_learning import problem as form
from stream_engine.kernel_learning.pair_lists import PairLists
from stream_engine.kernel_learning.problem import Certificate, Problem

COLUMNS = 24  # that join a block at once, at most
FIRST, LEAST = 1e-3, 1e-17  # a descent ends when a step gains less of the objective: at first this part of the gap
FINER = 0.2  # by which that becomes less where a round brought little
INNER = 300  # iterations of L-BFGS between two looks at the gap
COARSE = 0.01  # movement of the multipliers, beside what y lacks in feasibility, from which on they are renewed
AHEAD = 4.0  # by which y may be nearer the optimum than the point is, before the multipliers are renewed
STEP, LONGER, ENOUGH = 100.0, 1.5, 0.9  # first step of multipliers; by what it grows where they moved no less
TINY = 1e-6  # fraction of the largest eigenvalue or weight below which columns may go
RESTARTS = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}  # else unseeded since scipy 1.17
DENSE = 64  # objects up to which all eigenvalues are computed
SLACK = 1e-9  # by which y shrinks at least, so that rounding in a Cholesky factor proves nothing false


class Point(NamedTuple):
    """L_p (r_p, k_p) of every block, and the weights of the columns."""

    roots: list[np.ndarray]
    mu: np.ndarray


class Solution(NamedTuple):
    """A point with what is proven of it; `converged`: the gap is at most the tolerance."""

    point: Point
    x: np.ndarray  # (m,)
    certificate: Certificate
    iterations: int
    converged: bool

    @property
    def gap(self) -> float:
        """(objective - bound) / objective."""
        return self.certificate.gap


class _Dual(NamedTuple):
    """y shrunk by s until feasible by what Lanczos sees, and for every block and the columns where the objective still
    falls."""

    y: np.ndarray
    s: float
    directions: list[np.ndarray]
    columns: np.ndarray  # (A,) bool


class _Smoothing(NamedTuple):
    """The hinge's multipliers and their steps, (m,) each; of STE they are not used."""

    center: np.ndarray
    step: np.ndarray


def origin(problem: Problem) -> Point:
    """A = 0, mu = 0."""
    roots = [np.zeros((r, 0)) for r in form.block_sizes(problem)]
    return Point(roots, np.zeros(problem.columns.shape[1]))


def solve(
    problem: Problem,
    start: Point | None = None,
    dual: np.ndarray | None = None,
    tolerance: float = 1e-4,
    max_iterations: int = 20000,
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
) -> Solution:
    """Minimise a problem, from `start` and perhaps a dual point; done when the relative gap is proven <= `tolerance`.

    Cut short by `max_iterations` of L-BFGS, by a `progress` that returns True, or where rounding ends the progress, it
    gives the best point with the best bound, and `converged` is False.

    >>> rows, none = np.array([[0, 1, 0, 2]], np.int32), np.empty((1, 0))
    >>> gnmds = Problem(3, rows, np.array([1e6]), "hinge", (None,), np.ones(1), np.ones(1), none, np.empty(0))
    >>> found = solve(gnmds, tolerance=1e-6)
    >>> round(found.certificate.objective, 4), found.converged
    (0.5774, True)
    """
    lists = pair_lists.of_rows(problem.rows, problem.n)
    here = best = _evaluated(problem, lists, start or origin(problem))
    smoothing = _Smoothing(np.zeros(len(here.x)), np.zeros(len(here.x)))
    first = problem.weight if problem.loss == "hinge" else _slope(problem, here.x, smoothing)[1]
    y = first if dual is None else np.clip(dual, 0.0, problem.weight)
    best = _bounded(
        problem,
        lists,
        best,
        (_within_columns(problem, y) if dual is not None else _dual(problem, lists, y).s) * y,
        np.inf,
    )
    if problem.loss == "hinge":
        share = best.certificate.bound / float(problem.weight.sum())
        smoothing = _Smoothing(best.certificate.dual, STEP * max(share, 1e-9) * problem.weight)
        if dual is None:
            smoothing = smoothing._replace(center=0 * smoothing.center)
    done, enough, before = 0, FIRST * tolerance, np.full(len(y), np.inf)
    while True:
        y = _slope(problem, here.x, smoothing)[1]
        found = _dual(problem, lists, y)
        best = _bounded(problem, lists, best, found.s * y, tolerance)
        told = {"gap": best.gap, "objective": best.certificate.objective}
        stopped = progress(min(done, max_iterations), max_iterations, **told)
        if best.gap <= tolerance or done >= max_iterations or enough < LEAST or stopped:
            break
        if done:
            moved = _moved(problem, y, smoothing)
            short, value = 1.0 - found.s, form.dual_value(problem, y)
            above = 1.0 - value / here.certificate.objective  # what the point lacks; `short` is what y lacks
            if moved.sum() > COARSE * short * value or (moved.any() and AHEAD * short < above):
                longer = np.where(moved > ENOUGH * before, LONGER, 1.0)
                smoothing, before = _Smoothing(y, longer * smoothing.step), moved
                enough = min(enough / FINER, FIRST * tolerance)
            else:
                enough *= FINER
        point = _grown(problem, here.point, found)
        point, used = _descended(
            problem, lists, point, smoothing, best.certificate.objective, enough, min(INNER, max_iterations - done)
        )
        done += max(used, 1)
        here = _trimmed(problem, lists, point, tolerance)
        best = _better(best, _scaled(problem, here))
    dual = proven(problem, lists, best.certificate.dual)
    certificate = Certificate(best.certificate.objective, max(0.0, form.dual_value(problem, dual)), dual)
    return best._replace(certificate=certificate, iterations=done, converged=certificate.gap <= tolerance)


def certified(problem: Problem, point: Point, y: np.ndarray, iterations: int, tolerance: float) -> Solution:
    """A point and a dual point that another solver found, with the proof of how good they are. O(m + sum r_p^3)."""
    lists, y = pair_lists.of_rows(problem.rows, problem.n), np.clip(y, 0.0, problem.weight)
    here = _evaluated(problem, lists, point)
    dual = proven(problem, lists, _within_columns(problem, y) * y)
    proof = Certificate(here.certificate.objective, max(0.0, form.dual_value(problem, dual)), dual)
    return here._replace(certificate=proof, iterations=iterations, converged=proof.gap <= tolerance)


def _better(best: Solution, new: Solution) -> Solution:
    """The point with the lower objective; the bound stays."""
    if new.certificate.objective >= best.certificate.objective:
        return best
    return new._replace(certificate=best.certificate._replace(objective=new.certificate.objective))


def _scaled(problem: Problem, here: Solution) -> Solution:
    """The best multiple t of a point of the hinge: its objective t C + sum w max(0, 1 + t x) is least where the slope
    turns."""
    if problem.loss != "hinge":
        return here
    cost = here.certificate.objective - form.losses(problem, here.x)
    falls = here.x < 0
    turn = 1.0 / -here.x[falls]
    pull = problem.weight[falls] * -here.x[falls]
    order = np.argsort(turn)
    slopes = cost + float(problem.weight[~falls] @ here.x[~falls]) - pull.sum() + np.cumsum(pull[order])
    at = int(np.searchsorted(slopes >= 0, True))
    if not len(slopes) or cost + float(problem.weight @ here.x) >= 0 or at == len(slopes):
        return here
    t = float(turn[order][at])
    point, x = Point([np.sqrt(t) * root for root in here.point.roots], t * here.point.mu), t * here.x
    return here._replace(
        point=point, x=x, certificate=here.certificate._replace(objective=t * cost + form.losses(problem, x))
    )


def _bounded(problem: Problem, lists: PairLists, best: Solution, dual: np.ndarray, tolerance: float) -> Solution:
    """`best` with the better of its bound and that of `dual`, proven once it would be good enough."""
    objective, bound, before = best.certificate
    value = form.dual_value(problem, dual)
    if value <= bound:
        return best
    if value >= (1.0 - tolerance) * objective:
        dual = proven(problem, lists, dual)
        value = form.dual_value(problem, dual)
    return best._replace(certificate=Certificate(objective, value, dual))


def pivoted_cholesky(gram: np.ndarray, tiny: float) -> np.ndarray:
    """(n, k): L with L L' = gram but for pivots below `tiny` of the largest entry of its diagonal. O(n k^2).

    >>> pivoted_cholesky(np.array([[1.0, 2.0], [2.0, 4.0]]), 1e-9).tolist()
    [[1.0], [2.0]]
    """
    left, columns = np.diag(gram).copy(), np.empty((len(gram), 0))
    least = tiny * max(float(left.max(initial=0.0)), 1e-300)
    while columns.shape[1] < len(gram) and left.max() > least:
        at = int(np.argmax(left))
        column = (gram[:, at] - columns @ columns[at]) / np.sqrt(left[at])
        columns = np.concatenate([columns, column[:, None]], axis=1)
        left -= column * column
    return columns


def smallest_eigenvalues(matrix, count: int, precision: float = 1e-6) -> tuple[np.ndarray, np.ndarray]:
    """`(values, vectors)` of the `count` smallest eigenvalues of a symmetric matrix, by Lanczos from a fixed start.

    From above: a Ritz value is never below the smallest eigenvalue, and no proof that there is none below it.
    """
    n = matrix.shape[0]
    if n <= DENSE or count >= n // 2:
        values, vectors = np.linalg.eigh(dense(matrix))
        return values[:count], vectors[:, :count]
    first = np.random.default_rng(n).standard_normal(n)
    try:
        values, vectors = eigsh(matrix, k=count, which="SA", v0=first, tol=precision, maxiter=50 * n, **RESTARTS)
    except ArpackError:  # no convergence, or a matrix of zeros
        values, vectors = np.linalg.eigh(dense(matrix))
        return values[:count], vectors[:, :count]
    order = np.argsort(values)
    return values[order], vectors[:, order]


def proven(problem: Problem, lists: PairLists, y: np.ndarray) -> np.ndarray:
    """y, in [0, w] and within the cost of the columns, shrunk as little as needed until every block is proven feasible.

    M + b I has a Cholesky factor: then no eigenvalue of M is below -b, and c / b of y is feasible. O(r_p^3 / 3) a try.
    """
    s, share = 1.0, pair_lists.shares(lists, y)
    for p, cost in enumerate(problem.trace_cost):
        matrix, more = dense(_block(problem, lists, share, p)), SLACK
        while not _positive(matrix, cost * (1.0 + more)):
            more *= 8.0
        s = min(s, 1.0 / (1.0 + more))
    return s * y


def dense(matrix) -> np.ndarray:
    """The matrix as an array of its own."""
    return matrix.copy() if isinstance(matrix, np.ndarray) else matrix.toarray()


def _positive(matrix: np.ndarray, shift: float) -> bool:
    shifted = matrix.copy()
    shifted.flat[:: len(matrix) + 1] += shift
    try:
        cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def _block(problem: Problem, lists: PairLists, s: np.ndarray, p: int):
    """s_p R_p' S R_p: sparse where R_p is the identity."""
    matrix, factor, scale = pair_lists.laplacian(lists, s), problem.factors[p], problem.block_scale[p]
    return scale * matrix if factor is None else scale * (factor.T @ (matrix @ factor))


def _points(problem: Problem, roots: list[np.ndarray]) -> np.ndarray:
    """Z (n, sum k_p) with Z Z' = sum_p s_p R_p A_p R_p'."""
    side_by_side = [np.empty((problem.n, 0))]
    for factor, scale, root in zip(problem.factors, problem.block_scale, roots):
        side_by_side.append(np.sqrt(scale) * (root if factor is None else factor @ root))
    return np.concatenate(side_by_side, axis=1)


def _evaluated(problem: Problem, lists: PairLists, point: Point) -> Solution:
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
        away = y - center
        return float(y @ slack - 0.5 * np.sum(away * away / np.where(step > 0, step, 1.0))), y
    e = np.exp(-np.abs(x))
    value = float(problem.weight @ (np.maximum(x, 0.0) + np.log(1.0 + e)))
    return value, problem.weight * np.where(x > 0, 1.0, e) / (1.0 + e)


def _moved(problem: Problem, y: np.ndarray, smoothing: _Smoothing) -> np.ndarray:
    """(m,): how far the multipliers of the hinge are from where they stay, (y - y0)^2 / r; zeros of STE."""
    if problem.loss != "hinge":
        return np.zeros(len(y))
    return np.asarray((y - smoothing.center) ** 2 / smoothing.step)


def _within_columns(problem: Problem, y: np.ndarray) -> float:
    """The largest s <= 1 with e + s D'y >= 0."""
    return form.largest_share(problem.column_cost, problem.columns.T @ y)


def _dual(problem: Problem, lists: PairLists, y: np.ndarray) -> _Dual:
    s, directions = _within_columns(problem, y), []
    for p, cost in enumerate(problem.trace_cost):
        block = _block(problem, lists, pair_lists.shares(lists, y), p)
        values, vectors = smallest_eigenvalues(block, 1)
        if values[0] < -cost * 1.001 and block.shape[0] > 1:
            values, vectors = smallest_eigenvalues(block, min(COLUMNS, block.shape[0]), 1e-2)
        if values[0] < -cost:
            s = min(s, -cost / float(values[0]))
        directions.append(vectors[:, values < -cost * (1.0 + 1e-6)])
    return _Dual(y, s, directions, problem.columns.T @ y < -problem.column_cost)


def _grown(problem: Problem, point: Point, found: _Dual) -> Point:
    """New columns of L, and weights that are above 0, short beside the others, where the objective falls."""
    roots = []
    for factor, scale, root, new in zip(problem.factors, problem.block_scale, point.roots, found.directions):
        size = 0.1 * float(np.sqrt((root**2).sum(axis=0).mean())) if root.shape[1] else 0.0
        if size == 0.0 and new.shape[1]:
            reach = scale * np.mean((new if factor is None else factor @ new) ** 2)
            size = 0.2 / np.sqrt(max(float(reach), 1e-300) * new.shape[1])
        roots.append(np.concatenate([root, size * new], axis=1))
    reach = np.sqrt(np.mean(problem.columns**2, axis=0)) if len(point.mu) else point.mu
    small = np.where(found.columns & (reach > 0), 0.01 / np.maximum(reach, 1e-300), 0.0)
    return Point(roots, np.maximum(point.mu, small))


def _descended(
    problem, lists, point: Point, smoothing: _Smoothing, scale: float, enough: float, most: int
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
        both = np.concatenate([*(root.ravel() for root in gradient.roots), of_columns])
        return (value - value_at_first) / scale, both / scale

    first = np.concatenate([*(root.ravel() for root in point.roots), np.sqrt(point.mu / unit)])
    options = {"maxiter": most, "maxfun": 2 * most, "maxcor": 20, "ftol": enough, "gtol": 1e-20}
    found = minimize(value_and_gradient, first, jac=True, method="L-BFGS-B", options=options)
    return parts(found.x), int(found.nit)


def _smooth(problem: Problem, lists: PairLists, point: Point, smoothing: _Smoothing) -> tuple[float, Point]:
    """The smoothed objective, and its gradient."""
    points = _points(problem, point.roots)
    x = problem.columns @ point.mu + pair_lists.excess_of_points(lists, points)
    value, y = _slope(problem, x, smoothing)
    value += float(problem.column_cost @ point.mu)
    moved, at, gradient = pair_lists.pull(lists, pair_lists.shares(lists, y), points), 0, []
    for factor, scale, cost, root in zip(problem.factors, problem.block_scale, problem.trace_cost, point.roots):
        own = np.sqrt(scale) * moved[:, at : at + root.shape[1]]
        gradient.append(2.0 * ((own if factor is None else factor.T @ own) + cost * root))
        value += cost * float(np.vdot(root, root))
        at += root.shape[1]
    return value, Point(gradient, problem.column_cost + problem.columns.T @ y)


def _trimmed(problem: Problem, lists: PairLists, point: Point, tolerance: float) -> Solution:
    """The point turned onto its main axes without those that hardly count, if its objective does not mind."""
    untouched, roots = _evaluated(problem, lists, point), []
    for root in point.roots:
        values, vectors = np.linalg.eigh(root.T @ root)
        roots.append(np.ascontiguousarray((root @ vectors)[:, values > TINY * values.max(initial=0.0)][:, ::-1]))
    mu = np.where(point.mu > TINY * point.mu.max(initial=0.0), point.mu, 0.0)
    shorter = _evaluated(problem, lists, Point(roots, mu))
    most = untouched.certificate.objective * (1.0 + 0.02 * tolerance)
    return shorter if shorter.certificate.objective <= most else untouched
