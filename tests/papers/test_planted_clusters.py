"""The planted model of Perrot, Esser & Ghoshdastidar 2020: recovered where the paper says so, at a fifth of its size.

The whole figures are made by `python -m tests.benchmarks papers --only perrot2020`.
"""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from stream_engine.clustering import partition
from stream_engine.refits.sdp_clustering import spur
from tests.benchmarks import planted_clusters, usps_clusters
from tests.support.planted_similarities import adds3, planted, planted_adds3, planted_adds4


def labels_of(choice):
    solution = choice.solution
    return solution.labels if solution.labels is not None else partition.k_means(solution.rows, choice.k, 0)


@pytest.mark.parametrize("made", [planted_adds3, planted_adds4], ids=["AddS-3", "AddS-4"])
def test_enough_comparisons_recover_the_clusters_exactly_without_knowing_k(made):
    W, labels, c = made(200, 4, 4.0)
    choice = spur(W, c, tol=1e-3)
    assert choice.k == 4 and adjusted_rand_score(labels, labels_of(choice)) == 1


def test_few_comparisons_do_not():
    W, labels, c = planted_adds3(200, 4, 1.0)
    assert adjusted_rand_score(labels, labels_of(spur(W, c, tol=1e-2))) < 0.3


def test_the_benchmark_draws_distinct_comparisons_of_its_model():
    rng = np.random.default_rng(0)
    for delta, distribution in ((0.5, "normal"), (0.5, "uniform-beta"), (0.5, "uniform-normal"), (0.1, "normal")):
        w, labels = planted_clusters.similarities(rng, 200, delta, distribution)
        inside = w[(labels[:, None] == labels) & (w != 0)]
        outside = w[labels[:, None] != labels]
        larger = np.mean(rng.choice(inside, 40_000) > rng.choice(outside, 40_000))
        assert larger == pytest.approx((1 + delta) / 2, abs=0.02)
    all_of_them = planted_clusters.triplets_of(rng, np.arange(25.0).reshape(5, 5), 1000, 1.0)
    assert len(all_of_them) == 5 * 4 * 3 // 2
    w = np.arange(400.0).reshape(20, 20)
    w = w + w.T
    t = planted_clusters.triplets_of(rng, w, 2_000, 1.0)
    assert len(np.unique(np.column_stack([t[:, 0], np.sort(t[:, 1:], axis=1)]), axis=0)) == len(t) == 2_000
    assert (w[t[:, 0], t[:, 1]] > w[t[:, 0], t[:, 2]]).all()
    q = planted_clusters.quadruplets_of(rng, w, 1_000, 1.0)
    assert len({frozenset([frozenset(r[:2]), frozenset(r[2:])]) for r in q.tolist()}) == 1_000
    assert all(len(set(r)) == 4 for r in q.tolist()) and (w[q[:, 0], q[:, 1]] >= w[q[:, 2], q[:, 3]]).all()


def test_expectation_of_adds3_under_the_planted_model():
    """E[W] within = 2 p epsilon delta (n - m), between = -2 p epsilon delta (m - 1): equal clusters of size m."""
    n, k, epsilon, delta = 60, 3, 0.75, 0.5
    within, between, rate = [], [], 0
    for seed in range(30):
        triplets, labels = planted(n, k, 3.0, seed, flip=(1 - epsilon) / 2, delta=delta)
        W = adds3(triplets, n)
        same = labels[:, None] == labels
        within.append(W[same & ~np.eye(n, dtype=bool)].mean())
        between.append(W[~same].mean())
        rate += len(triplets) / (n * (n - 1) * (n - 2) / 2) / 30
    m = n // k
    assert np.mean(within) == pytest.approx(2 * rate * epsilon * delta * (n - m), rel=0.1)
    assert np.mean(between) == pytest.approx(-2 * rate * epsilon * delta * (m - 1), rel=0.1)


@pytest.mark.data
@pytest.mark.parametrize("which", ["T_ALL", "T_ALL_REDUCED"])  # the paper's 12,112 triplets are the second
def test_figure_2c_cars_are_two_clusters_and_mulk_finds_the_three_classes_best(judgements, which):
    seen = usps_clusters.cars(judgements, which)
    ari = {name: dict(zip(seen["methods"], row)) for name, row in zip(seen["methods"], seen["ari"])}
    assert seen["k"] == 2 and ari["AddS-3, k=2"]["MulK-3, k=2"] > 0.7 and ari["AddS-3, k=2"]["t-STE, k=2"] > 0.7
    truth = ari["classes"]
    assert max((name for name in truth if name != "classes"), key=truth.get) == "MulK-3, k=3"


@pytest.mark.data
def test_figure_2a_adds_needs_fewer_triplets_than_mulk(judgements, monkeypatch, tmp_path):
    """120 objects of 1 and 7 in the plane of two principal components: t-SNE takes too long here."""
    with np.load(judgements / "usps" / "usps.npz") as file:
        at = np.flatnonzero(np.isin(file["y_test"], (1, 7)))[:120]
        x, y = file["X_test"][at], file["y_test"][at].astype(int)
    plane = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)[0][:, :2]
    monkeypatch.setattr(usps_clusters, "plane", lambda folder: (plane, y))
    results = [
        {"which": which, "objects": 0, "power": power, "found": usps_clusters.digits(judgements, which, power, 0, 0)}
        for which, power in (("1 vs 7", 1.8), ("1 vs 7", 3.0))
    ]
    few, many = (result["found"] for result in results)
    assert few["AddS-3"] > 0.85 and few["MulK-3"] < 0.4 and many["AddS-3"] > 0.85 and many["MulK-3"] > 0.85
    assert (
        few["t-STE"] > 0.8 and few["k-means"] == 1 and few["AddS-3 SPUR"] < few["AddS-3"]
    )  # SPUR finds 3 clusters here
