"""An ensemble of embeddings: samples of the objects' coordinates, not one best guess, that score questions.

    x_i^s = X_i + root_i z_i^s,  z ~ N(0, I),  s = 1 .. SAMPLES;   P_s(q) = lapse / 2 + (1 - lapse) sigma(scale Delta_s)

O(SAMPLES d) for a question scored, O(SAMPLES d + d^2) for one narrowed.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.asking.model import Model, roots, slopes_at
from stream_engine.data.compiled import njit

SAMPLES = 32


class Ensemble(NamedTuple):
    """Samples of the objects of some questions; `covariance` and `deviations` change as questions are taken."""

    points: np.ndarray  # (m, d)
    covariance: np.ndarray  # (m, d, d)
    deviations: np.ndarray  # (m, SAMPLES, d): x^s - X
    alpha: float
    lapse: float
    scale: float


def ensemble(model: Model, ids: np.ndarray, rng: np.random.Generator, samples: int = SAMPLES) -> Ensemble:
    """Samples of the objects `ids` (m,), whose numbers become 0 .. m - 1. The samples' mean is X. O(m SAMPLES d^2)."""
    points, spread = np.ascontiguousarray(model.points[ids]), np.ascontiguousarray(model.covariance[ids])
    normals = rng.standard_normal((len(ids), samples // 2, points.shape[1]))
    away = np.concatenate([normals, -normals], axis=1) @ roots(spread)
    return Ensemble(points, spread, np.ascontiguousarray(away), model.alpha, model.lapse, model.scale)


def expected(samples: Ensemble, rows: np.ndarray) -> np.ndarray:
    """(m,) the mean over the samples of P(b nearer), for rows a, b, c of the ensemble's numbers."""
    return _scores(samples.points, samples.deviations, *samples[3:], np.ascontiguousarray(rows, np.int32))[:, 0]


def gains(samples: Ensemble, rows: np.ndarray) -> np.ndarray:
    """(m,) the mutual information of the answer and the sample, in bits (Houlsby et al. 2011, "Bayesian active
    learning", eq. (2)): H(mean_s P_s) - mean_s H(P_s)."""
    return _scores(samples.points, samples.deviations, *samples[3:], np.ascontiguousarray(rows, np.int32))[:, 1]


@njit(cache=True, nogil=True)
def _scores(points, away, alpha, lapse, scale, rows):
    scores = np.empty((len(rows), 2))
    for t in range(len(rows)):
        p, gain, _ = score(points, away, alpha, lapse, scale, rows[t, 0], rows[t, 1], rows[t, 2])
        scores[t, 0], scores[t, 1] = p, gain
    return scores


@njit(cache=True, nogil=True)
def bits(p):
    """Entropy of a coin."""
    return -p * np.log2(p) - (1.0 - p) * np.log2(1.0 - p) if 0.0 < p < 1.0 else 0.0


@njit(cache=True, nogil=True)
def score(points, away, alpha, lapse, scale, a, b, c):
    """(mean of P(b nearer), gain in bits, mean Fisher information about Delta) of one question."""
    samples, d = away.shape[1], points.shape[1]
    mean = entropy = information = 0.0
    for s in range(samples):
        near = far = 0.0
        for q in range(d):
            anchor_coordinate = points[a, q] + away[a, s, q]
            near += (anchor_coordinate - points[b, q] - away[b, s, q]) ** 2
            far += (anchor_coordinate - points[c, q] - away[c, s, q]) ** 2
        delta = 0.5 * (alpha + 1.0) * np.log((alpha + far) / (alpha + near)) if alpha > 0.0 else far - near
        share = 1.0 / (1.0 + np.exp(-min(max(scale * delta, -500.0), 500.0)))
        p, u = lapse / 2 + (1.0 - lapse) * share, (1.0 - lapse) * scale * share * (1.0 - share)
        mean += p
        entropy += bits(p)
        information += u * u / max(p * (1.0 - p), 1e-12)
    mean /= samples
    return mean, max(0.0, bits(mean) - entropy / samples), information / samples


@njit(cache=True, nogil=True)
def narrow(points, spread, away, alpha, lapse, scale, a, b, c, slopes, shifts):
    """Change `spread` and `away` (covariances and deviations) to what is expected after an answer to the question.
    `slopes`, `shifts` (3, d): work space."""
    # The objects' covariances become those of the Kalman filter with the slopes g of Delta at X and the information
    # h = mean_s f_s u_s^2, and the samples move with them (the square root filter of Whitaker & Hamill 2002, eq. (13)):
    #
    #     Sigma_i -= h / (1 + h S) v_i v_i',   x^s_i -= X_i + beta v_i sum_j g_j'(x^s_j - X_j),
    #     v_i = Sigma_i g_i,  S = sum_j g_j'v_j,  beta = (1 - 1 / sqrt(1 + h S)) / S
    #
    # so neither grows.
    d, row = points.shape[1], (a, b, c)
    h = score(points, away, alpha, lapse, scale, a, b, c)[2]
    slopes_at(points, row, alpha, slopes)
    total = 0.0
    for side in range(3):
        for q in range(d):
            shifts[side, q] = 0.0
            for r in range(d):
                shifts[side, q] += spread[row[side], q, r] * slopes[side, r]
            total += slopes[side, q] * shifts[side, q]
    if h * total <= 0.0:
        return
    shrink, beta = h / (1.0 + h * total), (1.0 - 1.0 / np.sqrt(1.0 + h * total)) / total
    for side in range(3):
        for q in range(d):
            for r in range(d):
                spread[row[side], q, r] -= shrink * shifts[side, q] * shifts[side, r]
    for s in range(away.shape[1]):
        projection = 0.0
        for side in range(3):
            for q in range(d):
                projection += slopes[side, q] * away[row[side], s, q]
        for side in range(3):
            for q in range(d):
                away[row[side], s, q] -= beta * projection * shifts[side, q]
