"""The base class of estimators of similarities: they predict comparisons, and return values of the objects.

These have one row an object (`objects_`), not one a row of X; with `set_output` they are a frame: of pandas with the
objects as its index, of polars without.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted

from stream_engine.api.answers import known_positions, rows_of, with_names
from stream_engine.data.answers import anchored


class LearnedObjects(ClassifierMixin, TransformerMixin, BaseEstimator, ABC, auto_wrap_output_keys=None):  # type: ignore[call-arg]
    """Base class: `predict`, `predict_proba`, `score` and `transform` of an estimator with `objects_`.

    Subclasses implement `_probability(rows)` and `_margin(rows)` of (m, 4) rows i, j, k, l (above 0 if the first pair
    is nearer), and `_learned()`, one row per object. scikit-learn does not wrap `transform`, because it would give the
    objects the index of the comparisons.

    A classifier of comparisons: the classes are 1 (the first is nearer) and -1, so `scoring="roc_auc"` works.
    """

    def __sklearn_tags__(self) -> Any:
        tags = with_names(super().__sklearn_tags__())
        tags.classifier_tags.multi_class = False
        return tags

    def predict(self, X: Any) -> np.ndarray:
        """Predict which object of each row is nearer to the anchor.

        Parameters
        ----------
        X : array or data frame, shape (m, 3) or (m, 4)
            Comparisons.

        Returns
        -------
        ndarray of int, shape (m,)
            1: the first, -1: the second, 0: equal distances, or an unknown object.
        """
        return np.sign(self._answer(X, self._margin, 0.0)).astype(np.int64)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of both answers.

        Parameters
        ----------
        X : array or data frame, shape (m, 3) or (m, 4)
            Comparisons.

        Returns
        -------
        ndarray, shape (m, 2)
            Probabilities that the second (-1) and the first (1) object is considered nearer, in the order of
            `classes_`; 0.5 for an object without answers.
        """
        p = self._answer(X, self._probability, 0.5)
        return np.stack([1.0 - p, p], axis=1)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy on comparisons; ties count half.

        Parameters
        ----------
        X : array or data frame, shape (m, 3) or (m, 4)
            Comparisons.
        y : array, shape (m,), optional
            Answers, as in `fit`.
        sample_weight : array, shape (m,), optional
            Weights of the rows.

        Returns
        -------
        float
            Accuracy.
        """
        margins = self._answer(X, self._margin, 0.0, y)
        right = (margins > 0) + (margins == 0) / 2
        return float(np.average(right, weights=sample_weight))

    def transform(self, X: Any = None) -> Any:
        """The fitted representation of the objects, regardless of the comparisons X.

        Parameters
        ----------
        X : array or data frame, optional
            Checked, but not used.

        Returns
        -------
        ndarray or data frame, shape (n_objects, d)
            One row per object of `objects_`.
        """
        check_is_fitted(self)
        if X is not None:
            rows_of(self, X)
        return self._in_container(self._object_values())

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : optional
            Not used.

        Returns
        -------
        ndarray of str, shape (d,)
            The names.
        """
        check_is_fitted(self)
        return np.array([f"axis_{number + 1}" for number in range(self._object_values().shape[1])], object)

    @abstractmethod
    def _object_values(self) -> np.ndarray:
        """(n, d) values of the objects, which `transform` returns."""

    @abstractmethod
    def _margin(self, rows: np.ndarray) -> np.ndarray:
        """(m,) margins of rows (m, 4), above 0 where the first pair is nearer; NaN: unknown."""

    @abstractmethod
    def _probability(self, rows: np.ndarray) -> np.ndarray:
        """(m,) the probability that the first pair of each row is considered nearer."""

    def _answer(self, X: Any, answer_of: Any, unknown: float, y: Any = None) -> np.ndarray:
        """(m,) `answer_of(rows)`, and `unknown` for rows with an unknown object."""
        check_is_fitted(self)
        rows = rows_of(self, X, y)
        rows = known_positions(rows, self.objects_)
        rows = rows[:, [0, 1, 0, 2]] if rows.shape[1] == 3 else anchored(rows)
        answers = np.full(len(rows), unknown)
        complete = (rows >= 0).all(axis=1)
        answers[complete] = answer_of(np.ascontiguousarray(rows[complete]))
        return np.where(np.isnan(answers), unknown, answers)

    def _in_container(self, values: np.ndarray) -> Any:
        """Values of the objects in the container of `set_output`."""
        container = _get_output_config("transform", self)["dense"]
        if container == "pandas":
            import pandas

            return pandas.DataFrame(values, index=self.objects_, columns=self.get_feature_names_out())
        if container == "polars":
            import polars

            return polars.DataFrame(values, schema=self.get_feature_names_out().tolist(), orient="row")
        return values
