"""Hard margin with K = I: the least trace of a Gram matrix that satisfies every comparison of an order.

    min  tr A    with  d(i, j) + m_t <= d(k, l) for every comparison t,  A PSD,  d(i, j) = A_ii + A_jj - 2 A_ij

GNMDS (Agarwal et al. 2007; McFee & Lanckriet 2011, sec. 3.3) without slack: what KPOE with K = I tends to as beta
grows. An order always has such a matrix (Algorithm 5), and a comparison that follows from others with margin m asks for
nothing new. The dual is max sum m_t y_t over y >= 0 with I + sum y_t B_t PSD: any y >= 0 becomes feasible by a factor,
one smallest eigenvalue, proven by a Cholesky factor. So is any point that satisfies all comparisons, by the factor
max_t m_t / (d(k, l) - d(i, j)). Solved by an augmented Lagrangian over A = L L', L-BFGS inside; where I + B*(y) is not
PSD the Lagrangian still falls, and those directions become columns of L (else it may end in a saddle). An iteration
costs O(P r) for P distinct pairs and L (n, r), a certificate O(n^3 / 3).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from stream_engine.kernel_learning import constant_shift, factored, pair_lists
from stream_engine.kernel_learning.out_of_sample_factor import root
from stream_engine.kernel_learning.pair_lists import PairLists
from stream_engine.kernel_learning.problem import Certificate, Problem

INNER = 300  # iterations of L-BFGS between two updates of the multipliers
STIFFER, ENOUGH = 2.0, 0.5  # by which the penalty grows where violation did not fall to this share
HELD = 1e-3  # violation, in units of the tolerance and the margins, below which the penalty does not grow
TINY = 1e-6  # share of the largest eigenvalue below which a direction goes
COLUMNS, SHORT = 8, 0.1  # that join L at once, at most, and how long they are beside the others


class HardMargin(NamedTuple):
    """`gram` satisfies every comparison with its margin; `converged`: the gap is at most the tolerance."""

    gram: np.ndarray  # (n, n)
    certificate: Certificate  # of tr A
    iterations: int
    converged: bool


def fit(
    rows: np.ndarray,
    n: int,
    *,
    margin: np.ndarray | float = 1.0,
    tolerance: float = 1e-3,
    max_iterations: int = 20000,
    progress: Callable[..., None] = lambda done, total, **figures: None,
) -> HardMargin:
    """The matrix for acyclic comparisons (m, 4) over n objects, to a relative gap of `tolerance`; the best one found
    and its gap where `max_iterations` end it. Raises `constant_shift.Cyclic`.

    >>> found = fit(np.array([[0, 1, 0, 2]]), 3, tolerance=1e-6)
    >>> round(found.certificate.objective, 4), found.converged        # as GNMDS with a large beta
    (0.5774, True)
    """
    rows = np.ascontiguousarray(rows, np.int32)
    margins = np.broadcast_to(np.asarray(margin, float), len(rows))
    if len(rows) == 0:
        return HardMargin(np.zeros((n, n)), Certificate(0.0, 0.0, np.zeros(0)), 0, True)
    lists, first = pair_lists.of_rows(rows, n), constant_shift.embed_order(rows, n).gram
    points = root(first * margins.max(initial=1.0), n)
    best = _feasible(lists, margins, points, np.zeros(len(rows)))
    assert best is not None  # Algorithm 5 satisfies every comparison by 1 at least
    y, done, bound, dual = np.zeros(len(rows)), 0, 0.0, np.zeros(len(rows))
    penalty, before = best[0] / max(float(margins @ margins), 1e-300), np.inf
    held = HELD * tolerance * float(np.linalg.norm(margins))
    while done < max_iterations and best[0] - bound > tolerance * best[0]:
        points, used = _descended(lists, margins, points, y, penalty, min(INNER, max_iterations - done))
        done += max(used, 1)
        slack = margins + pair_lists.excess_of_points(lists, points)
        y = np.maximum(0.0, y + penalty * slack)
        value, feasible, directions = _bound(rows, n, lists, margins, y)
        if value > bound:
            bound, dual = value, feasible
        better = _feasible(lists, margins, points, dual)
        best = better if better is not None and better[0] < best[0] else best
        violated = float(np.linalg.norm(np.maximum(slack, 0.0)))
        penalty *= STIFFER if violated > max(ENOUGH * before, held) else 1.0
        before, points = violated, _grown(points, directions)
        progress(done, max_iterations, gap=(best[0] - bound) / best[0], objective=best[0])
    certificate = Certificate(best[0], bound, dual)
    return HardMargin(best[1] @ best[1].T, certificate, done, certificate.gap <= tolerance)


def _feasible(lists: PairLists, margins, points, dual) -> tuple[float, np.ndarray] | None:
    """`(trace, points)` scaled so that every comparison just holds; None where one is violated at any scale."""
    apart = -pair_lists.excess_of_points(lists, points)
    if not (apart > 0).all():
        return None
    scale = float(np.max(margins / apart))
    return scale * float(np.vdot(points, points)), np.sqrt(scale) * points


def _bound(rows, n, lists: PairLists, margins, y) -> tuple[float, np.ndarray, np.ndarray]:
    """`(sum m y, y, directions)` for y times the largest factor that keeps I + B*(y) PSD, proven, and (n, k) directions
    in which it is not PSD at y itself."""
    share, none = pair_lists.shares(lists, y), np.empty((len(rows), 0))
    values, vectors = factored.smallest_eigenvalues(pair_lists.laplacian(lists, share), min(COLUMNS, n - 1))
    if not values[0] < 0:
        return 0.0, np.zeros(len(y)), np.empty((n, 0))
    problem = Problem(n, rows, y, "hinge", (None,), np.ones(1), np.ones(1), none, np.empty(0))
    feasible = factored.proven(problem, lists, y / -values[0])
    return float(margins @ feasible), feasible, vectors[:, values < -1.0]


def _grown(points: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """The points on their main axes, without what is tiny, and short new columns in these directions."""
    values, vectors = np.linalg.eigh(points.T @ points)
    kept = points @ vectors[:, values > TINY * values.max(initial=0.0)]
    size = SHORT * float(np.sqrt((kept**2).sum(axis=0).mean())) if kept.shape[1] else 1.0
    return np.concatenate([kept, size * directions], axis=1)


def _descended(lists: PairLists, margins, points, y, penalty: float, most: int) -> tuple[np.ndarray, int]:
    """`(points, iterations)`: L-BFGS on |L|^2 + sum (max(0, y + penalty (m + x))^2 - y^2) / (2 penalty)."""
    shape = points.shape

    def value_and_gradient(flat: np.ndarray) -> tuple[float, np.ndarray]:
        here = flat.reshape(shape)
        pressed = np.maximum(0.0, y + penalty * (margins + pair_lists.excess_of_points(lists, here)))
        moved = here + pair_lists.pull(lists, pair_lists.shares(lists, pressed), here)
        value = float(flat @ flat) + float(pressed @ pressed - y @ y) / (2.0 * penalty)
        return value, 2.0 * moved.ravel()

    options = {"maxiter": most, "maxfun": 2 * most, "maxcor": 12, "ftol": 1e-12, "gtol": 1e-14}
    found = minimize(value_and_gradient, points.ravel(), jac=True, method="L-BFGS-B", options=options)
    return found.x.reshape(shape), int(found.nit)
