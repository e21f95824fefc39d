"""A quick start for many questions: passes of stochastic gradient steps with AdaGrad, one question at a time.

Duchi, Hazan & Singer 2011, eq. 1, a step size per coordinate: x -= rate g / sqrt(sum g^2). A pass over the questions in
a random order costs about as much as one gradient of all, and makes as much way as many L-BFGS iterations, as long as
the points are far from where they belong; then L-BFGS goes on (`fit`). Deterministic by seed, O(q d) a pass, O(n d)
memory; one core.
"""

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.embedding.questions import Questions

PASSES = 12
RATE = 0.2  # of the first steps; those of the last pass are a tenth of it


def descend(
    questions: Questions, points: np.ndarray, lapse: np.ndarray, ridge: float, alpha: float, seed: int = 0
) -> np.ndarray:
    """(n, d) points after `PASSES` passes from `points`."""
    points, rng = np.array(points, np.float64), np.random.default_rng(seed)
    degree = np.bincount(questions.rows.ravel(), minlength=questions.n_objects)
    pull = 2.0 * ridge / np.maximum(degree, 1)  # of the ridge, shared among an object's questions
    squares = np.full(points.shape, 1e-8)
    for number in range(PASSES):
        rate = RATE * 0.1 ** (number / max(PASSES - 1, 1))
        order = rng.permutation(len(questions.rows)).astype(np.int32)
        _pass(points, squares, *questions[:4], lapse, alpha, pull, rate, order)
    return points


@njit(cache=True, nogil=True, fastmath=True)
def _pass(points, squares, rows, near, far, worker, lapse, alpha, pull, rate, order):
    d = points.shape[1]
    for at in order:
        i, j, k, l = rows[at, 0], rows[at, 1], rows[at, 2], rows[at, 3]
        near_size, far_size = 0.0, 0.0
        for c in range(d):
            u, v = points[i, c] - points[j, c], points[k, c] - points[l, c]
            near_size += u * u
            far_size += v * v
        a = b = 1.0
        delta = far_size - near_size
        if alpha > 0.0:
            delta = 0.5 * (alpha + 1.0) * np.log((alpha + far_size) / (alpha + near_size))
            a, b = 0.5 * (alpha + 1.0) / (alpha + near_size), 0.5 * (alpha + 1.0) / (alpha + far_size)
        half = 0.5 * lapse[worker[at]]
        share = 1.0 / (1.0 + np.exp(-min(max(delta, -500.0), 500.0)))
        p = half + (1.0 - 2.0 * half) * share
        push = (1.0 - 2.0 * half) * share * (1.0 - share)
        push *= 2.0 * (far[at] / max(1.0 - p, 1e-12) - near[at] / max(p, 1e-12))
        for c in range(d):
            u, v = a * push * (points[i, c] - points[j, c]), b * push * (points[k, c] - points[l, c])
            _step(points, squares, i, c, -u + pull[i] * points[i, c], rate)
            _step(points, squares, j, c, u + pull[j] * points[j, c], rate)
            _step(points, squares, k, c, v + pull[k] * points[k, c], rate)
            _step(points, squares, l, c, -v + pull[l] * points[l, c], rate)


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _step(points, squares, row, c, slope, rate):
    squares[row, c] += slope * slope
    points[row, c] -= rate * slope / np.sqrt(squares[row, c])
