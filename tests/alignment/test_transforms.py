"""What is learned on features: against definitions in numpy, scikit-learn's logistic regression, and RCKL."""

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from sklearn.linear_model import LogisticRegression

from stream_engine.alignment import transforms
from stream_engine.kernel_learning import rckl
from tests.support.feature_worlds import world
from tests.support.plain_answers import unnamed

WORLD = world(0, n=25, m=1500, weights=(2.0, 1.0, 0.5))
X = WORLD.features - WORLD.features.mean(axis=0)
TIMES = np.random.default_rng(1).integers(1, 3, len(WORLD.rows)).astype(float)
ANSWERS = unnamed(WORLD.rows, TIMES)


def differences(x, rows):
    """(m, d) squared differences of the far pair less those of the near one."""
    i, j, k, l = (x[column] for column in rows.T)
    return (k - l) ** 2 - (i - j) ** 2


def test_margins_are_differences_of_squared_distances():
    np.testing.assert_allclose(transforms.margins(X, WORLD.rows), differences(X, WORLD.rows).sum(axis=1))


def test_weights_without_penalty_are_a_logistic_regression_on_differences():
    """Where its coefficients are positive; answers are turned round at random, as it needs both classes."""
    z, sign = differences(X, WORLD.rows), np.random.default_rng(2).choice([-1.0, 1.0], len(WORLD.rows))
    model = LogisticRegression(C=1e8, fit_intercept=False, tol=1e-10, max_iter=1000)
    expected = model.fit(z * sign[:, None], sign, sample_weight=TIMES).coef_[0]
    assert (expected > 0.1).all()
    np.testing.assert_allclose(next(transforms.weights(X, ANSWERS, [0.0], gain=1e-14)), expected, rtol=1e-4)


@pytest.mark.parametrize("ridge", [0.5, 50.0])
def test_weights_with_a_penalty_minimise_their_objective(ridge):
    z = differences(X, WORLD.rows)

    def objective(w):
        return TIMES @ np.logaddexp(0.0, -z @ w) + ridge / 2 * ((w - w.mean()) ** 2).sum()

    best = minimize(objective, np.ones(3), bounds=[(0, None)] * 3, options={"ftol": 1e-14, "gtol": 1e-8})
    found = next(transforms.weights(X, ANSWERS, [ridge], gain=1e-14))
    assert objective(found) <= best.fun + 1e-6 * abs(best.fun)
    np.testing.assert_allclose(found, best.x, atol=2e-3)


def test_a_large_penalty_leaves_features_as_they_are_times_one_factor():
    alike = next(transforms.weights(X, ANSWERS, [1e9], gain=1e-14))
    assert np.ptp(alike) < 1e-4 and alike.mean() == pytest.approx(transforms.slope(X, ANSWERS), rel=0.02)
    made = next(transforms.linear_maps(X, ANSWERS, [1e9], gain=1e-14))
    np.testing.assert_allclose(made, np.sqrt(alike.mean()) * np.eye(3), atol=2e-3)


def test_a_weight_is_never_negative_and_a_dimension_that_tells_nothing_gets_little():
    made = world(3, n=25, m=3000, weights=(2.0, 1.0, 0.0, 0.0))
    w = next(transforms.weights(made.features, unnamed(made.rows), [1e-3]))
    assert (w >= 0).all() and w[2:].max() < 0.1 * w[:2].min()


def test_a_linear_map_minimises_its_objective_and_finds_a_rotated_world():
    made = world(4, n=25, m=4000, weights=(3.0, 1.0, 0.0))
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    z, ridge = made.features @ turn, 0.1
    answers = unnamed(made.rows)
    found = next(transforms.linear_maps(z, answers, [ridge], gain=1e-14))

    def objective(v):
        w = v.reshape(3, 3)
        off = w - np.trace(w) / 3 * np.eye(3)
        return np.logaddexp(0.0, -differences(z @ w, made.rows).sum(axis=1)).sum() + ridge / 2 * (off**2).sum()

    numeric = np.array([objective(found.ravel() + 1e-5 * e) - objective(found.ravel() - 1e-5 * e) for e in np.eye(9)])
    assert np.abs(numeric / 2e-5).max() < 1e-3 * len(made.rows) ** 0.5
    metric, expected = turn @ found @ found.T @ turn.T, np.diag([3.0, 1.0, 0.0])
    assert np.abs(metric / metric[0, 0] - expected / 3).max() < 0.1


@pytest.mark.parametrize("linear", [False, True])
def test_gradients(linear):
    """By differences, through the function that is minimised."""
    told = []

    def keep(objective, start, gain, bounds):
        at = np.abs(np.random.default_rng(6).normal(size=start.shape)) + 0.1
        told.append(check_grad(lambda v: objective(v)[0], lambda v: objective(v)[1], at))
        return start

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transforms, "_descended", keep)
        next((transforms.linear_maps if linear else transforms.weights)(X, ANSWERS, [3.0]))
    assert told[0] < 1e-5


def test_the_combination_is_rckl_mkl_of_the_sets():
    """The same weights as `rckl.fit` of kernels, form mkl, at the same cost."""
    sets = [X[:, :1], X[:, 1:], np.random.default_rng(7).normal(size=X.shape)]
    columns = np.stack([-differences(x, WORLD.rows).sum(axis=1) for x in sets], axis=1)
    mu = transforms.combination(columns, ANSWERS)
    kernels = [x @ x.T for x in sets]
    triplets = WORLD.rows[:, [0, 1, 3]]
    made = rckl.build(triplets, TIMES, kernels, len(X), "mkl", "ste", 1.0, 1.0)
    np.testing.assert_allclose(made.columns, columns, atol=1e-9)
    cost = transforms.MU_PENALTY * rckl.largest_lambdas(made)[1]
    expected = rckl.fit(triplets, len(X), kernels, form="mkl", loss="ste", lambda2=cost, weight=TIMES, tolerance=1e-6)
    np.testing.assert_allclose(mu, expected.mu, atol=0.02)
    assert mu[2] < 0.1 * mu[1] and (mu >= 0).all()


def test_components_are_principal_axes_of_few_and_of_many_dimensions():
    for shape in ((30, 5), (5, 30)):
        x = np.random.default_rng(8).normal(size=shape)
        x -= x.mean(axis=0)
        axes = transforms.components(x)
        assert axes.shape == (shape[1], min(shape[1], len(x) - (shape[1] > len(x))))
        np.testing.assert_allclose(axes.T @ axes, np.eye(axes.shape[1]), atol=1e-9)
        np.testing.assert_allclose((x @ axes) @ (x @ axes).T, x @ x.T, atol=1e-9)
