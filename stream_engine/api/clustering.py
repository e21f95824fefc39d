"""Clustering of objects from comparisons, in scikit-learn's conventions: the refit `sdp_clustering`."""

from numbers import Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils._param_validation import Interval

from stream_engine.api.answers import (
    COUNT,
    RandomState,
    answers_of,
    rows_of,
    seed_of,
    snapshot_of,
    weights_of,
    with_names,
)
from stream_engine.refits import sdp_clustering


class ComparisonClustering(ClusterMixin, BaseEstimator):
    """Clustering by AddS and semidefinite programming (Perrot, Esser & Ghoshdastidar 2020); see
    `refits.sdp_clustering`.

    Unlike other clusterings, the result has one label per object, not one per row of X.

    Parameters
    ----------
    n_clusters : int, optional
        By default selected by SPUR.
    similarity : {'auto', 'adds3', 'k1', 'adds4', 'mulk4'}
        adds3 and k1 use triplets, mulk4 quadruplets, adds4 all; "auto" is adds3, or adds4 if X has quadruplets.
    tol : float
        Certified relative gap to reach.
    max_iterations : int
        Maximum number of iterations; then the solver stops without a certificate.
    n_objects : int, optional
        By default the largest number in X, plus one.
    random_state : int or RandomState
        Random seed.

    Attributes
    ----------
    objects_ : ndarray, shape (n_objects,)
        Names or numbers.
    labels_ : ndarray of int, shape (n_objects,)
        The cluster of each object; -1 if its comparisons cancel or if it has none.
    n_clusters_ : int
        Number of clusters.
    report_ : dict
        Objective, upper bound, gap, certificate, and the criterion of each k.
    n_features_in_ : int
        Number of columns of X.

    Examples
    --------
    >>> triplets = [[a, b, c] for group in ([0, 1, 2], [3, 4, 5]) for a in group for b in group for c in range(6)
    ...             if b != a and c not in group]
    >>> ComparisonClustering(n_clusters=2).fit_predict(triplets).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_clusters": [COUNT, None],
        "similarity": [str],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "max_iterations": [COUNT],
        "n_objects": [COUNT, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int | None = None,
        *,
        similarity: Literal["auto", "adds3", "k1", "adds4", "mulk4"] = "auto",
        tol: float = 1e-3,
        max_iterations: int = 2000,
        n_objects: int | None = None,
        random_state: RandomState = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.similarity = similarity
        self.tol = tol
        self.max_iterations = max_iterations
        self.n_objects = n_objects
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        return with_names(super().__sklearn_tags__())

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cluster the objects of X.

        Parameters
        ----------
        X : array or data frame, shape (m, 3) or (m, 4)
            Comparisons.
        y : array, shape (m,), optional
            Answers.
        sample_weight : array of int, shape (m,), optional
            How often each row was answered.

        Returns
        -------
        ComparisonClustering
            The fitted estimator.

        Raises
        ------
        ValueError
            For invalid input, and if clustering is impossible (`CannotRefit`).
        """
        self._validate_params()
        rows = rows_of(self, X, y, reset=True)
        answers, self.objects_ = answers_of(rows, self.n_objects, weights_of(sample_weight, len(rows)))
        auto = "adds4" if len(answers.quadruplets().rows) else "adds3"
        similarity = auto if self.similarity == "auto" else self.similarity
        params = sdp_clustering.Params(
            similarity=similarity,
            k=self.n_clusters,
            tol=self.tol,
            max_iterations=self.max_iterations,
        )
        snapshot = snapshot_of(answers, self.objects_, ("adds3", "adds4", "triplet_counts", "quadruplet_counts"))
        artifact = sdp_clustering.refit(snapshot, params, seed_of(self.random_state))
        self.labels_ = artifact.arrays["labels"].copy()
        self.n_clusters_ = int(artifact.arrays["k"])
        self.report_ = dict(artifact.report)
        return self

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> np.ndarray:
        """Cluster the objects of X. Unlike in other clusterings, y is used.

        Parameters
        ----------
        X : array or data frame, shape (m, 3) or (m, 4)
            Comparisons.
        y : array, shape (m,), optional
            Answers.
        **kwargs : optional
            Passed to `fit`.

        Returns
        -------
        ndarray of int, shape (n_objects,)
            The cluster of each object.
        """
        return self.fit(X, y, **kwargs).labels_
