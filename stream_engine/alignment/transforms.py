"""What can be learned on top of features: weights of dimensions, a linear map, a combination of sets.

    P(d(i, j) < d(k, l)) = sigma(d(k, l) - d(i, j))
    weights      d(a, b) = sum_c w_c (x_ac - x_bc)^2, w >= 0      penalty  ridge / 2 * sum_c (w_c - mean w)^2
    linear map   d(a, b) = |W'(x_a - x_b)|^2                      penalty  ridge / 2 * |W - (mean of its diagonal) I|^2
    combination  d = sum_s mu_s d_s over sets, mu >= 0: RCKL-MKL with the STE loss (Heim et al. 2014, eq. 6)

Minimised is the log loss plus the penalty, which shrinks to the features as they are times one factor, not to 0
(Muttenthaler et al. 2023), so that few answers change little. An iteration is O(n^2 d + m), by Gram matrices.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from stream_engine.data.answers import Answers
from stream_engine.evaluation.held_out import slope_of
from stream_engine.kernel_learning import factored, rckl
from stream_engine.kernel_learning.gram_comparisons import adjoint, excess
from stream_engine.kernel_learning.problem import Problem

AXES = 256  # principal components that a map is learned on, at most
SCALE_ANSWERS = 2000  # answers that scale the penalty and the variables
SLOPE = 0.1  # least slope to start from
MAX_STEPS = 150  # of L-BFGS
MIN_GAIN, ROUGH_GAIN = 1e-6, 1e-5  # relative, at which it ends; the latter while settings are chosen
MU_PENALTY, RELATIVE_GAP = 1e-4, 1e-4  # of the combination: on the sum of mu, in units of the largest; duality gap


def margins(points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(m,) float64 d(k, l) - d(i, j) of points (n, r). O(n^2 r + m)."""
    return -excess(_gram(points), rows)


def _gram(points: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(points @ points.T, np.float64)


def slope(x: np.ndarray, answers: Answers) -> float:
    """The factor of squared distances as they are that suits the answers."""
    return slope_of(margins(x, answers.rows), answers.times)


def information(x: np.ndarray, answers: Answers, linear: bool) -> np.ndarray:
    """What an answer tells about each weight (d,), or each entry of a map at the identity (d, d), on a sample."""
    rows = answers.rows[:: max(1, len(answers.rows) // SCALE_ANSWERS)]
    near, far = (x[rows[:, a]] - x[rows[:, b]] for a, b in ((0, 1), (2, 3)))
    if not linear:
        return ((far**2 - near**2) ** 2).mean(axis=0).astype(np.float64) / 4
    curvature = (near**2).T @ near**2 - 2 * (near * far).T @ (near * far) + (far**2).T @ far**2
    return curvature.astype(np.float64) / len(rows)


def weights(x: np.ndarray, answers: Answers, ridges: Sequence[float], gain: float = MIN_GAIN) -> Iterator[np.ndarray]:
    """(d,) weights for each ridge, each begun at the one before."""
    total, curvature = float(answers.times.sum()), information(x, answers, False)
    w = np.full(x.shape[1], max(slope(x, answers), SLOPE))
    for ridge in ridges:
        unit = 1.0 / np.sqrt(curvature + ridge / total + 1e-12)

        def objective(v: np.ndarray, unit=unit, ridge=ridge) -> tuple[float, np.ndarray]:
            w = v * unit
            loss, pull = _loss(_gram(x * np.sqrt(w).astype(x.dtype)), answers)
            off = w - w.mean()
            gradient = ((pull.astype(x.dtype) @ x) * x).sum(axis=0).astype(np.float64) + ridge * off
            return (loss + 0.5 * ridge * float(off @ off)) / total, gradient * unit / total

        w = _descended(objective, w / unit, gain, [(0.0, None)] * len(w)) * unit
        yield w


def linear_maps(
    z: np.ndarray, answers: Answers, ridges: Sequence[float], gain: float = MIN_GAIN
) -> Iterator[np.ndarray]:
    """(p, p) maps W of points z (n, p) for each ridge, each begun at the one before."""
    total, p = float(answers.times.sum()), z.shape[1]
    begin = max(slope(z, answers), SLOPE)
    curvature = begin * information(z, answers, True)
    factor = np.sqrt(begin) * np.eye(p)
    for ridge in ridges:
        unit = 1.0 / np.sqrt(curvature + ridge / total + 1e-12)

        def objective(v: np.ndarray, unit=unit, ridge=ridge) -> tuple[float, np.ndarray]:
            factor = v.reshape(p, p) * unit
            y = z @ factor.astype(z.dtype)
            loss, pull = _loss(_gram(y), answers)
            off = factor - np.trace(factor) / p * np.eye(p)
            gradient = 2.0 * (z.T @ (pull.astype(z.dtype) @ y)).astype(np.float64) + ridge * off
            return (loss + 0.5 * ridge * float((off**2).sum())) / total, (gradient * unit).ravel() / total

        factor = _descended(objective, (factor / unit).ravel(), gain, None).reshape(p, p) * unit
        yield factor


def _loss(gram: np.ndarray, answers: Answers) -> tuple[float, np.ndarray]:
    """Log loss in nats, and its gradient in the Gram matrix (n, n)."""
    x = excess(gram, answers.rows)
    return float(answers.times @ np.logaddexp(0.0, x)), adjoint(answers.times * expit(x), answers.rows, len(gram))


def _descended(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]], start: np.ndarray, gain: float, bounds: list | None
) -> np.ndarray:
    limits = {"maxiter": MAX_STEPS, "maxcor": 10, "ftol": gain, "gtol": 1e-9, "maxfun": 2 * MAX_STEPS}
    return minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=limits).x


def components(x: np.ndarray) -> np.ndarray:
    """(d, p) the leading principal axes of centred points (n, d), at most `AXES`, each signed so that its largest entry
    is positive. O(min(n, d)^2 max(n, d))."""
    tall = len(x) >= x.shape[1]
    values, vectors = np.linalg.eigh((x.T @ x if tall else x @ x.T).astype(np.float64))
    columns = np.flatnonzero(values > 1e-9 * max(values[-1], 1e-300))[::-1][:AXES]
    axes = vectors[:, columns] if tall else x.T @ vectors[:, columns] / np.sqrt(values[columns])
    largest = np.argmax(np.abs(np.round(axes, 9)), axis=0)
    return (axes * np.where(axes[largest, np.arange(len(columns))] < 0, -1.0, 1.0)).astype(x.dtype)


def combination(columns: np.ndarray, answers: Answers) -> np.ndarray:
    """(A,) weights mu >= 0 of sets, whose excess d(i, j) - d(k, l) is `columns` (m, A): RCKL-MKL, solved to a relative
    dual gap of 1e-4."""
    n, none, cost = int(answers.rows.max()) + 1, np.empty(0), np.ones(columns.shape[1])
    problem = Problem(n, answers.rows, answers.times, "ste", (), none, none, columns, cost)
    largest = max(rckl.largest_lambdas(problem)[1], 1e-300)
    problem = problem._replace(column_cost=MU_PENALTY * largest * cost)
    return factored.solve(problem, None, None, RELATIVE_GAP, 2000, lambda done, total, **figures: None).point.mu
