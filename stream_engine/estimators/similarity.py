"""Similarities of objects from comparisons, in scikit-learn's conventions: an embedding's, counted and learned ones.

All answer new comparisons (`predict`, `predict_proba`, `score`), and their `transform` gives what was learned of the
*objects*, one row each, whatever comparisons it gets: `make_pipeline(ComparisonKernel(),
KernelPCA(kernel="precomputed"))` draws a map.
"""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from stream_engine.estimators.answers import answers_of, only_triplets, rows_of, seed_of, snapshot_of
from stream_engine.prediction.calibration import Calibration
from stream_engine.prediction.probability import calibration_of, of_embedding, platt, sigmoid_of
from stream_engine.prediction.similarities import by_similarity
from stream_engine.refits import embedding as embedding_refit
from stream_engine.refits import kernel_learning
from stream_engine.state.artifact import Artifact
from stream_engine.state.snapshot import triplet_columns
from stream_engine.statistics import embedding, judgement_folds, kernels


class _Answering(TransformerMixin, BaseEstimator):
    """`predict` and `score` of anything with a fitted `kernel_` (n, n), by the distances in its feature space."""

    def predict(self, X):
        """(m,) int: 1 where the first of each row is nearer, -1 where the second is; 0 where they are equally far."""
        return np.sign(self._margins(X)).astype(np.int64)

    def predict_proba(self, X):
        """(m, 2): how likely people find the second (-1) and the first (1) of each row nearer, as `classes_`."""
        check_is_fitted(self)
        rows = self._rows(X)
        p = self._probability(rows[:, [0, 1, 0, 2]] if rows.shape[1] == 3 else judgement_folds.anchored(rows))
        p = np.where(np.isnan(p), 0.5, p)  # of an object that nothing was said about
        return np.stack([1.0 - p, p], axis=1)

    def score(self, X, y=None):
        """The share of comparisons foretold, ties half; X and y as in `fit`."""
        margins = self._margins(X, y)
        return float((margins > 0).mean() + (margins == 0).mean() / 2)

    def _given(self, X, learned):
        """`learned`, once X (comparisons as in `fit`, or None) has been found to be some."""
        if X is not None:
            rows_of(self, X)
        return learned

    def _rows(self, X, y=None):
        rows = rows_of(self, X, y)
        if rows.max(initial=-1) >= len(self.kernel_):
            raise ValueError(f"X: got object {rows.max()}, expected numbers below {len(self.kernel_)}, as in fit")
        return rows

    def _margins(self, X, y=None):
        check_is_fitted(self)
        rows = self._rows(X, y)
        i, j, k, l = rows[:, [0, 1, 0, 2]].T if rows.shape[1] == 3 else rows.T
        distance = embedding.squared_distances(self.kernel_)
        return distance[k, l] - distance[i, j]


class ComparisonKernel(_Answering):
    """A kernel matrix of the objects. `kernel`: "embedding" (default; the scalar products of the points of
    `refits.embedding`, with as many dimensions as foretell best), or k1, k2 of Kleindessner & von Luxburg (2017), which
    take triplets alone and are made and calibrated in O(m + n^2) and more.

    Fitted: `kernel_` (n_objects, n_objects), which `transform` gives; `classes_`; `n_features_in_`.

    >>> ComparisonKernel("k1").fit_transform([[0, 2, 3], [1, 2, 3]])[0].round(3).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """

    def __init__(self, kernel="embedding", *, n_objects=None, random_state=0):
        self.kernel = kernel
        self.n_objects = n_objects
        self.random_state = random_state

    def fit(self, X, y=None):
        """Learn from comparisons X with answers y. Raises ValueError, `CannotRefit` (one, too)."""
        if self.kernel not in ("embedding", "k1", "k2"):
            raise ValueError(f"ComparisonKernel: got kernel {self.kernel!r}, expected embedding, k1 or k2")
        answers = answers_of(rows_of(self, X, y, reset=True), self.n_objects)
        seed, self.classes_ = seed_of(self.random_state), np.array([-1, 1])
        if self.kernel == "embedding":
            snapshot = snapshot_of(answers, ("triplet_counts", "quadruplet_counts"))
            artifact = embedding_refit.refit(snapshot, embedding_refit.Params(), seed)
            self.kernel_ = artifact.arrays["X"] @ artifact.arrays["X"].T
            self._model: Artifact | Calibration = artifact
            return self
        only_triplets(answers, self.kernel)
        snapshot = snapshot_of(answers, ("triplet_counts",))
        self.kernel_ = {"k1": kernels.k1, "k2": kernels.k2}[self.kernel](triplet_columns(snapshot))
        self._model = calibration_of(snapshot, self.kernel, seed)[0]
        return self

    def _probability(self, rows):
        made = self._model
        if isinstance(made, Calibration):
            return platt(by_similarity(self.kernel_), made)(rows)
        return of_embedding(made)(rows)

    def transform(self, X=None):
        """(n_objects, n_objects): the kernel."""
        check_is_fitted(self)
        return self._given(X, self.kernel_)


class ComparisonEmbedding(_Answering):
    """Relative comparison kernel learning (Heim et al. 2015) and its leading coordinates; see `refits.kernel_learning`.

    `loss`: "ste" or "hinge" (GNMDS). `lambda1`: trace regularisation; None chooses it on held-out comparisons. Convex:
    no restarts, and `report_["gap"]` certifies how near the optimum it is. `predict` and `score` use the whole kernel.

    Fitted: `embedding_` (n_objects, n_components), which `transform` gives; `kernel_`; `report_`; `n_features_in_`.
    """

    def __init__(
        self,
        n_components=2,
        *,
        loss="ste",
        lambda1=None,
        tolerance=1e-3,
        max_iterations=20000,
        n_objects=None,
        random_state=0,
    ):
        self.n_components = n_components
        self.loss = loss
        self.lambda1 = lambda1
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.n_objects = n_objects
        self.random_state = random_state

    def fit(self, X, y=None):
        """Learn a kernel from the triplets X with answers y. Raises ValueError, `CannotRefit` (one, too),
        `SolverFailed`."""
        answers = answers_of(rows_of(self, X, y, reset=True), self.n_objects)
        only_triplets(answers, "the embedding")
        params = kernel_learning.Params(
            form="t",
            loss=self.loss,
            lambda1=self.lambda1,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            dimensions=self.n_components,
            neighbours=0,
        )
        artifact = kernel_learning.refit(snapshot_of(answers, ("triplet_counts",)), params, seed_of(self.random_state))
        self.kernel_, self.embedding_ = artifact.arrays["K"], artifact.arrays["coordinates"]
        self.report_, self.classes_ = dict(artifact.report), np.array([-1, 1])
        return self

    def _probability(self, rows):
        told = self.report_["probability_slope"]
        slope = 1.0 if told is None else told
        return sigmoid_of(by_similarity(-embedding.squared_distances(self.kernel_)), slope)(rows)

    def transform(self, X=None):
        """(n_objects, n_components): where the objects lie."""
        check_is_fitted(self)
        return self._given(X, self.embedding_)
