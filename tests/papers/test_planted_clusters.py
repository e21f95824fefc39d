"""The planted model of Perrot, Esser & Ghoshdastidar 2020: recovered where the paper says so, at a fifth of its size.

The figures are rows of `python -m tests.benchmarks papers --only perrot2020`.
"""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from stream_engine.clustering import partition
from stream_engine.refits.sdp_clustering import spur
from tests.benchmarks import planted_clusters
from tests.support.planted_similarities import planted_adds3, planted_adds4


def labels_of(choice):
    solution = choice.solution
    return solution.labels if solution.labels is not None else partition.k_means(solution.rows, choice.k, 0)


@pytest.mark.parametrize("made", [planted_adds3, planted_adds4], ids=["AddS-3", "AddS-4"])
def test_enough_comparisons_recover_the_clusters_exactly_without_knowing_k(made):
    W, labels, c = made(200, 4, 4.0)
    choice = spur(W, c, tol=1e-2)
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
