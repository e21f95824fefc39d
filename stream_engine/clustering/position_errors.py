"""How well answers determine each position, and how likely each answer is under a fit without it."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.embedding.questions import Questions
from stream_engine.evaluation.answer_probabilities import margins

# With g_qi = dDelta_q / dx_i, s = sigma(Delta_q), p = lapse / 2 + (1 - lapse) s and u = (1 - lapse) s (1 - s), the
# Fisher information of one position, the others known, is the block
#
#     H_i = sum_q answers_q u_q^2 / (p_q (1 - p_q)) g_qi g_qi' + 2 ridge I.
#
# Its inverse is the variance of the position if answers are independent. Answers of one response are not: it is
# multiplied by the design effect (Kish 1965), the scatter of the sums of scores over responses by that of the scores,
#
#     max(1, sum_u sum_i |sum_{t in u} e_t g_ti|^2 / sum_t sum_i |e_t g_ti|^2),   norms by H_i^-1,
#
# e_t the slope of the log likelihood of answer t in Delta. Without answer t, one Newton step on each position gives
#
#     Delta_t - e_t h_t / (1 - w_t h_t),   h_t = sum_i g_ti' H_i^-1 g_ti,   w_t = u^2 / (p (1 - p)),
#
# and so the loss of each answer as one that is held out, without a fit for each (Pregibon 1981; Beirami et al. 2017).
# For objects that are tied to the centres of groups, rows contain numbers of groups.
MAX_LEVERAGE = 0.9  # w h, above which a step without an answer would not be small
BLOCK_SIZE = 1 << 15  # slopes at a time: they stay below 8 MB in thirty dimensions


class PositionErrors(NamedTuple):
    """Errors of n positions in d dimensions, and held-out losses of q questions."""

    variance: np.ndarray  # (n, d, d) inverse information
    near: np.ndarray  # (q,) loss, in nats, of an answer d(i, j) < d(k, l), held out
    far: np.ndarray  # (q,) of the opposite


def position_errors(points: np.ndarray, questions: Questions, lapse: np.ndarray, ridge: float) -> PositionErrors:
    """The errors of points (n, d), with lapse rates (n_workers,). O(q d^2 + n d^3), in products of matrices."""
    n, d = points.shape
    delta, rate = margins(points, questions.rows), lapse[questions.worker]
    p, u = _likelihood(delta, rate)
    information = u * u / (p * (1.0 - p))
    weight, slopes = (questions.near + questions.far) * information, _Slopes(questions.rows, n)
    variance, leverage = np.empty((n, d, d)), np.zeros(len(questions.rows))
    for i in range(n):
        block = 2 * ridge * np.eye(d)
        for at, slope in slopes.of(i, points):
            block += (weight[at, None] * slope).T @ slope
        variance[i] = np.linalg.inv(block)
        for at, slope in slopes.of(i, points):
            leverage[at] += _squared_norm(variance[i], slope)
    step = leverage / (1.0 - np.minimum(information * leverage, MAX_LEVERAGE))
    near = -np.log(_likelihood(delta - u / p * step, rate)[0])
    far = -np.log(1.0 - _likelihood(delta + u / (1.0 - p) * step, rate)[0])
    return PositionErrors(variance, near, far)


def design_effect(points: np.ndarray, answers: Answers, lapse: np.ndarray, variance: np.ndarray) -> float:
    """The design effect of answers that come in responses, at least 1; `variance` (n, d, d) of the positions.
    O(m d^2 + m log m).

    >>> rows = np.array([[0, 1, 0, 2], [0, 1, 0, 2], [1, 0, 1, 2]], np.int32)
    >>> answers = Answers(rows, np.ones(3), np.full(3, -1), np.array([0, 0, 1]), 3)
    >>> points = np.array([[0.0], [0.5], [2.0]])
    >>> alone = answers._replace(response=np.arange(3))
    >>> [round(design_effect(points, each, np.zeros(1), np.ones((3, 1, 1))), 2) for each in (alone, answers)]
    [1.0, 1.07]
    """
    order = np.argsort(answers.response, kind="stable")
    rows, times, unit = answers.rows[order], answers.times[order], answers.response[order]
    is_first = np.append(True, unit[1:] != unit[:-1])
    if is_first.all():
        return 1.0
    unit = np.cumsum(is_first) - 1
    is_alone = (np.bincount(unit) == 1)[unit]  # its copies count each by itself
    p, u = _likelihood(margins(points, rows), lapse[answers.participant[order] + 1])
    score, slopes = u / p, _Slopes(rows, len(points))
    scatter_of_sums = scatter_of_scores = 0.0
    for i in range(len(points)):
        for at, slope in slopes.of(i, points, unit):
            sizes = times[at] * score[at] ** 2 * _squared_norm(variance[i], slope)
            scatter_of_scores += float(sizes.sum())
            scatter_of_sums += float(sizes[is_alone[at]].sum())
            joint = ~is_alone[at]
            if joint.any():
                at, scores = at[joint], (times[at] * score[at])[joint, None] * slope[joint]
                begins = np.flatnonzero(np.append(True, unit[at[1:]] != unit[at[:-1]]))
                scatter_of_sums += float(_squared_norm(variance[i], np.add.reduceat(scores, begins)).sum())
    return max(1.0, scatter_of_sums / scatter_of_scores) if scatter_of_scores > 0 else 1.0


class _Slopes:
    """dDelta / dx of every object in each of (m, 4) `rows` that it is in, m of them by object.

    That of i is 2 (x_j - x_i), that of k is 2 (x_k - x_l), and that of an object in both pairs the sum. So it is twice
    the difference of two positions: of the object that it is compared with in the near pair, and in the far pair,
    itself where it is not in that pair."""

    def __init__(self, rows: np.ndarray, n: int):
        i, j, k, l = rows.T
        beside = {"near": np.stack([j, i, k, l], axis=1), "far": np.stack([i, j, l, k], axis=1)}
        for place in (0, 1):
            own = rows[:, place]
            beside["far"][:, place] = np.where(k == own, l, np.where(l == own, k, own))
        counts = np.ones(rows.shape, bool)
        counts[:, 1] = i != j
        counts[:, 2] = (k != i) & (k != j)
        counts[:, 3] = (l != i) & (l != j) & (l != k)
        where = np.flatnonzero(counts.ravel())
        own = rows.ravel()[where]
        order = where[np.argsort(own.astype(np.min_scalar_type(n)), kind="stable")]
        self._begins = np.append(0, np.cumsum(np.bincount(own, minlength=n)))
        self._at, self._near, self._far = order // 4, beside["near"].ravel()[order], beside["far"].ravel()[order]

    def of(self, i: int, points: np.ndarray, unit: np.ndarray | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Numbers (s,) of the rows with object i, ascending, and its slopes (s, d), some `BLOCK_SIZE` at a time. Rows
        of the same `unit` (m,), ascending, are not divided."""
        begin, last = self._begins[i], self._begins[i + 1]
        while begin < last:
            end = min(begin + BLOCK_SIZE, last)
            if unit is not None:
                end = begin + np.searchsorted(unit[self._at[begin:last]], unit[self._at[end - 1]], side="right")
            part = slice(begin, end)
            yield self._at[part], 2.0 * (points[self._near[part]] - points[self._far[part]])
            begin = end


def _likelihood(delta: np.ndarray, lapse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(yes) and its slope in Delta."""
    share = 1.0 / (1.0 + np.exp(-np.clip(delta, -500.0, 500.0)))
    p = np.clip(0.5 * lapse + (1.0 - lapse) * share, 1e-12, 1.0 - 1e-12)
    return p, (1.0 - lapse) * share * (1.0 - share)


def _squared_norm(variance: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """(s,) s' V s of a matrix (d, d) and vectors (s, d)."""
    return np.einsum("sa,sa->s", slopes @ variance, slopes)
