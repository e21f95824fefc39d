"""The convex problem of `problem` by factors: A_p = L_p L_p' with few columns, L-BFGS, and the same exact dual gap.

Burer & Monteiro 2003: the optimum has low rank, and a point of L in which no direction descends and S + c I is PSD is
the optimum of the convex problem (Journee et al. 2010). So the gap decides, not the hope: y = w loss'(x) at L's excess
x is a dual point; its Laplacian S = B*(y) has its smallest eigenvalue guessed by Lanczos, and the guess is *proven* by
a Cholesky factor of s_p R_p' S R_p + b I before the answer is called certified. Directions below -c_p are those in
which the objective still falls: they join L as new columns. The hinge is rounded over a width delta, which gives y as
well and costs delta / 4 of the weight inside at most; delta falls until that no longer keeps the gap open.

An iteration is O(P r + m) for P distinct pairs and rank r (`pair_lists`), against O(n^3) of `fista` and `pdhg`; a
certificate is some 50 products with S and one Cholesky factor, O(n^3 / 3).
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
ROUNDS = 40
FIRST, LEAST = 1e-3, 1e-12  # a descent ends when a step gains less of the objective: at first a part of the tolerance
FINER = 0.2  # by which that becomes less
COARSE, NARROWER = 0.3, 0.3  # share of the gap at which the rounding of the hinge shrinks, and by what
WIDTHS = (1.0, 0.3, 0.1, 0.03, 0.01)  # of rounding, that are looked at first
TINY = 1e-6  # fraction of the largest eigenvalue or weight below which columns may go
RESTARTS = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}  # else unseeded since scipy 1.17
DENSE = 64  # objects up to which all eigenvalues are computed
SLACK = 1e-7  # by which y shrinks at least, so that rounding in a Cholesky factor proves nothing false


class Point(NamedTuple):
    """L_p (r_p, k_p) of every block, and the weights of the columns."""

    roots: list[np.ndarray]
    mu: np.ndarray


class Factored(NamedTuple):
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
    """y shrunk by s until feasible by what Lanczos sees, and for every block where its objective still falls."""

    y: np.ndarray
    s: float
    directions: list[np.ndarray]


def solve(
    problem: Problem,
    start: Point,
    dual: np.ndarray | None = None,
    tolerance: float = 1e-4,
    max_iterations: int = 20000,
    progress: Callable[..., None] = lambda done, total, **figures: None,
) -> Factored:
    """Minimise a problem that has PSD blocks, from `start` and perhaps a dual point; done when the relative gap is
    proven <= `tolerance`.

    Where that fails (`converged` is False), the point is a good start for a solver that keeps A_p whole.
    """
    lists = pair_lists.of_rows(problem.rows, problem.n)
    best, enough, done = _evaluated(problem, lists, start), FIRST * tolerance, 0
    if dual is not None:
        dual = np.clip(dual, 0.0, problem.weight)
        best = _bounded(problem, lists, best, _within_columns(problem, dual) * dual, np.inf)
    delta = _width(problem, lists, best.x)
    for _ in range(ROUNDS):
        found = _dual(problem, lists, best.x, delta)
        best = _bounded(problem, lists, best, found.s * found.y, tolerance)
        progress(min(done, max_iterations), max_iterations, gap=best.gap, objective=best.certificate.objective)
        if best.gap <= tolerance or done >= max_iterations or enough < LEAST:
            break
        if done:
            slack = best.certificate.objective - form.dual_value(problem, found.s * found.y)
            coarse = problem.loss == "hinge" and _rounding(problem, best.x, found.y) > COARSE * slack
            delta, enough = (delta * NARROWER, enough) if coarse else (delta, enough * FINER)
        point = _grown(problem, best.point, found.directions)
        point, used = _descended(problem, lists, point, delta, enough, max_iterations - done)
        done += max(used, 1)
        bound, dual = best.certificate[1:]
        best = _trimmed(problem, lists, point, tolerance)
        best = best._replace(certificate=best.certificate._replace(bound=bound, dual=dual))
    dual = proven(problem, lists, best.certificate.dual)
    certificate = Certificate(best.certificate.objective, max(0.0, form.dual_value(problem, dual)), dual)
    return best._replace(certificate=certificate, iterations=done, converged=certificate.gap <= tolerance)


def _bounded(problem: Problem, lists: PairLists, best: Factored, dual: np.ndarray, tolerance: float) -> Factored:
    """`best` with the better of its bound and that of `dual`, proven once it would be good enough."""
    objective, bound, before = best.certificate
    value = form.dual_value(problem, dual)
    if value <= bound:
        return best
    if value >= (1.0 - tolerance) * objective:
        dual = proven(problem, lists, dual)
        value = form.dual_value(problem, dual)
    return best._replace(certificate=Certificate(objective, value, dual))


def whole(problem: Problem, point: Point) -> np.ndarray:
    """The flat point A_p = L_p L_p', mu."""
    u = np.empty(form.point_size(problem))
    blocks, mu = form.parts(problem, u)
    for block, root in zip(blocks, point.roots):
        np.matmul(root, root.T, out=block)
    mu[:] = point.mu
    return u


def of_whole(problem: Problem, u: np.ndarray) -> Point:
    """The factors of a flat point, without what is below 1e-6 of the largest. O(r_p^2 k_p) by pivoted Cholesky."""
    blocks, mu = form.parts(problem, u)
    return Point([pivoted_cholesky(block, TINY) for block in blocks], mu.copy())


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


def _evaluated(problem: Problem, lists: PairLists, point: Point) -> Factored:
    """The point with its exact objective and no bound yet."""
    x = problem.columns @ point.mu + pair_lists.excess_of_points(lists, _points(problem, point.roots))
    trace = sum(c * float(np.vdot(root, root)) for c, root in zip(problem.trace_cost, point.roots))
    objective = float(trace + problem.column_cost @ point.mu + form.losses(problem, x))
    return Factored(point, x, Certificate(objective, 0.0, np.zeros(len(x))), 0, False)


def _slope(problem: Problem, x: np.ndarray, delta: float) -> tuple[float, np.ndarray]:
    """`(losses, y)` at x, the hinge rounded over `delta` from below."""
    if problem.loss == "hinge":
        slack = problem.margin + x
        inside = np.clip(slack / delta, 0.0, 1.0)
        y = problem.weight * inside
        return float(y @ slack - 0.5 * delta * (y @ inside)), y
    e = np.exp(-np.abs(x))
    value = float(problem.weight @ (np.maximum(x, 0.0) + np.log(1.0 + e)))
    return value, problem.weight * np.where(x > 0, 1.0, e) / (1.0 + e)


def _rounding(problem: Problem, x: np.ndarray, y: np.ndarray) -> float:
    """How much of the gap is the rounding of the hinge: sum w h(m + x) - y (m + x)."""
    return form.losses(problem, x) - float(y @ (problem.margin + x))


def _width(problem: Problem, lists: PairLists, x: np.ndarray) -> float:
    """The width of rounding, 1 or less, with the best bound at x: a good start is not to be rounded away."""
    if problem.loss != "hinge":
        return 1.0
    found = [(width, _dual(problem, lists, x, width)) for width in WIDTHS]
    return max(found, key=lambda each: form.dual_value(problem, each[1].s * each[1].y))[0]


def _within_columns(problem: Problem, y: np.ndarray) -> float:
    """The largest s <= 1 with e + s D'y >= 0."""
    back = problem.columns.T @ y
    over = back < -problem.column_cost
    return min(1.0, float(np.min(-problem.column_cost[over] / back[over]))) if over.any() else 1.0


def _dual(problem: Problem, lists: PairLists, x: np.ndarray, delta: float) -> _Dual:
    y = _slope(problem, x, delta)[1]
    s, directions = _within_columns(problem, y), []
    for p, cost in enumerate(problem.trace_cost):
        block = _block(problem, lists, pair_lists.shares(lists, y), p)
        values, vectors = smallest_eigenvalues(block, 1)
        if values[0] < -cost * 1.001 and block.shape[0] > 1:
            values, vectors = smallest_eigenvalues(block, min(COLUMNS, block.shape[0]), 1e-2)
        if values[0] < -cost:
            s = min(s, -cost / float(values[0]))
        directions.append(vectors[:, values < -cost * (1.0 + 1e-6)])
    return _Dual(y, s, directions)


def _grown(problem: Problem, point: Point, directions: list[np.ndarray]) -> Point:
    """New columns, short beside the others, in directions in which the objective falls; the same point if there are
    none."""
    if not any(each.shape[1] for each in directions):
        return point
    roots = []
    for factor, scale, root, new in zip(problem.factors, problem.block_scale, point.roots, directions):
        size = 0.1 * float(np.sqrt((root**2).sum(axis=0).mean())) if root.shape[1] else 0.0
        if size == 0.0 and new.shape[1]:
            reach = scale * np.mean((new if factor is None else factor @ new) ** 2)
            size = 0.2 / np.sqrt(max(float(reach), 1e-300) * new.shape[1])
        roots.append(np.concatenate([root, size * new], axis=1))
    return point._replace(roots=roots)


def _descended(problem, lists, point: Point, delta: float, enough: float, most: int) -> tuple[Point, int]:
    """`(where L-BFGS ends, iterations)`, in units in which every column of the problem has length 1."""
    length = np.linalg.norm(problem.columns * np.sqrt(problem.weight)[:, None], axis=0)
    unit = 1.0 / np.where(length > 0, length, 1.0)
    size = sum(root.size for root in point.roots)

    def parts(v: np.ndarray) -> Point:
        roots, at = [], 0
        for root in point.roots:
            roots.append(v[at : at + root.size].reshape(root.shape))
            at += root.size
        return Point(roots, v[at:] * unit)

    def value_and_gradient(v: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = _smooth(problem, lists, parts(v), delta)
        return value, np.concatenate([*(root.ravel() for root in gradient.roots), gradient.mu * unit])

    first = np.concatenate([*(root.ravel() for root in point.roots), point.mu / unit])
    bounds = [(None, None)] * size + [(0.0, None)] * len(unit) if len(unit) else None
    options = {"maxiter": most, "maxfun": 2 * most, "maxcor": 12, "ftol": enough, "gtol": 1e-14}
    found = minimize(value_and_gradient, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return parts(found.x), int(found.nit)


def _smooth(problem: Problem, lists: PairLists, point: Point, delta: float) -> tuple[float, Point]:
    """The objective with the hinge rounded over `delta`, and its gradient."""
    points = _points(problem, point.roots)
    x = problem.columns @ point.mu + pair_lists.excess_of_points(lists, points)
    value, y = _slope(problem, x, delta)
    value += float(problem.column_cost @ point.mu)
    moved, at, gradient = pair_lists.pull(lists, pair_lists.shares(lists, y), points), 0, []
    for factor, scale, cost, root in zip(problem.factors, problem.block_scale, problem.trace_cost, point.roots):
        own = np.sqrt(scale) * moved[:, at : at + root.shape[1]]
        gradient.append(2.0 * ((own if factor is None else factor.T @ own) + cost * root))
        value += cost * float(np.vdot(root, root))
        at += root.shape[1]
    return value, Point(gradient, problem.column_cost + problem.columns.T @ y)


def _trimmed(problem: Problem, lists: PairLists, point: Point, tolerance: float) -> Factored:
    """The point turned onto its main axes without those that hardly count, if its objective does not mind."""
    untouched, roots = _evaluated(problem, lists, point), []
    for root in point.roots:
        values, vectors = np.linalg.eigh(root.T @ root)
        roots.append(np.ascontiguousarray((root @ vectors)[:, values > TINY * values.max(initial=0.0)][:, ::-1]))
    mu = np.where(point.mu > TINY * point.mu.max(initial=0.0), point.mu, 0.0)
    shorter = _evaluated(problem, lists, Point(roots, mu))
    most = untouched.certificate.objective * (1.0 + 0.02 * tolerance)
    return shorter if shorter.certificate.objective <= most else untouched
