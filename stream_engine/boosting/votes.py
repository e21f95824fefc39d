"""Equation (5) of TripletBoost for many objects at once: classifiers are matched to columns by key, without a loop over
them."""

from typing import NamedTuple

import numpy as np

from stream_engine.boosting.codes import Codes
from stream_engine.boosting.labels import scramble
from stream_engine.boosting.rounds import Classifiers, find
from stream_engine.data.compiled import njit


class LabelVotes(NamedTuple):
    """The classifiers' votes on m objects; changed in place by `add`."""

    for_label: np.ndarray  # (m, Y) float64: sum of alpha over classifiers that do not abstain and predict the label
    total_weight: np.ndarray  # (m,) float64: sum of alpha over classifiers that do not abstain

    @property
    def confidence(self) -> np.ndarray:
        """(m, Y) float64: sum of alpha (+1 if the label is predicted, -1 if not) over classifiers that do not
        abstain."""
        return 2 * self.for_label - self.total_weight[:, None]


class Predictions(NamedTuple):
    """Predicted labels, one row an object."""

    label: np.ndarray  # (m,) int32: the class of most weight; among equal ones a random one of the seed
    score: np.ndarray  # (m,) float64: that weight, eq. (5)
    margin: np.ndarray  # (m,) float64 in [0, 1]: lead over the next class / weight of all classifiers that applied
    abstained: np.ndarray  # (m,) bool: no classifier applied, the label is random


def shares(votes: LabelVotes) -> tuple[np.ndarray, np.ndarray]:
    """((m, Y) confidence in [-1, 1] as a share of the weight of all classifiers that do not abstain, (m,) whether all
    do, with shares of 0).

    >>> made, abstained = shares(LabelVotes(np.array([[0.5, 2.0], [0.0, 0.0]]), np.array([2.5, 0.0])))
    >>> made.round(3).tolist(), abstained.tolist()
    ([[-0.6, 0.6], [0.0, 0.0]], [False, True])
    """
    abstained = votes.total_weight == 0
    return votes.confidence / np.where(abstained, 1.0, votes.total_weight)[:, None], abstained


def no_votes(m: int, n_labels: int) -> LabelVotes:
    """Votes before any classifier."""
    return LabelVotes(np.zeros((m, n_labels)), np.zeros(m))


def add(votes: LabelVotes, classifiers: Classifiers, codes: Codes) -> LabelVotes:
    """Let classifiers, whose j and k are example numbers, vote on the anchors of `codes`; returns `votes`."""
    j, k = classifiers.j.astype(np.int64), classifiers.k.astype(np.int64)
    key = np.minimum(j, k) * len(codes.first) + np.maximum(j, k)
    _add(codes, key, np.argsort(key, kind="stable"), classifiers, votes)
    return votes


@njit(cache=True)
def _add(codes, key, order, classifiers, votes):
    # classifiers with the same pair of references are added up per (side, label); one walk over the pair's column then
    # gives every anchor its votes. An object's votes depend on its own triplets and the classifiers alone, not on which
    # other objects are predicted. O(C log C + matched entries * |Y|) (sec. 2.2, "Using H for prediction")
    n, labels = len(codes.first), votes.for_label.shape[1]
    label_weight = np.zeros((2, labels))
    at = 0
    while at < len(order):
        pair_key = key[order[at]]
        column = find(codes, pair_key // n, pair_key % n)
        label_weight[:] = 0.0
        pair_weight = 0.0
        while at < len(order) and key[order[at]] == pair_key:
            c = order[at]
            at += 1
            if column >= 0:
                pair_weight += classifiers.alpha[c]
                _tally(classifiers, c, label_weight)
        if column < 0:
            continue
        for e in range(np.int64(codes.start[column]), np.int64(codes.start[column + 1])):
            x, side = codes.code[e] >> 1, codes.code[e] & 1
            votes.total_weight[x] += pair_weight
            for y in range(labels):
                votes.for_label[x, y] += label_weight[side, y]


@njit(cache=True)
def _tally(classifiers, c, label_weight):
    """Add one classifier's alpha to the labels that it predicts on either side; side 0 is the smaller example
    number."""
    is_swapped = classifiers.j[c] > classifiers.k[c]
    for y in range(label_weight.shape[1]):
        on_j = (classifiers.o_j[c, y >> 3] >> np.uint8(y & 7)) & 1
        on_k = (classifiers.o_k[c, y >> 3] >> np.uint8(y & 7)) & 1
        label_weight[0, y] += classifiers.alpha[c] * (on_k if is_swapped else on_j)
        label_weight[1, y] += classifiers.alpha[c] * (on_j if is_swapped else on_k)


def decide(votes: LabelVotes, ids: np.ndarray, seed: int) -> Predictions:
    """The label of most weight for every object; ties are broken at random by the seed and the object's id.

    >>> p = decide(LabelVotes(np.array([[0.5, 2.0], [0.0, 0.0]]), np.array([2.5, 0.0])), np.array([0, 1]), seed=0)
    >>> int(p.label[0]), p.score.tolist(), p.margin.tolist(), p.abstained.tolist()
    (1, [2.0, 0.0], [0.6, 0.0], [False, True])
    """
    weight, total_weight = votes
    if weight.shape[1] == 0:
        raise ValueError("no class to predict: expected at least one labelled object")
    best = weight.max(axis=1)
    top = weight == best[:, None]
    ties = top.sum(axis=1)
    pick = (scramble(ids, ~seed) % ties.astype(np.uint64)).astype(np.int64) + 1
    label = np.argmax(np.cumsum(top, axis=1) >= pick[:, None], axis=1)
    second = np.where(np.arange(weight.shape[1]) == label[:, None], -np.inf, weight).max(axis=1)
    lead = best - np.where(np.isfinite(second), second, 0.0)
    margin = np.divide(lead, total_weight, out=np.zeros(len(lead)), where=total_weight > 0)
    return Predictions(label.astype(np.int32), best, margin, total_weight == 0)
