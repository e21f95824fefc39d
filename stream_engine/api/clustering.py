"""Clustering of objects from comparisons, in scikit-learn's conventions: the refit `sdp_clustering`."""

from sklearn.base import BaseEstimator, ClusterMixin

from stream_engine.api.answers import answers_of, rows_of, seed_of, snapshot_of, weights_of, with_names
from stream_engine.refits import sdp_clustering


class ComparisonClustering(ClusterMixin, BaseEstimator):
    """AddS and semidefinite programming (Perrot, Esser & Ghoshdastidar 2020); see `refits.sdp_clustering`.

    `n_clusters`: None: the number that the test against a continuum finds, else SPUR's. `similarity`: adds3 or k1
    (triplets), adds4 (all), mulk4 (quadruplets); "auto" is adds3, or adds4 where X has quadruplets.
    `tol`: certified relative gap to reach. `n_objects`: None goes by the largest number in X.

    `max_iterations` of the solver, at which it stops uncertified. `random_state`: a whole number, or numpy's
    RandomState.

    Fitted: `objects_`; `labels_` (n_objects,) int, -1 for an object whose comparisons cancel or that has none;
    `n_clusters_`; `report_`: objective, upper bound, gap, whether it is certified, criterion of each k;
    `n_features_in_`. Note that there is one label an object, not one a row of X.

    >>> triplets = [[a, b, c] for group in ([0, 1, 2], [3, 4, 5]) for a in group for b in group for c in range(6)
    ...             if b != a and c not in group]
    >>> ComparisonClustering(n_clusters=2).fit_predict(triplets).tolist()
    [0, 0, 0, 1, 1, 1]
    """

    def __init__(
        self, n_clusters=None, *, similarity="auto", tol=1e-3, max_iterations=2000, n_objects=None, random_state=0
    ):
        self.n_clusters = n_clusters
        self.similarity = similarity
        self.tol = tol
        self.max_iterations = max_iterations
        self.n_objects = n_objects
        self.random_state = random_state

    def __sklearn_tags__(self):
        return with_names(super().__sklearn_tags__())

    def fit(self, X, y=None, sample_weight=None):
        """Cluster the objects of X (m, 3) or (m, 4), with answers y. `sample_weight`: how often each row was answered.
        Raises ValueError, `CannotRefit` (one, too)."""
        rows = rows_of(self, X, y, reset=True)
        answers = answers_of(rows, self.n_objects, weights_of(sample_weight, len(rows)))
        auto = "adds4" if len(answers.quadruplets) else "adds3"
        similarity = auto if self.similarity == "auto" else self.similarity
        params = sdp_clustering.Params(
            similarity=similarity,
            k=self.n_clusters,
            tol=self.tol,
            max_iterations=self.max_iterations,
            stability=0,
        )
        snapshot = snapshot_of(answers, ("adds3", "adds4", "triplet_counts", "quadruplet_counts"))
        artifact = sdp_clustering.refit(snapshot, params, seed_of(self.random_state))
        self.objects_ = answers.objects
        self.labels_ = artifact.arrays["labels"].copy()
        self.n_clusters_ = int(artifact.arrays["k"])
        self.report_ = dict(artifact.report)
        return self

    def fit_predict(self, X, y=None, **kwargs):
        """`fit(X, y).labels_`: unlike other clusterings, y matters."""
        return self.fit(X, y, **kwargs).labels_
