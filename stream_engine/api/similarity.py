"""Similarities of objects from comparisons, in scikit-learn's conventions: an embedding's, counted and learned ones.

All answer new comparisons (`predict`, `predict_proba`, `score`), and their `transform` gives what was learned of the
*objects*, one row each, whatever comparisons it gets: `make_pipeline(ComparisonKernel(),
KernelPCA(kernel="precomputed"))` draws a map.
"""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from stream_engine.api.answers import answers_of, only_triplets, rows_of, seed_of, snapshot_of, weights_of
from stream_engine.api.learned_objects import LearnedObjects
from stream_engine.counts import kernels
from stream_engine.evaluation import coordinates as embedding
from stream_engine.evaluation.calibration import Calibration
from stream_engine.evaluation.probability import calibration_of, of_embedding, platt, sigmoid_of
from stream_engine.evaluation.similarities import by_similarity
from stream_engine.refits import embedding as embedding_refit
from stream_engine.refits import kernel_learning
from stream_engine.state.artifact import Artifact
from stream_engine.state.snapshot import triplet_columns


class _OfKernel(LearnedObjects):
    """Of anything with a fitted `kernel_` (n, n): nearer by the distances in its feature space."""

    def _margin(self, rows):
        i, j, k, l = rows.T
        distance = embedding.squared_distances(self._compared())
        return distance[k, l] - distance[i, j]

    def _compared(self):
        """(n, n) similarity that comparisons are answered by."""
        return self.kernel_


class ComparisonKernel(_OfKernel):
    """A kernel matrix of the objects. `kernel`: "embedding" (default; the scalar products of the points of
    `refits.embedding`, with the number of dimensions that predicts best), or k1, k2 of Kleindessner & von Luxburg
    (2017), which take triplets alone and are made and calibrated in O(m + n^2) and more.

    `n_objects`: None goes by the objects in X. `random_state`: a whole number, or numpy's RandomState.

    Fitted: `objects_`; `kernel_` (n_objects, n_objects), which `transform` gives; `classes_`; `n_features_in_`.

    >>> ComparisonKernel("k1").fit_transform([[0, 2, 3], [1, 2, 3]])[0].round(3).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """

    def __init__(self, kernel="embedding", *, n_objects=None, random_state=0):
        self.kernel = kernel
        self.n_objects = n_objects
        self.random_state = random_state

    def fit(self, X, y=None, sample_weight=None, groups=None):
        """Learn from comparisons X with answers y. `sample_weight`: how often each row was answered; `groups`: who
        answered it, which the embedding goes by. Raises ValueError, `CannotRefit` (one, too)."""
        if self.kernel not in ("embedding", "k1", "k2"):
            raise ValueError(f"ComparisonKernel: got kernel {self.kernel!r}, expected embedding, k1 or k2")
        rows = rows_of(self, X, y, reset=True)
        answers = answers_of(rows, self.n_objects, weights_of(sample_weight, len(rows)))
        self.objects_, self.classes_ = answers.objects, np.array([-1, 1])
        seed = seed_of(self.random_state)
        if self.kernel == "embedding":
            snapshot = snapshot_of(answers, ("triplet_counts", "quadruplet_counts"), groups)
            artifact = embedding_refit.refit(snapshot, embedding_refit.Params(), seed, evaluate=False)
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

    def _learned(self):
        return self.kernel_

    def get_feature_names_out(self, input_features=None):
        """The objects, as text: a kernel has a column for each."""
        check_is_fitted(self)
        return self.objects_.astype(str).astype(object)


class ComparisonEmbedding(_OfKernel):
    """Relative comparison kernel learning (Heim et al. 2014) and its leading coordinates; see `refits.kernel_learning`.

    `loss`: "ste" or "hinge" (GNMDS). `lambda1`: trace regularisation; None chooses it on held-out comparisons. Convex:
    no restarts, and `report_["gap"]` certifies how near the optimum it is. `predict` and `score` go by the coordinates.

    `n_components`: None answers by the whole kernel.

    `tolerance`: relative dual gap to reach within `max_iterations`. `n_objects`: None goes by the objects in X.
    `random_state`: a whole number, or numpy's RandomState.

    Fitted: `objects_`; `embedding_` (n_objects, n_components), which `transform` gives; `kernel_`; `report_`;
    `n_features_in_`.

    >>> model = ComparisonEmbedding(1, lambda1=0.01).fit([[0, 1, 2], [2, 1, 0], [1, 0, 3], [3, 2, 0]])
    >>> model.embedding_.shape, model.predict([[0, 1, 3]]).tolist()
    ((4, 1), [1])
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

    def fit(self, X, y=None, sample_weight=None):
        """Learn a kernel from the triplets X with answers y. `sample_weight`: how often each row was answered. Raises
        ValueError, `CannotRefit` (one, too), `SolverFailed`."""
        rows = rows_of(self, X, y, reset=True)
        answers = answers_of(rows, self.n_objects, weights_of(sample_weight, len(rows)))
        only_triplets(answers, "the embedding")
        params = kernel_learning.Params(
            form="t",
            loss=self.loss,
            lambda1=self.lambda1,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            dimensions=1 if self.n_components is None else self.n_components,
        )
        artifact = kernel_learning.refit(snapshot_of(answers, ("triplet_counts",)), params, seed_of(self.random_state))
        self.kernel_, self.embedding_ = artifact.arrays["K"], artifact.arrays["coordinates"]
        self.report_, self.classes_ = dict(artifact.report), np.array([-1, 1])
        self.objects_ = answers.objects
        return self

    def _probability(self, rows):
        told = self.report_["probability_slope"]
        slope = 1.0 if told is None else told
        return sigmoid_of(by_similarity(-embedding.squared_distances(self._compared())), slope)(rows)

    def _learned(self):
        return self.embedding_

    def _compared(self):
        return self.kernel_ if self.n_components is None else self.embedding_ @ self.embedding_.T
