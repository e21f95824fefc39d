"""Does a participant's map differ from one map for everybody? A test on score statistics at the fitted map: no refit.

The score of an answer is the slope of its log likelihood in the coordinates, or in a symmetric matrix that stretches
the map (one map may be rotated, so the axes that participants weigh otherwise need not be those of its coordinates). If
a participant sees the map as everybody does, the scores s_u of their responses are independent with mean 0. If they see
another one, scores of responses about the same objects point the same way, so that

    T_p = |S_p|^2,   S_p = sum_u s_u,

is larger than sum_u |s_u|^2: the locally most powerful test against deviations in any direction (variance components;
Lin 1997). Its distribution is a weighted sum of chi-squares, with the eigenvalues of M = sum_u s_u s_u' as weights,
which Satterthwaite's chi-square with tr(M)^2 / tr(M^2) degrees of freedom replaces. tr(M^2) is estimated by |M z|^2 of
`PROBES` random signs z (Hutchinson 1990), or exact where there are no more coordinates than that. The ridge leaves all
scores together with a sum that is not 0; everybody's share of it is taken off. The pooled test is the same of
sum_p T_p. O(m d (PROBES + d)).
"""

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from stream_engine.data.answers import Answers
from stream_engine.embedding.ellipses import scores
from stream_engine.embedding.fit import Embedding

PROBES = 64  # random signs: the degrees of freedom are wrong by about 1 in 8, divided by their root


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
    sums, times = csr_array(of_unit @ each), np.bincount(unit, answers.times, units)
    order = np.argsort(who, kind="stable")
    blocks = list(itertools.pairwise(np.searchsorted(who[order], np.arange(len(answers.participants) + 1)).tolist()))
    sums, times = sums[order], times[order]
    stretched = partial(_stretched, found.points)
    return _tested(sums, times, blocks), _tested(sums, times, blocks, stretched)


def _stretched(points: np.ndarray, scores: csr_array) -> np.ndarray:
    """(u, d (d + 1) / 2) slopes in S_kl of points x (I + S), S symmetric, of (u, n d) slopes in the points: the slope
    in x_k times x_l, summed over objects, and the same turned."""
    (units, _), (n, d) = scores.shape, points.shape
    each = scores.tocoo()
    at, axis = each.coords[0] * d + each.coords[1] % d, each.coords[1] // d
    slopes = (csr_array((each.data, (at, axis)), shape=(units * d, n)) @ points).reshape(units, d, d)
    row, column = np.triu_indices(d)
    turned = slopes + slopes.transpose(0, 2, 1)
    turned[:, np.arange(d), np.arange(d)] /= 2
    return turned[:, row, column]


def _tested(
    scores: csr_array,
    times: np.ndarray,
    blocks: list[tuple[int, int]],
    of: Callable[[csr_array], Any] = lambda scores: scores,
) -> ScoreTest:
    """Of scores (u, f) of responses with so many answers (u,); a participant's are a block, from begin to end."""
    from scipy.special import chdtrc

    mean = of(csr_array(scores.sum(axis=0)[None])).sum(axis=0) / max(float(times.sum()), 1.0)
    exact = len(mean) <= PROBES
    probes = np.eye(len(mean)) if exact else np.random.default_rng(0).choice((-1.0, 1.0), (len(mean), PROBES))
    total, trace, square = np.zeros((3, len(blocks)))
    for number, (begin, end) in enumerate(blocks):
        if end - begin > 1:
            own, t = of(scores[begin:end]), times[begin:end]
            total[number] = float(((own.sum(axis=0) - t.sum() * mean) ** 2).sum())
            trace[number] = (own**2).sum() - 2 * (t @ own) @ mean + (t @ t) * (mean @ mean)
            along = own @ probes - np.outer(t, mean @ probes)
            square[number] = ((own.T @ along - np.outer(mean, t @ along)) ** 2).sum() / (1 if exact else PROBES)

    def p_value(total: np.ndarray, trace: np.ndarray, square: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore"):
            p = chdtrc(trace**2 / square, total * trace / square)
        return np.where(square > 0, p, 1.0)

    return ScoreTest(p_value(total, trace, square), float(p_value(total.sum(), trace.sum(), square.sum())))
