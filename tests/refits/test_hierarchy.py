"""Linkage on AddS and the comparison-based revenue, against their definitions."""

from itertools import combinations

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, is_valid_linkage, linkage
from sklearn.metrics import adjusted_rand_score

from stream_engine.refits.hierarchy import METHODS, Params, refit, revenue, revenue_bound, tree
from tests.support.generators import planted_triplets
from tests.support.planted_similarities import adds3, snapshot_of


def under(made: np.ndarray, m: int) -> np.ndarray:
    """|H(i v j)| for all pairs, from the tree's sets of leaves."""
    sets, size = [{i} for i in range(m)], np.zeros((m, m))
    for left, right, _, _ in made:
        a, b = sets[int(left)], sets[int(right)]
        for i in a:
            for j in b:
                size[i, j] = size[j, i] = len(a) + len(b)
        sets.append(a | b)
    return size


@pytest.mark.parametrize("seed", range(5))
def test_revenue_is_the_sum_over_triplets(seed):
    """Mandal, Perrot & Ghoshdastidar 2023: |H(i v k)| - |H(i v j)| summed over the triplets (i, j, k)."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(3, 12))
    triplets = np.array([rng.choice(m, 3, replace=False) for _ in range(80)])
    made = linkage(rng.normal(size=(m, 2)), "single")
    size = under(made, m)
    expected = sum(size[i, k] - size[i, j] for i, j, k in triplets)
    W = adds3(triplets, m)
    assert revenue(W, made) == expected
    assert expected == -sum(W[i, j] * size[i, j] for i, j in combinations(range(m), 2))
    assert expected <= revenue_bound(W)


def naive(W: np.ndarray, method: str) -> list[frozenset]:
    """Clusters in the order of their making, merging the pair of largest average (or least) similarity."""
    clusters, made = [frozenset([i]) for i in range(len(W))], []
    score = np.mean if method == "average" else np.min
    while len(clusters) > 1:
        a, b = max(combinations(clusters, 2), key=lambda p: score(W[np.ix_(sorted(p[0]), sorted(p[1]))]))
        clusters = [c for c in clusters if c not in (a, b)] + [a | b]
        made.append(a | b)
    return made


@pytest.mark.parametrize("method", METHODS)
def test_linkage_merges_by_similarity(method):
    rng = np.random.default_rng(1)
    for _ in range(5):
        G = rng.normal(size=(9, 9))
        W = G + G.T
        np.fill_diagonal(W, 0)
        made = tree(W, method).linkage
        assert is_valid_linkage(made)
        sets = [frozenset([i]) for i in range(9)]
        for left, right, _, count in made:
            sets.append(sets[int(left)] | sets[int(right)])
            assert len(sets[-1]) == count
        assert set(sets[9:]) == set(naive(W, method))


def test_a_planted_hierarchy_is_recovered_and_earns_more_than_a_random_tree():
    rng = np.random.default_rng(2)
    points = np.concatenate([rng.normal(at, 0.3, (10, 2)) for at in ((0, 0), (0, 4), (20, 0), (20, 4))])
    truth = np.repeat([0, 1, 2, 3], 10)
    triplets = planted_triplets(rng, points, 12_000, 0.05)
    snapshot = snapshot_of(triplets)
    made = refit(snapshot, Params(), 0)
    numbers = np.array([int(snapshot.objects[i][1:]) for i in made.arrays["leaves"]])
    for k, classes in ((2, truth // 2), (4, truth)):
        cut = fcluster(made.arrays["linkage"], k, "maxclust")
        assert adjusted_rand_score(classes[numbers], cut) == 1
    W = adds3(triplets, 40)[np.ix_(numbers, numbers)]
    assert float(made.arrays["revenue"]) == revenue(W, made.arrays["linkage"])
    assert made.report["revenue_per_comparison"] == pytest.approx(float(made.arrays["revenue"]) / len(triplets))
    assert float(made.arrays["revenue"]) > 3 * revenue(W, linkage(rng.normal(size=(40, 1)), "average"))
    assert set(made.report["revenue"]) == set(METHODS) and made.report["method"] == max(
        made.report["revenue"], key=made.report["revenue"].get
    )
    one = refit(snapshot, Params(method="complete"), 0)
    assert one.report["method"] == "complete" and list(one.report["revenue"]) == ["complete"]
