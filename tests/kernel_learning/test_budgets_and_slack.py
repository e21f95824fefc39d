"""Solvers that are cut short, and certificates where the slack decides: a budget of iterations is held, what comes back
is the best point with its own objective and a bound that holds, and a hair more than the slack is refused."""

import numpy as np
import pytest
from scipy.optimize import linprog

from stream_engine.kernel_learning import factored, linear, mkpoe, pair_lists, rckl
from stream_engine.kernel_learning.pair_lists import triplet_rows
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
    best = factored.solve(problem, tolerance=1e-5).certificate
    assert (best.objective - best.bound) <= 1e-5 * best.objective
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


# --- what is a hair beyond the slack ------------------------------------------------------------------------------


def test_a_proof_by_cholesky_allows_what_it_says_and_no_more():
    """`factored.proven`: y within SLACK of what is feasible comes back shrunk by that; beyond it, by as much as is
    needed. What comes back is feasible, by all eigenvalues."""
    problem = world("hinge", "t")
    lists, y = pair_lists.of_rows(problem.rows, problem.n), 0.3 * problem.weight
    least = lambda y: np.linalg.eigvalsh(reference.dual_blocks(problem, y)[0][0])[0]  # noqa: E731
    tight = y / (least(y) / -problem.trace_cost[0])
    for factor in (0.5, 1.0, 1 + 0.9 * factored.SLACK):
        np.testing.assert_allclose(
            factored.proven(problem, lists, factor * tight), factor * tight / (1 + factored.SLACK)
        )
    for factor in (1 + 1.1 * factored.SLACK, 1 + 1e-4, 1.5, 40.0):
        made = factored.proven(problem, lists, factor * tight)
        assert (made < factor * tight / (1 + 1.05 * factored.SLACK)).all()
        assert least(made) >= -problem.trace_cost[0]


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
    assert found.converged and found.point.mu[1] > 0 and found.gap <= 1e-6
    cheap = two_kernels(1.0)._replace(column_cost=np.array([1e-3, 1e-3 * small]))  # in other units
    same = factored.solve(cheap, tolerance=1e-6)
    assert found.certificate.objective == pytest.approx(same.certificate.objective, rel=2e-6)
    np.testing.assert_allclose(found.point.mu * [1.0, 1 / small], same.point.mu, rtol=0.05)


def test_factors_lose_what_is_tiny_up_to_a_share_of_the_tolerance():
    """The same for factors: a column of L whose eigenvalue is 5e-7 of the largest goes if the objective rises by at
    most 2 % of the tolerance."""
    problem = world("ste", "t")
    root = np.linalg.qr(np.random.default_rng(0).normal(size=(14, 3)))[0] * np.sqrt([1.0, 1e-2, 5e-7])
    lists, point = pair_lists.of_rows(problem.rows, problem.n), factored.Point([root], np.empty(0))
    problem = problem._replace(trace_cost=np.full(1, 1e-9))  # else what is tiny costs more than it is worth
    whole = reference.objective_of(problem, point)
    short = reference.objective_of(problem, factored.Point([root[:, :2]], np.empty(0)))
    rise = short / whole - 1
    assert rise > 1e-9
    for share, columns in ((0.99, 3), (1.01, 2)):
        found = factored._trimmed(problem, lists, point, share * rise / 0.02)
        assert found.point.roots[0].shape[1] == columns
        assert found.certificate.objective == pytest.approx(whole if columns == 3 else short, rel=1e-12)


@pytest.mark.parametrize("loss", ["ste", "hinge"])
def test_a_descent_begins_where_it_is_told_to_and_never_ends_above(loss):
    """Also where the columns are of sizes far from 1, and are thus measured in other units inside."""
    problem = world(loss)
    problem = problem._replace(columns=problem.columns * np.array([1e3, 1.0, 1e-3])[: problem.columns.shape[1]])
    lists, rng = pair_lists.of_rows(problem.rows, problem.n), np.random.default_rng(0)
    point = factored.Point([rng.normal(size=(14, 2))], np.array([1e-3, 1.0, 1e3])[: problem.columns.shape[1]])
    smoothing = factored._Smoothing(np.zeros(150), 10.0 * problem.weight)
    begin = factored._smooth(problem, lists, point, smoothing)[0]
    values = [begin]
    for most in (1, 3, 30):
        found, used = factored._descended(problem, lists, point, smoothing, begin, 1e-12, most)
        assert used <= most and (found.mu >= 0).all()
        values.append(factored._smooth(problem, lists, found, smoothing)[0])
    assert values == sorted(values)[::-1] and values[-1] < 0.9 * begin
    stuck, used = factored._descended(problem, lists, found, smoothing, begin, 1e30, 1)  # any gain is enough
    assert factored._smooth(problem, lists, stuck, smoothing)[0] <= values[-1] * (1 + 1e-12)


def test_tiny_is_beside_the_largest_however_small_that_is():
    problem = world("ste")
    lists = pair_lists.of_rows(problem.rows, problem.n)
    mu = np.array([1e-7, 5e-8, 5e-14])[: problem.columns.shape[1]]
    found = factored._trimmed(problem, lists, factored.Point([np.zeros((14, 0))], mu), 1e-3)
    assert found.point.mu.tolist() == [1e-7, 5e-8, 0.0][: len(mu)]
