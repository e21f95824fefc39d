"""Confidence: in the answer to each question that was asked, and in what is known about each object.

Two figures a question, because they are independent: what its own answers say (`majority`), and what all *other*
answers say about it (`left_one_out`, AddS-3 without the question's own share in it). Pure functions of counts.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from stream_engine.counts.adds_similarity import pair_sums
from stream_engine.data.triplet_columns import Columns, net_vote, pair_of_entry


def majority(n_lo: np.ndarray, n_hi: np.ndarray) -> np.ndarray:
    """(K,) probability that the majority of the answers so far is the majority of all that could be given: P(p > 1/2),
    p ~ Beta(1 + larger, 1 + smaller count), the posterior after a uniform prior. 1/2 at a tie, 3/4 after one answer.

    >>> majority(np.array([1, 2, 0, 9]), np.array([0, 2, 3, 1])).round(4).tolist()
    [0.75, 0.5, 0.9375, 0.9941]
    """
    smaller, larger = np.minimum(n_lo, n_hi).astype(np.int64), np.maximum(n_lo, n_hi).astype(np.int64)
    size = int(larger.max(initial=0)) + 1
    if size > 1 << 10:
        counts, entry = np.unique(np.stack([smaller, larger]), axis=1, return_inverse=True)
        return betainc(1.0 + counts[0], 1.0 + counts[1], 0.5)[entry.reshape(-1)]
    code = smaller * size + larger  # few distinct ones: the beta function is not cheap
    there = np.flatnonzero(np.bincount(code, minlength=size))
    table = np.zeros(size * size)
    table[there] = betainc(1.0 + there // size, 1.0 + there % size, 0.5)
    return table[code]


def left_one_out(columns: Columns) -> np.ndarray:
    """(K,) int64: AddS-3's margin for lo over hi at each key, W[anchor, lo] - W[anchor, hi], made of all other answers.

    A key's net vote v adds v to the one entry and takes it from the other, so its own share is 2 v. O(K log K).
    """
    pair = pair_of_entry(columns)
    net = net_vote(columns.n_lo, columns.n_hi).astype(np.int64)
    sums = pair_sums(columns.anchor, columns.lo[pair], columns.hi[pair], net, columns.n_objects)
    return sums.w[sums.near] - sums.w[sums.far] - 2 * net


def predicted(margin: np.ndarray, n_lo: np.ndarray, n_hi: np.ndarray) -> np.ndarray:
    """(K,) probability that lo is answered to be nearer, from the other answers alone: the share of answers for the
    side that the margin is for, among questions of about the same margin, never falling as it grows (isotonic
    regression of the answers on |margin|, turned round for the other side); 1/2 at 0. O(K log K).

    >>> predicted(np.array([5, 5, -5, 1]), np.array([3, 2, 1, 1]), np.array([0, 0, 4, 1])).round(2).tolist()
    [0.83, 0.83, 0.17, 0.5]
    """
    from sklearn.isotonic import IsotonicRegression

    decided = margin != 0
    probability = np.full(len(margin), 0.5)
    if not decided.any():
        return probability
    sizes, entry = _distinct(np.abs(margin[decided]))
    answers = np.bincount(entry, (n_lo + n_hi)[decided])
    agreeing = np.bincount(entry, np.where(margin > 0, n_lo, n_hi)[decided])
    answers[-1] += 2  # one more answer each way at the largest margin: nothing is certain
    agreeing[-1] += 1
    fit = IsotonicRegression(y_min=0.5, y_max=1.0).fit(sizes, agreeing / answers, answers)
    of_side = fit.predict(sizes)[entry]
    probability[decided] = np.where(margin[decided] > 0, of_side, 1 - of_side)
    return probability


def _distinct(size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`np.unique(size, return_inverse=True)` of whole numbers >= 0; by a table where they are not too large."""
    if size.max() > 8 * len(size):
        return np.unique(size, return_inverse=True)
    there = np.zeros(int(size.max()) + 1, bool)
    there[size] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[size]


class ObjectAnswers(NamedTuple):
    """How much was answered about each object, and how well it agrees, (n,) arrays; an answer counts for each of the
    objects that it names."""

    answers: np.ndarray  # int64: comparisons that name it
    as_anchor: np.ndarray  # int64: of these, triplets in which it is what the others are compared with
    questions: np.ndarray  # int64: distinct ones
    contradicted: np.ndarray  # int64: answers in the minority of their question (half of them at a tie)
    agreement: np.ndarray  # float64: share of its answers that the other answers predict; nan of none


def answers_by_object(columns: Columns, quadruplets: Mapping[str, np.ndarray] | None = None) -> ObjectAnswers:
    """Of triplet counts, and quadruplet counts (i, j, k, l, n_lo, n_hi) where they are kept. `agreement` is of
    triplets; undecided predictions count half. O(K log K)."""
    n, pair = columns.n_objects, pair_of_entry(columns)
    n_lo, n_hi = columns.n_lo.astype(np.int64), columns.n_hi.astype(np.int64)
    triplets = [columns.anchor, columns.lo[pair], columns.hi[pair]]
    margin = left_one_out(columns)
    agreeing = np.where(margin > 0, n_lo, np.where(margin < 0, n_hi, (n_lo + n_hi) / 2))
    answers, questions, contradicted = _counts_by_object(triplets, n_lo, n_hi, n)
    agreement = np.where(answers > 0, _sum(triplets, agreeing, n) / np.maximum(answers, 1), np.nan)
    if quadruplets:
        of_four = _counts_by_object([quadruplets[key] for key in "ijkl"], quadruplets["n_lo"], quadruplets["n_hi"], n)
        answers, questions, contradicted = answers + of_four[0], questions + of_four[1], contradicted + of_four[2]
    as_anchor = _sum(triplets[:1], n_lo + n_hi, n).astype(np.int64)
    return ObjectAnswers(answers, as_anchor, questions, contradicted, agreement)


def _counts_by_object(
    members: list[np.ndarray], n_lo: np.ndarray, n_hi: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers, questions and contradicted answers, by object."""
    n_lo, n_hi = n_lo.astype(np.int64), n_hi.astype(np.int64)
    answers, questions, contradicted = (
        _sum(members, values, n).astype(np.int64)
        for values in (n_lo + n_hi, np.ones(len(n_lo)), np.minimum(n_lo, n_hi))
    )
    return answers, questions, contradicted


def _sum(members: list[np.ndarray], value: np.ndarray, n: int) -> np.ndarray:
    return sum((np.bincount(of, value, n) for of in members), np.zeros(n))
