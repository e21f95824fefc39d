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

The slope in S_kl of points x (I + S), S symmetric, is that in x_k times x_l, summed over objects, and the same turned:
of an answer, of the two gaps between its points.
"""

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from stream_engine.data.answers import Answers
from stream_engine.data.compiled import njit
from stream_engine.embedding.ellipses import score_gaps, sparse_scores
from stream_engine.embedding.fit import Embedding

PROBES = 32  # random signs: the degrees of freedom are wrong by about a quarter, divided by their root


class ScoreTest(NamedTuple):
    """p-values; 1 for who has fewer than two responses."""

    p_value: np.ndarray  # (w,) of each participant
    pooled: float


def score_tests(fit: Embedding, answers: Answers) -> tuple[ScoreTest, ScoreTest]:
    """Tests against another map, and against one that is stretched. `fit` was fitted to the answers."""
    answers = answers.of(np.lexsort((answers.response, answers.participant)))
    first = np.flatnonzero(np.diff(answers.response, prepend=-1) | np.diff(answers.participant, prepend=-2))
    times, participant = np.add.reduceat(answers.times, first), answers.participant[first]
    blocks = list(itertools.pairwise(np.searchsorted(participant, np.arange(len(answers.participants) + 1)).tolist()))
    near, far = (gap * answers.times[:, None] for gap in score_gaps(fit, answers))
    scores = sparse_scores(answers.rows, near, far, len(fit.points))
    scores.sum_duplicates()
    if len(first) < len(answers.rows):
        units = csr_array((np.ones(len(answers.rows)), np.arange(len(answers.rows)), [*first, len(answers.rows)]))
        scores = csr_array(units @ scores)
    (i, j, k, l), (row, column) = answers.rows.T, np.triu_indices(fit.points.shape[1])
    from_near, from_far = fit.points[i] - fit.points[j], fit.points[k] - fit.points[l]
    symmetric = np.where(row == column, 1.0, 2.0)
    ends = np.append(first, len(answers.rows))

    def stretching(begin: int, end: int) -> np.ndarray:
        slopes = np.zeros((end - begin, len(row)))
        _add_stretching(near, from_near, far, from_far, ends[begin : end + 1], slopes)
        return slopes

    total = symmetric * (far.T @ from_far - near.T @ from_near)[row, column]
    return (
        _test(lambda begin, end: _rows(scores, begin, end), scores.sum(axis=0), times, blocks),
        _test(stretching, total, times, blocks),
    )


def _rows(matrix: csr_array, begin: int, end: int) -> csr_array:
    """The rows from begin to end, without a copy."""
    ends = matrix.indptr[begin : end + 1]
    at = slice(ends[0], ends[-1])
    return csr_array((matrix.data[at], matrix.indices[at], ends - ends[0]), shape=(end - begin, matrix.shape[1]))


@njit(cache=True, nogil=True)
def _add_stretching(near, from_near, far, from_far, ends, slopes):
    """Add the slopes of answers in the upper triangle of the matrix to those of their responses (u, f)."""
    d = near.shape[1]
    for unit in range(len(slopes)):
        for t in range(ends[unit], ends[unit + 1]):
            at = 0
            for a in range(d):
                for b in range(a, d):
                    slope = far[t, a] * from_far[t, b] - near[t, a] * from_near[t, b]
                    slopes[unit, at] += slope if a == b else 2.0 * slope
                    at += 1


def _test(
    scores_of: Callable[[int, int], Any], total: np.ndarray, times: np.ndarray, blocks: list[tuple[int, int]]
) -> ScoreTest:
    """Of the scores (u, f) of responses from begin to end, their `total` over all, and how many answers each
    response (u,) has; a participant's responses are a block."""
    from scipy.special import chdtrc

    mean = total / max(float(times.sum()), 1.0)
    exact = len(mean) <= PROBES
    probes = np.eye(len(mean)) if exact else np.random.default_rng(0).choice((-1.0, 1.0), (len(mean), PROBES))
    size, trace, square = np.zeros((3, len(blocks)))
    for number, (begin, end) in enumerate(blocks):
        if end - begin > 1:
            own, t = scores_of(begin, end), times[begin:end]
            values = own.ravel() if isinstance(own, np.ndarray) else own.data
            size[number] = float(((np.ones(end - begin) @ own - t.sum() * mean) ** 2).sum())
            trace[number] = values @ values - 2 * (t @ own) @ mean + (t @ t) * (mean @ mean)
            projection = own @ probes - np.outer(t, mean @ probes)
            square[number] = ((own.T @ projection - np.outer(mean, t @ projection)) ** 2).sum() / (
                1 if exact else PROBES
            )

    def p_value(size: np.ndarray, trace: np.ndarray, square: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore"):
            p = chdtrc(trace**2 / square, size * trace / square)
        return np.where(square > 0, p, 1.0)

    return ScoreTest(p_value(size, trace, square), float(p_value(size.sum(), trace.sum(), square.sum())))
