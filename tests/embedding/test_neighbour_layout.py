"""The neighbour layout: its gradient, and its divergence beside that of scikit-learn."""

import numpy as np
import pytest
from sklearn.manifold import TSNE

from stream_engine.embedding import neighbour_layout
from stream_engine.embedding.neighbour_layout import divergence, slopes


def joint_of(points, perplexity):
    return neighbour_layout._joint(neighbour_layout.squared_distances(points), np.log(perplexity))


def test_every_point_has_as_many_neighbours_as_the_perplexity_says():
    points = np.random.default_rng(0).normal(size=(60, 4))
    joint = joint_of(points, 12.0)
    assert joint.sum() == pytest.approx(1.0)
    assert np.array_equal(joint, joint.T)
    assert not joint.diagonal().any()
    alike = joint_of(np.eye(20), 10.0)  # all equally far apart
    assert alike[~np.eye(20, dtype=bool)] == pytest.approx(1 / 380)
    rings = np.concatenate([np.eye(8), 100.0 + np.eye(8)])  # seven neighbours each, and the others are out of sight
    assert joint_of(rings, 7.0)[0] * 16 == pytest.approx([0.0] + 7 * [1 / 7] + 8 * [0.0], abs=1e-5)


def test_the_slopes_are_those_of_the_divergence():
    rng = np.random.default_rng(1)
    joint, positions = joint_of(rng.normal(size=(30, 3)), 8.0), rng.normal(size=(30, 2))
    found = slopes(positions, joint.astype(np.float32))
    for at in ((0, 0), (7, 1), (29, 0)):
        there = np.zeros(positions.shape)
        there[at] = 1e-5
        expected = (divergence(positions + there, joint) - divergence(positions - there, joint)) / 2e-5
        assert found[at] == pytest.approx(expected, rel=1e-3, abs=1e-6)


def test_it_ends_as_low_as_scikit_learn():
    ours, theirs = 0.0, 0.0
    for seed in range(6):  # each may end in another of many minima
        points = np.random.default_rng(seed).normal(size=(100, 5))
        start, joint = 1e-4 * points[:, :2], joint_of(points, 15.0)
        whole = float(joint[joint > 0] @ np.log(joint[joint > 0]))
        exact = TSNE(2, perplexity=15.0, init=start, method="exact", random_state=0).fit_transform(points)
        ours += whole + divergence(neighbour_layout.neighbour_layout(points, 15.0, start), joint)
        theirs += whole + divergence(exact.astype(float), joint)
    assert ours <= 1.05 * theirs, (ours, theirs)


def test_points_in_one_place_stay_there():
    assert not neighbour_layout.neighbour_layout(np.zeros((40, 3)), 10.0, np.zeros((40, 2))).any()
