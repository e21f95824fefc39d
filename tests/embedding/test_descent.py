"""L-BFGS finds the minima that scipy finds, in as many evaluations; no function keeps it from ending; compiled or not,
a fit is the same descent."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from stream_engine.embedding import gradient
from stream_engine.embedding.descent import MEMORY, TRIALS, minimise
from stream_engine.embedding.fit import fit
from tests.support import embedding_reference as reference


def rosenbrock(x):
    return rosen(x), rosen_der(x)


SCALES = 10.0 ** np.linspace(-2, 2, 30)
FEATURES = np.random.default_rng(0).normal(size=(200, 10))


def quadratic(x):
    return 0.5 * float(SCALES @ (x - 1) ** 2), SCALES * (x - 1)


def logistic(x):
    margins = FEATURES @ x + 0.3
    slope = FEATURES.T @ (1 / (1 + np.exp(-margins)) - 0.5)
    return float((np.logaddexp(0, margins) - margins / 2).sum() + (x**2).sum()), slope + 2 * x


WORLDS = {
    "rosenbrock": (rosenbrock, np.tile([-1.2, 1.0], 5)),
    "quadratic": (quadratic, np.zeros(30)),
    "far": (quadratic, np.full(30, 1e4)),
    "logistic": (logistic, np.full(10, 3.0)),
}


@pytest.mark.parametrize("name", WORLDS)
def test_the_minimum_is_scipys_and_as_cheap(name):
    function, start = WORLDS[name]
    ours = minimise(function, start, tolerance=1e-14, max_iterations=2000)
    options = {"maxcor": 12, "ftol": 1e-14, "gtol": 1e-12, "maxiter": 2000}
    scipys = minimize(function, start, jac=True, method="L-BFGS-B", options=options)
    assert ours.converged and ours.value <= scipys.fun + 1e-6 * max(1.0, abs(scipys.fun))
    assert ours.evaluations <= 1.5 * scipys.nfev + 20
    assert ours.value == function(ours.x)[0] and (ours.slope == function(ours.x)[1]).all()


def test_every_iteration_is_better_and_the_last_allowed_one_counts():
    values = [minimise(rosenbrock, np.zeros(6), tolerance=0.0, max_iterations=most) for most in range(8)]
    assert [each.iterations for each in values] == list(range(8)) and not any(each.converged for each in values)
    assert (np.diff([each.value for each in values]) < 0).all()


def test_a_function_without_a_minimum_where_it_is_finite_ends():
    def cliff(x):
        return (float(x[0]), np.ones(1)) if x[0] > -3.7 else (np.nan, np.full(1, np.nan))

    def wall(x):
        return float(x[0]) if x[0] > -3.7 else 100.0, np.ones(1)

    for function in (cliff, wall):
        found = minimise(function, np.zeros(1), tolerance=1e-12, max_iterations=100)
        assert -3.7 < found.x[0] < -3.5 and found.evaluations < 60 * TRIALS
    wrong = minimise(lambda x: (float(x @ x), -2 * x), np.ones(2), tolerance=1e-12, max_iterations=100)
    assert wrong.value == 2.0 and wrong.evaluations <= 1 + TRIALS  # a slope of the other sign


def test_steps_along_which_the_slope_stays_are_not_remembered():
    """A slope that is constant after more steps than are remembered."""
    at: list[np.ndarray] = []

    def straight_later(x):
        at.append(x.copy())
        if len(at) < 40:
            return rosenbrock(x)
        value, slope = rosenbrock(at[38])
        return value + float(slope @ (x - at[38])), slope

    found = minimise(straight_later, np.tile([-1.2, 1.0], 5), tolerance=1e-14, max_iterations=60)
    assert len(at) > 60 and found.iterations > MEMORY and np.isfinite(found.x).all()


@pytest.mark.parametrize("kernel", ["ste", "t-ste"])
def test_without_python_between_evaluations_a_fit_is_the_same(kernel, monkeypatch):
    asked = reference.questions(3)
    compiled = fit(asked, 2, 0.1, kernel=kernel)
    monkeypatch.setattr(gradient, "ALONE", 0)
    called = fit(asked, 2, 0.1, kernel=kernel)
    assert compiled.iterations == called.iterations > 5
    np.testing.assert_allclose(compiled.points, called.points, atol=1e-9)
    assert compiled.objective == pytest.approx(called.objective, rel=1e-12)
