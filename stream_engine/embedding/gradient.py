"""The negative log likelihood of answers and its gradient, compiled and fused.

    L(X, lapse) = - sum_q near_q log p_q + far_q log(1 - p_q),     p = lapse / 2 + (1 - lapse) sigma(Delta)
    Delta = phi(|x_k - x_l|^2) - phi(|x_i - x_j|^2);   phi(s) = s (STE), or (alpha + 1) / 2 log(1 + s / alpha) (t-STE)
    dL/dDelta = (1 - lapse) sigma (1 - sigma) (far / (1 - p) - near / p)
    dL/dlapse = (1/2 - sigma) (far / (1 - p) - near / p)

Many questions share a pair of objects. So phi is computed once a pair, a question adds to dL/dphi of its two pairs, and
each pair adds once to the slopes of its two objects: O(pairs d + q). With weights of participants on the axes
(`individual`), |x_i - x_j|^2 is sum_c w_c (x_ic - x_jc)^2, and a pair is one of a participant.

Of many questions, there are two halves, always the same, each with a slope of its own; the halves are added in order.
So the result is the same bit for bit on one core or two, and two threads work at once (no GIL).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.embedding.questions import Questions
from stream_engine.evaluation.answer_probabilities import LARGEST, STE, probability

BLOCK = 256  # questions whose figures stay in the first cache
ALONE = 1 << 14  # questions below which a second thread costs more than it saves
PER_QUESTION = ("rows", "near", "far", "worker")
TABLE = 1 << 18  # pairs of objects up to which all are in a table, which stays in the second cache


class Paired(NamedTuple):
    """Questions by the numbers of their pairs, as `add_answers` takes them."""

    pairs: np.ndarray  # (p, 2) int32: different pairs of objects; or (p, 3), with whose they are
    near_pair: np.ndarray  # (q,) int32: of i and j
    far_pair: np.ndarray  # (q,) int32: of k and l
    near: np.ndarray  # (q,) float64, as in `Questions`; so are the rest
    far: np.ndarray
    worker: np.ndarray


def paired(questions: Questions, of_workers: bool = False) -> Paired:
    """Of few objects, i j and j i are one pair, numbered in O(q + n^2). Of many, pairs are sorted by their first
    object, as questions are, so that a question's pairs are near each other in memory; O(q log q). `of_workers`: pairs
    of different workers are different, and sorted by worker.

    >>> from stream_engine.embedding.questions import of_rows
    >>> same = paired(of_rows(np.array([[0, 1, 0, 2], [0, 2, 0, 3]]), 4))
    >>> same.pairs.tolist(), same.near_pair.tolist(), same.far_pair.tolist()
    ([[0, 1], [0, 2], [0, 3]], [0, 1], [1, 2])
    """
    n, (i, j, k, l) = questions.n_objects, questions.rows.T
    table = n * n * (questions.n_workers if of_workers else 1)
    if table <= max(TABLE, 8 * len(i) * of_workers):
        keys = np.stack([np.minimum(i, j) * n + np.maximum(i, j), np.minimum(k, l) * n + np.maximum(k, l)])
    else:
        keys = np.stack([i * np.int64(n) + j, k * np.int64(n) + l])
    if of_workers:
        keys = keys + questions.worker * np.int64(n * n)
    if table <= max(TABLE, 8 * len(i) * of_workers):
        used = np.zeros(table, bool)
        used[keys] = True
        different, number = np.flatnonzero(used), (np.cumsum(used) - 1)[keys]
    else:
        different, number = np.unique(keys, return_inverse=True)
    near_pair, far_pair = number.reshape(2, -1).astype(np.int32)
    columns = [different // n % n, different % n, different // (n * n)][: 2 + of_workers]
    return Paired(np.stack(columns, axis=1).astype(np.int32), near_pair, far_pair, *questions[1:4])


class Loss:
    """L, dL/dX (n, d) and dL/dlapse (n_workers,) as a function of points (n, d) and lapses (n_workers,). Of those
    that are `weighted`, see there.

    >>> from stream_engine.embedding.questions import of_rows
    >>> loss = Loss(of_rows(np.array([[0, 1, 0, 2]]), 3))
    >>> value, slope, _ = loss(np.array([[0.0], [0.0], [0.0]]), np.zeros(1))
    >>> round(value, 4), slope.tolist()
    (0.6931, [[0.0], [0.0], [0.0]])
    """

    def __init__(self, questions: Questions, alpha: float = STE, weighted: bool = False) -> None:
        q = len(questions.rows)
        cuts = [slice(0, q)] if q < ALONE else [slice(0, q // 2), slice(q // 2, q)]
        parts = [questions._replace(**{name: getattr(questions, name)[cut] for name in PER_QUESTION}) for cut in cuts]
        self.halves = [paired(part, weighted) for part in parts]  # or the whole
        self.alpha = alpha

    def with_alpha(self, alpha: float) -> "Loss":
        """Of the same answers, in which pairs are numbered already."""
        other = copy(self)
        other.alpha = alpha
        return other

    def __call__(self, points: np.ndarray, lapse: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        points = np.ascontiguousarray(points, np.float64)

        def half(answers: Paired) -> tuple[float, np.ndarray, np.ndarray]:
            slope, lapse_slope = np.zeros(points.shape), np.zeros(len(lapse))
            return add_answers(points, *answers, lapse, self.alpha, slope, lapse_slope), slope, lapse_slope

        return self._sum(half)

    def weighted(
        self, points: np.ndarray, weights: np.ndarray, lapse: np.ndarray
    ) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
        """L, dL/dX, dL/dw (n_workers, d) and dL/dlapse with weights (n_workers, d) on the axes."""
        points = np.ascontiguousarray(points, np.float64)

        def half(answers: Paired) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
            slopes = np.zeros(points.shape), np.zeros(weights.shape), np.zeros(len(lapse))
            return add_weighted_answers(points, weights, *answers, lapse, self.alpha, *slopes), *slopes

        return self._sum(half)

    def _sum(self, half: Callable[[Paired], Any]) -> Any:
        if len(self.halves) == 1:
            return half(self.halves[0])
        return tuple(one + other for one, other in zip(*_pool().map(half, self.halves)))


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
def _add_pulls(phi, near_pair, far_pair, near, far, worker, lapse, pull, lapse_slope):
    """Add dL/dphi of each pair, and the slopes of the lapses; gives the loss."""
    total = 0.0
    delta, e, half, push, push_lapse = (
        np.empty(BLOCK),
        np.empty(BLOCK),
        np.empty(BLOCK),
        np.empty(BLOCK),
        np.empty(BLOCK),
    )
    likely, times, rest = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for low in range(0, len(near), BLOCK):
        size = min(BLOCK, len(near) - low)
        for t in range(size):
            delta[t] = phi[far_pair[low + t]] - phi[near_pair[low + t]]
            half[t] = 0.5 * lapse[worker[low + t]]
        for t in range(size):
            e[t] = np.exp(-min(abs(delta[t]), LARGEST))
        for t in range(size):  # without branches: eight at once
            a, share = half[t], 1.0 / (1.0 + e[t])
            expected, other = (1.0 - a + a * e[t]) * share, (a + (1.0 - a) * e[t]) * share
            as_expected = near[low + t] if delta[t] >= 0.0 else far[low + t]
            otherwise = far[low + t] if delta[t] >= 0.0 else near[low + t]
            by = otherwise / other - as_expected / expected
            push_lapse[t] = (0.5 - share) * by
            by *= (1.0 - 2.0 * a) * e[t] * share * share
            push[t] = by if delta[t] >= 0.0 else -by
            likely[t] = expected if as_expected > 0.0 else other
            times[t] = as_expected if as_expected > 0.0 else otherwise
            rest[t] = otherwise if as_expected > 0.0 else 0.0
            half[t] = other
        for t in range(size):
            total -= times[t] * np.log(likely[t])
        for t in range(size):
            if rest[t] > 0.0:  # there are both answers
                total -= rest[t] * np.log(half[t])
        for t in range(size):
            lapse_slope[worker[low + t]] += push_lapse[t]
        for t in range(size):
            pull[near_pair[low + t]] -= push[t]
            pull[far_pair[low + t]] += push[t]
    return total


@njit(cache=True, nogil=True, fastmath=True)
def add_answers(points, pairs, near_pair, far_pair, near, far, worker, lapse, alpha, slope, lapse_slope):
    """Add the slopes of the answers; gives their loss."""
    d, p = points.shape[1], len(pairs)
    phi, pull = np.empty(p), np.zeros(p)
    for t in range(p):
        i, j, s = pairs[t, 0], pairs[t, 1], 0.0
        for c in range(d):
            s += (points[i, c] - points[j, c]) ** 2
        phi[t] = s
    if alpha > 0.0:
        for t in range(p):
            phi[t] = 0.5 * (alpha + 1.0) * np.log(1.0 + phi[t] / alpha)
    total = _add_pulls(phi, near_pair, far_pair, near, far, worker, lapse, pull, lapse_slope)
    for t in range(p):
        i, j, by = pairs[t, 0], pairs[t, 1], 2.0 * pull[t]
        if alpha > 0.0:
            s = 0.0
            for c in range(d):
                s += (points[i, c] - points[j, c]) ** 2
            by *= 0.5 * (alpha + 1.0) / (alpha + s)
        for c in range(d):
            step = by * (points[i, c] - points[j, c])
            slope[i, c] += step
            slope[j, c] -= step
    return total


@njit(cache=True, nogil=True, fastmath=True)
def add_weighted_answers(
    points, weights, pairs, near_pair, far_pair, near, far, worker, lapse, alpha, slope, weight_slope, lapse_slope
):
    """As `add_answers`, each pair as its worker sees it."""
    d, p = points.shape[1], len(pairs)
    size, phi, pull = np.empty(p), np.empty(p), np.zeros(p)
    for t in range(p):
        i, j, w, s = pairs[t, 0], pairs[t, 1], pairs[t, 2], 0.0
        for c in range(d):
            s += weights[w, c] * (points[i, c] - points[j, c]) ** 2
        size[t] = s
    for t in range(p):
        phi[t] = 0.5 * (alpha + 1.0) * np.log(1.0 + size[t] / alpha) if alpha > 0.0 else size[t]
    total = _add_pulls(phi, near_pair, far_pair, near, far, worker, lapse, pull, lapse_slope)
    for t in range(p):
        i, j, w, by = pairs[t, 0], pairs[t, 1], pairs[t, 2], pull[t]
        if alpha > 0.0:
            by *= 0.5 * (alpha + 1.0) / (alpha + size[t])
        for c in range(d):
            gap = points[i, c] - points[j, c]
            step = 2.0 * by * weights[w, c] * gap
            slope[i, c] += step
            slope[j, c] -= step
            weight_slope[w, c] += by * gap * gap
    return total
