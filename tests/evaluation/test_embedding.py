"""Coordinates, their steadiness, neighbours and dendrograms, against definitions and scikit-learn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist, squareform

from stream_engine.evaluation import coordinates as embedding


def world(seed, n, d):
    return np.random.default_rng(seed).normal(size=(n, d)) + 3.0


@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_kernel_pca_gives_back_the_points(seed, n, d):
    """All axes: distances are those of the kernel; axes are uncorrelated, by decreasing variance, and signed."""
    points = world(seed, n, d)
    found = embedding.kernel_pca(points @ points.T, d)
    np.testing.assert_allclose(pdist(found.points), pdist(points), atol=1e-7)
    np.testing.assert_allclose(found.points.mean(axis=0), 0, atol=1e-6)
    spread = found.points.T @ found.points
    np.testing.assert_allclose(spread, np.diag(np.diag(spread)), atol=1e-7)
    assert (np.diff(found.explained) <= 1e-12).all() and abs(found.explained.sum() - 1) < 1e-8
    for axis in found.points.T[: min(d, n - 1)]:
        assert axis[np.argmax(np.abs(np.round(axis, 9)))] >= 0


def test_axes_that_are_not_there_are_zero():
    assert not embedding.kernel_pca(np.ones((3, 3)), 2).points.any()  # all objects in one place
    assert embedding.kernel_pca(np.empty((0, 0)), 2).points.shape == (0, 2)
    assert embedding.kernel_pca(np.ones((1, 1)), 2).points.tolist() == [[0.0, 0.0]]
    indefinite = np.diag([1.0, -5.0, 2.0])
    assert np.isfinite(embedding.kernel_pca(indefinite, 3).points).all()
    one = embedding.kernel_pca(np.outer([0, 1, 3.0], [0, 1, 3.0]), 3).points
    assert one[:, 1:].any() == False and np.ptp(one[:, 0]) > 2.9  # noqa: E712


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_pictures_do_not_flip(seed):
    """Turned, mirrored and moved coordinates of the same objects come back; shape is never changed; new objects
    follow."""
    rng = np.random.default_rng(seed)
    before = world(seed, 9, 3)
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    after = (np.concatenate([before, world(seed + 1, 2, 3)]) - 1.0) @ turn
    common = np.arange(9)
    back = embedding.aligned(after, before, common)
    np.testing.assert_allclose(pdist(back), pdist(after), atol=1e-9)
    centre = lambda p: p - p[:9].mean(axis=0)  # noqa: E731
    np.testing.assert_allclose(centre(back)[:9], centre(before), atol=1e-9)
    none = np.arange(0)
    assert embedding.aligned(after, before, none) is after
    assert embedding.aligned(after, before[:, :2], common) is after


def test_coordinates_of_a_choice_are_its_own_and_what_else_is_known_lies_on_its_axes():
    points, ids = world(5, 9, 2), np.array([0, 2, 3, 6])
    gram, known = points[ids] @ points[ids].T, np.arange(9) != 4
    for rows, more in ((ids, {}), (np.flatnonzero(known), {"factor": points * known[:, None], "has_place": known})):
        found = embedding.coordinates(gram, ids, 9, 2, **more)["coordinates"]
        np.testing.assert_allclose(pdist(found[rows]), pdist(points[rows]), atol=1e-9)
        assert not np.delete(found, rows, axis=0).any()
    turned, both = points @ np.array([[0.6, 0.8], [0.8, -0.6]]), [2, 3, 6]
    before = embedding.previous_map({"coordinates": turned, "known": np.isin(np.arange(9), [1, *both])})
    again = embedding.coordinates(gram, ids, 9, 2, before)["coordinates"][both]
    np.testing.assert_allclose(again - again.mean(axis=0), turned[both] - turned[both].mean(axis=0), atol=1e-9)
    assert embedding.previous_map({"coordinates": turned[0]}) is embedding.previous_map({}) is None


def test_squared_distances_against_their_definition():
    points = world(4, 12, 2)
    gram = points @ points.T
    d = squareform(pdist(points))
    np.testing.assert_allclose(embedding.squared_distances(gram), d**2, atol=1e-9)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 9])
def test_the_scale_of_margins_is_that_of_all_triples(n):
    points = np.random.default_rng(n).normal(size=(n, 2))
    d = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    apart = [d[i, j] - d[i, k] for i in range(n) for j in range(n) for k in range(n) if len({i, j, k}) == 3]
    expected = np.sqrt(np.mean(np.square(apart))) if apart else 1.0
    assert embedding.margin_scale(points @ points.T) == pytest.approx(expected)
    assert embedding.margin_scale(np.zeros((n, n))) == 1.0 == embedding.margin_scale(np.eye(n))
