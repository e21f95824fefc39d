"""Solvers that are cut short, and certificates where the slack decides: a budget of iterations is held, what comes back
is the best point with its own objective and a bound that holds, and a hair more than the slack is refused."""

import numpy as np
import pytest
from scipy.optimize import linprog

from stream_engine.kernel_learning import factored, fista, linear, mkpoe, pair_lists, pdhg, rckl
from stream_engine.kernel_learning import problem as form
from stream_engine.kernel_learning.distance_operator import triplet_rows
from stream_engine.kernel_learning.problem import Certificate, Problem
from tests.support import kernel_reference as reference

BUDGETS = (0, 1, 2, 9, 10, 11, 19, 20, 21, 37)


def world(loss, variant="ak"):
    """A problem that no solver ends in 37 iterations at 1e-12."""
    points, triplets = reference.planted(3, 14, 150)
    return rckl.build(triplets, None, reference.helpful_kernels(points), 14, variant, loss, 1.0, 0.02)


def optimum(problem):
    """A point within 1e-6 of the best."""
    solver = fista.solve if problem.loss == "ste" else pdhg.solve
    found = solver(problem, np.zeros(form.point_size(problem)), tolerance=1e-6, max_iterations=50_000)
    assert found.converged
    return found.certificate.objective


def by_definition(problem, u):
    return form.linear_cost(problem, u) + form.losses(problem, form.forward(problem, u))


@pytest.mark.parametrize("loss", ["ste", "hinge"])
def test_a_budget_is_held_and_the_best_point_comes_back_with_its_own_objective(loss):
    problem = world(loss)
    best, u, told = optimum(problem), np.zeros(form.point_size(problem)), []
    solver = {"ste": fista.solve, "hinge": pdhg.solve}[loss]
    for most in (*BUDGETS, 251):  # by then `pdhg` has begun anew
        found = solver(problem, u, tolerance=1e-12, max_iterations=most, progress=lambda *at, **_: told.append(at))
        objective, bound, _ = found.certificate
        assert found.iterations == most and not found.converged
        assert objective == pytest.approx(by_definition(problem, found.u), rel=1e-12) and objective >= bound
        np.testing.assert_allclose(found.x, form.forward(problem, found.u), atol=1e-12)
        assert bound <= best * (1 + 1e-12) and best <= objective * (1 + 1e-6)
        assert objective <= by_definition(problem, u) * (1 + 1e-12)
        assert all(done <= total == most for done, total in told) and (not most or told[-1] == (most, most))
        told.clear()


@pytest.mark.parametrize("loss", ["ste", "hinge"])
def test_a_longer_budget_never_gives_less_at_the_places_that_are_certified(loss):
    problem, solver = world(loss), {"ste": fista.solve, "hinge": pdhg.solve}[loss]
    found = [
        solver(problem, np.zeros(form.point_size(problem)), tolerance=1e-12, max_iterations=20 * i) for i in range(6)
    ]
    objectives, bounds = ([each.certificate[i] for each in found] for i in (0, 1))
    assert objectives == sorted(objectives)[::-1] and bounds == sorted(bounds)
    assert found[5].certificate.gap < 0.9 * found[0].certificate.gap


def test_where_the_objective_rises_in_between_the_better_point_is_kept():
    """FISTA is no descent: from the optimum's neighbourhood its first steps can go up. What was better stays."""
    problem = world("ste", "t")
    near = fista.solve(problem, np.zeros(form.point_size(problem)), tolerance=1e-6)
    old = fista.Solution(near.u, near.x, near.certificate, 0, False)
    worse, better = Certificate(near.certificate.objective + 1, 0.0, near.certificate.dual * 0), near.certificate
    same = fista._better(old, near.u * 0, near.x * 0, worse)
    assert same.u is near.u and same.x is near.x and same.certificate == better
    other = old._replace(u=near.u * 0, x=near.x * 0, certificate=worse)
    taken = fista._better(other, near.u, near.x, better)
    assert taken.u is near.u and taken.x is near.x and taken.certificate == better
    mixed = fista._better(old, near.u * 0, near.x * 0, worse._replace(bound=better.bound * (1 + 1e-9)))
    assert mixed.u is near.u and mixed.certificate[:2] == (better.objective, better.bound * (1 + 1e-9))
    assert not mixed.certificate.dual.any()


@pytest.mark.parametrize("loss", ["ste", "hinge"])
def test_factors_hold_their_budget_and_so_do_whole_blocks_after_them(loss, monkeypatch):
    _, triplets = reference.planted(7, 24, 400)
    problem = rckl.build(triplets, None, [], 24, "t", loss, 1.0, 1.0)
    best, nothing = optimum(problem), np.zeros(form.point_size(problem))
    for most in BUDGETS:
        found = factored.solve(problem, factored.of_whole(problem, nothing), None, 1e-12, most)
        assert found.iterations <= most and not found.converged
        assert found.certificate.bound <= best * (1 + 1e-12) and best <= found.certificate.objective * (1 + 1e-6)
        u = factored.whole(problem, found.point)
        assert found.certificate.objective == pytest.approx(by_definition(problem, u), rel=1e-9)
    monkeypatch.setitem(rckl.LARGE, loss, 24)
    monkeypatch.setattr(factored, "ROUNDS", 2)  # factors end early, so that the others go on with what is left
    monkeypatch.setattr(rckl, "MOST", 15)
    for most in BUDGETS:
        learned = rckl.fit(triplets, 24, form="t", loss=loss, lambda1=1.0, tolerance=1e-12, max_iterations=most)
        assert learned.iterations == most and not learned.converged and learned.gap > 1e-12
        assert learned.bound <= best * (1 + 1e-12) and best <= learned.objective * (1 + 1e-6)


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


@pytest.mark.parametrize("loss", ["ste", "hinge"])
@pytest.mark.parametrize("by", ["block", "column"])
def test_a_dual_point_counts_up_to_its_slack_and_is_shrunk_beyond_it(loss, by):
    """y that just meets the constraint, by a hair less and by a hair more: the first two stay as they are."""
    problem = world(loss, "t" if by == "block" else "mkl")
    u = np.zeros(form.point_size(problem))
    y = 0.3 * problem.weight
    blocks, mu = form.parts(problem, form.backward(problem, y))
    over = (np.linalg.eigvalsh(blocks[0])[0] / -problem.trace_cost[0]) if blocks else (mu / -problem.column_cost).max()
    assert over > 0.1
    tight = y / over
    problem = problem._replace(weight=np.maximum(problem.weight, 1.1 * tight))  # y <= w in any case
    for factor in (1 - 1e-3, 1 - 1e-9, 1 + 1e-9, 1 + 1e-3, 7.0):
        given = np.minimum(factor * tight, problem.weight) if factor < 2 else factor * tight
        problem_of = problem if factor < 2 else problem._replace(weight=10 * problem.weight)
        made = form.certify(problem_of, u, form.forward(problem_of, u), given, form.backward(problem_of, given))
        if factor < 1:
            assert np.array_equal(made.dual, given) and made.bound == max(0.0, form.dual_value(problem_of, given))
        else:
            np.testing.assert_allclose(made.dual, tight, rtol=1e-10)
            assert (made.dual < given).all()
        back, columns = form.parts(problem_of, form.backward(problem_of, made.dual))
        assert all(np.linalg.eigvalsh(each)[0] >= -cost * (1 + 1e-12) for each, cost in zip(back, problem.trace_cost))
        assert (columns >= -problem.column_cost * (1 + 1e-12)).all()


def test_a_proof_by_cholesky_allows_what_it_says_and_no_more():
    """`factored.proven`: y within 1e-7 of what is feasible comes back shrunk by that; beyond it, by as much as is
    needed. What comes back is feasible, by all eigenvalues."""
    problem = world("hinge", "t")
    lists, y = pair_lists.of_rows(problem.rows, problem.n), 0.3 * problem.weight
    least = lambda y: np.linalg.eigvalsh(form.parts(problem, form.backward(problem, y))[0][0])[0]  # noqa: E731
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
    found = rckl.solve(problem, [np.eye(3), np.eye(3)], None, 1e-6, 20_000, lambda *_, **__: None)
    assert found.converged and found.mu[1] > 0 and found.gap <= 1e-6
    cheap = two_kernels(1.0)._replace(column_cost=np.array([1e-3, 1e-3 * small]))  # in other units
    same = rckl.solve(cheap, [np.eye(3), np.eye(3)], None, 1e-6, 20_000, lambda *_, **__: None)
    assert found.objective == pytest.approx(same.objective, rel=2e-6)
    np.testing.assert_allclose(found.mu * [1.0, 1 / small], same.mu, rtol=0.05)


@pytest.mark.parametrize("where", ["weight", "eigenvalue"])
def test_what_is_tiny_goes_up_to_the_tolerance_and_stays_beyond_it(where):
    """A weight, or an eigenvalue, of 5e-7 beside 1: without it the gap is so much, and a tolerance a hair below that
    keeps it."""
    points, triplets = reference.planted(3, 6, 40)
    variant = "mkl" if where == "weight" else "t"
    problem = rckl.build(triplets, None, reference.helpful_kernels(points)[:2], 6, variant, "ste", 1e-3, 1e-3)
    u = np.zeros(form.point_size(problem))
    blocks, mu = form.parts(problem, u)
    if where == "weight":
        problem = problem._replace(columns=problem.columns * [1.0, -1e4 * np.sign(problem.columns[:, 1].sum())])
        mu[:] = 1.0, 5e-7
    else:
        v = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
        blocks[0][:] = v[:, :3] @ np.diag([1.0, 1e-2, 5e-7]) @ v[:, :3].T
    x = form.forward(problem, u)
    objective = by_definition(problem, u)
    bound = objective * (1 - 1e-12)  # as if this were the optimum
    solution = fista.Solution(u, x, Certificate(objective, bound, np.zeros(len(x))), 5, True)
    without, ranks = rckl.trimmed(problem, solution, 1.0)
    rank = [] if where == "weight" else [2]
    assert ranks == rank and without.certificate.bound == bound
    assert without.certificate.objective == pytest.approx(by_definition(problem, without.u), rel=1e-14)
    assert (without.u[1] == 0.0) if where == "weight" else np.linalg.matrix_rank(without.u.reshape(6, 6), tol=1e-9) == 2
    lost = without.certificate.gap
    assert lost > 1e-9
    again, ranks = rckl.trimmed(problem, solution, lost)
    assert ranks == rank and np.array_equal(again.u, without.u)
    kept, ranks = rckl.trimmed(problem, solution, lost * (1 - 1e-9))
    assert kept is solution and ranks == ([] if where == "weight" else [3])
    open_already = solution._replace(certificate=solution.certificate._replace(bound=bound * (1 - 2 * lost)))
    assert rckl.trimmed(problem, open_already, 1e-12)[1] == ([] if where == "weight" else [3])  # it would open it more


def test_factors_lose_what_is_tiny_up_to_a_share_of_the_tolerance():
    """The same for factors: a column of L whose eigenvalue is 5e-7 of the largest goes if the objective rises by at
    most 2 % of the tolerance."""
    problem = world("ste", "t")
    root = np.linalg.qr(np.random.default_rng(0).normal(size=(14, 3)))[0] * np.sqrt([1.0, 1e-2, 5e-7])
    lists, point = pair_lists.of_rows(problem.rows, problem.n), factored.Point([root], np.empty(0))
    problem = problem._replace(trace_cost=np.full(1, 1e-9))  # else what is tiny costs more than it is worth
    whole = by_definition(problem, factored.whole(problem, point))
    short = by_definition(problem, factored.whole(problem, factored.Point([root[:, :2]], np.empty(0))))
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
    begin = factored._smooth(problem, lists, point, 0.1)[0]
    values = [begin]
    for most in (1, 3, 30):
        found, used = factored._descended(problem, lists, point, 0.1, 1e-12, most)
        assert used <= most and (found.mu >= 0).all()
        values.append(factored._smooth(problem, lists, found, 0.1)[0])
    assert values == sorted(values)[::-1] and values[-1] < 0.9 * begin
    stuck, used = factored._descended(problem, lists, found, 0.1, 1e30, 1)  # any gain is enough: one step at most
    assert factored._smooth(problem, lists, stuck, 0.1)[0] <= values[-1] * (1 + 1e-12)


def test_tiny_is_beside_the_largest_however_small_that_is():
    problem = world("ste")
    lists = pair_lists.of_rows(problem.rows, problem.n)
    mu = np.array([1e-7, 5e-8, 5e-14])[: problem.columns.shape[1]]
    found = factored._trimmed(problem, lists, factored.Point([np.zeros((14, 0))], mu), 1e-3)
    assert found.point.mu.tolist() == [1e-7, 5e-8, 0.0][: len(mu)]
