"""The negative log likelihood of answers and its gradient, compiled and fused: one pass over the questions.

    L(X, lapse) = - sum_q near_q log p_q + far_q log(1 - p_q),     p = lapse / 2 + (1 - lapse) sigma(Delta)
    Delta = phi(|x_k - x_l|^2) - phi(|x_i - x_j|^2);   phi(s) = s (STE), or (alpha + 1) / 2 log(1 + s / alpha) (t-STE)
    dL/dDelta = (1 - lapse) sigma (1 - sigma) (far / (1 - p) - near / p)
    dL/dlapse = (1/2 - sigma) (far / (1 - p) - near / p)

The questions are cut into two halves, always the same, each summed into a gradient of its own; the halves are added in
order. So the result is the same bit for bit on one core or two, and two threads work at once (no GIL). O(q d).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.embedding.questions import Questions
from stream_engine.evaluation.answer_probabilities import LARGEST, STE, probability

BLOCK = 256  # questions whose differences are held at once: they stay in the first cache
ALONE = 1 << 14  # questions below which a second thread costs more than it saves

Loss = Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray, np.ndarray]]


def loss_of(questions: Questions, alpha: float = STE) -> Loss:
    """A function of points (n, d) and lapses (n_workers,) that gives L, dL/dX (n, d) and dL/dlapse (n_workers,).

    >>> from stream_engine.embedding.questions import of_rows
    >>> loss = loss_of(of_rows(np.array([[0, 1, 0, 2]]), 3))
    >>> value, slope, _ = loss(np.array([[0.0], [0.0], [0.0]]), np.zeros(1))
    >>> round(value, 4), slope.tolist()
    (0.6931, [[0.0], [0.0], [0.0]])
    """
    q = len(questions.rows)
    halves = [(0, q)] if q < ALONE else [(0, q // 2), (q // 2, q)]

    def value_and_slopes(points: np.ndarray, lapse: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        points = np.ascontiguousarray(points, np.float64)

        def half(cut: tuple[int, int]) -> tuple[float, np.ndarray, np.ndarray]:
            slope, lapse_slope = np.zeros(points.shape), np.zeros(len(lapse))
            return _add(points, *questions[:4], lapse, alpha, *cut, slope, lapse_slope), slope, lapse_slope

        done = [half(cut) for cut in halves] if len(halves) == 1 else list(_pool().map(half, halves))
        for value, slope, lapse_slope in done[1:]:
            done[0] = done[0][0] + value, done[0][1] + slope, done[0][2] + lapse_slope
        return done[0]

    return value_and_slopes


_POOL: list[ThreadPoolExecutor] = []


def _pool() -> ThreadPoolExecutor:
    if not _POOL:
        _POOL.append(ThreadPoolExecutor(2, "embedding"))
    return _POOL[0]


def log_loss(delta: np.ndarray, lapse: np.ndarray | float, near: np.ndarray, far: np.ndarray) -> float:
    """- sum near log p + far log(1 - p) of given margins; in nats, not divided by anything."""
    p = probability(delta, lapse)
    return float(-(near @ np.log(np.maximum(p, 1e-300)) + far @ np.log(np.maximum(1.0 - p, 1e-16))))


@njit(cache=True, nogil=True, fastmath=True)
def _add(points, rows, near, far, worker, lapse, alpha, begin, end, slope, lapse_slope):
    """Add the slopes of the questions begin:end; gives their loss."""
    d = points.shape[1]
    near_d, far_d, pull, u, v = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(d), np.empty(d)
    total = 0.0
    for low in range(begin, end, BLOCK):
        size = min(BLOCK, end - low)
        for t in range(size):
            i, j, k, l = rows[low + t, 0], rows[low + t, 1], rows[low + t, 2], rows[low + t, 3]
            one, other = 0.0, 0.0
            for c in range(d):
                one += (points[i, c] - points[j, c]) ** 2
            for c in range(d):
                other += (points[k, c] - points[l, c]) ** 2
            near_d[t], far_d[t] = one, other
        for t in range(size):
            if alpha > 0.0:
                delta = 0.5 * (alpha + 1.0) * np.log((alpha + far_d[t]) / (alpha + near_d[t]))
            else:
                delta = far_d[t] - near_d[t]
            w = worker[low + t]
            half = 0.5 * lapse[w]
            e = np.exp(-min(abs(delta), LARGEST))
            share = 1.0 / (1.0 + e)
            likely, unlikely = (1.0 - half + half * e) * share, (half + (1.0 - half) * e) * share
            yes, no = (near[low + t], far[low + t]) if delta >= 0.0 else (far[low + t], near[low + t])
            if yes > 0.0:
                total -= yes * np.log(likely)
            if no > 0.0:
                total -= no * np.log(unlikely)
            push = no / unlikely - yes / likely
            lapse_slope[w] += (0.5 - share) * push
            push *= (1.0 - 2.0 * half) * e * share * share
            pull[t] = 2.0 * push if delta >= 0.0 else -2.0 * push
        for t in range(size):
            i, j, k, l = rows[low + t, 0], rows[low + t, 1], rows[low + t, 2], rows[low + t, 3]
            a = b = pull[t]
            if alpha > 0.0:
                a *= 0.5 * (alpha + 1.0) / (alpha + near_d[t])
                b *= 0.5 * (alpha + 1.0) / (alpha + far_d[t])
            for c in range(d):  # one row at a time: rows that may be the same would not be added to in parallel
                u[c] = a * (points[i, c] - points[j, c])
                v[c] = b * (points[k, c] - points[l, c])
            for c in range(d):
                slope[j, c] += u[c]
            for c in range(d):
                slope[l, c] -= v[c]
            for c in range(d):
                slope[i, c] -= u[c]
            for c in range(d):
                slope[k, c] += v[c]
    return total
