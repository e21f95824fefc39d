"""The low-rank metric against its formula, and planted metrics recovered."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad

from stream_engine.kernel_learning import metric


def slow_loss(made, rows, weight, features):
    total = 0.0
    for (i, j, k, l), w in zip(rows.tolist(), weight.tolist()):
        near, far = (((made @ (features[a] - features[b])) ** 2).sum() for a, b in ((i, j), (k, l)))
        total += w * np.log1p(np.exp(near - far))
    return total


@given(st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_the_loss_is_its_formula_and_the_gradient_its_derivative(seed):
    rng = np.random.default_rng(seed)
    n, width, d = int(rng.integers(3, 8)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    features, made = rng.normal(size=(n, width)), rng.normal(size=(d, width)) / 2
    rows = rng.integers(0, n, (int(rng.integers(1, 20)), 4))
    weight = rng.uniform(0.5, 3, len(rows))
    assert metric._loss(made, rows, weight, features)[0] == pytest.approx(slow_loss(made, rows, weight, features))
    value = lambda flat: metric._loss(flat.reshape(d, width), rows, weight, features)[0]  # noqa: E731
    slope = lambda flat: metric._loss(flat.reshape(d, width), rows, weight, features)[1].ravel()  # noqa: E731
    size = np.abs(slope(made.ravel())).max() + 1.0
    assert check_grad(value, slope, made.ravel()) < 1e-5 * size * made.size


def test_what_tells_is_found_among_what_does_not():
    """Two of eight features make the answers; the others are as large and are ignored."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 8))
    rows = np.array([rng.choice(40, 3, replace=False) for _ in range(3000)])[:, [0, 1, 0, 2]]
    seen = features[:, :2]
    near, far = (((seen[rows[:, a]] - seen[rows[:, b]]) ** 2).sum(axis=1) for a, b in ((0, 1), (2, 3)))
    rows = np.where((near < far)[:, None], rows, rows[:, [2, 3, 0, 1]])
    found = metric.fit(rows, np.ones(len(rows)), features, 2, 1e-4)
    told = (found.map**2).sum(axis=0)
    assert told[:2].min() > 30 * told[2:].max() and found.loss < 0.15
    assert found.objective == pytest.approx(found.loss + 1e-4 * (found.map**2).sum())
    heavy = metric.fit(rows, np.ones(len(rows)), features, 2, 1e3)
    assert np.abs(heavy.map).max() < 1e-2 and heavy.loss == pytest.approx(np.log(2), abs=1e-3)
    alike = metric.fit(np.repeat(rows, 2, axis=0), np.full(2 * len(rows), 0.5), features, 2, 1e-4)
    assert alike.objective == pytest.approx(found.objective, rel=1e-4)


@pytest.mark.parametrize("features", [np.zeros((4, 3)), np.ones((4, 1)), np.eye(4)[:, :2]])
def test_poor_features_do_no_harm(features):
    made = metric.fit(np.array([[0, 1, 0, 2], [3, 0, 3, 1]]), np.ones(2), features, 3, 0.1)
    assert np.isfinite(made.map).all() and made.loss <= np.log(2) + 1e-9
