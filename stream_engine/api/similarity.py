"""Similarities of objects from comparisons, in scikit-learn's conventions: of an embedding, counted and learned
kernels.

All predict new comparisons (`predict`, `predict_proba`, `score`), and their `transform` returns values of the
*objects*, one row each, whatever comparisons it gets: `make_pipeline(ComparisonKernel(),
KernelPCA(kernel="precomputed"))` draws a map.
"""

from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from stream_engine.api.answers import (
    COUNT,
    POSITIVE,
    RandomState,
    answers_of,
    groups_of,
    only_triplets,
    rows_of,
    seed_of,
    snapshot_of,
    weights_of,
)
from stream_engine.api.learned_objects import LearnedObjects
from stream_engine.counts import kernels
from stream_engine.evaluation import coordinates as embedding
from stream_engine.evaluation.count_models import calibration_of
from stream_engine.evaluation.learned import of_embedding
from stream_engine.evaluation.platt import Calibration, platt, sigmoid_of
from stream_engine.evaluation.similarities import by_similarity
from stream_engine.refits import embedding as embedding_refit
from stream_engine.refits import kernel_learning
from stream_engine.state.artifact import Artifact
from stream_engine.state.snapshot import triplet_columns


class _OfKernel(LearnedObjects):
    """Predictions by a fitted `kernel_` (n, n): the nearer pair is that in its feature space."""

    def _margin(self, rows: np.ndarray) -> np.ndarray:
        i, j, k, l = rows.T
        distance = embedding.squared_distances(self._similarity())
        return distance[k, l] - distance[i, j]

    def _similarity(self) -> np.ndarray:
        """(n, n) similarity by which comparisons are predicted."""
        return self.kernel_


class ComparisonKernel(_OfKernel):
    """A kernel matrix of the objects.

    Parameters
    ----------
    kernel : {'embedding', 'k1', 'k2'}
        "embedding": scalar products of the coordinates of `refits.embedding`, with the number of dimensions that
        predicts best. k1 and k2 of Kleindessner & von Luxburg (2017) accept only triplets; computing and calibrating
        them costs O(m + n^2) and more.
    n_objects : int, optional
        By default the objects in X.
    random_state : int or RandomState
        Random seed.

    Attributes
    ----------
    objects_ : ndarray, shape (n_objects,)
        Names or numbers.
    kernel_ : ndarray, shape (n_objects, n_objects)
        The kernel, as returned by `transform`.
    classes_ : ndarray
        -1 and 1.
    n_features_in_ : int
        Number of columns of X.

    Examples
    --------
    >>> ComparisonKernel("k1").fit_transform([[0, 2, 3], [1, 2, 3]])[0].round(3).tolist()
    [1.0, 1.0, 0.0, 0.0]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "kernel": [StrOptions({"embedding", "k1", "k2"})],
        "n_objects": [COUNT, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        kernel: Literal["embedding", "k1", "k2"] = "embedding",
        *,
        n_objects: int | None = None,
        random_state: RandomState = 0,
    ) -> None:
        self.kernel = kernel
        self.n_objects = n_objects
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn a kernel from comparisons.

        Parameters
        ----------
        X : array or data frame, shape (m, 3) or (m, 4)
            Comparisons.
        y : array, shape (m,), optional
            Answers.
        sample_weight : array of int, shape (m,), optional
            How often each row was answered.
        groups : array, shape (m,), optional
            The participant of each row, used by the embedding.

        Returns
        -------
        ComparisonKernel
            The fitted estimator.

        Raises
        ------
        ValueError
            For invalid input, and if the fit is impossible (`CannotRefit`).
        """
        self._validate_params()
        rows = rows_of(self, X, y, reset=True)
        answers, self.objects_ = answers_of(rows, self.n_objects, weights_of(sample_weight, len(rows)))
        participants = groups_of(groups, len(rows))
        self.classes_ = np.array([-1, 1])
        seed = seed_of(self.random_state)
        if self.kernel == "embedding":
            snapshot = snapshot_of(answers, self.objects_, ("triplet_counts", "quadruplet_counts"), participants)
            artifact = embedding_refit.refit(snapshot, embedding_refit.Params(), seed, evaluate=False)
            self.kernel_ = artifact.arrays["X"] @ artifact.arrays["X"].T
            self._model: Artifact | Calibration = artifact
            return self
        only_triplets(answers, self.kernel)
        snapshot = snapshot_of(answers, self.objects_, ("triplet_counts",))
        self.kernel_ = {"k1": kernels.k1, "k2": kernels.k2}[self.kernel](triplet_columns(snapshot))
        self._model = calibration_of(snapshot, self.kernel, seed)[0]
        return self

    def _probability(self, rows: np.ndarray) -> np.ndarray:
        model = self._model
        if isinstance(model, Calibration):
            return platt(by_similarity(self.kernel_), model)(rows)
        return of_embedding(model)(rows)

    def _margin(self, rows: np.ndarray) -> np.ndarray:
        if isinstance(self._model, Calibration):
            return super()._margin(rows)
        return self._probability(rows) - 0.5  # few answers are predicted by draws, not by the kernel of the one fit

    def _object_values(self) -> np.ndarray:
        return self.kernel_

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of the kernel: the objects.

        Parameters
        ----------
        input_features : optional
            Not used.

        Returns
        -------
        ndarray of str, shape (n_objects,)
            The names.
        """
        check_is_fitted(self)
        return self.objects_.astype(str).astype(object)


class ComparisonEmbedding(_OfKernel):
    r"""Relative comparison kernel learning (Heim et al. 2014) and leading coordinates; see `refits.kernel_learning`.

    The problem is convex, so there are no restarts, and `report_["gap"]` bounds the distance to the optimum.

    .. math:: \min_{K \succeq 0} \; \sum_t w_t \, \ell(d_t) + \lambda_1 \operatorname{tr} K, \qquad d_t = d_K(i, j) -
    d_K(i, k), \quad \ell(x) = \log(1 + e^x) \text{ or } \max(0, 1 + x)

    Parameters
    ----------
    n_components : int, optional
        Number of coordinates, which `predict` and `score` use; None: use the whole kernel.
    loss : {'ste', 'hinge'}
        The loss; hinge is GNMDS.
    lambda1 : float, optional
        Trace regularisation; by default selected on held-out comparisons.
    tolerance : float
        Relative dual gap to reach.
    max_iterations : int
        Maximum number of iterations.
    n_objects : int, optional
        By default the objects in X.
    random_state : int or RandomState
        Random seed.

    Attributes
    ----------
    objects_ : ndarray, shape (n_objects,)
        Names or numbers.
    embedding_ : ndarray, shape (n_objects, n_components)
        Coordinates, as returned by `transform`.
    kernel_ : ndarray, shape (n_objects, n_objects)
        The kernel.
    report_ : dict
        Objective, gap, selected parameters.
    n_features_in_ : int
        Number of columns of X.

    Examples
    --------
    >>> model = ComparisonEmbedding(1, lambda1=0.01).fit([[0, 1, 2], [2, 1, 0], [1, 0, 3], [3, 2, 0]])
    >>> model.embedding_.shape, model.predict([[0, 1, 3]]).tolist()
    ((4, 1), [1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [COUNT, None],
        "loss": [StrOptions({"ste", "hinge"})],
        "lambda1": [POSITIVE, None],
        "tolerance": [POSITIVE],
        "max_iterations": [COUNT],
        "n_objects": [COUNT, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        loss: Literal["ste", "hinge"] = "ste",
        lambda1: float | None = None,
        tolerance: float = 1e-3,
        max_iterations: int = 20000,
        n_objects: int | None = None,
        random_state: RandomState = 0,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.lambda1 = lambda1
        self.tolerance = tolerance
        self.max_iterations = max_iterations
        self.n_objects = n_objects
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn a kernel from triplets.

        Parameters
        ----------
        X : array or data frame, shape (m, 3)
            Triplets.
        y : array, shape (m,), optional
            Answers.
        sample_weight : array of int, shape (m,), optional
            How often each row was answered.

        Returns
        -------
        ComparisonEmbedding
            The fitted estimator.

        Raises
        ------
        ValueError
            For invalid input, and if the fit is impossible (`CannotRefit`).
        SolverFailed
            If the tolerance is not reached.
        """
        self._validate_params()
        rows = rows_of(self, X, y, reset=True)
        answers, self.objects_ = answers_of(rows, self.n_objects, weights_of(sample_weight, len(rows)))
        only_triplets(answers, "the embedding")
        params = kernel_learning.Params(
            form="t",
            loss=self.loss,
            lambda1=self.lambda1,
            tolerance=self.tolerance,
            max_iterations=self.max_iterations,
            dimensions=1 if self.n_components is None else self.n_components,
        )
        artifact = kernel_learning.refit(
            snapshot_of(answers, self.objects_, ("triplet_counts",)), params, seed_of(self.random_state)
        )
        self.kernel_, self.embedding_ = artifact.arrays["K"], artifact.arrays["coordinates"]
        self.report_, self.classes_ = dict(artifact.report), np.array([-1, 1])
        return self

    def _probability(self, rows: np.ndarray) -> np.ndarray:
        probability_slope = self.report_["probability_slope"]
        slope = 1.0 if probability_slope is None else probability_slope
        return sigmoid_of(by_similarity(-embedding.squared_distances(self._similarity())), slope)(rows)

    def _object_values(self) -> np.ndarray:
        return self.embedding_

    def _similarity(self) -> np.ndarray:
        return self.kernel_ if self.n_components is None else self.embedding_ @ self.embedding_.T
