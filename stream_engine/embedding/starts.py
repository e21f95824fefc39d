"""Where a descent begins: the directions in which the likelihood falls most at X = 0, an earlier embedding, or chance.

At X = 0 every p is 1/2 and L(X) = L(0) + (1 - lapse) / 2 tr(X' S X) + O(X^4), S the Laplacian of AddS (near +1, far -1;
Perrot et al. 2020, sec. 4) with its quadruplets. So S's most negative eigenvectors are the best d directions, it is
classical scaling of AddS, and above ridge = -lambda_min(S) (1 - lapse) / 2 the points all stay at 0. O(q) a product, by
Lanczos; a few dozen products. The same holds at any X for columns Y that are added to it,

    L([X Y]) = L(X) + tr(Y' S(X) Y) + O(Y^4),   S(X) = sum_q dL/dDelta (phi'(far) E_kl - phi'(near) E_ij),

so an embedding grows by the eigenvectors of S(X) below -ridge (Journee, Bach, Absil & Sepulchre 2010, sec. 4).
"""

import inspect
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackError, eigsh

from stream_engine.embedding.gradient import Loss
from stream_engine.embedding.questions import Questions
from stream_engine.evaluation.answer_probabilities import margins, probability

DENSE = 400  # objects up to which all of S is held and all eigenvalues are computed
SCALES = tuple(4.0**power for power in range(-4, 5))
RESTARTS = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}  # else unseeded since scipy 1.17


class Directions(NamedTuple):
    """Directions of descent from X = 0, steepest first."""

    points: np.ndarray  # (n, d): orthogonal columns, each as long as the root of how steep it is
    largest_ridge: float  # at which X = 0 is a minimum, where there is no lapse


def laplacian(questions: Questions) -> csr_array:
    """(n, n) sparse S = sum_q (near_q - far_q) (E_ij - E_kl), E_ij = (e_i - e_j)(e_i - e_j)'. O(q log q).

    >>> from stream_engine.embedding.questions import of_rows
    >>> laplacian(of_rows(np.array([[0, 1, 0, 2]]), 3)).toarray().tolist()
    [[0.0, -1.0, 1.0], [-1.0, 1.0, 0.0], [1.0, 0.0, -1.0]]
    """
    net = questions.near - questions.far
    return _weighted(questions, net, -net)


def _weighted(questions: Questions, near: np.ndarray, far: np.ndarray) -> csr_array:
    """(n, n) sparse sum_q near_q E_ij + far_q E_kl."""
    n, (i, j, k, l) = questions.n_objects, questions.rows.T
    own = np.bincount(i, near, n) + np.bincount(j, near, n) + np.bincount(k, far, n) + np.bincount(l, far, n)
    every = np.arange(n)
    if _have_many_pairs(n, len(near)):
        sums = np.bincount(i * np.int64(n) + j, near, n * n) + np.bincount(k * np.int64(n) + l, far, n * n)
        one_way = sums.reshape(n, n)
        dense = -(one_way + one_way.T)
        dense[every, every] = own
        return csr_array(dense)
    values = np.concatenate([-near, -near, -far, -far, own])
    return csr_array((values, (np.concatenate([i, j, k, l, every]), np.concatenate([j, i, l, k, every]))), shape=(n, n))


def curvature(points: np.ndarray, questions: Questions, lapse: np.ndarray, alpha: float) -> csr_array:
    """(n, n) sparse S(X). O(q d)."""
    delta, lapse = margins(points, questions.rows, alpha), lapse[questions.worker]
    share = probability(delta, 0.0)
    p = np.clip(probability(delta, lapse), 1e-12, 1 - 1e-12)
    pull = (1 - lapse) * share * (1 - share) * (questions.far / (1 - p) - questions.near / p)
    if not alpha:
        return _weighted(questions, -pull, pull)
    i, j, k, l = questions.rows.T
    near, far = (_squares(points, one, other) for one, other in ((i, j), (k, l)))
    return _weighted(questions, *(sign * (alpha + 1) / 2 / (alpha + s) * pull for sign, s in ((-1, near), (1, far))))


def _squares(points: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(q,) squared distances of pairs of objects; of many pairs, from those of all objects."""
    n = len(points)
    if not _have_many_pairs(n, len(one)):
        return ((points[one] - points[other]) ** 2).sum(axis=1)
    size = (points**2).sum(axis=1)
    return np.maximum(size[:, None] + size - 2.0 * points @ points.T, 0.0).ravel()[one * np.int64(n) + other]


def _have_many_pairs(n: int, q: int) -> bool:
    """Whether a table of all pairs of n objects is smaller than one of q questions."""
    return n > DENSE and n * n <= 4 * q


def grown(
    points: np.ndarray, d: int, questions: Questions, loss: Loss, lapse: np.ndarray, ridge: float, alpha: float
) -> np.ndarray:
    """The points with up to d columns: more are those in which the objective falls most, as long as a coarse grid finds
    best; fewer where no more help. O(q d), and a few dozen products or O(n^3) for few objects."""
    missing = min(d - points.shape[1], questions.n_objects - 1)
    if missing <= 0 or len(questions.rows) == 0:
        return points
    values, vectors = _lowest(curvature(points, questions, lapse, alpha), missing)
    falling = np.flatnonzero(values < -ridge)
    more = vectors[:, falling] * np.sqrt(-values[falling] - ridge)
    if not more.size:
        return points
    size = float(np.sqrt((more**2).mean()))

    def cost(scale: float) -> float:
        wider = np.hstack([points, more * (scale / size)])
        return loss(wider, lapse)[0] + ridge * float((wider**2).sum())

    scale, smallest = _best_scale(cost)
    return np.hstack([points, more * ((scale if smallest < cost(0.0) else 0.0) / size)])


def _best_scale(cost: Callable[[float], float]) -> tuple[float, float]:
    """The one of `SCALES` with the smallest cost, and its cost, where costs fall and then rise along the grid."""
    at = SCALES.index(1.0)
    costs = {at: cost(1.0)}
    for step in (-1, 1):
        while 0 <= at + step < len(SCALES):
            costs.setdefault(at + step, cost(SCALES[at + step]))
            if costs[at + step] >= costs[at]:
                break
            at += step
    return SCALES[at], costs[at]


def directions(questions: Questions, d: int) -> Directions:
    """The d steepest ones; columns of zeros where fewer descend. Deterministic."""
    n = questions.n_objects
    out = np.zeros((n, d))
    if n < 2 or len(questions.rows) == 0:
        return Directions(out, 0.0)
    values, vectors = _lowest(laplacian(questions), min(d, n - 1))
    values = -values / 2
    falling = np.flatnonzero(values > 0)
    out[:, : len(falling)] = vectors[:, falling] * np.sqrt(values[falling])
    return Directions(out, float(max(values[0], 0.0)))


def _lowest(matrix: csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k smallest eigenvalues, smallest first, and their vectors."""
    n = matrix.shape[0]
    if n > DENSE and k < n // 4:
        start = np.random.default_rng(0).normal(size=n)
        try:
            values, vectors = eigsh(matrix, k=k, which="SA", v0=start, tol=1e-2, maxiter=300, **RESTARTS)
        except ArpackError as error:  # a start need not be exact: what has converged will do
            values, vectors = (
                getattr(error, "eigenvalues", np.zeros(0)),
                getattr(error, "eigenvectors", np.zeros((n, 0))),
            )
            if not len(values):
                return np.zeros(k), np.zeros((n, k))
        order = np.argsort(values)
        return values[order], vectors[:, order]
    from scipy.linalg import eigh

    return eigh(matrix.toarray(), subset_by_index=(0, k - 1), driver="evr")


class Scales:
    """Points at a coarse geometric grid of scales; a loss is computed when it is first asked for."""

    def __init__(self, points: np.ndarray, loss: Loss, lapse: np.ndarray) -> None:
        size = float((points**2).sum())
        self.unit = points * np.sqrt(len(points) / size) if size else points  # a mean square of 1 an object, or all 0
        self._loss_at = cache(lambda scale: loss(self.unit * scale, lapse)[0])

    def best(self, ridge: float) -> np.ndarray:
        """The points (n, d) at the scale with the smallest objective."""
        square = ridge * float((self.unit**2).sum())
        return self.unit * _best_scale(lambda scale: self._loss_at(scale) + square * scale**2)[0]


def at_random(n: int, d: int, seed: int) -> np.ndarray:
    """(n, d) small Gaussian points."""
    return np.random.default_rng(seed).normal(0.0, 0.1, (n, d))


def widened(points: np.ndarray, d: int, seed: int) -> np.ndarray:
    """The points with d columns: the first d of them, small random ones for those that are missing or all 0, since no
    descent departs from 0."""
    out = np.zeros((len(points), d))
    have = min(d, points.shape[1])
    out[:, :have] = points[:, :have]
    spread = float(np.sqrt((out**2).sum() / max(out[:, :have].size, 1))) or 1.0
    empty = ~out.any(axis=0)
    if empty.any():
        out[:, empty] = at_random(len(points), int(empty.sum()), seed) * spread
    return out
