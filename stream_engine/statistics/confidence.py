"""How sure: of the answer to each question that was asked, and of what is known about each object. Pure functions of counts.

Two figures a question, because they are independent: what its own answers say (`majority`), and what all *other* answers
say about it (`left_one_out`, AddS-3 without the question's own share in it).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import betainc

from stream_engine.data.triplet_columns import Columns, pair_of_entry


def majority(n_lo: np.ndarray, n_hi: np.ndarray) -> np.ndarray:
    """(K,) probability that the majority of the answers so far is the majority of all that could be given: P(p > 1/2),
    p ~ Beta(1 + larger, 1 + smaller count), the posterior after a uniform prior. 1/2 at a tie, 3/4 after one answer.

    >>> majority(np.array([1, 2, 0, 9]), np.array([0, 2, 3, 1])).round(4).tolist()
    [0.75, 0.5, 0.9375, 0.9941]
    """
    both = np.stack([np.minimum(n_lo, n_hi), np.maximum(n_lo, n_hi)]).astype(np.int64)
    counts, inverse = np.unique(both, axis=1, return_inverse=True)  # few distinct ones: the beta function is not cheap
    return betainc(1.0 + counts[0], 1.0 + counts[1], 0.5)[inverse.reshape(-1)]


def left_one_out(columns: Columns) -> np.ndarray:
    """(K,) int64: AddS-3's margin for lo over hi at each key, W[anchor, lo] - W[anchor, hi], made of all other keys' answers.

    A key's net vote v adds v to the one entry and takes it from the other, so its own share is 2 v. O(K log K).
    """
    pair = pair_of_entry(columns)
    lo, hi, anchor = (a.astype(np.int64) for a in (columns.lo[pair], columns.hi[pair], columns.anchor))
    net = columns.n_lo.astype(np.int64) - columns.n_hi
    n = columns.n_objects
    near, far = (np.minimum(anchor, other) * n + np.maximum(anchor, other) for other in (lo, hi))
    entries, at = np.unique(np.concatenate([near, far]), return_inverse=True)
    w = np.zeros(len(entries), np.int64)
    np.add.at(w, at, np.concatenate([net, -net]))
    return w[at[: len(net)]] - w[at[len(net) :]] - 2 * net


def predicted(margin: np.ndarray, n_lo: np.ndarray, n_hi: np.ndarray) -> np.ndarray:
    """(K,) probability that lo is said to be nearer, from the other answers alone: the share of answers for the side that
    the margin is for, among questions of about the same margin, never falling as it grows (isotonic regression of the
    answers on |margin|, turned round for the other side); 1/2 at 0. O(K log K).

    >>> predicted(np.array([5, 5, -5, 1]), np.array([3, 2, 1, 1]), np.array([0, 0, 4, 1])).round(2).tolist()
    [0.83, 0.83, 0.17, 0.5]
    """
    from sklearn.isotonic import IsotonicRegression

    decided = margin != 0
    out = np.full(len(margin), 0.5)
    if not decided.any():
        return out
    answers = (n_lo + n_hi)[decided].astype(float)
    agreeing = np.where(margin > 0, n_lo, n_hi)[decided] / answers
    size = np.abs(margin[decided]).astype(float)
    ends = np.full(2, size.max())  # one more answer each way at the largest margin: nothing is certain
    fit = IsotonicRegression(y_min=0.5, y_max=1.0, out_of_bounds="clip").fit(
        np.append(size, ends), np.append(agreeing, [0.0, 1.0]), np.append(answers, [1.0, 1.0])
    )
    found = fit.predict(size)
    out[decided] = np.where(margin[decided] > 0, found, 1 - found)
    return out


class Evidence(NamedTuple):
    """What is known about each object, (n,) arrays; an answer counts for each of the objects that it names."""

    answers: np.ndarray  # int64: comparisons that name it
    as_anchor: np.ndarray  # int64: of these, triplets in which it is what the others are compared with
    questions: np.ndarray  # int64: distinct ones
    contradicted: np.ndarray  # int64: answers in the minority of their question (half of them at a tie)
    agreement: np.ndarray  # float64: share of its answers that the other answers predict; 1/2 where there are none


def evidence(columns: Columns, quadruplets: dict[str, np.ndarray] | None = None) -> Evidence:
    """Of triplet counts, and quadruplet counts (i, j, k, l, n_lo, n_hi) where they are kept. `agreement` is of triplets;
    undecided predictions count half. O(K log K)."""
    n, pair = columns.n_objects, pair_of_entry(columns)
    votes = (columns.n_lo.astype(np.int64), columns.n_hi.astype(np.int64))
    triplets = [columns.anchor, columns.lo[pair], columns.hi[pair]]
    margin = left_one_out(columns)
    right = np.where(margin > 0, votes[0], np.where(margin < 0, votes[1], (votes[0] + votes[1]) / 2))
    of_triplets = _summed(triplets, n, votes)
    agreed, given = _sum(triplets, right, n), of_triplets[0]
    four = [quadruplets[key] for key in "ijkl"] if quadruplets else []
    of_four = (
        _summed(four, n, tuple(quadruplets[key].astype(np.int64) for key in ("n_lo", "n_hi"))) if four else (0, 0, 0)
    )
    answers, questions, contradicted = (a + b for a, b in zip(of_triplets, of_four, strict=True))
    return Evidence(
        answers,
        _sum(triplets[:1], votes[0] + votes[1], n).astype(np.int64),
        questions,
        contradicted,
        np.where(given > 0, agreed / np.maximum(given, 1), 0.5),
    )


def _summed(members: list[np.ndarray], n: int, votes: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, ...]:
    sums = votes[0] + votes[1], np.ones(len(votes[0])), np.minimum(*votes)
    return tuple(_sum(members, each, n).astype(np.int64) for each in sums)


def _sum(members: list[np.ndarray], value: np.ndarray, n: int) -> np.ndarray:
    return sum((np.bincount(of, value, n) for of in members), np.zeros(n))
