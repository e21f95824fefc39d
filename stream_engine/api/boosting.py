"""TripletBoost in scikit-learn's conventions: X are objects, and the triplets about them are given beforehand.

So a sample is an object, as everywhere in scikit-learn: `cross_val_score(TripletBoostClassifier(triplets), objects, y)`
holds objects out. Triplets of held-out objects take part as anchors only when they are asked about, and never as
references or examples (Perrot & von Luxburg 2019, sec. 2.1).

Boosting gives votes, not probabilities: after many rounds their sum over all rounds says only who wins. `predict_proba`
is a fit of its own, to votes about objects that the voters had not learned from.
"""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from stream_engine.api.answers import (
    answers_of,
    found_in,
    only_triplets,
    rows_of,
    seed_of,
    values_of,
    with_names,
)
from stream_engine.boosting import probabilities
from stream_engine.boosting.fit import fit, votes_of
from stream_engine.boosting.nested import folds_of
from stream_engine.boosting.votes import decide, shares
from stream_engine.data.triplet_columns import columns_from_triplets

LEAST = 1e-9  # temperature: where held-out votes say nothing, all are equally likely, yet in the order of the votes


def _with_probabilities(model):
    return model.folds > 0


class TripletBoostClassifier(ClassifierMixin, BaseEstimator):
    """Classifier of objects from passively obtained triplets (Perrot & von Luxburg 2019); see `refits.triplet_boost`.

    `triplets`: (m, 3) names or whole numbers anchor, near, far, or a pair (comparisons, answers). `rounds` of boosting;
    `random_state`: a whole number, or numpy's RandomState.
    `folds`: of the labelled objects, each held out once from a fit, by whose votes `predict_proba` is made; that costs
    as many fits more. 0: no `predict_proba`.

    Fitted: `objects_`; `classes_`; `booster_`; `n_features_in_`; with folds `temperature_` and `prior_` (classes,).

    >>> triplets = [[a, b, c] for a in range(6) for b in range(6) for c in range(6)
    ...             if a != b and b // 3 == a // 3 and c // 3 != a // 3]
    >>> model = TripletBoostClassifier(triplets, rounds=100).fit([[0], [1], [3], [4]], ["x", "x", "y", "y"])
    >>> model.predict([[2], [5]]).tolist()
    ['x', 'y']
    """

    def __init__(self, triplets=None, rounds=10_000, *, folds=5, random_state=0):
        self.triplets = triplets
        self.rounds = rounds
        self.folds = folds
        self.random_state = random_state

    def __sklearn_tags__(self):
        return with_names(super().__sklearn_tags__())

    def fit(self, X, y):
        """X: (m, 1) distinct objects, y: their classes. 1 + folds fits. Raises ValueError."""
        if (
            isinstance(self.folds, bool)
            or not isinstance(self.folds, int | np.integer)
            or self.folds == 1
            or self.folds < 0
        ):
            raise ValueError(f"TripletBoostClassifier: got folds = {self.folds!r}, expected 0 or at least 2")
        X, y = validate_data(self, X, y, dtype=None)
        check_classification_targets(y)
        if self.triplets is None:
            raise ValueError("TripletBoostClassifier: got no triplets, expected TripletBoostClassifier(triplets)")
        named = values_of(X)
        if X.shape[1] != 1 or len(np.unique(named)) < len(named):
            raise ValueError(f"X: got shape {X.shape}, expected one column of distinct objects, names or integers")
        rows = rows_of(None, self.triplets)
        answers = answers_of(_alike(rows, named), None)
        only_triplets(answers, "TripletBoost")
        self.objects_, objects = _with(answers.objects, _alike(named, rows)[:, 0])
        answers = answers._replace(triplets=np.searchsorted(self.objects_, answers.objects)[answers.triplets])
        n = len(self.objects_)
        self.columns_ = columns_from_triplets(answers.triplets.astype(np.int32), n)
        self.classes_, of_sample = np.unique(y, return_inverse=True)
        labels = np.full(n, -1)
        labels[objects] = of_sample
        self.booster_ = fit(self.columns_, labels, self.rounds, seed_of(self.random_state))
        if self.folds:
            self.prior_ = probabilities.shares(of_sample, len(self.classes_))
            self.temperature_ = max(self._temperature(objects, of_sample), LEAST)
        return self

    def _temperature(self, objects, labels):
        """That of the votes about each fold by a fit without it; objects that no voter speaks of do not count."""
        seed = self.booster_.seed
        draws = np.random.default_rng(seed).permutation(len(labels))
        fold = folds_of(labels, draws, min(self.folds, len(labels)))
        scores, known = np.zeros((len(labels), len(self.classes_))), np.zeros(len(labels), bool)
        for held in (fold == f for f in range(fold.max(initial=0) + 1)):
            sets = np.zeros((len(self.objects_), len(self.classes_)), bool)
            sets[objects[~held], labels[~held]] = True
            if sets.any():
                scores[held], abstained = shares(
                    votes_of(fit(self.columns_, sets, self.rounds, seed), self.columns_, objects[held])
                )
                known[held] = ~abstained
        return probabilities.temperature(scores[known], labels[known])

    def predict(self, X):
        """(m,): the class of each object; if no triplet is informative, at random (`votes` are then all 0)."""
        objects, back = self._objects(X)
        return self.classes_[
            decide(votes_of(self.booster_, self.columns_, objects), objects, self.booster_.seed).label[back]
        ]

    @available_if(_with_probabilities)
    def predict_proba(self, X):
        """(m, classes) P(c) = exp(t v_c) / sum_b exp(t v_b), columns in the order of `classes_`: v the votes as a share
        of the weight of all classifiers that say something of the object, t `temperature_`, with the least log loss of
        the training objects, each by votes that had not learned from it (temperature scaling, Guo et al. 2017, sec.
        4.2). Where no triplet tells, the classes' shares `prior_`. The likeliest class is that of `predict`, but for
        ties and where nothing tells, where a coin predicts. For training objects, they are overconfident."""
        objects, back = self._objects(X)
        scores, abstained = shares(votes_of(self.booster_, self.columns_, objects))
        return probabilities.probabilities(scores, self.temperature_, abstained, self.prior_)[back]

    def votes(self, X):
        """(m, classes): the weight of all triplet classifiers for each class, eq. (5), larger is surer."""
        objects, back = self._objects(X)
        return votes_of(self.booster_, self.columns_, objects).confidence[back]

    def _objects(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=None)
        objects = found_in(values_of(X), self.objects_)[:, 0]
        if len(unknown := np.flatnonzero(objects < 0)):
            raise ValueError(
                f"X row {unknown[0]}: got {X[unknown[0]].tolist()}, expected one of the {len(self.objects_)} objects "
                "in the triplets and in fit"
            )
        return np.unique(objects, return_inverse=True)


def _alike(values, other):
    """Objects as text where the others are names."""
    return values.astype(np.str_) if other.dtype.kind == "U" else values


def _with(objects, more):
    """All of these objects, sorted, and where the second ones stand among them."""
    every = np.union1d(objects, more)
    return every, np.searchsorted(every, more)
