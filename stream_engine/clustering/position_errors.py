"""How well answers determine each position, and how likely each answer is under a fit without it."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.data.compiled import njit, read_only
from stream_engine.embedding.questions import Questions

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
BLOCK_SIZE = 1 << 15  # questions at a time: intermediate arrays stay below 40 MB in five dimensions


class PositionErrors(NamedTuple):
    """Errors of n positions in d dimensions, and held-out losses of q questions."""

    variance: np.ndarray  # (n, d, d) inverse information
    near: np.ndarray  # (q,) loss, in nats, of an answer d(i, j) < d(k, l), held out
    far: np.ndarray  # (q,) of the opposite


def position_errors(points: np.ndarray, questions: Questions, lapse: np.ndarray, ridge: float) -> PositionErrors:
    """The errors of points (n, d), with lapse rates (n_workers,). O(q d^2 + n d^3)."""
    n, d = points.shape
    blocks = np.zeros((n, d, d))
    for q in _blocks_of(len(questions.rows)):
        rows = questions.rows[q]
        delta, slopes = _slopes(points, rows)
        p, u = _likelihood(delta, lapse[questions.worker[q]])
        weight = (questions.near[q] + questions.far[q]) * u * u / (p * (1.0 - p))
        _add_squares(read_only(rows, np.int32), weight, slopes, blocks)
    low, high = np.tril_indices(d, -1)
    blocks[:, high, low] = blocks[:, low, high]
    variance = np.linalg.inv(blocks + 2 * ridge * np.eye(d))
    near, far = np.empty(len(questions.rows)), np.empty(len(questions.rows))
    for q in _blocks_of(len(questions.rows)):
        rows, rate = questions.rows[q], lapse[questions.worker[q]]
        delta, slopes = _slopes(points, rows)
        p, u = _likelihood(delta, rate)
        leverage = _squared_norms(variance, rows, slopes).sum(axis=1)
        step = leverage / (1.0 - np.minimum(u * u / (p * (1.0 - p)) * leverage, MAX_LEVERAGE))
        near[q] = -np.log(_likelihood(delta - u / p * step, rate)[0])
        far[q] = -np.log(1.0 - _likelihood(delta + u / (1.0 - p) * step, rate)[0])
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
    unit = answers.response[order]
    begins = np.flatnonzero(np.append(True, unit[1:] != unit[:-1]))
    if len(begins) == len(unit):
        return 1.0
    scatter_of_sums = scatter_of_scores = 0.0
    for part in _whole_units(begins, len(unit)):
        rows, times = answers.rows[order[part]], answers.times[order[part]]
        delta, slopes = _slopes(points, rows)
        p, u = _likelihood(delta, lapse[answers.participant[order[part]] + 1])
        sizes = (times * (u / p) ** 2)[:, None] * _squared_norms(variance, rows, slopes)
        scatter_of_scores += float(sizes.sum())
        scores = (times * u / p)[:, None, None] * slopes
        objects_of_units, at = np.unique(unit[part, None] * len(points) + rows, return_inverse=True)  # objects of units
        at = at.reshape(-1)
        sums = np.stack([np.bincount(at, scores[:, :, c].ravel()) for c in range(points.shape[1])], axis=1)
        single = np.bincount(unit[part] - unit[part][0])[objects_of_units // len(points) - unit[part][0]] == 1
        single_squares = np.bincount(at, sizes.ravel())  # of a single answer, given several times: each time by itself
        scatter_of_sums += float(
            np.where(single, single_squares, _squared_norms(variance, objects_of_units % len(points), sums)).sum()
        )
    return max(1.0, scatter_of_sums / scatter_of_scores) if scatter_of_scores > 0 else 1.0


def _blocks_of(n: int) -> Iterator[slice]:
    return (slice(begin, begin + BLOCK_SIZE) for begin in range(0, n, BLOCK_SIZE))


def _whole_units(begins: np.ndarray, n: int) -> Iterator[slice]:
    """Slices of n answers that begin where units begin, of at least `BLOCK_SIZE` answers except for the last."""
    begin = 0
    while begin < n:
        later_begins = begins[np.searchsorted(begins, begin + BLOCK_SIZE) :]
        end = int(later_begins[0]) if len(later_begins) else n
        yield slice(begin, end)
        begin = end


def _slopes(points: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(q,) Delta, and (q, 4, d) dDelta / dx of the objects of each row. An object that is in a row twice has its whole
    slope at the first of the two places, and 0 at the second."""
    i, j, k, l = np.moveaxis(points[rows], 1, 0)
    near, far = i - j, k - l
    slopes = np.stack([-2.0 * near, 2.0 * near, 2.0 * far, -2.0 * far], axis=1)
    for later in (2, 3):  # the two objects of a pair differ
        for earlier in (0, 1):
            is_repeated = rows[:, later] == rows[:, earlier]
            slopes[is_repeated, earlier] += slopes[is_repeated, later]
            slopes[is_repeated, later] = 0.0
    return (far * far).sum(axis=1) - (near * near).sum(axis=1), slopes


def _likelihood(delta: np.ndarray, lapse: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(yes) and its slope in Delta."""
    share = 1.0 / (1.0 + np.exp(-np.clip(delta, -500.0, 500.0)))
    p = np.clip(0.5 * lapse + (1.0 - lapse) * share, 1e-12, 1.0 - 1e-12)
    return p, (1.0 - lapse) * share * (1.0 - share)


@njit(cache=True, nogil=True)
def _add_squares(rows, weight, slopes, blocks):
    """Add weight s s' of each slope (q, 4, d) to the lower triangle of the block (n, d, d) of its object."""
    for q in range(len(rows)):
        for place in range(4):
            block = blocks[rows[q, place]]
            for a in range(slopes.shape[2]):
                scaled = weight[q] * slopes[q, place, a]
                for b in range(a + 1):
                    block[a, b] += scaled * slopes[q, place, b]


def _squared_norms(variance: np.ndarray, objects: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """(...) s' V s of the slopes (..., d) of objects (...), each with its variance, of (n, d, d)."""
    norms = np.empty(objects.size)
    _fill_squared_norms(variance, objects.ravel().astype(np.int64), slopes.reshape(-1, slopes.shape[-1]), norms)
    return norms.reshape(objects.shape)


@njit(cache=True, nogil=True, fastmath=True)
def _fill_squared_norms(variance, objects, slopes, norms):
    d = slopes.shape[1]
    for t in range(len(objects)):
        total = 0.0
        for a in range(d):
            product = 0.0
            for b in range(d):
                product += variance[objects[t], a, b] * slopes[t, b]
            total += slopes[t, a] * product
        norms[t] = total
