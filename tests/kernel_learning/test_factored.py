"""Learning by factors: maps against their definitions, optimal by cvxpy, no bound above the optimum, paths that end."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.kernel_learning import dual_proof, factored, mkpoe, pair_lists, rckl
from stream_engine.kernel_learning import problem as form
from stream_engine.kernel_learning.gram_comparisons import adjoint, excess
from tests.support import kernel_reference as reference
from tests.support.kernel_reference import random_problem


def random_point(rng, problem):
    roots = [rng.normal(size=(r, 2)) * 0.5 for r in form.block_sizes(problem)]
    return factored.Point(roots, np.abs(rng.normal(size=len(problem.column_cost))))


@given(st.integers(0, 10_000))
@settings(max_examples=20, deadline=None)
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


@given(st.integers(0, 10_000), st.sampled_from(["ste", "hinge"]))
@settings(max_examples=20, deadline=None)
def test_what_is_proven_is_feasible(seed, loss):
    """For any y in [0, w]: shrunk it is feasible by a whole decomposition, and hardly more than it has to be."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, loss)
    lists = pair_lists.of_rows(problem.rows, problem.n)
    y = rng.random(len(problem.rows)) * problem.weight * rng.choice([0.01, 1.0])
    dual = dual_proof.shrink_to_proven(problem, lists, y)
    blocks, _ = reference.dual_blocks(problem, dual)
    assert all(np.linalg.eigvalsh(block)[0] >= -cost for block, cost in zip(blocks, problem.trace_cost))
    blocks, _ = reference.dual_blocks(problem, y)
    most = min(1.0, *(cost / max(-np.linalg.eigvalsh(b)[0], 1e-300) for b, cost in zip(blocks, problem.trace_cost)))
    assert most / 9 <= float(dual.sum() / y.sum()) <= most


@given(st.integers(0, 10_000), st.sampled_from(["ste", "hinge"]))
@settings(max_examples=12, deadline=None)
def test_a_dual_is_within_its_columns_and_no_point_is_below_its_bound(seed, loss):
    """Weak duality of what a certificate is made of, and of a point and a dual that were handed in as a start."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, loss)
    lists, point = pair_lists.of_rows(problem.rows, problem.n), random_point(rng, problem)
    found = factored._dual_step(problem, lists, form.slope(problem, reference.excess_of(problem, *point)))
    dual = dual_proof.shrink_to_proven(problem, lists, found.s * found.y)
    assert (problem.column_cost + problem.columns.T @ dual >= -1e-9).all() and (dual <= problem.weight + 1e-12).all()
    best = factored.solve(problem, point, 2 * dual, 1e-2)
    assert form.dual_value(problem, dual) <= best.certificate.objective * (1 + 1e-12)
    assert best.certificate.bound <= best.certificate.objective
    _, mu = reference.dual_blocks(problem, best.certificate.dual)
    assert (mu >= -problem.column_cost - 1e-9).all()


def test_a_wrong_guess_of_lanczos_certifies_nothing(monkeypatch):
    """Told that no direction descends, it stops at K = 0 and says so: the bound is still below the optimum."""
    _, triplets = reference.planted(5, 20, 300, flip=0.0)
    problem = rckl.build(triplets, None, [], 20, "t", "ste", 1.0, 1.0)
    best = factored.solve(problem, None, None, 1e-4).certificate.objective
    monkeypatch.setattr(factored, "smallest_eigenvalues", lambda matrix, *_: (np.zeros(1), np.zeros((20, 1))))
    found = factored.solve(problem, None, None, 1e-4)
    assert not found.converged and found.certificate.bound <= best < found.certificate.objective


def test_lanczos_finds_the_smallest_eigenvalues_of_a_laplacian():
    _, triplets = reference.planted(5, 200, 3000)
    lists = pair_lists.of_rows(reference.rows_of(triplets), 200)
    matrix = pair_lists.laplacian(lists, pair_lists.shares(lists, np.ones(3000)))
    values, vectors = dual_proof.smallest_eigenvalues(matrix, 3)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix.toarray())[:3], rtol=1e-6)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-3 * abs(values[0]))
    few = pair_lists.laplacian(lists, np.where(np.arange(len(lists.i)) < 3, -1.0, 0.0))  # of rank 3: Lanczos restarts
    for each in (few, 0.0 * few):
        values, vectors = dual_proof.smallest_eigenvalues(each, 5)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(each.toarray())[:5], atol=1e-6)
        assert np.array_equal(vectors, dual_proof.smallest_eigenvalues(each, 5)[1])


def test_pivoted_cholesky_keeps_the_rank():
    root = np.random.default_rng(0).normal(size=(40, 3))
    again = factored.pivoted_cholesky(root @ root.T, 1e-9)
    assert again.shape == (40, 3)
    np.testing.assert_allclose(again @ again.T, root @ root.T, atol=1e-10)
    assert factored.pivoted_cholesky(np.zeros((4, 4)), 1e-9).shape == (4, 0)


@pytest.mark.parametrize("loss", ["ste", "hinge"])
def test_a_start_from_the_optimum_takes_next_to_nothing(loss):
    _, triplets = reference.planted(7, 40, 800)
    found = rckl.fit(triplets, 40, form="t", loss=loss, lambda1=3.0, tolerance=1e-3)
    assert found.converged and found.gap <= 1e-3
    assert found.rank == np.linalg.matrix_rank(found.k0, tol=1e-7 * np.linalg.norm(found.k0), hermitian=True)
    start = rckl.Start(found.k0, found.mu, found.dual)
    again = rckl.fit(triplets, 40, form="t", loss=loss, lambda1=3.0, tolerance=1e-3, start=start)
    assert again.iterations < found.iterations / 4


@pytest.mark.parametrize("beta", [100.0, 1e6, 1e7])
@pytest.mark.parametrize("seed", range(2))
def test_huge_weights_reach_the_optimum_of_cvxpy(seed, beta):
    """LPOE on 5 points in 5 dimensions: the hinge's weights are 10^5 times what any multiplier needs."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(5, 5))
    rows = np.array([[*rng.choice(5, 2, replace=False), *rng.choice(5, 2, replace=False)] for _ in range(12)], np.int32)
    gram = features @ np.diag(rng.uniform(0, 3, 5)) @ features.T
    wrong = excess(gram, rows) > 0
    rows[wrong] = rows[wrong][:, [2, 3, 0, 1]]
    found = mkpoe.fit_linear(rows, features, beta, tolerance=1e-3)
    value = mkpoe.fit_linear(rows, features, beta, solver="cvxpy").objective
    assert found.converged and found.gap <= 1e-3
    assert found.bound <= value * (1 + 1e-5) and found.objective <= value * (1 + 1.1e-3)


def test_full_mkpoe_at_a_huge_beta_closes_its_gap_or_says_what_is_left():
    """Two kernels whose eigenvalues span nine orders, beta = 10^7: what is not closed is marked, and is small."""
    points, triplets = reference.planted(0, 12, 40)
    rows, kernels = reference.rows_of(triplets), [reference.rbf(points[:, :1]), reference.rbf(points[:, 1:2])]
    found = mkpoe.fit(rows, kernels, 1e7, tolerance=1e-2, max_iterations=3000)
    assert found.converged == (found.gap <= 1e-2) and found.gap < 0.1
    whole = sum(np.vdot(w, k) for w, k in zip(found.weights, kernels))
    whole += 1e7 / len(rows) * np.maximum(0, 1 + excess(found.gram, rows)).sum()
    assert whole == pytest.approx(found.objective, rel=1e-3)
