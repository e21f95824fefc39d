"""Learning by factors: maps against their definitions, optimal by cvxpy, no bound above the optimum, paths that end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.kernel_learning import factored, fista, lambda_choice, mkpoe, pair_lists, pdhg, rckl
from stream_engine.kernel_learning import problem as form
from stream_engine.kernel_learning.distance_operator import adjoint, excess
from stream_engine.refits import beta_choice, kernel_learning
from stream_engine.refits import partial_order_embedding as poe
from tests.support import kernel_reference as reference


def random_problem(rng, loss, n=7, m=25, columns=2):
    """An identity block, a low-rank block with a scale, columns, weights, and pairs that occur many times."""
    rows = np.stack([rng.choice(n, 2, replace=False) for _ in range(2 * m)]).reshape(m, 4).astype(np.int32)
    return form.Problem(
        n,
        rows,
        rng.integers(1, 4, m).astype(float),
        loss,
        (None, rng.normal(size=(n, 3))),
        rng.uniform(0.5, 2, 2),
        rng.uniform(0.5, 2, 2),
        rng.normal(size=(m, columns)),
        rng.uniform(0.5, 2, columns),
    )


def random_point(rng, problem):
    roots = [rng.normal(size=(r, 2)) * 0.5 for r in form.block_sizes(problem)]
    return factored.Point(roots, np.abs(rng.normal(size=len(problem.column_cost))))


@given(st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_pairs_say_what_rows_say(seed):
    """Excess, S and S Z against the dense maps, for pairs named in both orders and on both sides."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, "ste")
    lists = pair_lists.of_rows(problem.rows, problem.n)
    points, y = rng.normal(size=(problem.n, 3)), rng.normal(size=len(problem.rows)) * (rng.random(25) < 0.7)
    assert (lists.i < lists.j).all() and len({*zip(lists.i.tolist(), lists.j.tolist())}) == len(lists.i)
    np.testing.assert_allclose(
        pair_lists.excess_of_points(lists, points), excess(points @ points.T, problem.rows), atol=1e-12
    )
    s, whole = pair_lists.shares(lists, y), adjoint(y, problem.rows, problem.n)
    np.testing.assert_allclose(pair_lists.laplacian(lists, s).toarray(), whole, atol=1e-12)
    np.testing.assert_allclose(pair_lists.pull(lists, s, points), whole @ points, atol=1e-12)


@given(st.integers(0, 10_000), st.sampled_from(["ste", "hinge"]), st.sampled_from([1.0, 0.1]))
@settings(max_examples=40, deadline=None)
def test_the_gradient_is_that_of_the_objective(seed, loss, delta):
    """By central differences in every coordinate, the value from the definition of the rounded loss."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, loss)
    lists, point = pair_lists.of_rows(problem.rows, problem.n), random_point(rng, problem)

    def value(at):
        u = factored.whole(problem, at)
        x = form.forward(problem, u)
        slack = 1.0 + x
        rounded = np.where(slack > delta, slack - delta / 2, np.maximum(slack, 0.0) ** 2 / (2 * delta))
        return form.linear_cost(problem, u) + problem.weight @ (rounded if loss == "hinge" else np.logaddexp(0, x))

    found, gradient = factored._smooth(problem, lists, point, delta)
    assert found == pytest.approx(value(point), rel=1e-12)
    for array, slopes in zip([*point.roots, point.mu], [*gradient.roots, gradient.mu], strict=True):
        for at in np.ndindex(array.shape):
            before, h = array[at], 1e-6
            array[at] = before + h
            above = value(point)
            array[at] = before - h
            below = value(point)
            array[at] = before
            assert slopes[at] == pytest.approx((above - below) / (2 * h), rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("loss", ["ste", "hinge"])
@pytest.mark.parametrize("variant", ["t", "ak"])
def test_as_good_as_clarabel_at_30_objects(variant, loss):
    """From K = 0 to the gap that it is used for, and certified; unhelpful columns at exactly 0."""
    points, triplets = reference.planted(3, 30, 300)
    kernels = reference.helpful_kernels(points)
    weight = np.random.default_rng(0).integers(1, 4, 300).astype(float)
    value, _, mu = reference.rckl(triplets, 30, kernels, variant, loss, 2.0, 0.05, weight)
    problem = rckl.build(triplets, weight, kernels, 30, variant, loss, 2.0, 0.05)
    gap = 1e-4 if loss == "ste" else 1e-2
    found = factored.solve(problem, factored.of_whole(problem, np.zeros(form.point_size(problem))), None, gap)
    assert found.converged and found.gap <= gap
    assert found.certificate.bound <= value * (1 + 1e-6) and abs(found.certificate.objective - value) <= gap * value
    assert found.point.roots[0].shape[1] < 30
    if mu is not None:
        assert set(np.flatnonzero(found.point.mu == 0)) >= set(np.flatnonzero(mu < 1e-7))


@pytest.mark.parametrize("beta", [20.0, 200.0])
def test_several_kernels_are_as_good_as_cvxpy(beta):
    """MKPOE in whitened coordinates: three blocks with factors."""
    points, triplets = reference.planted(3, 15, 80)
    rows, kernels = reference.rows_of(triplets), reference.helpful_kernels(points)
    value = reference.mkpoe(rows, kernels, beta, False)
    factors = tuple(mkpoe.factor(k).root for k in kernels)
    none = np.empty((len(rows), 0))
    weight = np.full(len(rows), beta / len(rows))
    problem = form.Problem(15, rows, weight, "hinge", factors, np.ones(3), np.ones(3), none, np.empty(0))
    found = factored.solve(problem, factored.of_whole(problem, np.zeros(form.point_size(problem))), None, 1e-3)
    assert found.converged and found.certificate.bound <= value * (1 + 1e-6)
    assert abs(found.certificate.objective - value) <= 1e-3 * value


@given(st.integers(0, 10_000), st.sampled_from(["ste", "hinge"]))
@settings(max_examples=40, deadline=None)
def test_what_is_proven_is_feasible(seed, loss):
    """For any y in [0, w]: shrunk it is feasible by a whole decomposition, and hardly more than it has to be."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, loss)
    lists = pair_lists.of_rows(problem.rows, problem.n)
    y = rng.random(len(problem.rows)) * problem.weight * rng.choice([0.01, 1.0])
    dual = factored.proven(problem, lists, y)
    blocks, _ = form.parts(problem, form.backward(problem, dual))
    assert all(np.linalg.eigvalsh(block)[0] >= -cost for block, cost in zip(blocks, problem.trace_cost))
    blocks, _ = form.parts(problem, form.backward(problem, y))
    most = min(1.0, *(cost / max(-np.linalg.eigvalsh(b)[0], 1e-300) for b, cost in zip(blocks, problem.trace_cost)))
    assert most / 9 <= float(dual.sum() / y.sum()) <= most


@given(st.integers(0, 10_000), st.sampled_from(["ste", "hinge"]))
@settings(max_examples=12, deadline=None)
def test_a_dual_is_within_its_columns_and_no_point_is_below_its_bound(seed, loss):
    """Weak duality of what a certificate is made of, and of a point and a dual that were handed in as a start."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, loss)
    lists, point = pair_lists.of_rows(problem.rows, problem.n), random_point(rng, problem)
    found = factored._dual(problem, lists, form.forward(problem, factored.whole(problem, point)), 0.3)
    dual = factored.proven(problem, lists, found.s * found.y)
    assert (problem.column_cost + problem.columns.T @ dual >= -1e-9).all() and (dual <= problem.weight + 1e-12).all()
    best = factored.solve(problem, point, 2 * dual, 1e-2)
    assert form.dual_value(problem, dual) <= best.certificate.objective * (1 + 1e-12)
    assert best.certificate.bound <= best.certificate.objective
    _, mu = form.parts(problem, form.backward(problem, best.certificate.dual))
    assert (mu >= -problem.column_cost - 1e-9).all()


def test_a_wrong_guess_of_lanczos_certifies_nothing(monkeypatch):
    """Told that no direction descends, it stops at K = 0 and says so: the bound is still below the optimum."""
    _, triplets = reference.planted(5, 20, 300, flip=0.0)
    problem = rckl.build(triplets, None, [], 20, "t", "ste", 1.0, 1.0)
    nothing = factored.of_whole(problem, np.zeros(form.point_size(problem)))
    best = factored.solve(problem, nothing, None, 1e-4).certificate.objective
    monkeypatch.setattr(factored, "smallest_eigenvalues", lambda matrix, *_: (np.zeros(1), np.zeros((20, 1))))
    found = factored.solve(problem, nothing, None, 1e-4)
    assert not found.converged and found.certificate.bound <= best < found.certificate.objective


def test_lanczos_finds_the_smallest_eigenvalues_of_a_laplacian():
    _, triplets = reference.planted(5, 200, 3000)
    lists = pair_lists.of_rows(reference.rows_of(triplets), 200)
    matrix = pair_lists.laplacian(lists, pair_lists.shares(lists, np.ones(3000)))
    values, vectors = factored.smallest_eigenvalues(matrix, 3)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix.toarray())[:3], rtol=1e-6)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-3 * abs(values[0]))
    few = pair_lists.laplacian(lists, np.where(np.arange(len(lists.i)) < 3, -1.0, 0.0))  # of rank 3: Lanczos restarts
    for each in (few, 0.0 * few):
        values, vectors = factored.smallest_eigenvalues(each, 5)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(each.toarray())[:5], atol=1e-6)
        assert np.array_equal(vectors, factored.smallest_eigenvalues(each, 5)[1])


def test_pivoted_cholesky_keeps_the_rank():
    root = np.random.default_rng(0).normal(size=(40, 3))
    again = factored.pivoted_cholesky(root @ root.T, 1e-9)
    assert again.shape == (40, 3)
    np.testing.assert_allclose(again @ again.T, root @ root.T, atol=1e-10)
    assert factored.pivoted_cholesky(np.zeros((4, 4)), 1e-9).shape == (4, 0)


@pytest.mark.parametrize("loss", ["ste", "hinge"])
def test_many_objects_are_learned_by_factors_that_agree(loss, monkeypatch):
    """The same optimum as of the solver that keeps K0 whole; a start from it takes next to nothing."""
    _, triplets = reference.planted(7, 70, 1500)
    monkeypatch.setitem(rckl.LARGE, loss, 70)
    problem = rckl.build(triplets, None, [], 70, "t", loss, 3.0, 1.0)
    nothing = np.zeros(form.point_size(problem))
    solver = fista.solve if loss == "ste" else pdhg.solve
    other = solver(problem, nothing, tolerance=1e-4)
    found = rckl.fit(triplets, 70, form="t", loss=loss, lambda1=3.0, tolerance=1e-3)
    assert found.converged and found.gap <= 1e-3
    assert found.objective == pytest.approx(other.certificate.objective, rel=1.2e-3)
    assert found.bound <= other.certificate.objective
    assert found.rank == np.linalg.matrix_rank(found.k0, tol=1e-7 * np.linalg.norm(found.k0), hermitian=True)
    start = rckl.Start(found.k0, found.mu, found.dual)
    again = rckl.fit(triplets, 70, form="t", loss=loss, lambda1=3.0, tolerance=1e-3, start=start)
    assert again.iterations < found.iterations


def test_where_factors_do_not_get_there_whole_blocks_go_on(monkeypatch):
    _, triplets = reference.planted(7, 70, 1500)
    monkeypatch.setattr(factored, "ROUNDS", 1)
    for loss in ("ste", "hinge"):
        monkeypatch.setitem(rckl.LARGE, loss, 70)
        found = rckl.fit(triplets, 70, form="t", loss=loss, lambda1=6.0, tolerance=1e-2)
        assert found.converged and found.gap <= 1e-2 and found.rank < 70


def test_partial_order_embedding_by_factors_is_certified(monkeypatch):
    """K = I and 70 objects: the optimum of the solver that keeps W whole."""
    monkeypatch.setitem(rckl.LARGE, "hinge", 70)
    _, triplets = reference.planted(9, 70, 1200)
    rows = reference.rows_of(triplets)
    found = mkpoe.fit(rows, [np.eye(70)], 60.0, tolerance=1e-3)
    weight = np.full(len(rows), 60.0 / len(rows))
    none = np.empty((len(rows), 0))
    problem = form.Problem(70, rows, weight, "hinge", (None,), np.ones(1), np.ones(1), none, np.empty(0))
    other = pdhg.solve(problem, np.zeros(70 * 70), tolerance=1e-4)
    assert found.converged and found.bound <= other.certificate.objective <= found.objective * (1 + 1e-4)
    assert found.objective == pytest.approx(other.certificate.objective, rel=1.2e-3)


# --- paths that end -----------------------------------------------------------------------------------------------


def test_a_path_ends_where_it_is_clearly_worse():
    """Noise: the best is the most regularised, and what follows is not tried; a clean world is searched further."""
    _, noisy = reference.planted(1, 70, 1800, flip=0.15)
    snapshot = reference.snapshot_of(noisy, 70)
    made = kernel_learning.refit(snapshot, kernel_learning.Params(form="t"), 0)
    losses = [each["log_loss"] for each in made.report["tried"]]
    assert len(losses) < 4 + lambda_choice.ABOVE and losses[-1] > min(losses)
    assert made.report["lambda1"] == min(made.report["tried"], key=lambda each: each["log_loss"])["lambda1"]
    made = poe.refit(snapshot, poe.Params(constraints="length2"), 0)
    losses = [each["log_loss"] for each in made.report["tried"]]
    assert len(losses) < 4 + beta_choice.BELOW and losses[-1] > min(losses)
    _, clean = reference.planted(43, 12, 400, flip=0.0, dimensions=2)
    made = kernel_learning.refit(reference.snapshot_of(clean, 12), kernel_learning.Params(form="t"), 0)
    assert len(made.report["tried"]) >= 4
