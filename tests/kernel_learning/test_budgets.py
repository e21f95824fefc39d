"""Solvers that are cut short: a budget of iterations is held, and what comes back is the best point with its own
objective and a bound that holds; weights in units far from 1."""

import numpy as np
import pytest
from scipy.optimize import linprog

from stream_engine.kernel_learning import factored, linear, mkpoe, rckl
from stream_engine.kernel_learning.gram_comparisons import triplet_rows
from stream_engine.kernel_learning.problem import Problem
from tests.support import kernel_reference as reference

BUDGETS = (0, 1, 2, 9, 10, 11, 19, 20, 21, 37)


def world(loss, variant="ak"):
    """A problem that no solver ends in 37 iterations at 1e-12."""
    points, triplets = reference.planted(3, 14, 150)
    return rckl.build(triplets, None, reference.helpful_kernels(points), 14, variant, loss, 1.0, 0.02)


@pytest.mark.parametrize("loss", ["ste", "hinge"])
def test_a_budget_is_held_and_the_best_point_comes_back_with_its_own_objective(loss):
    problem = world(loss)
    best = factored.solve(problem, tolerance=3e-5).certificate  # rounding decides where between 1e-5 and this it ends
    assert (best.objective - best.bound) <= 3e-5 * best.objective
    told = []
    for most in (*BUDGETS, 251):
        found = factored.solve(problem, None, None, 1e-12, most, progress=lambda *at, **_: told.append(at))
        objective, bound, _ = found.certificate
        assert found.iterations <= most + 1 and not found.converged
        assert objective == pytest.approx(reference.objective_of(problem, found.point), rel=1e-9)
        np.testing.assert_allclose(found.x, reference.excess_of(problem, *found.point), atol=1e-9)
        assert bound <= best.objective and best.bound <= objective
        assert all(done <= total == most for done, total in told)
        told.clear()
    assert objective < 0.9 * problem.weight.sum()


def test_a_linear_program_holds_its_budget_and_its_bounds_close_on_the_optimum():
    rng = np.random.default_rng(2)
    d = rng.normal(size=(60, 40)) - 0.05
    weight, cost = np.full(60, 1e5 / 60), rng.uniform(0.5, 1.5, 40)
    whole = linprog(np.concatenate([cost, weight]), A_ub=np.hstack([d, -np.eye(60)]), b_ub=-np.ones(60)).fun
    for most in BUDGETS:
        told = []
        found = linear.solve(
            linear.dense_map(d, cost), weight, 1e-9, None, most, lambda *at, told=told, **_: told.append(at)
        )
        objective, bound, _ = found.certificate
        assert found.iterations == most and not found.converged
        assert bound <= whole * (1 + 1e-9) and whole <= objective * (1 + 1e-9)
        assert objective == pytest.approx(cost @ found.mu + weight @ np.maximum(0, 1 + d @ found.mu))
        assert all(done <= total == most for done, total in told)
    points, triplets = reference.planted(3, 14, 150)
    kernels, rows = reference.helpful_kernels(points), triplet_rows(triplets)
    for most in (1, 4):
        learned = rckl.fit(
            triplets, 14, kernels, form="mkl", loss="hinge", lambda2=1e-3, tolerance=1e-12, max_iterations=most
        )
        embedded = mkpoe.fit(rows, kernels, 3000.0, diagonal=True, tolerance=1e-12, max_iterations=most)
        by_features = mkpoe.fit_linear(rows, points, 3000.0, diagonal=True, tolerance=1e-12, max_iterations=most)
        for each in (learned, embedded, by_features):
            assert each.iterations <= most and (not each.converged or each.gap <= 1e-12)
        assert not embedded.converged


def two_kernels(small):
    """mu = (1, small) is the optimum of a problem in which the second kernel counts: its entries are 1 / small."""
    rows = np.array([[0, 1, 0, 2], [0, 1, 0, 2], [0, 2, 0, 1], [1, 0, 1, 2]], np.int32)
    columns = np.array([[-1.0, 0.0], [-2.0, 1.0 / small], [0.5, -2.0 / small], [0.0, 0.3 / small]])
    return Problem(3, rows, np.full(4, 2.0), "ste", (), np.empty(0), np.empty(0), columns, np.array([1e-3, 1e-3]))


@pytest.mark.parametrize("small", [1e-4, 1e-8])
def test_a_weight_that_is_tiny_beside_another_stays_where_it_counts(small):
    """Weights are in units of the kernels: one whose entries are large has a small weight, and is not noise."""
    problem = two_kernels(small)
    found = factored.solve(problem, tolerance=1e-6)
    assert found.converged
    assert found.point.mu[1] > 0
    assert found.gap <= 1e-6
    cheap = two_kernels(1.0)._replace(column_cost=np.array([1e-3, 1e-3 * small]))  # in other units
    same = factored.solve(cheap, tolerance=1e-6)
    assert found.certificate.objective == pytest.approx(same.certificate.objective, rel=2e-6)
    np.testing.assert_allclose(found.point.mu * [1.0, 1 / small], same.point.mu, rtol=0.05)
