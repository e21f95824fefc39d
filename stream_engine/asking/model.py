"""The model that chooses questions: the published embedding, and the uncertainty of its coordinates.

    P(a: b nearer than c) = lapse / 2 + (1 - lapse) sigma(scale Delta),  Delta = phi(|x_a - x_c|^2) - phi(|x_a - x_b|^2)
    x_i ~ N(X_i, covariance_i), objects independent

X, alpha, lapse, scale and covariance are those of the newest artifact `embedding`: nothing is fitted here.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit, read_only
from stream_engine.data.triplet_columns import Columns, pair_of_entry
from stream_engine.state.artifact import Artifact, figure


class Model(NamedTuple):
    """An embedding with its uncertainty; ids are those of the snapshot."""

    points: np.ndarray  # (n, d)
    covariance: np.ndarray  # (n, d, d)
    alpha: float  # 0: STE
    lapse: float
    scale: float
    accuracy_bound: float  # accuracy on held-out answers minus one standard error; 1/2 if none was held out


DEFAULT_RIDGE = 0.3  # of an artifact without one
MAX_VARIANCE = 100.0  # of the coordinates of an object without answers: with a ridge near 0, it is unbounded


def model_of(artifact: Artifact, columns: Columns) -> Model | None:
    """The model of an artifact `embedding` for the objects of `columns`, of which it may lack some; None if all its
    coordinates are 0. O(n d^2), without covariances O(K d^2) for K answered questions."""
    # Objects without answers are at 0 with the prior's variance, I / (2 ridge). If an artifact has no covariances
    # (`ellipses.MAX_COORDINATES`), an object's is the inverse of its own block of the Fisher information (`precision`):
    # it can be too small, never too large.
    n, coordinates = columns.n_objects, np.asarray(artifact.arrays["X"], np.float64)[: columns.n_objects]
    if coordinates.ndim != 2 or coordinates.shape[1] == 0 or not coordinates.any():
        return None
    d = coordinates.shape[1]
    points = np.zeros((n, d))
    points[: len(coordinates)] = coordinates
    alpha, scale = float(artifact.report["alpha"]), figure(artifact.report, "scale") or 1.0
    ridge = max(figure(artifact.report, "ridge") or DEFAULT_RIDGE, 1 / (2 * MAX_VARIANCE))
    lapse = float(artifact.arrays["lapse"])
    covariance = np.tile(np.eye(d) / (2 * ridge), (n, 1, 1))
    stored_covariance = artifact.arrays.get("covariance")
    if stored_covariance is not None and stored_covariance.shape[1:] == (d, d):
        covariance[: len(coordinates)] = np.clip(stored_covariance[:n], -MAX_VARIANCE, MAX_VARIANCE)
    else:
        covariance = np.linalg.inv(precision(points, alpha, lapse, ridge, columns))
    accuracy, error = figure(artifact.report, "accuracy"), figure(artifact.report, "standard_error")
    return Model(points, covariance, alpha, lapse, scale, 0.5 if accuracy is None else accuracy - (error or 0.0))


# Accuracies on held-out answers up to which the model chooses no questions, and from which on it chooses all.
MIN_ACCURACY, FULL_ACCURACY = 0.65, 0.75


def model_share(model: Model | None) -> float:
    """The share of the questions that the model may choose: none up to MIN_ACCURACY, all from FULL_ACCURACY on, and in
    proportion between. Early in a study every answer is informative, and one to a question of a poor model is wasted.

    >>> nowhere = np.zeros((0, 2)), np.zeros((0, 2, 2)), 0.0, 0.0, 1.0
    >>> [round(model_share(Model(*nowhere, right)), 2) for right in (0.6, 0.7, 0.9)]
    [0.0, 0.5, 1.0]
    """
    return (
        0.0
        if model is None
        else min(max((model.accuracy_bound - MIN_ACCURACY) / (FULL_ACCURACY - MIN_ACCURACY), 0.0), 1.0)
    )


MIN_VARIANCE = 1e-12  # lower bound of the eigenvalues of covariances, which can be 0 or, by rounding, negative


def roots(covariance: np.ndarray) -> np.ndarray:
    """(n, d, d) symmetric roots of covariances. O(n d^3)."""
    values, vectors = np.linalg.eigh((covariance + covariance.transpose(0, 2, 1)) / 2)
    return (vectors * np.sqrt(np.maximum(values, MIN_VARIANCE))[:, None, :]) @ vectors.transpose(0, 2, 1)


MAX_INFORMATION = 1e12  # about coordinates, above which the inverse is numerically meaningless


def precision(points: np.ndarray, alpha: float, lapse: float, ridge: float, columns: Columns) -> np.ndarray:
    """(n, d, d) each object's own block of the Fisher information: 2 ridge I + sum over its answers of f u^2 g g'
    (`embedding.ellipses`). O(K d^2)."""
    n, d = points.shape
    pair = pair_of_entry(columns)
    blocks = np.tile(2 * ridge * np.eye(d), (n, 1, 1))
    times = (columns.n_lo + columns.n_hi).astype(np.float64)
    _inform(points, read_only(columns.anchor), columns.lo[pair], columns.hi[pair], times, alpha, lapse, blocks)
    blocks[~(np.abs(blocks) < MAX_INFORMATION).all(axis=(1, 2))] = (
        2 * ridge * np.eye(d)
    )  # points so far out that answers carry no information
    return blocks


@njit(cache=True, nogil=True)
def _inform(points, anchor, lo, hi, times, alpha, lapse, blocks):
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
                    blocks[row[side], q, r] += f * slopes[side, q] * slopes[side, r]


@njit(cache=True, nogil=True)
def slopes_at(points, row, alpha, slopes):
    """Delta of a row (a, b, c), above 0 where b is nearer; `slopes` (3, d) becomes its slopes by x_a, x_b, x_c."""
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
        slopes[0, q], slopes[1, q], slopes[2, q] = to_c - to_b, to_b, -to_c
    return delta
