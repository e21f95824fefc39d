"""Individual differences: common coordinates, and weights of each participant on their axes (Carroll & Chang 1970).

    d_p(i, j) = sum_k w_pk (x_ik - x_jk)^2,   w_pk = exp(u_pk)
    min  L(X, w, lapse) + ridge |X|^2 + shrinkage sum_p |u_p|^2 - log prior(lapse, guessers)

The mean of a participant's weights is their slope: how sharply they distinguish. The group's weights are 1; the penalty
is a normal prior of the log weights around them, with the variance 1 / (2 shrinkage). Rotating X changes the weights,
so the axes are identified, unlike those of one map. After the fit, each axis is scaled such that the geometric mean of
the weights is 1, and axes are sorted by their variance. O(pairs d + q) an
iteration, where pairs are those of each participant.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from stream_engine.embedding.calibration import Calibration
from stream_engine.embedding.descent import minimise
from stream_engine.embedding.fit import COARSE, LARGE, LOOSE, ROUGH, Embedding, Setting, _objective, fit, with_setting
from stream_engine.embedding.gradient import Loss
from stream_engine.embedding.lapse_prior import FIRST
from stream_engine.embedding.principal_axes import on_own_axes
from stream_engine.embedding.questions import NOBODY, Questions

SHRINKAGES = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)  # of a series of fits, which ends in between
WeightedLoss = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[float, np.ndarray, np.ndarray, np.ndarray]]


class Individual(NamedTuple):
    """A fit with weights: `weights` (n_workers, d); 1 for `NOBODY` and for whoever answered too little."""

    embedding: Embedding
    weights: np.ndarray
    shrinkage: float


class Weights(NamedTuple):
    """How participants' weights on the axes are fitted and used, see `differences`."""

    shrinkage: float
    scale: float = 1.0  # of the margins of participants with weights
    calibration: Calibration | None = None  # for unknown participants, by the group's weights
    pooled: bool = False  # whether the fit begins at `pooled_map`
    d: int = 0  # dimensions; 0: those of the group's map
    map_share: float = 0.0  # in probabilities for unknown participants, of those by the group's map


def weighted_loss(questions: Questions, alpha: float) -> WeightedLoss:
    """A function of points (n, d), log weights (n_workers, d) and lapses (n_workers,): L and its gradient with respect
    to each. Log weights of `NOBODY` are 0, and so is their gradient.

    >>> from stream_engine.embedding.questions import of_rows
    >>> loss = weighted_loss(of_rows(np.array([[0, 1, 0, 2]]), 3, worker=np.array([0])), 0.0)
    >>> value, slope, log_slope, _ = loss(np.array([[0.0], [0.0], [1.0]]), np.zeros((2, 1)), np.zeros(2))
    >>> round(value, 4), log_slope.round(4).tolist()  # the object that is far is seen as far: more weight, less loss
    (0.3133, [[0.0], [-0.2689]])
    """
    loss = Loss(questions, alpha, weighted=True)

    def value_and_slopes(points: np.ndarray, logs: np.ndarray, lapse: np.ndarray):
        weights = np.ascontiguousarray(np.exp(logs))
        value, slope, weight_slope, lapse_slope = loss.weighted(points, weights, lapse)
        log_slope = weight_slope * weights
        log_slope[NOBODY] = 0.0
        return value, slope, log_slope, lapse_slope

    return value_and_slopes


def fit_weights(
    questions: Questions,
    begin: Embedding,
    shrinkage: float,
    *,
    weights: np.ndarray | None = None,
    fixed_lapse: bool = False,
    tolerance: float = LOOSE,
    max_iterations: int = 1000,
) -> Individual:
    """Coordinates and weights, begun at an embedding of one map for all, or at those of an earlier fit with `weights`
    (n_workers, d); by the same kernel and ridge. Ends as `fit` does. Deterministic."""
    n, d = begin.points.shape
    loss, ridge = weighted_loss(questions, begin.alpha), begin.ridge
    logs = np.zeros((questions.n_workers, d)) if weights is None else np.log(weights)

    def loss_of_rows(rows: np.ndarray, lapse: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        value, slope, log_slope, lapse_slope = loss(rows[:n], rows[n:], lapse)
        excess = shrinkage - ridge  # the objective has the ridge of all rows
        log_slope += 2 * excess * rows[n:]
        return value + excess * float((rows[n:] ** 2).sum()), np.concatenate([slope, log_slope]), lapse_slope

    objective, pack, unpack = _objective(loss_of_rows, ridge, begin.lapse, fixed_lapse, (n + len(logs), d))
    x = pack(np.concatenate([begin.points, logs]), begin.lapse, FIRST)
    if len(questions.rows) * d > LARGE:
        tolerance = max(tolerance, ROUGH)
    descent = minimise(objective, x, tolerance=tolerance, max_iterations=max_iterations)
    rows, lapse, guessers = unpack(descent.x)
    points, logs = rows[:n], rows[n:]
    has_answers = np.bincount(questions.worker, minlength=len(logs)) > 0
    has_answers[NOBODY] = False
    middle = logs[has_answers].mean(axis=0) if has_answers.any() else np.zeros(d)
    logs = np.where(has_answers[:, None], logs - middle, 0.0)
    points, order = on_own_axes(points * np.exp(middle / 2), questions)
    logs = logs[:, order]
    embedding = begin._replace(
        points=points,
        lapse=lapse,
        objective=descent.value,
        log_likelihood=-loss(points, logs, lapse)[0],
        iterations=descent.iterations,
        evaluations=descent.evaluations,
        converged=descent.converged,
        slope=float(np.abs(descent.slope).max(initial=0.0)) / max(questions.answers, 1.0),
        guessers=guessers,
    )
    return Individual(embedding, np.exp(logs), shrinkage)


def fit_with(
    questions: Questions, group_map: Embedding, selection: Weights, axes: np.ndarray | None = None, **limits: Any
) -> Individual:
    """Coordinates and weights as selected. `axes` (n, k): points of another fit with weights, onto whose axes the map
    is turned that the fit begins at: the axes take most of a descent. `limits` (`fixed_lapse`, `tolerance`,
    `max_iterations`) as for `fit_weights`."""
    begin = starting_map(questions, group_map, selection, limits.get("fixed_lapse", False))
    if axes is not None:
        begin = begin._replace(points=turned(begin.points, axes))
    return fit_weights(questions, begin, selection.shrinkage, **limits)


def turned(points: np.ndarray, onto: np.ndarray) -> np.ndarray:
    """(n, d) points, turned to be as near as they can be to the first d columns of `onto` (n, k) (orthogonal
    Procrustes); columns that it lacks are 0.

    >>> turned(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([[0.0, 2.0], [0.0, -2.0]])).round(6).tolist()
    [[0.0, 1.0], [0.0, -1.0]]
    """
    d = points.shape[1]
    onto = np.pad(onto[:, :d], ((0, 0), (0, max(d - onto.shape[1], 0))))
    left, _, right = np.linalg.svd(points.T @ onto)
    return points @ (left @ right)


def starting_map(
    questions: Questions, group_map: Embedding, selection: Weights, fixed_lapse: bool = False
) -> Embedding:
    """The map that a fit with weights begins at: the group's, or one in another number of dimensions, or a pooled
    one."""
    setting = Setting("t-ste" if group_map.alpha else "ste", selection.d, group_map.ridge)
    if selection.pooled:
        return pooled_map(questions, setting)
    if selection.d in (0, group_map.points.shape[1]):
        return group_map
    options: dict[str, Any] = {"lapse": group_map.lapse, "fixed_lapse": fixed_lapse, "tolerance": COARSE}
    return fit(questions, *setting[1:], kernel=setting.kernel, start=group_map.points, **options)


def pooled_map(questions: Questions, setting: Setting) -> Embedding:
    """One map, fitted as if one participant had given all answers.

    With lapse rates of their own, the map is that of the larger of two groups who see things differently, and the other
    group counts as guessing. From there, weights find nothing. Here both groups shape the map."""
    pooled = questions._replace(worker=np.zeros_like(questions.worker), n_workers=1)
    return with_first_lapses(
        with_setting(pooled, setting, tolerance=LOOSE)._replace(lapse=np.zeros(questions.n_workers))
    )


def with_first_lapses(embedding: Embedding) -> Embedding:
    """The same with the lapse rates that a fit begins at."""
    return embedding._replace(lapse=np.full(len(embedding.lapse), FIRST), guessers=FIRST)


def weighted_margins(
    points: np.ndarray, weights: np.ndarray, rows: np.ndarray, participant: np.ndarray, alpha: float
) -> np.ndarray:
    """(m,) Delta of (m, 4) rows as seen by the participants (m,), rows of `weights`: above 0 where
    d(i, j) < d(k, l).

    >>> place = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    >>> weights = np.array([[1.0, 1.0], [8.0, 1.0]])
    >>> weighted_margins(place, weights, np.array([[0, 1, 0, 2]] * 2), np.array([0, 1]), 0.0).round(6).tolist()
    [3.0, -4.0]
    """
    points, rows = np.asarray(points), np.asarray(rows)
    near, far = (
        (weights[participant] * (points[rows[:, start]] - points[rows[:, end]]) ** 2).sum(axis=1)
        for start, end in ((0, 1), (2, 3))
    )
    if alpha:
        near, far = (0.5 * (alpha + 1) * np.log1p(size / alpha) for size in (near, far))
    return far - near
