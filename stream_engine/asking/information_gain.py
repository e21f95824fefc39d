"""Questions whose answers should tell most about where the objects lie (after Tamuz et al. 2011, "Adaptively learning
the crowd kernel"; the score is that of Houlsby et al. 2011, "Bayesian active learning", eq. (2)).

    gain(q) = H(E[P(x)]) - E[H(P(x))],  x ~ N(m, v) under the posterior of `model`, in bits

High where the model does not know (E[P] near 1/2) but a person would (P(x) far from 1/2 wherever the objects really
are): a question that is merely close gains nothing. m and v are exact for independent Gaussian objects with covariances
A, B, C: m = |x_a - x_c|^2 - |x_a - x_b|^2 + tr C - tr B, v = sum of g'Sigma g + 2 tr B^2 + 2 tr C^2 + 4 tr AB + 4 tr
AC; the expectations are Gauss-Hermite sums. Tamuz et al. gain knowledge about the anchor alone, over the other objects'
places.

Diverse by construction: questions are taken greedily, and each one taken narrows the posterior of its three objects as
its answer is expected to, so that the next ones look elsewhere. Among POOL random questions. O(POOL d^2 + n log POOL).
"""

import heapq

import numpy as np

from stream_engine.asking import model
from stream_engine.asking.known import Known, unanswered
from stream_engine.data.compiled import njit

POOL = 20_000


def ask(known: Known, n: int, rng: np.random.Generator) -> np.ndarray:
    """(n, 3) int32, the largest expected gain first; after them those at random, see `model.believed`."""
    rows = unanswered(known, max(POOL, 20 * n), rng)
    posterior = model.posterior(known, rng)
    taken = greedily(posterior.points, posterior.spread.copy(), rows, model.believed(posterior, n))
    return rows[np.concatenate([taken, np.setdiff1d(np.arange(len(rows)), taken)])[:n]]


@njit(cache=True, nogil=True)
def greedily(points, spread, rows, n):
    """(n,): indices of the questions taken; narrows `spread`. A score is looked at again only when it comes up: what
    was learned since seldom raises one."""
    heap = [(-score, t) for t, score in enumerate(gains(points, spread, rows))]
    heapq.heapify(heap)
    taken = np.empty(n, np.int64)
    done = 0
    while done < n:
        t = heapq.heappop(heap)[1]
        score = gains(points, spread, rows[t : t + 1])[0]
        if len(heap) and score < -heap[0][0] - 1e-12:  # its objects have been asked about since: it waits its turn
            heapq.heappush(heap, (-score, t))
            continue
        taken[done] = t
        done += 1
        _narrow(points, spread, rows[t])
    return taken


@njit(cache=True, nogil=True)
def _bits(p):
    return -p * np.log2(p) - (1.0 - p) * np.log2(1.0 - p)


@njit(cache=True, nogil=True)
def gain(mean, variance):
    """H(E[P(x)]) - E[H(P(x))] in bits for x ~ N(mean, variance), and E of x's Fisher information; no gain at variance
    0."""
    expected = unsure = information = 0.0
    for k in range(len(model.NODES)):
        p, slope = model.chance(mean + np.sqrt(variance) * model.NODES[k])
        expected += model.WEIGHTS[k] * p
        unsure += model.WEIGHTS[k] * _bits(p)
        information += model.WEIGHTS[k] * slope * slope / (p * (1.0 - p))
    return max(0.0, _bits(expected) - unsure), information


@njit(cache=True, nogil=True)
def gains(points, spread, rows):
    """(m,): the gain of every question. O(m d^2)."""
    out = np.empty(len(rows))
    for t in range(len(rows)):
        mean, variance = model.moments(points, spread, rows[t])
        out[t] = gain(mean, variance)[0]
    return out


@njit(cache=True, nogil=True)
def _narrow(points, spread, row):
    """Sherman-Morrison on the three objects' covariances: precision + E[f(x)] g g'."""
    a, b, c = row[0], row[1], row[2]
    mean, variance = model.moments(points, spread, row)
    h = gain(mean, variance)[1]
    for side in range(3):
        front, back = (b, c) if side == 0 else (a, b) if side == 1 else (c, a)
        g = 2.0 * (points[front] - points[back])
        covariance = spread[row[side]]
        moved = covariance @ g
        shrink = h / (1.0 + h * (g @ moved))
        for i in range(len(moved)):  # in plain loops: as arrays this took six seconds to compile
            for j in range(len(moved)):
                covariance[i, j] -= moved[i] * moved[j] * shrink
