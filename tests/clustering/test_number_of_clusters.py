"""Silhouette and gap statistic against their definitions; every similarity clusters, maps and links planted groups."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster
from sklearn.metrics import adjusted_rand_score, silhouette_score

from stream_engine.clustering import number_of_clusters, partition, similarity_of_snapshot
from stream_engine.clustering.number_of_clusters import by_gap, by_silhouette, silhouette
from stream_engine.clustering.similarity_matrix import checked
from stream_engine.data import symmetric_matrices
from stream_engine.embedding.of_snapshot import points
from stream_engine.refits import CannotRefit, hierarchy, spectral
from tests.clustering.test_spur import by_name, snapshot_of
from tests.support.generators import planted_triplets
from tests.support.planted_similarities import adds3


def clouds(k: int, n: int, apart: float = 6.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % k
    return rng.normal(size=(n, 2)) + apart * np.stack([truth // 2, truth % 2], axis=1), truth


def gram(X: np.ndarray) -> np.ndarray:
    return checked((X - X.mean(axis=0)) @ (X - X.mean(axis=0)).T)


def test_the_silhouette_is_scikit_learns():
    rng = np.random.default_rng(0)
    for k in (2, 3, 5):
        X, labels = rng.normal(size=(30, 2)), rng.integers(0, k, 30)
        labels[:k] = range(k)
        labels[labels == k - 1] = 0
        labels[0] = k - 1  # one alone
        D = np.linalg.norm(X[:, None] - X, axis=2)
        assert silhouette(D, labels) == pytest.approx(silhouette_score(D, labels, metric="precomputed"))
    assert silhouette(np.zeros((4, 4)), np.array([0, 0, 1, 1])) == 0.0


@pytest.mark.parametrize("k", [2, 3, 4])
def test_planted_clouds_are_counted(k):
    X, truth = clouds(k, 60)
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    told = []
    found = by_silhouette(checked(-D), 0.0, 10, 0, lambda *a, **figures: told.append(figures))
    assert found.k == k and len(found.criterion) == len(told) and found.criterion.argmax() == k - 2
    labels = partition.refined(checked(-D), partition.spectral_partition(checked(-D), k, 0))
    assert found.criterion[k - 2] == pytest.approx(silhouette_score(D, labels, metric="precomputed"))
    assert by_gap(checked(-D), 10, 0, lambda *a, **k: None).k == (k if k < 4 else 1)  # four in a square: see there


def test_the_gap_statistic_says_one_where_there_is_one():
    rng = np.random.default_rng(1)
    X = rng.random((80, 2))
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    found = by_gap(checked(-D), 8, 0, lambda *a, **k: None)
    assert found.k == 1 and len(found.criterion) == 2
    for few in (0, 1, 2):
        for choose in (by_gap, lambda W, *more: by_silhouette(W, 0.0, *more)):
            assert choose(np.zeros((few, few)), 5, 0, lambda *a, **k: None).k == 1


def test_the_gap_is_tibshiranis():
    """Written out for the first two numbers: dispersion of the points and of the boxes that the seed draws."""
    X, _ = clouds(2, 30)
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    found = by_gap(checked(-D), 2, 5, lambda *a, **k: None)
    n = len(X)
    H = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(H @ -D @ H)
    at = np.argsort(-values)[: number_of_clusters.GAP_AXES]
    at = at[values[at] > 1e-9 * values.max()]
    Y = vectors[:, at] * np.sqrt(values[at])
    assert found.criterion[1] > found.criterion[0]
    whole = np.log((Y**2).sum())
    labels = partition.k_means(Y, 2, 5, 4)
    two = np.log(sum(((Y[labels == c] - Y[labels == c].mean(axis=0)) ** 2).sum() for c in (0, 1)))
    assert whole - two > 1.0
    assert found.criterion[1] - found.criterion[0] < whole - two  # a box can be halved too


@pytest.fixture(scope="module")
def groups():
    X, truth = clouds(3, 36, apart=5.0)
    snapshot = snapshot_of(planted_triplets(np.random.default_rng(3), X, 6000, 0.05))
    return snapshot, truth


def agreement(snapshot, truth, labels) -> float:
    return adjusted_rand_score(truth[[int(name[1:]) for name in snapshot.objects]], labels)


@pytest.mark.parametrize("name", ["k1", "k2", "adds3", "embedding", "k2_window", "k1_decayed"])
def test_every_similarity_clusters_and_links_planted_groups(groups, name):
    snapshot, truth = groups
    made = spectral.refit(snapshot, spectral.Params(name, k=3), 0)
    assert agreement(snapshot, truth, made.arrays["labels"]) > 0.9
    tree = hierarchy.refit(snapshot, hierarchy.Params(name, "average"), 0)
    cut = np.empty(36, int)
    cut[tree.arrays["leaves"]] = fcluster(tree.arrays["linkage"], 3, "maxclust")
    assert agreement(snapshot, truth, cut) > 0.8
    order = [int(snapshot.objects[i][1:]) for i in tree.arrays["leaves"]]
    if not name.endswith(("window", "decayed")):
        rows = planted_triplets(np.random.default_rng(3), clouds(3, 36, apart=5.0)[0], 6000, 0.05)
        W = adds3(rows, 36)[np.ix_(order, order)]  # whatever was linked
        assert tree.report["revenue"] == {"average": hierarchy.revenue(W, tree.arrays["linkage"])}


def test_the_refit_takes_k_by_either_rule(groups):
    snapshot, truth = groups
    W = similarity_of_snapshot.similarity(snapshot, "embedding").W
    for rule, expected in (("silhouette", 3), ("gap", by_gap(W, 6, 0, lambda *a, **k: None).k)):
        made = spectral.refit(snapshot, spectral.Params("embedding", k_by=rule, most=6), 0)
        assert made.report["k_by"] == rule and int(made.arrays["k"]) == made.report["k"] == expected
        assert len(made.arrays["criterion"]) >= 2
        assert set(by_name(snapshot, made).values()) == set(range(expected))


def test_the_similarity_of_the_embedding_is_minus_its_squared_distance(groups, monkeypatch):
    snapshot, _ = groups
    X = points(snapshot).X
    W = similarity_of_snapshot.similarity(snapshot, "embedding").W
    np.testing.assert_allclose(W, -((X[:, None] - X) ** 2).sum(axis=2), atol=1e-9)
    labels = np.arange(36) % 4
    inertia = sum(((X[labels == c] - X[labels == c].mean(axis=0)) ** 2).sum() for c in range(4))
    assert partition.value(W, labels) == pytest.approx(-2 * inertia)  # kernel k-means on it is k-means
    assert similarity_of_snapshot.resampled(snapshot, "embedding", np.random.default_rng(0)) is None
    monkeypatch.setattr(similarity_of_snapshot, "DENSE_LIMIT", 30)
    with pytest.raises(CannotRefit, match="spectral: similarity embedding: got 36 objects, expected at most 30"):
        spectral.refit(snapshot, spectral.Params("embedding", k=2), 0)
    assert symmetric_matrices.DENSE_LIMIT == 4096


def test_the_shift_changes_every_partition_into_k_clusters_by_the_same():
    """Kernel k-means does without lambda_min on the diagonal (Kleindessner & von Luxburg 2017, sec. 2.1)."""
    rng = np.random.default_rng(0)
    K = gram(rng.normal(size=(12, 3)))
    for k in (2, 3):
        differences = []
        for _ in range(5):
            labels = np.append(np.arange(k), rng.integers(0, k, 12 - k))
            X = partition.normalised(labels)
            differences.append(float((X * (K - 0.7 * np.eye(12))).sum()) - partition.value(K, labels))
        np.testing.assert_allclose(differences, -0.7 * k)
