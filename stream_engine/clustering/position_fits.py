"""Positions of objects in which groups are looked for, with their errors: fits in one to three dimensions if answers
are few, given positions if there are many."""

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

RIDGE = 0.1  # of every fit
TOLERANCE = 1e-5


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
    """The positions in which groups are looked for.

    The clearness of groups is averaged over several fits, so the number of dimensions is not chosen. The partition, and
    all statements about single objects, come from the fit with the smallest held-out loss.
    """

    questions: Questions
    averaged_fits: tuple[Fit, ...]  # over which the clearness is averaged
    best: Fit  # the one that predicts held-out answers best
    table: str  # `clearness.FITS` or `clearness.POSITIONS`

    def candidates(self) -> list[clearness.Candidates]:
        """Every number of groups, in each of the averaged fits."""
        answers = self.questions.answers
        return [clearness.candidates(fit.points, fit.precision, -fit.log_loss * answers) for fit in self.averaged_fits]


N_AVERAGED_FITS = 2  # those in three and in two dimensions


def fits_of_answers(questions: Questions) -> Fits:
    """STE in three, two and one dimensions, each also from the principal axes of another. About 0.1 s for 4,000 answers
    about 48 objects; O(q) an iteration."""
    fit_3d = _better(questions, 3, ())
    fit_2d = _better(questions, 2, (fit_3d.points[:, :2],))
    fit_3d = _better(questions, 3, (fit_2d.points,), fit_3d)
    fit_1d = _better(questions, 1, (fit_2d.points[:, :1],))
    fits = [_with_errors(fit.points, fit.lapse, questions) for fit in (fit_3d, fit_2d, fit_1d)]
    best = min(fits, key=lambda fit: fit.log_loss)
    return Fits(questions, tuple(fits[:N_AVERAGED_FITS]), best, clearness.FITS)


def _better(
    questions: Questions, d: int, starts: Sequence[np.ndarray], first_fit: Embedding | None = None
) -> Embedding:
    """The fit with the smallest objective among `first_fit` (by default, one without a start) and one from each of
    `starts`."""
    own_fit = fit(questions, d, RIDGE, tolerance=TOLERANCE) if first_fit is None else first_fit
    other_fits = [fit(questions, d, RIDGE, start=start, tolerance=TOLERANCE) for start in starts]
    return min([own_fit, *other_fits], key=lambda start: start.objective)


def fits_of_positions(questions: Questions, points: np.ndarray) -> Fits:
    """Given positions, with the scale and the one lapse rate that make the answers most likely."""
    questions = questions._replace(worker=np.zeros_like(questions.worker), n_workers=1)
    loss = Loss(questions)

    def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
        scale, lapse = np.exp(x[0]), np.clip(1 / (1 + np.exp(-x[1])), LEAST, MOST)
        value, slope, lapse_slope = loss(scale * points, np.array([lapse]))
        return value, np.array([scale * float((slope * points).sum()), float(lapse_slope[0]) * lapse * (1 - lapse)])

    optimum = minimize(cost, [0.0, -3.0], jac=True, method="L-BFGS-B", options={"maxiter": 10, "ftol": 1e-6})
    lapse = np.array([np.clip(1 / (1 + np.exp(-optimum.x[1])), LEAST, MOST)])
    positions_fit = _with_errors(np.exp(optimum.x[0]) * points, lapse, questions)
    return Fits(questions, (positions_fit,), positions_fit, clearness.POSITIONS)


def questions_of_groups(questions: Questions, labels: np.ndarray, k: int) -> tuple[Questions, np.ndarray]:
    """`(the different questions about k groups, (q,) the number of that of each question)`, each object standing for
    its group (`labels` (n,)). O(q log q)."""
    keys = np.zeros(len(questions.rows), np.int64)
    for column in questions.rows.T:
        keys = keys * k + labels[column]
    keys, place = np.unique(keys * questions.n_workers + questions.worker, return_inverse=True)
    place = place.reshape(-1)
    near, far = (np.bincount(place, counts) for counts in (questions.near, questions.far))
    pairs_code, worker = np.divmod(keys, questions.n_workers)
    rows = np.stack([pairs_code // k**power % k for power in (3, 2, 1, 0)], axis=1).astype(np.int32)
    return Questions(rows, near, far, worker.astype(np.int32), k, questions.n_workers), place


def centres(points: np.ndarray, group_questions: Questions, lapse: np.ndarray) -> Embedding:
    """Positions of groups by `questions_of_groups`, from the start `points` (k, d)."""
    return fit(group_questions, points.shape[1], RIDGE, start=points, lapse=lapse, tolerance=TOLERANCE)


def _with_errors(points: np.ndarray, lapse: np.ndarray, questions: Questions) -> Fit:
    errors = position_errors(points, questions, lapse, RIDGE)
    loss = float(questions.near @ errors.near + questions.far @ errors.far) / max(questions.answers, 1.0)
    return Fit(points, lapse, errors, loss)
