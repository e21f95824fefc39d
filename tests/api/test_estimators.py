"""The batch estimators in scikit-learn's conventions: its own checks, and what they say against the refits they are.

scikit-learn's checks feed matrices of features. As cblearn's suite does, every clean matrix becomes comparisons, row by
row, before the estimator sees it; anything else (NaN, sparse, complex, empty, one-dimensional) reaches it as it is.
"""

import pickle
import zlib

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.decomposition import KernelPCA
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.model_selection import GridSearchCV, check_cv, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from stream_engine.counts import kernels
from stream_engine.data.comparisons import Triplet
from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.estimators import (
    ComparisonClustering,
    ComparisonEmbedding,
    ComparisonKernel,
    OrdinalEmbedding,
    TripletBoostClassifier,
)
from stream_engine.evaluation import coordinates as embedding
from stream_engine.refits import sdp_clustering
from stream_engine.state.engine import Engine
from tests.support.generators import planted_triplets

N = 12


def compared(X, ordered: bool = True):
    """(m, 3) comparisons of a clean (m, d) matrix, each row's from its own numbers, answered by places on a line."""
    try:
        values = np.asarray(X)
        values = values.astype(np.float64) if values.ndim == 2 and values.dtype.kind in "fiubO" else values
        clean = values.ndim == 2 and values.dtype.kind == "f" and min(values.shape) > 0 and np.isfinite(values).all()
    except (TypeError, ValueError):
        clean = False
    if not clean:
        return X
    rows = []
    for row in np.round(values.astype(np.float64), 9) + 0.0:
        a, b, c = np.random.default_rng(zlib.crc32(row.tobytes())).permutation(N)[:3]
        rows.append([a, c, b] if ordered and abs(a - c) < abs(a - b) else [a, b, c])
    return np.array(rows)


class OfFeatures:
    def fit(self, X, y=None, sample_weight=None):
        return super().fit(compared(X), sample_weight=sample_weight)


class Answering(OfFeatures):
    def __sklearn_tags__(self):
        """As a transformer: the checks of classifiers give each row of features a class of its own, comparisons have
        two answers. `test_comparisons_are_classified` has what classifiers owe."""
        tags = super().__sklearn_tags__()
        tags.estimator_type = None
        return tags

    def transform(self, X):
        return super().transform(compared(X))

    def predict(self, X):
        return super().predict(compared(X, ordered=False))

    def predict_proba(self, X):
        return super().predict_proba(compared(X, ordered=False))

    def score(self, X, y=None, sample_weight=None):
        return super().score(compared(X), sample_weight=sample_weight)


class Embedding(Answering, ComparisonEmbedding):
    pass


class Kernel(Answering, ComparisonKernel):
    pass


class Ordinal(Answering, OrdinalEmbedding):
    def predict_proba(self, X):
        return super().predict_proba(compared(X, ordered=False))


class Clustering(OfFeatures, ComparisonClustering):
    pass


class Boost(TripletBoostClassifier):
    """A row is an object, that of the nearest training row; distances make the triplets."""

    def fit(self, X, y):
        given = self.triplets
        if compared(X) is not X:
            self.rows_ = np.unique(np.asarray(X, float), axis=0)
            first = np.unique(self._numbers(X), return_index=True)[1]
            distance = np.linalg.norm(self.rows_[:, None] - self.rows_, axis=2)
            rng = np.random.default_rng(0)
            rows = rng.integers(len(self.rows_), size=(100 * len(self.rows_), 3))
            rows = rows[(np.diff(np.sort(rows, axis=1), axis=1) > 0).all(axis=1)]
            turned = distance[rows[:, 0], rows[:, 1]] > distance[rows[:, 0], rows[:, 2]]
            self.triplets = np.where(turned[:, None], rows[:, [0, 2, 1]], rows) if len(rows) else [[0, 1, 2]]
            y = y if y is None else np.asarray(y)
            X, y = self._numbers(X)[first, None], y[first] if np.ndim(y) and len(y) == len(np.asarray(X)) else y
        try:
            return super().fit(X, y)
        finally:
            self.triplets = given

    def predict(self, X):
        return super().predict(self._objects_of(X))

    def predict_proba(self, X):
        return super().predict_proba(self._objects_of(X))

    def _objects_of(self, X):
        return X if compared(X) is X or not hasattr(self, "rows_") else self._numbers(X)[:, None]

    def _numbers(self, X):
        return np.linalg.norm(np.asarray(X, float)[:, None] - self.rows_, axis=2).argmin(axis=1)


WIDE = "a matrix of features became comparisons or objects: the width that is remembered is theirs"
ALL_OBJECTS = "one row an object, not one a row of X: objects are what was learned about, X the answers about them"
FAILING = {  # check -> why it fails, for each estimator; what is not listed passes
    Kernel: {
        **dict.fromkeys(("check_n_features_in_after_fitting", "check_n_features_in"), WIDE),
        **dict.fromkeys(
            (
                "check_transformer_general",
                "check_transformer_data_not_an_array",
                "check_methods_sample_order_invariance",
                "check_methods_subset_invariance",
            ),
            ALL_OBJECTS,
        ),
    },
    Clustering: {
        **dict.fromkeys(("check_n_features_in_after_fitting", "check_n_features_in"), WIDE),
        "check_clustering": ALL_OBJECTS,
    },
    Boost: dict.fromkeys(("check_n_features_in_after_fitting", "check_n_features_in"), WIDE),
}
FAILING[Embedding] = FAILING[Ordinal] = FAILING[Kernel]


@parametrize_with_checks(
    [Kernel(), Embedding(lambda1=1.0), Ordinal(kernel="ste", ridge=1.0), Clustering(n_clusters=2), Boost(rounds=5000)],
    expected_failed_checks=lambda estimator: FAILING[type(estimator)],
    xfail_strict=True,
)
@pytest.mark.filterwarnings("ignore:X. .* rows contain objects")  # their rows had weight 0
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# ---- against the refits, and what users of cblearn write


@pytest.fixture(scope="module")
def world():
    """24 points in three groups, and noisy triplets about them."""
    rng = np.random.default_rng(0)
    group = np.arange(24) % 3
    points = np.array([[0, 0], [6, 0], [0, 6]])[group] + rng.normal(size=(24, 2))
    return points, group, planted_triplets(rng, points, 4000, 0.05), planted_triplets(rng, points, 800)


def questions(triplets, seed=0):
    """(X, y) with the nearer one on either side, y = 1 where it stands first."""
    turned = np.random.default_rng(seed).random(len(triplets)) < 0.5
    return np.where(turned[:, None], triplets[:, [0, 2, 1]], triplets), np.where(turned, -1, 1)


def test_clustering_is_the_refit(world):
    _, group, triplets, _ = world
    engine = Engine(guard=False)
    engine.learn_many([Triplet(*map(str, row)) for row in triplets.tolist()])
    snapshot = engine.snapshot()
    made = sdp_clustering.refit(snapshot, sdp_clustering.Params(), 0)
    found = ComparisonClustering().fit(triplets)
    assert found.n_clusters_ == made.arrays["k"] == 3 and found.report_["certified"]
    assert (
        adjusted_rand_score(made.arrays["labels"][np.argsort([int(name) for name in snapshot.objects])], found.labels_)
        == 1
    )
    assert adjusted_rand_score(group, found.labels_) == 1
    assert ComparisonClustering(2).fit(triplets).n_clusters_ == 2


@pytest.mark.parametrize("form", ["order", "signs", "booleans", "pair", "lists", "quadruplets"])
def test_every_form_of_answers_gives_the_same(world, form):
    triplets = world[2]
    X, y = questions(triplets)
    given = {
        "order": (triplets,),
        "signs": (X, y),
        "booleans": (X, y > 0),
        "pair": ((X, y),),
        "lists": (X.tolist(), y.tolist()),
        "quadruplets": (np.stack([X[:, 1], X[:, 0], X[:, 0], X[:, 2]], axis=1), y),
    }[form]
    assert np.array_equal(ComparisonKernel("k1").fit(*given).kernel_, kernels.k1(columns_from_triplets(triplets, 24)))
    assert adjusted_rand_score(ComparisonClustering(3).fit_predict(*given), world[1]) == 1


def test_quadruplets_of_four_objects(world):
    points, group, _, _ = world
    rng = np.random.default_rng(1)
    rows = np.array([rng.permutation(24)[:4] for _ in range(6000)])
    i, j, k, l = (points[rows[:, side]] for side in range(4))
    y = np.where(((i - j) ** 2).sum(1) < ((k - l) ** 2).sum(1), 1, -1)
    assert adjusted_rand_score(ComparisonClustering(3).fit_predict(rows, y), group) == 1


def test_answers_foretold(world):
    _, _, triplets, test = world
    X, y = questions(test)
    for model in (ComparisonEmbedding().fit(triplets), ComparisonKernel("k1").fit(triplets)):
        points = getattr(model, "embedding_", None)  # the two dimensions that were asked for
        distance = embedding.squared_distances(model.kernel_ if points is None else points @ points.T)
        margin = distance[X[:, 0], X[:, 2]] - distance[X[:, 0], X[:, 1]]
        assert np.array_equal(model.predict(X), np.sign(margin))
        assert (
            model.score(X, y) == model.score(test) == pytest.approx((margin * y > 0).mean() + (margin == 0).mean() / 2)
        )
        assert model.score(X, y) > 0.8
    by_draws = ComparisonKernel().fit(triplets)  # of few answers, not by the kernel of the one fit
    p, distance = by_draws.predict_proba(X)[:, 1], embedding.squared_distances(by_draws.kernel_)
    assert np.array_equal(by_draws.predict(X), np.sign(p - 0.5))
    assert by_draws.score(X, y) == by_draws.score(test) == ((p > 0.5) == (y > 0)).mean() > 0.85
    by_fit = np.sign(distance[X[:, 0], X[:, 2]] - distance[X[:, 0], X[:, 1]])
    assert 0.9 < (by_fit == by_draws.predict(X)).mean() < 1
    assert ComparisonEmbedding(3).fit_transform(triplets).shape == (24, 3)


def test_an_ordinal_embedding_answers_with_probabilities(world):
    points, _, triplets, test = world
    X, y = questions(test)
    model = OrdinalEmbedding(2).fit(triplets)
    p = model.predict_proba(X)
    assert model.embedding_.shape == (24, 2) and np.array_equal(model.transform(X), model.embedding_)
    assert np.allclose(p.sum(axis=1), 1) and np.array_equal(model.predict(X), np.sign(p[:, 1] - 0.5))
    assert model.score(X, y) == model.score(test) == ((p[:, 1] > 0.5) == (y > 0)).mean() > 0.9
    four = np.stack([X[:, 1], X[:, 0], X[:, 0], X[:, 2]], axis=1)
    assert np.allclose(OrdinalEmbedding(2).fit(triplets[:, [0, 1, 0, 2]]).predict_proba(four), p, atol=1e-6)
    assert OrdinalEmbedding(None, kernel="ste", ridge=0.1).fit(triplets).embedding_.shape[1] in (2, 3)
    assert OrdinalEmbedding(2, kernel="ste", ridge=1.0, lapse=False).fit(triplets).lapse_ == 0
    quadruplets = np.random.default_rng(0).permuted(np.tile(np.arange(24), (3000, 1)), axis=1)[:, :4]
    i, j, k, l = (points[quadruplets[:, side]] for side in range(4))
    near = np.where(((i - j) ** 2).sum(1) < ((k - l) ** 2).sum(1), 1, -1)
    assert OrdinalEmbedding(2).fit(quadruplets[:2500], near[:2500]).score(quadruplets[2500:], near[2500:]) > 0.9


@pytest.mark.parametrize(
    "model", [ComparisonKernel(), ComparisonKernel("k1"), ComparisonKernel("k2"), ComparisonEmbedding(),
              ComparisonEmbedding(loss="hinge")], ids=str
)  # fmt: skip
def test_probabilities(world, model):
    """They agree with what is predicted, turn round with the question, and are never surer than they are right."""
    rng, (_, _, triplets, test) = np.random.default_rng(0), world
    wrong = rng.random(len(triplets)) < 0.2
    model = clone(model).fit(np.where(wrong[:, None], triplets[:, [0, 2, 1]], triplets))
    p, said = model.predict_proba(test), model.predict(test)
    assert model.classes_.tolist() == [-1, 1] and p.shape == (len(test), 2)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (np.sign(p[:, 1] - 0.5) == said)[np.abs(p[:, 1] - 0.5) > 1e-6].all()
    np.testing.assert_allclose(model.predict_proba(test[:, [0, 2, 1]])[:, 0], p[:, 1])
    flipped = rng.random(len(test)) < 0.2
    right = (said == 1) != flipped
    sure = p.max(axis=1)
    assert -0.05 < right.mean() - sure.mean() < 0.15  # what is learned of few answers is rather too careful
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(test), p)


def test_a_tie_is_half_right(world):
    """Nothing is known of the last two objects, so that neither is the nearer one."""
    model = ComparisonKernel(n_objects=26).fit(world[2])
    X = np.array([[0, 24, 25], [3, 25, 24], [0, 3, 1], [0, 1, 3]])
    y = model.predict(X)
    assert (y == 0).tolist() == [True, True, False, False]
    given = np.where(y == 0, 1, y) * np.array([1, -1, 1, 1])
    assert model.score(X, given) == (0.5 + 0.5 + 1 + 1) / 4
    assert model.score(X, -given, sample_weight=[3, 1, 2, 4]) == (0.5 * 3 + 0.5 * 1) / 10


def test_an_object_without_comparisons(world):
    assert ComparisonKernel(n_objects=26).fit_transform(world[2]).shape == (26, 26)
    assert ComparisonClustering(3, n_objects=26).fit_predict(world[2])[24:].tolist() == [-1, -1]


def test_in_pipelines_and_searches(world):
    _, group, triplets, _ = world
    at = make_pipeline(ComparisonKernel("k1"), KernelPCA(2, kernel="precomputed")).fit_transform(triplets)
    assert at.shape == (24, 2)
    found = GridSearchCV(ComparisonEmbedding(n_objects=24), {"lambda1": [1.0, 300.0]}, cv=2).fit(
        *questions(triplets[:800])
    )
    assert found.best_params_ == {"lambda1": 1.0} and found.best_score_ > 0.75
    scores = cross_val_score(
        TripletBoostClassifier(triplets, rounds=3000), np.arange(24)[:, None], np.array(["a", "b", "c"])[group], cv=3
    )
    assert scores.mean() > 0.85
    same = clone(TripletBoostClassifier(triplets, rounds=7))
    assert same.rounds == 7 and np.array_equal(same.triplets, triplets)


@pytest.mark.parametrize("model", [OrdinalEmbedding(kernel="ste", ridge=0.1), ComparisonKernel("k1")], ids=repr)
def test_comparisons_are_classified(world, model):
    X, y = questions(world[2][:800])
    assert is_classifier(model) and not get_tags(model).classifier_tags.multi_class
    folds = check_cv(3, y, classifier=True)
    curves = cross_val_score(model, X, y, scoring="roc_auc", cv=folds)
    losses = cross_val_score(model, X, y, scoring="neg_log_loss", cv=folds)
    assert curves.min() > 0.6 and losses.min() > np.log(0.5)
    fitted = clone(model).fit(X, y)
    assert fitted.classes_.tolist() == [-1, 1]
    assert roc_auc_score(y, fitted.predict_proba(X)[:, 1]) > 0.7


def test_boosting_says_what_the_votes_say(world):
    _, group, triplets, _ = world
    model = TripletBoostClassifier(triplets, rounds=2000).fit(np.arange(18)[:, None], group[:18])
    asked = np.array([[20], [3], [20], [23]])
    assert np.array_equal(model.predict(asked), model.classes_[model.votes(asked).argmax(axis=1)])
    assert np.array_equal(model.predict(asked), model.predict(np.arange(24)[:, None])[asked[:, 0]])


def test_boosting_without_folds_or_evidence(world):
    _, group, triplets, _ = world
    assert not hasattr(TripletBoostClassifier(triplets, 50, folds=0).fit([[0], [23]], [0, 1]), "predict_proba")
    silent = TripletBoostClassifier([[0, 1, 2]], 50).fit([[0], [1], [3]], ["a", "a", "b"])
    assert np.allclose(silent.predict_proba([[2], [3]]), [[0.625, 0.375]] * 2)


@pytest.mark.parametrize(
    "X, y, says",
    [
        ([[0, 1]], None, "2 features.*3"),
        ([[0, 1, 1.5]], None, r"X row 0: got \[0.0, 1.0, 1.5\], expected objects: "),
        ([[0, 1, 2], [0, -1, 2]], None, r"X: got \[0, -1, 2\], expected "),
        ([[0, 1, 2], [0, 0, 2]], None, "row 1.*0"),
        ([[0, 1, 2]], [1, -1], r"y: got \(2,\) values \[-1, 1\], expected "),
        ([[0, 1, 9]], None, r"got \[0, 1, 9\], expected .* n_objects = 5"),
        ([[0, 1, 2, 3]], None, "1 comparisons.*k1"),
    ],
)
def test_bad_input(X, y, says):
    with pytest.raises(ValueError, match=says):
        ComparisonKernel("k1", n_objects=5).fit(X, y)


@pytest.mark.parametrize(
    "model, says",
    [
        (OrdinalEmbedding("two"), "'n_components' .* int in the range .* Got 'two'"),
        (OrdinalEmbedding(0), "'n_components' .* Got 0"),
        (OrdinalEmbedding(kernel="rbf"), "'kernel' .* Got 'rbf'"),
        (OrdinalEmbedding(2, ridge=-1), "'ridge' .* Got -1"),
        (OrdinalEmbedding(2, participants="all"), "'participants' .* Got 'all'"),
        (ComparisonEmbedding(2, lambda1=0), "'lambda1' .* Got 0"),
        (ComparisonKernel("k3"), "'kernel' .* Got 'k3'"),
        (ComparisonClustering(-1), "'n_clusters' .* Got -1"),
        (TripletBoostClassifier([[0, 1, 2]], rounds=0), "'rounds' .* Got 0"),
        (TripletBoostClassifier([[0, 1, 2]], folds=1), "'folds' .* Got 1"),
    ],
)
def test_bad_parameters(model, says):
    with pytest.raises(ValueError, match=f"^The {says} instead.$"):
        model.fit([[0, 1, 2], [2, 1, 0], [1, 0, 2]], [1, 1, -1])
