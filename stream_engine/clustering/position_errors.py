"""How well answers determine each position, and how likely each answer is to a fit without it.

With g_qi = dDelta_q / dx_i, s = sigma(Delta_q), p = lapse / 2 + (1 - lapse) s and u = (1 - lapse) s (1 - s), the Fisher
information of one position, the others known, is the block

    H_i = sum_q answers_q u_q^2 / (p_q (1 - p_q)) g_qi g_qi' + 2 ridge I.

Its inverse is the variance of the position where answers are independent. Answers of one response are not: it is
multiplied by the design effect (Kish 1965), the scatter of the sums of scores over responses by that of the scores,

    max(1, sum_u sum_i |sum_{t in u} e_t g_ti|^2 / sum_t sum_i |e_t g_ti|^2),   norms by H_i^-1,

e_t the slope of the log likelihood of answer t in Delta. Without answer t, one Newton step on each position gives

    Delta_t - e_t h_t / (1 - w_t h_t),   h_t = sum_i g_ti' H_i^-1 g_ti,   w_t = u^2 / (p (1 - p)),

and so the loss of each answer as one that is held out, without a fit for each (Pregibon 1981; Beirami et al. 2017).
The same for objects that are tied to the centres of groups: rows then hold numbers of groups. O(q d^2).
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.embedding.held_out import Answers
from stream_engine.embedding.questions import Questions

MOST_LEVERAGE = 0.9  # w h, above which a step without an answer would be no small one


class PositionErrors(NamedTuple):
    """Of n positions in d dimensions, and q questions."""

    variance: np.ndarray  # (n, d, d) inverse information
    near: np.ndarray  # (q,) loss, in nats, of an answer d(i, j) < d(k, l), held out
    far: np.ndarray  # (q,) of the opposite


def position_errors(points: np.ndarray, questions: Questions, lapse: np.ndarray, ridge: float) -> PositionErrors:
    """Of points (n, d) and lapses (n_workers,). O(q d^2 + n d^3)."""
    points = np.ascontiguousarray(points, np.float64)
    n, d = points.shape
    blocks = np.zeros((n, d, d))
    lapse = np.ascontiguousarray(lapse, np.float64)
    _add_information(points, questions.rows, questions.near + questions.far, questions.worker, lapse, blocks)
    variance = np.linalg.inv(blocks + 2 * ridge * np.eye(d))
    near, far = np.empty(len(questions.rows)), np.empty(len(questions.rows))
    _held_out_losses(points, questions.rows, questions.worker, lapse, variance, near, far)
    return PositionErrors(variance, near, far)


def design_effect(points: np.ndarray, answers: Answers, lapse: np.ndarray, variance: np.ndarray) -> float:
    """Of answers in responses, at least 1; with `variance` (n, d, d) of the positions. O(m d^2 + m log m).

    >>> rows = np.array([[0, 1, 0, 2], [0, 1, 0, 2], [1, 0, 1, 2]], np.int32)
    >>> answers = Answers(rows, np.ones(3), np.full(3, -1), np.array([0, 0, 1]), 3)
    >>> points = np.array([[0.0], [0.5], [2.0]])
    >>> alone = answers._replace(unit=np.arange(3))
    >>> [round(design_effect(points, each, np.zeros(1), np.ones((3, 1, 1))), 2) for each in (alone, answers)]
    [1.0, 1.07]
    """
    order = np.argsort(answers.unit, kind="stable")
    unit = answers.unit[order]
    begins = np.flatnonzero(np.append(True, unit[1:] != unit[:-1]))
    if len(begins) == len(unit):
        return 1.0
    together, alone = _scatter(
        np.ascontiguousarray(points, np.float64),
        answers.rows[order],
        answers.times[order],
        answers.worker[order] + 1,
        np.ascontiguousarray(lapse, np.float64),
        variance,
        np.append(begins, len(unit)),
    )
    return max(1.0, together / alone) if alone > 0 else 1.0


@njit(cache=True, nogil=True)
def _slopes(points, row, objects, slopes):
    """Fill `objects` (4,) with the different ones of a row, `slopes` (4, d) with dDelta / dx of each; gives Delta, and
    how many there are."""
    d = points.shape[1]
    delta, count = 0.0, 0
    for side in range(2):
        sign = -2.0 if side == 0 else 2.0
        one, other = row[2 * side], row[2 * side + 1]
        for end in range(2):
            own = one if end == 0 else other
            at = 0
            while at < count and objects[at] != own:
                at += 1
            if at == count:
                objects[at] = own
                slopes[at, :] = 0.0
                count += 1
            for c in range(d):
                gap = points[one, c] - points[other, c]
                slopes[at, c] += sign * gap if end == 0 else -sign * gap
                if end == 0:
                    delta += 0.5 * sign * gap * gap
    return delta, count


@njit(cache=True, nogil=True)
def _likelihood(delta, lapse):
    """P(yes) and its slope in Delta."""
    share = 1.0 / (1.0 + np.exp(-min(max(delta, -500.0), 500.0)))
    p = min(max(0.5 * lapse + (1.0 - lapse) * share, 1e-12), 1.0 - 1e-12)
    return p, (1.0 - lapse) * share * (1.0 - share)


@njit(cache=True, nogil=True)
def _add_information(points, rows, times, worker, lapse, blocks):
    d = points.shape[1]
    objects, slopes = np.empty(4, np.int64), np.empty((4, d))
    for q in range(len(rows)):
        delta, count = _slopes(points, rows[q], objects, slopes)
        p, u = _likelihood(delta, lapse[worker[q]])
        weight = times[q] * u * u / (p * (1.0 - p))
        for at in range(count):
            for a in range(d):
                for b in range(d):
                    blocks[objects[at], a, b] += weight * slopes[at, a] * slopes[at, b]


@njit(cache=True, nogil=True)
def _norm(variance, slope):
    total = 0.0
    for a in range(len(slope)):
        for b in range(len(slope)):
            total += slope[a] * variance[a, b] * slope[b]
    return total


@njit(cache=True, nogil=True)
def _held_out_losses(points, rows, worker, lapse, variance, near, far):
    d = points.shape[1]
    objects, slopes = np.empty(4, np.int64), np.empty((4, d))
    for q in range(len(rows)):
        delta, count = _slopes(points, rows[q], objects, slopes)
        rate = lapse[worker[q]]
        p, u = _likelihood(delta, rate)
        leverage = 0.0
        for at in range(count):
            leverage += _norm(variance[objects[at]], slopes[at])
        step = leverage / (1.0 - min(u * u / (p * (1.0 - p)) * leverage, MOST_LEVERAGE))
        near[q] = -np.log(_likelihood(delta - u / p * step, rate)[0])
        far[q] = -np.log(1.0 - _likelihood(delta + u / (1.0 - p) * step, rate)[0])


@njit(cache=True, nogil=True)
def _scatter(points, rows, times, worker, lapse, variance, begins):
    """Of the sums of scores over units, and of the scores."""
    d = points.shape[1]
    objects, slopes = np.empty(4, np.int64), np.empty((4, d))
    sums, seen = np.zeros(points.shape), np.empty(len(points), np.int64)
    together, alone = 0.0, 0.0
    for unit in range(len(begins) - 1):
        count_seen = 0
        single = begins[unit + 1] - begins[unit] == 1  # times it was given, each by itself
        for t in range(begins[unit], begins[unit + 1]):
            delta, count = _slopes(points, rows[t], objects, slopes)
            p, u = _likelihood(delta, lapse[worker[t]])
            for at in range(count):
                own = objects[at]
                new = True
                for before in range(count_seen):
                    if seen[before] == own:
                        new = False
                        break
                if new:
                    seen[count_seen] = own
                    count_seen += 1
                size = times[t] * (u / p) ** 2 * _norm(variance[own], slopes[at])
                alone += size
                if single:
                    together += size
                for c in range(d):
                    sums[own, c] += times[t] * u / p * slopes[at, c]
        for before in range(count_seen):
            if not single:
                together += _norm(variance[seen[before]], sums[seen[before]])
            sums[seen[before], :] = 0.0
    return together, alone
