"""The model that chooses questions: the published embedding and the uncertainty of its coordinates.

    P(a: b nearer than c) = lapse / 2 + (1 - lapse) sigma(scale Delta),  Delta = phi(|x_a - x_c|^2) - phi(|x_a - x_b|^2)
    x_i ~ N(X_i, covariance_i), objects independent

X, alpha, lapse, scale and covariance are those of the newest artifact `embedding` (room `embedding`), which also
predicts and draws the map: nothing is fitted here. Where an artifact has no covariances (`ellipses.LARGEST`), an
object's is the inverse of its own block of the Fisher information, 2 ridge I + sum over its answers of
f u^2 g g' (`embedding.ellipses`): too narrow, never too wide. What nobody was asked about lies at 0 with the prior's
variance, I / (2 ridge).
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit, read_only
from stream_engine.data.triplet_columns import Columns, pair_of_entry
from stream_engine.state.artifact import Artifact, figure

RIDGE = 0.3  # where an artifact does not say
DOUBTED, TRUSTED = 0.65, 0.75  # accuracy on held-out answers from which the model chooses some, or all
WIDEST = 100.0  # variance of a place that nobody has asked about, at most: a ridge near 0 says nothing about it
SUREST = 1e12  # information about a place, above which it is no number to invert
MIN_VARIANCE = 1e-12  # added to variances: those of objects in one place may be 0


class Model(NamedTuple):
    """An embedding with its uncertainty; ids are those of the snapshot."""

    points: np.ndarray  # (n, d)
    spread: np.ndarray  # (n, d, d)
    alpha: float  # 0: STE
    lapse: float
    scale: float
    right: float  # accuracy on held-out answers minus one standard error; 1/2 if none was held out


def delivered(artifact: Artifact, columns: Columns) -> Model | None:
    """The model of an artifact `embedding`, for the objects of `columns`, of which it may know fewer; None where it
    says nothing. O(n d^2), without covariances O(K d^2) for K answered questions."""
    n, given = columns.n_objects, np.asarray(artifact.arrays["X"], np.float64)[: columns.n_objects]
    if given.ndim != 2 or given.shape[1] == 0 or not given.any():
        return None
    d = given.shape[1]
    points = np.zeros((n, d))
    points[: len(given)] = given
    alpha, scale = float(artifact.report["alpha"]), figure(artifact.report, "scale") or 1.0
    ridge = max(figure(artifact.report, "ridge") or RIDGE, 1 / (2 * WIDEST))
    lapse = float(artifact.arrays["lapse"])
    spread = np.tile(np.eye(d) / (2 * ridge), (n, 1, 1))
    covariance = artifact.arrays.get("covariance")
    if covariance is not None and covariance.shape[1:] == (d, d):
        spread[: len(given)] = np.clip(covariance[:n], -WIDEST, WIDEST)
    else:
        spread = np.linalg.inv(precision(points, alpha, lapse, ridge, columns))
    right, error = figure(artifact.report, "accuracy"), figure(artifact.report, "standard_error")
    return Model(points, spread, alpha, lapse, scale, 0.5 if right is None else right - (error or 0.0))


def believed(model: Model | None) -> float:
    """Which share of the questions the model may choose: none up to DOUBTED, all from TRUSTED on, in proportion
    between. Where hardly anything is placed yet, every answer counts, and one to a question of a poor model is lost.

    >>> nowhere = np.zeros((0, 2)), np.zeros((0, 2, 2)), 0.0, 0.0, 1.0
    >>> [round(believed(Model(*nowhere, right)), 2) for right in (0.6, 0.7, 0.9)]
    [0.0, 0.5, 1.0]
    """
    return 0.0 if model is None else min(max((model.right - DOUBTED) / (TRUSTED - DOUBTED), 0.0), 1.0)


def roots(spread: np.ndarray) -> np.ndarray:
    """(n, d, d) symmetric roots of covariances; what is negative in them counts as 0. O(n d^3)."""
    values, vectors = np.linalg.eigh((spread + spread.transpose(0, 2, 1)) / 2)
    return (vectors * np.sqrt(np.maximum(values, MIN_VARIANCE))[:, None, :]) @ vectors.transpose(0, 2, 1)


def precision(points: np.ndarray, alpha: float, lapse: float, ridge: float, columns: Columns) -> np.ndarray:
    """(n, d, d) each object's own block of the Fisher information of the counted answers, and the prior's. O(K d^2)."""
    n, d = points.shape
    pair = pair_of_entry(columns)
    out = np.tile(2 * ridge * np.eye(d), (n, 1, 1))
    times = (columns.n_lo + columns.n_hi).astype(np.float64)
    _inform(points, read_only(columns.anchor), columns.lo[pair], columns.hi[pair], times, alpha, lapse, out)
    out[~(np.abs(out) < SUREST).all(axis=(1, 2))] = 2 * ridge * np.eye(d)  # points so far out that nothing is known
    return out


@njit(cache=True, nogil=True)
def _inform(points, anchor, lo, hi, times, alpha, lapse, out):
    """Add times f u^2 g g' to the blocks of each question's three objects."""
    d = points.shape[1]
    slopes = np.empty((3, d))
    for t in range(len(anchor)):
        row = (anchor[t], lo[t], hi[t])
        share = 1.0 / (1.0 + np.exp(-min(max(slopes_at(points, row, alpha, slopes), -500.0), 500.0)))
        p, u = lapse / 2 + (1.0 - lapse) * share, (1.0 - lapse) * share * (1.0 - share)
        f = times[t] * u * u / max(p * (1.0 - p), 1e-12)
        for side in range(3):
            for q in range(d):
                for r in range(d):
                    out[row[side], q, r] += f * slopes[side, q] * slopes[side, r]


@njit(cache=True, nogil=True)
def slopes_at(points, row, alpha, out):
    """Delta of a row (a, b, c), above 0 where b is nearer; `out` (3, d) becomes its slopes by x_a, x_b, x_c."""
    a, b, c = row
    near = far = 0.0
    for q in range(points.shape[1]):
        near += (points[a, q] - points[b, q]) ** 2
        far += (points[a, q] - points[c, q]) ** 2
    delta, of_near, of_far = far - near, 1.0, 1.0
    if alpha > 0.0:
        delta = 0.5 * (alpha + 1.0) * np.log((alpha + far) / (alpha + near))
        of_near, of_far = 0.5 * (alpha + 1.0) / (alpha + near), 0.5 * (alpha + 1.0) / (alpha + far)
    for q in range(points.shape[1]):
        to_b, to_c = 2.0 * of_near * (points[a, q] - points[b, q]), 2.0 * of_far * (points[a, q] - points[c, q])
        out[0, q], out[1, q], out[2, q] = to_c - to_b, to_b, -to_c
    return delta
