"""Does a participant's map differ from one map for everybody? A test on score statistics at the fitted map: no refit.

The score of an answer is the slope of its log likelihood in the coordinates, or in a symmetric matrix that stretches
the map (one map may be rotated, so the axes that participants weigh otherwise need not be those of its coordinates). If
a participant sees the map as everybody does, the scores s_u of their responses are independent with mean 0. If they see
another one, scores of responses about the same objects point the same way, so that

    T_p = |S_p|^2,   S_p = sum_u s_u,

is larger than sum_u |s_u|^2: the locally most powerful test against deviations in any direction (variance components;
Lin 1997). Its distribution is a weighted sum of chi-squares, with the eigenvalues of M = sum_u s_u s_u' as weights,
which Satterthwaite's chi-square with tr(M)^2 / tr(M^2) degrees of freedom replaces. The ridge leaves all scores
together with a sum that is not 0; everybody's share of it is taken off. The pooled test is the same of sum_p T_p.
O(m d) and one (n d)^2 matrix a participant; above `MOST` coordinates the scores are projected at random.
"""

import itertools
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from stream_engine.data.answers import Answers
from stream_engine.embedding.ellipses import scores
from stream_engine.embedding.fit import Embedding

MOST = 256  # numbers that the score of a response has at most


class ScoreTest(NamedTuple):
    """p-values; 1 for who has fewer than two responses."""

    p_value: np.ndarray  # (w,) of each participant
    pooled: float


def score_tests(found: Embedding, answers: Answers) -> tuple[ScoreTest, ScoreTest]:
    """Tests against another map, and against one that is stretched. `found` was fitted to the answers."""
    each = scores(found, answers)
    unit = np.unique(answers.response, return_inverse=True)[1].reshape(-1)
    units = int(unit.max(initial=-1)) + 1
    who = np.full(units, -1)
    who[unit] = answers.participant
    of_unit = csr_array((answers.times, (unit, np.arange(len(unit)))), shape=(units, len(unit)))
    sums, times = of_unit @ each, np.bincount(unit, answers.times, units)
    n, d = found.points.shape
    # d log p / d S_kl of x (I + S), S symmetric: x_l times the slope in x_k, summed over objects, and the same turned
    row, column = np.triu_indices(d)
    number = np.zeros((d, d), np.int64)
    number[row, column] = number[column, row] = np.arange(len(row))
    at, to = np.repeat(np.arange(n * d), d), np.tile(number, (n, 1)).ravel()
    stretching = csr_array((np.repeat(found.points, d, axis=0).ravel(), (at, to)), shape=(n * d, len(row)))
    both, people = (_few(sums), _few(sums @ stretching)), len(answers.participants)
    of_map, of_axes = (_tested(each, times, who, people) for each in both)
    return of_map, of_axes


def _few(scores: csr_array) -> np.ndarray:
    """The same dense, projected at random where they are more than `MOST`."""
    if scores.shape[1] <= MOST:
        return scores.toarray()
    return scores @ (np.random.default_rng(0).integers(0, 2, (scores.shape[1], MOST)) * 2.0 - 1.0)


def _tested(scores: np.ndarray, times: np.ndarray, who: np.ndarray, people: int) -> ScoreTest:
    """Of (u, f) scores of responses with so many answers (u,), by participants (u,), -1: nobody."""
    from scipy.special import chdtrc

    scores = scores - times[:, None] * (scores.sum(axis=0) / max(float(times.sum()), 1.0))
    order = np.argsort(who, kind="stable")
    begins = np.searchsorted(who[order], np.arange(people + 1))
    total, mean, square = np.zeros(people), np.zeros(people), np.zeros(people)
    for number, (begin, end) in enumerate(itertools.pairwise(begins)):
        own = scores[order[begin:end]]
        if len(own) > 1:
            product = own.T @ own if own.shape[1] < len(own) else own @ own.T
            total[number] = float((own.sum(axis=0) ** 2).sum())
            mean[number], square[number] = float(np.trace(product)), float((product**2).sum())

    def p_value(total: np.ndarray, mean: np.ndarray, square: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore"):
            p = chdtrc(mean**2 / square, total * mean / square)
        return np.where(square > 0, p, 1.0)

    return ScoreTest(p_value(total, mean, square), float(p_value(total.sum(), mean.sum(), square.sum())))
