"""TripletBoost in scikit-learn's conventions: X are objects, and the triplets about them are a parameter.

So a sample is an object, as everywhere in scikit-learn: `cross_val_score(TripletBoostClassifier(triplets), objects, y)`
holds objects out. Triplets of held-out objects are used only to predict them, with the object as their anchor (Perrot &
von Luxburg 2019, sec. 2.1).
"""

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, Options
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from stream_engine.api.answers import (
    COUNT,
    RandomState,
    answers_of,
    only_triplets,
    positions_in,
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


def _with_probabilities(model):
    return model.folds > 0


# If held-out votes are not informative, all classes are equally likely, but still in the order of the votes.
MIN_TEMPERATURE = 1e-9


class TripletBoostClassifier(ClassifierMixin, BaseEstimator):
    """Classifier of objects from passively obtained triplets (Perrot & von Luxburg 2019); see `refits.triplet_boost`.

    Parameters
    ----------
    triplets : array or data frame, shape (m, 3), or tuple
        Triplets anchor, near, far of names or integers, or a pair (comparisons, answers).
    rounds : int
        Number of rounds of boosting.
    folds : int
        Number of folds of the labelled objects, from which `predict_proba` is calibrated; costs as many additional
        fits. 0: no `predict_proba`.
    random_state : int or RandomState
        Random seed.

    Attributes
    ----------
    objects_ : ndarray, shape (n_objects,)
        Names or numbers.
    classes_ : ndarray, shape (classes,)
        The classes.
    booster_ : Booster
        The fitted booster.
    n_features_in_ : int
        1.
    temperature_ : float
        Factor of the votes in `predict_proba`, if `folds` is positive.
    prior_ : ndarray, shape (classes,)
        Shares of the classes, if `folds` is positive.

    Examples
    --------
    >>> triplets = [[a, b, c] for a in range(6) for b in range(6) for c in range(6)
    ...             if a != b and b // 3 == a // 3 and c // 3 != a // 3]
    >>> model = TripletBoostClassifier(triplets, rounds=100).fit([[0], [1], [3], [4]], ["x", "x", "y", "y"])
    >>> model.predict([[2], [5]]).tolist()
    ['x', 'y']
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "triplets": "no_validation",
        "rounds": [COUNT],
        "folds": [Options(Integral, {0}), Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self, triplets: Any = None, rounds: int = 10_000, *, folds: int = 5, random_state: RandomState = 0
    ) -> None:
        self.triplets = triplets
        self.rounds = rounds
        self.folds = folds
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        return with_names(super().__sklearn_tags__())

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the booster, and one more for each fold.

        Parameters
        ----------
        X : array, shape (m, 1)
            Distinct objects.
        y : array, shape (m,)
            Their classes.

        Returns
        -------
        TripletBoostClassifier
            The fitted estimator.

        Raises
        ------
        ValueError
            For invalid input.
        """
        self._validate_params()
        X, y = validate_data(self, X, y, dtype=None)
        check_classification_targets(y)
        if self.triplets is None:
            raise ValueError("TripletBoostClassifier: got no triplets, expected TripletBoostClassifier(triplets)")
        row_objects = values_of(X)
        if X.shape[1] != 1 or len(np.unique(row_objects)) < len(row_objects):
            raise ValueError(f"X: got shape {X.shape}, expected one column of distinct objects, names or integers")
        rows = rows_of(None, self.triplets)
        answers, triplet_objects = answers_of(_same_type(rows, row_objects), None)
        only_triplets(answers, "TripletBoost")
        self.objects_, objects = _united(triplet_objects, _same_type(row_objects, rows)[:, 0])
        n, triplets = len(self.objects_), answers.rows[:, [0, 1, 3]]
        self.columns_ = columns_from_triplets(np.searchsorted(self.objects_, triplet_objects)[triplets], n)
        self.classes_, class_of_sample = np.unique(y, return_inverse=True)
        labels = np.full(n, -1)
        labels[objects] = class_of_sample
        self.booster_ = fit(self.columns_, labels, self.rounds, seed_of(self.random_state))
        if self.folds:
            self.prior_ = probabilities.class_shares(class_of_sample, len(self.classes_))
            self.temperature_ = max(self._temperature(objects, class_of_sample), MIN_TEMPERATURE)
        return self

    def _temperature(self, objects, labels):
        """The temperature of the votes about each fold by a fit without it; objects without votes are excluded."""
        # Boosting gives votes, not probabilities: after many rounds, their sum says only which class wins. So the
        # temperature is fitted to votes about objects that were not used to train the voters.
        seed = self.booster_.seed
        draws = np.random.default_rng(seed).permutation(len(labels))
        fold = folds_of(labels, draws, min(self.folds, len(labels)))
        scores, has_score = np.zeros((len(labels), len(self.classes_))), np.zeros(len(labels), bool)
        for in_fold in (fold == f for f in range(fold.max(initial=0) + 1)):
            sets = np.zeros((len(self.objects_), len(self.classes_)), bool)
            sets[objects[~in_fold], labels[~in_fold]] = True
            if sets.any():
                scores[in_fold], abstained = shares(
                    votes_of(fit(self.columns_, sets, self.rounds, seed), self.columns_, objects[in_fold])
                )
                has_score[in_fold] = ~abstained
        return probabilities.temperature(scores[has_score], labels[has_score])

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class of each object.

        Parameters
        ----------
        X : array, shape (m, 1)
            Objects.

        Returns
        -------
        ndarray, shape (m,)
            The classes; random if no triplet is informative (then all `votes` are 0).
        """
        objects, back = self._objects(X)
        return self.classes_[
            decide(votes_of(self.booster_, self.columns_, objects), objects, self.booster_.seed).label[back]
        ]

    @available_if(_with_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        r"""Probabilities of all classes, by temperature scaling (Guo et al. 2017, sec. 4.2).

        .. math:: P(c) = \frac{e^{t v_c}}{\sum_b e^{t v_b}}

        where v are the votes as a share of the weight of all applicable classifiers, and t is `temperature_`, which
        minimises the log loss of the training objects under cross-fitting.

        Parameters
        ----------
        X : array, shape (m, 1)
            Objects.

        Returns
        -------
        ndarray, shape (m, classes)
            Probabilities in the order of `classes_`; the shares `prior_` if no triplet is informative. The most
            probable class is that of `predict`, except in ties. Probabilities of training objects are overconfident.
        """
        objects, back = self._objects(X)
        scores, abstained = shares(votes_of(self.booster_, self.columns_, objects))
        return probabilities.of_scores(scores, self.temperature_, abstained, self.prior_)[back]

    def votes(self, X: Any) -> np.ndarray:
        """Votes for all classes, eq. (5).

        Parameters
        ----------
        X : array, shape (m, 1)
            Objects.

        Returns
        -------
        ndarray, shape (m, classes)
            The weight of all triplet classifiers for each class.
        """
        objects, back = self._objects(X)
        return votes_of(self.booster_, self.columns_, objects).confidence[back]

    def _objects(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=None)
        objects = positions_in(values_of(X), self.objects_)[:, 0]
        if len(unknown := np.flatnonzero(objects < 0)):
            raise ValueError(
                f"X row {unknown[0]}: got {X[unknown[0]].tolist()}, expected one of the {len(self.objects_)} objects "
                "in the triplets and in fit"
            )
        return np.unique(objects, return_inverse=True)


def _same_type(values, target):
    """Objects as text if `target` has names."""
    return values.astype(np.str_) if target.dtype.kind == "U" else values


def _united(objects, row):
    """`(all of these objects, sorted, the positions of the second ones)`."""
    all_objects = np.union1d(objects, row)
    return all_objects, np.searchsorted(all_objects, row)
