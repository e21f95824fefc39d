"""The benchmark of Kleindessner & von Luxburg 2017 at small sizes: what it draws and counts is what it says."""

import numpy as np
import pytest

from stream_engine.counts import kernels
from stream_engine.counts.landmark_designs import landmarks2
from stream_engine.data.triplet_columns import columns_from_triplets
from tests.benchmarks import kleindessner


@pytest.mark.parametrize("which", ["k1", "k2"])
def test_landmark_answers_are_those_of_the_design(which):
    rng = np.random.default_rng(0)
    points, marks = rng.normal(size=(40, 3)), np.array([3, 9, 20, 31])
    rows = kleindessner.landmark_triplets(points, marks, which, 10_000, 0.0, rng)
    D = ((points[:, None] - points) ** 2).sum(axis=2)
    assert (D[rows[:, 0], rows[:, 1]] < D[rows[:, 0], rows[:, 2]]).all()
    assert len(np.unique(rows, axis=0)) == (len(rows) if which == "k1" else len(np.unique(rows, axis=0)))
    if which == "k1":
        assert np.isin(rows[:, 1:], marks).all() and len(rows) == 36 * 6 + 4 * 3
        assert kernels.landmarks(columns_from_triplets(rows, 40)).tolist() == marks.tolist()
    else:
        assert np.isin(rows[:, 0], marks).all() and np.isin(rows[:, 1:], marks).any(axis=1).all()
        assert landmarks2(columns_from_triplets(rows, 40)).tolist() == marks.tolist()
    wrong = kleindessner.landmark_triplets(points, marks, which, 10_000, 0.3, rng)
    assert 0.2 < (D[wrong[:, 0], wrong[:, 1]] > D[wrong[:, 0], wrong[:, 2]]).mean() < 0.4


def test_purity_and_a_clustering_of_easy_points():
    assert kleindessner.purity(np.array([0, 0, 1, 1, 1]), np.array([5, 5, 2, 2, 5])) == 0.8
    rng = np.random.default_rng(1)
    truth = np.arange(60) % 3
    points = rng.normal(size=(60, 2)) + 8 * np.stack([truth == 1, truth == 2], axis=1)
    for which in kleindessner.KERNELS:
        row = kleindessner.clustered(points, truth, which, 8, 1500, 0.0, 0)
        assert row["purity"] > 0.9
        assert row["purity, points"] > 0.95
        assert row["purity, random"] < 0.7
