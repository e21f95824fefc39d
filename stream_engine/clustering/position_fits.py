"""Positions of objects by which groups are judged, with their errors.

Where answers are few, STE is fitted in three, two and one dimensions, each also from the principal axes of another.
Groups are judged in the fits in two and three together (`clearness.weights`): the number of dimensions is not chosen.
The partition, and all that is said of single objects, are of the fit with the smallest held-out loss. Where there are
many answers, positions are given, in as many dimensions as predict best, and only the scale and a lapse rate are
fitted.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from stream_engine.clustering import clearness
from stream_engine.clustering.position_errors import PositionErrors, position_errors
from stream_engine.embedding.fit import Embedding, fit
from stream_engine.embedding.gradient import Loss
from stream_engine.embedding.lapse_prior import LEAST, MOST
from stream_engine.embedding.questions import Questions

RIDGE = 0.1
TOLERANCE = 1e-5
COMPARED = 2  # the fits in three and in two dimensions


class Fit(NamedTuple):
    """Positions with their errors."""

    points: np.ndarray  # (n, d)
    lapse: np.ndarray  # (n_workers,)
    errors: PositionErrors
    log_loss: float  # of an answer, held out, in nats

    @property
    def precision(self) -> float:
        """See `clearness.precision`."""
        return clearness.precision(self.points, self.errors.variance)


class Fits(NamedTuple):
    """What groups are looked for in."""

    questions: Questions
    compared: tuple[Fit, ...]  # over which the statistic is averaged
    best: Fit  # what predicts held-out answers best
    table: str  # of `clearness`

    def candidates(self) -> list[clearness.Candidates]:
        """Of each compared fit."""
        answers = self.questions.answers
        return [clearness.candidates(each.points, each.precision, -each.log_loss * answers) for each in self.compared]


def fitted(questions: Questions) -> Fits:
    """Fits in few dimensions. Some 0.1 s for 4,000 answers about 48 objects; O(q) an iteration."""
    three = _better(questions, 3, ())
    two = _better(questions, 2, (three.points[:, :2],))
    three = _better(questions, 3, (two.points,), three)
    one = _better(questions, 1, (two.points[:, :1],))
    made = [_with_errors(each.points, each.lapse, questions) for each in (three, two, one)]
    best = min(made, key=lambda each: each.log_loss)
    return Fits(questions, tuple(made[:COMPARED]), best, clearness.FITS)


def _better(questions: Questions, d: int, begin: Sequence[np.ndarray], known: Embedding | None = None) -> Embedding:
    """The fit with the smallest objective of `known`, by default one from the directions of descent, and those from
    each of `begin`."""
    first = fit(questions, d, RIDGE, tolerance=TOLERANCE) if known is None else known
    others = [fit(questions, d, RIDGE, start=each, tolerance=TOLERANCE) for each in begin]
    return min([first, *others], key=lambda each: each.objective)


def given(questions: Questions, points: np.ndarray) -> Fits:
    """Positions that are known, with the scale and the one lapse rate that make the answers likeliest."""
    questions = questions._replace(worker=np.zeros_like(questions.worker), n_workers=1)
    loss = Loss(questions)

    def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
        scale, lapse = np.exp(x[0]), np.clip(1 / (1 + np.exp(-x[1])), LEAST, MOST)
        value, slope, lapse_slope = loss(scale * points, np.array([lapse]))
        return value, np.array([scale * float((slope * points).sum()), float(lapse_slope[0]) * lapse * (1 - lapse)])

    found = minimize(cost, [0.0, -3.0], jac=True, method="L-BFGS-B", options={"maxiter": 10, "ftol": 1e-6})
    lapse = np.array([np.clip(1 / (1 + np.exp(-found.x[1])), LEAST, MOST)])
    one = _with_errors(np.exp(found.x[0]) * points, lapse, questions)
    return Fits(questions, (one,), one, clearness.POSITIONS)


def centres(points: np.ndarray, questions: Questions, labels: np.ndarray, lapse: np.ndarray) -> Embedding:
    """Positions of k groups in the place of their objects' `labels` (n,), begun at `points` (k, d). O(q log q)."""
    k = len(points)
    keys = np.zeros(len(questions.rows), np.int64)
    for column in questions.rows.T:
        keys = keys * k + labels[column]
    keys, at = np.unique(keys * questions.n_workers + questions.worker, return_inverse=True)
    near, far = (np.bincount(at.reshape(-1), counts) for counts in (questions.near, questions.far))
    rest, worker = np.divmod(keys, questions.n_workers)
    rows = np.stack([rest // k**power % k for power in (3, 2, 1, 0)], axis=1).astype(np.int32)
    tied = Questions(rows, near, far, worker.astype(np.int32), k, questions.n_workers)
    return fit(tied, points.shape[1], RIDGE, start=points, lapse=lapse, tolerance=TOLERANCE)


def _with_errors(points: np.ndarray, lapse: np.ndarray, questions: Questions) -> Fit:
    errors = position_errors(points, questions, lapse, RIDGE)
    loss = float(questions.near @ errors.near + questions.far @ errors.far) / max(questions.answers, 1.0)
    return Fit(points, lapse, errors, loss)
