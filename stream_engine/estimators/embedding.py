"""An embedding in d dimensions in scikit-learn's conventions: STE or t-STE with a lapse rate (room `embedding`).

It fits triplets and comparisons of four objects, answers new ones with probabilities, and its `transform` gives where
the objects lie, one row each, whatever comparisons it gets.
"""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from stream_engine.embedding.fit import KERNELS
from stream_engine.embedding.held_out import probabilities
from stream_engine.estimators.answers import answers_of, rows_of, seed_of, snapshot_of
from stream_engine.refits import embedding


class OrdinalEmbedding(TransformerMixin, BaseEstimator):
    """Objects as points, an answer the likelier the further apart; see `refits.embedding`.

    `n_components`: dimensions; None: the fewest that foretell held-out answers as well as the best. `kernel`: "ste" or
    "t-ste", `ridge`: of the sum of squares of all coordinates; None: by held-out log loss. `lapse`: whether some
    answers are a coin's. `held_out`: the share of the questions that chooses where something is to be chosen. Scores on
    new comparisons are for `score`, so that none are reported here.

    Fitted: `embedding_` (n_objects, n_components), which `transform` gives, on principal axes; `lapse_`; `ridge_`;
    `kernel_name_`; `report_`; `n_features_in_`.

    >>> line = OrdinalEmbedding(1, ridge=0.1, kernel="ste").fit([[0, 1, 2], [2, 1, 0], [1, 0, 3], [3, 2, 0]])
    >>> line.embedding_.shape, bool(line.predict_proba([[0, 1, 3]])[0, 1] > 0.5)
    ((4, 1), True)
    """

    def __init__(
        self,
        n_components=2,
        *,
        kernel=None,
        ridge=None,
        lapse=True,
        held_out=0.2,
        tolerance=1e-7,
        max_iterations=1000,
        n_objects=None,
        random_state=0,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.ridge = ridge
        self.lapse = lapse
        self.held_out = held_out
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.n_objects = n_objects
        self.random_state = random_state

    def fit(self, X, y=None):
        """Embed the objects of the comparisons X with answers y. Raises ValueError, `CannotRefit` (one, too)."""
        answers = answers_of(rows_of(self, X, y, reset=True), self.n_objects)
        if self.n_components is not None and self.n_components < 1:
            raise ValueError(f"OrdinalEmbedding: got n_components = {self.n_components}, expected 1 or more, or None")
        if self.kernel not in (None, *KERNELS):
            raise ValueError(f"OrdinalEmbedding: got kernel {self.kernel!r}, expected {', '.join(KERNELS)} or None")
        params = embedding.Params(
            dimensions=self.n_components,
            kernel=self.kernel,
            ridge=self.ridge,
            lapse="all" if self.lapse else "none",
            held_out=self.held_out,
            reported=0.0,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
        )
        snapshot = snapshot_of(answers, ("triplet_counts", "quadruplet_counts"))
        artifact = embedding.refit(snapshot, params, seed_of(self.random_state))
        self.embedding_ = artifact.arrays["X"]
        self.report_ = dict(artifact.report)
        self.lapse_, self.alpha_ = float(artifact.arrays["lapse"]), self.report_["alpha"]
        self.ridge_, self.kernel_name_ = self.report_["ridge"], self.report_["kernel"]
        return self

    def transform(self, X=None):
        """(n_objects, n_components): where the objects lie."""
        check_is_fitted(self)
        if X is not None:
            rows_of(self, X)
        return self.embedding_

    def predict_proba(self, X):
        """(m, 2): P(the second of each row is nearer), P(the first is), for answers of somebody unknown."""
        first = self._probabilities(X)
        return np.stack([1.0 - first, first], axis=1)

    def predict(self, X):
        """(m,) int: 1 where the first of each row is nearer, -1 where the second is; 0 where they are equally far."""
        return np.sign(self._probabilities(X) - 0.5).astype(np.int64)

    def score(self, X, y=None):
        """The share of comparisons foretold, ties half; X and y as in `fit`."""
        p = self._probabilities(X, y)
        return float((p > 0.5).mean() + (p == 0.5).mean() / 2)

    def _probabilities(self, X, y=None):
        check_is_fitted(self)
        rows = rows_of(self, X, y)
        if rows.max(initial=-1) >= len(self.embedding_):
            raise ValueError(f"X: got object {rows.max()}, expected numbers below {len(self.embedding_)}, as in fit")
        rows = rows[:, [0, 1, 0, 2]] if rows.shape[1] == 3 else rows
        return probabilities(self.embedding_, rows, self.lapse_, self.alpha_, scale=self.report_["scale"])
