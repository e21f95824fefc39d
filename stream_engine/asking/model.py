"""Where the objects lie, and how sure that is: a Gaussian posterior around a stochastic triplet embedding.

    P(a: b nearer than c) = LAPSE / 2 + (1 - LAPSE) s(x),  x = |x_a - x_c|^2 - |x_a - x_b|^2,  s(x) = 1 / (1 + e^-x)
    x_i ~ N(0, I / PRIOR)

STE (van der Maaten & Weinberger 2012, eq. (2)) with people who now and then answer without looking, so one slip
does not move what a hundred answers placed. The mode is found by L-BFGS over all counted directions with their
multiplicities; the number of dimensions is the one of DIMENSIONS that foretells a held-out share best. The posterior is
Laplace's with Fisher information, one block an object: precision PRIOR I + sum over its comparisons of count f(x) g g',
g = dx/dx_i, f(x) = p'(x)^2 / (p (1 - p)). Blocks leave out what the neighbours are not sure of: it is too narrow, never
too wide. An object nobody has compared lies at 0 with the prior's variance. O((len(DIMENSIONS) + 1) STEPS keys d).
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.sparse.linalg import eigsh

from stream_engine.asking.known import Known
from stream_engine.data.compiled import njit
from stream_engine.data.symmetric_matrices import sparse_matrix
from stream_engine.kernel_learning.triplet_lists import weighted_triplets
from stream_engine.statistics.adds_of_triplets import adds3

DIMENSIONS = (1, 2, 3, 4, 6)
LAPSE, PRIOR = 0.1, 0.5
MOST, MOST_HELD = 100_000, 30_000  # directions that are fitted, and looked at to choose the dimensions: uniform samples
HELD_OUT = 0.15
TRUSTED = 0.7  # of held-out answers foretold, from which on the model chooses all questions
STEPS = 60  # of L-BFGS
PLACED = 2  # directions an object and dimension, below which more dimensions are not tried
NEAR = 1e-2  # relative error of the eigenvectors to start from
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


class Posterior(NamedTuple):
    """`points` (n, d): the mode; `spread` (n, d, d): covariance of each object; `right`: share of held-out answers that
    a fit to the others foretold, 1/2 when nothing can be held out."""

    points: np.ndarray
    spread: np.ndarray
    right: float


def posterior(known: Known, rng: np.random.Generator) -> Posterior:
    """The posterior of all objects from the counts; it starts from the learned kernel's coordinates where there are
    some, else from the leading eigenvectors of AddS-3."""
    triplets, weight = _sample(*weighted_triplets(known.columns), MOST, rng)
    d, right = dimensions(known, triplets, weight, rng)
    points = np.zeros((len(known.names), d))
    if len(triplets):
        points = fit(start(known, triplets, weight, d, rng), triplets, weight)
    return Posterior(points, np.linalg.inv(_precision(points, triplets, weight)), right)


def believed(posterior: Posterior, n: int) -> int:
    """How many of n questions the model may choose: none while it foretells answers no better than a coin, all from
    TRUSTED on, in proportion between. The others are asked at random, so that a bad model mends.

    >>> nowhere = np.zeros((0, 2)), np.zeros((0, 2, 2))
    >>> [believed(Posterior(*nowhere, right), 100) for right in (0.4, 0.6, 0.7, 0.9)]
    [0, 50, 100, 100]
    """
    return round(n * min(max((posterior.right - 0.5) / (TRUSTED - 0.5), 0.0), 1.0))


def dimensions(known: Known, triplets: np.ndarray, weight: np.ndarray, rng: np.random.Generator):
    """`(d, share)`: the one of DIMENSIONS whose fit to the rest gets most of the held-out directions right (ties: the
    fewer), and which share of them that is. Only those are tried that so many directions can place."""
    triplets, weight = _sample(triplets, weight, MOST_HELD, rng)
    held = rng.random(len(triplets)) < HELD_OUT
    if held.all() or not held.any():
        return DIMENSIONS[1], 0.5
    placed = PLACED * len(np.unique(triplets))
    tried = [d for d in DIMENSIONS if d == DIMENSIONS[0] or placed * d <= len(triplets)]
    begin, right = start(known, triplets[~held], weight[~held], tried[-1], rng), []
    for d in tried:
        points = fit(np.ascontiguousarray(begin[:, :d]), triplets[~held], weight[~held])
        right.append(float(weight[held] @ (differences(points, triplets[held]) > 0)))
    return DIMENSIONS[int(np.argmax(right))], max(right) / float(weight[held].sum())


def _sample(triplets: np.ndarray, weight: np.ndarray, most: int, rng: np.random.Generator):
    if len(triplets) <= most:
        return triplets, weight
    kept = rng.choice(len(triplets), most, replace=False)
    return triplets[kept], weight[kept] * (len(triplets) / most)


def start(known: Known, triplets: np.ndarray, weight: np.ndarray, d: int, rng: np.random.Generator) -> np.ndarray:
    """(n, d) of about unit size, never all 0: that is a saddle."""
    n = len(known.names)
    points, learned = rng.normal(0, 0.1, (n, d)), known.coordinates
    if learned is not None and learned.ndim == 2 and len(learned) <= n and np.any(learned):
        shared = min(d, learned.shape[1])
        placed = learned.any(axis=1)  # an object outside the subset that the kernel is over begins near 0
        points[: len(learned), :shared] += learned[:, :shared] / max(float(learned[placed, 0].std()), 1e-9)
    elif n > d + 1:
        anchor, near, far = triplets.T
        adds = sparse_matrix(*adds3(anchor, near, far, weight, n), n)
        values, vectors = eigsh(adds, d, which="LA", v0=rng.normal(size=n), tol=NEAR)
        points += vectors[:, ::-1] * np.sqrt(n) * (values[::-1] > 0)
    return points


def fit(points: np.ndarray, triplets: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """(n, d): the mode that L-BFGS reaches from `points`."""

    def objective(flat):
        here = flat.reshape(points.shape)
        gradient = PRIOR * here
        return _loss(here, triplets, weight, gradient) + PRIOR * float((here**2).sum()) / 2, gradient.ravel()

    mode = minimize(objective, points.ravel(), method="L-BFGS-B", jac=True, options={"maxiter": STEPS})
    return mode.x.reshape(points.shape)


@njit(cache=True, nogil=True)
def chance(x):
    """P(b nearer) at x, and its slope.

    >>> chance(0.0)
    (0.5, 0.225)
    """
    s = 1.0 / (1.0 + np.exp(-min(max(x, -500.0), 500.0)))
    return LAPSE / 2 + (1.0 - LAPSE) * s, (1.0 - LAPSE) * s * (1.0 - s)


@njit(cache=True, nogil=True)
def difference(points, a, b, c):
    """x = |x_a - x_c|^2 - |x_a - x_b|^2: above 0 where b is nearer."""
    x = 0.0
    for q in range(points.shape[1]):
        far, near = points[a, q] - points[c, q], points[a, q] - points[b, q]
        x += far * far - near * near
    return x


@njit(cache=True, nogil=True)
def _loss(points, triplets, weight, gradient):
    """Minus the log likelihood; its gradient is added to `gradient`."""
    total = 0.0
    for t in range(len(triplets)):
        a, b, c = triplets[t, 0], triplets[t, 1], triplets[t, 2]
        p, slope = chance(difference(points, a, b, c))
        total -= weight[t] * np.log(p)
        step = -2.0 * weight[t] * slope / p
        for q in range(points.shape[1]):
            gradient[a, q] += step * (points[b, q] - points[c, q])
            gradient[b, q] += step * (points[a, q] - points[b, q])
            gradient[c, q] += step * (points[c, q] - points[a, q])
    return total


@njit(cache=True, nogil=True)
def _precision(points, triplets, weight):
    """(n, d, d): PRIOR I + sum of count f(x) g g'."""
    n, d = points.shape
    out = np.zeros((n, d, d))
    for i in range(n):
        for q in range(d):
            out[i, q, q] = PRIOR
    for t in range(len(triplets)):
        a, b, c = triplets[t, 0], triplets[t, 1], triplets[t, 2]
        p, slope = chance(difference(points, a, b, c))
        h = 4.0 * weight[t] * slope * slope / (p * (1.0 - p))
        for q in range(d):
            for r in range(d):
                out[a, q, r] += h * (points[b, q] - points[c, q]) * (points[b, r] - points[c, r])
                out[b, q, r] += h * (points[a, q] - points[b, q]) * (points[a, r] - points[b, r])
                out[c, q, r] += h * (points[a, q] - points[c, q]) * (points[a, r] - points[c, r])
    return out


@njit(cache=True, nogil=True)
def differences(points, rows):
    """(m,): x of rows a, b, c."""
    out = np.empty(len(rows))
    for t in range(len(rows)):
        out[t] = difference(points, rows[t, 0], rows[t, 1], rows[t, 2])
    return out


@njit(cache=True, nogil=True)
def moments(points, spread, row):
    """Mean and variance of x = |x_a - x_c|^2 - |x_a - x_b|^2."""
    a, b, c = row[0], row[1], row[2]
    mean = variance = 0.0
    for q in range(points.shape[1]):
        near, far = points[a, q] - points[b, q], points[a, q] - points[c, q]
        mean += far * far - near * near + spread[c, q, q] - spread[b, q, q]
        for r in range(points.shape[1]):
            sa, sb, sc = spread[a, q, r], spread[b, q, r], spread[c, q, r]
            variance += 4.0 * (points[b, q] - points[c, q]) * sa * (points[b, r] - points[c, r])
            variance += 4.0 * near * sb * (points[a, r] - points[b, r]) + 4.0 * far * sc * (points[a, r] - points[c, r])
            variance += 2.0 * sb * sb + 2.0 * sc * sc + 4.0 * sa * (sb + sc)
    return mean, variance
