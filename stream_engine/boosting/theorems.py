"""Figures of one booster for Theorems 3 and 4 of Perrot & von Luxburg (2019): its margins, and the triplets it
needs."""

from typing import Any

import numpy as np

from stream_engine.boosting.fit import Booster
from stream_engine.data.triplet_columns import Columns


def figures(booster: Booster, columns: Columns, confidence: np.ndarray) -> dict[str, Any]:
    """`theorem_3` and `theorem_4` of an artifact's report, from the booster's `votes.LabelVotes.confidence` in all
    objects, (n_objects, Y). O(n |Y| + K + C log C)."""
    positive = np.repeat(booster.groups.truth, np.diff(booster.groups.start), axis=0)
    training_confidence = confidence[booster.groups.example]
    return {
        "theorem_3": margin_figures(training_confidence, positive, float(booster.classifiers.alpha.sum())),
        "theorem_4": abstention_figures(booster, columns),
    }


def margins(confidence: np.ndarray, positive: np.ndarray, weight: float) -> np.ndarray:
    """(n,) float64 in [-1, 1]: theta_H of every example; 1 where no label is wrong, 0 before the first classifier.

    Theorem 3's confidence of an example is the lead of its label in eq. (5) over the best other one, as a share of the
    weight of all classifiers: theta_H(x, y) = (F(x, y) - max F(x, y')) / (2 sum alpha), F as in `rounds.confidences`.
    The paper leaves theta_H to its supplement; with this measure its second inequality holds, since exp(-F(x, y)) +
    exp(F(x, y')) >= 2 exp(-theta sum alpha) wherever theta_H <= theta. With several labels: the best inside the set
    against the best outside.

    >>> margins(np.array([[3.0, -1.0], [0.0, 2.0]]), np.array([[True, False], [True, False]]), 4.0).tolist()
    [0.5, -0.25]
    """
    inside = np.where(positive, confidence, -np.inf).max(axis=1, initial=-np.inf)
    outside = np.where(positive, -np.inf, confidence).max(axis=1, initial=-np.inf)
    lead = np.where(np.isfinite(outside), inside - outside, 2 * weight)
    return np.clip(lead / (2 * weight), -1.0, 1.0) if weight > 0 else np.zeros(len(confidence))


def least_theta(positive: np.ndarray) -> float:
    """The smallest theta to which Theorem 3 applies, sqrt(log |H| / (16 |Y|^2 n)). |H| counts the pairs of examples
    with different label sets, times the 4^|Y| label sets of their two sides.

    >>> round(least_theta(np.array([[True, False], [False, True]])), 4)
    0.1472
    """
    n, labels = positive.shape
    sizes = np.unique(positive, axis=0, return_counts=True)[1].astype(float)
    pairs = (n * n - float(sizes @ sizes)) / 2
    return float(np.sqrt((np.log(max(pairs, 1.0)) + labels * np.log(4.0)) / (16 * labels**2 * n)))


THETAS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)  # of the bound
QUANTILES = (0.0, 0.1, 0.5, 0.9, 1.0)  # of the margins


def margin_figures(confidence: np.ndarray, positive: np.ndarray, weight: float) -> dict[str, Any]:
    """Confidence of the booster in its training examples: quantiles of their margins, and for some theta the share with
    theta_H <= theta and the theorem's bound on it, (|Y| / 2) prod Z_c exp(alpha_c theta)."""
    example_margins, n = margins(confidence, positive, weight), len(positive)
    log_loss = float(np.logaddexp.reduce(np.where(positive, -1.0, 1.0) * confidence, axis=None)) - np.log(2 * n)
    return {
        "least_theta": least_theta(positive),
        "quantiles": {f"{q:g}": float(np.quantile(example_margins, q)) for q in QUANTILES},
        "shares": [
            {
                "theta": theta,
                "share": float(np.mean(example_margins <= theta)),
                "bound": float(np.exp(min(log_loss + theta * weight, 0.0))),
            }
            for theta in THETAS
        ],
    }


def abstention_bound(n: int, p: float, classifiers: int) -> float:
    r"""A lower bound of the probability that a booster abstains on a new object (Theorem 4).

    .. math:: \left(1 - p + p (1 - p)^n\right)^C

    Parameters
    ----------
    n : int
        Number of training objects.
    p : float
        Probability that a triplet is available.
    classifiers : int
        Number of triplet classifiers C.

    Returns
    -------
    float
        The bound.

    Examples
    --------
    >>> abstention_bound(10, 0.0, 5), abstention_bound(10, 1.0, 1)
    (1.0, 0.0)
    """
    return (1 - p + p * (1 - p) ** n) ** classifiers


def triplets_needed(n: int, classifiers: int, share: float) -> int | None:
    """The fewest triplets, m = p n^3 / 2, with which Theorem 4 allows a booster of C triplet classifiers to abstain on
    no more than `share` of new objects; None if even all of them do not suffice. 60 halvings of log p.

    >>> triplets_needed(100, 4950, 0.1353), triplets_needed(100, 0, 0.5)
    (1059, None)
    """
    if classifiers < 1:
        return None
    low, high = np.log(1e-300), 0.0
    for _ in range(60):
        middle = (low + high) / 2
        p = np.exp(middle)
        log_bound = classifiers * np.log1p(p * np.expm1(n * np.log1p(-p))) if p < 1 else -np.inf
        low, high = (low, middle) if log_bound <= np.log(share) else (middle, high)
    return int(np.ceil(np.exp(high) * n**3 / 2))


SHARES = (0.5, 0.1, 0.01)  # of new objects on which the booster abstains


def abstention_figures(booster: Booster, columns: Columns) -> dict[str, Any]:
    """Theorem 4 for this booster: the triplets among its training examples, the probability that a triplet is
    available, the bound on abstentions, and the triplets that lower bounds need."""
    n, classifiers = len(booster.groups.example), booster.classifiers
    is_training = np.zeros(columns.n_objects, bool)
    is_training[booster.groups.example] = True
    triplets = _triplets_among(columns, is_training)
    pairs = np.stack([np.minimum(classifiers.j, classifiers.k), np.maximum(classifiers.j, classifiers.k)], axis=1)
    n_pairs = len(np.unique(pairs, axis=0))
    p = triplets / max(n * (n - 1) * (n - 2) / 2, 1)
    return {
        "triplets": triplets,
        "probability": p,
        "classifiers": n_pairs,  # distinct pairs of references: a repeated one abstains on the same objects
        "abstains_at_least": abstention_bound(n, p, n_pairs),
        "triplets_needed": {f"{share:g}": triplets_needed(n, n_pairs, share) for share in SHARES},
    }


def _triplets_among(columns: Columns, is_training: np.ndarray) -> int:
    """The number of entries, without ties, whose anchor and references are all training examples."""
    has_references = np.repeat(is_training[columns.lo] & is_training[columns.hi], np.diff(columns.start))
    return int((has_references & is_training[columns.anchor] & (columns.n_lo != columns.n_hi)).sum())
