"""Upper bounds of the semidefinite programs on spectra whose eigenvalues lie within the slack of where they count: by a
factorisation or by all eigenvalues, a bound is never below what its formula gives, and never looser than allowed."""

import numpy as np
import pytest

from stream_engine.clustering import dual_bounds
from stream_engine.clustering.cascade import solve
from stream_engine.clustering.dual_bounds import upper_bound

N, R = 14, 3


def with_spectrum(rng, values):
    """Symmetric, rows of sum 0, these eigenvalues on the complement of 1; and the vectors of the first R."""
    basis = np.linalg.qr(np.hstack([np.ones((N, 1)), rng.normal(size=(N, N - 1))]))[0][:, 1:]
    return (basis * values) @ basis.T, basis[:, :R]


def by_definition(values, k):
    ordered = np.sort(values)[::-1]
    return np.maximum(ordered, 0).sum() if k is None else ordered[: k - 1].sum()


@pytest.mark.parametrize("k", [None, 2, 3, 4])
def test_the_bound_holds_and_is_within_its_slack_however_close_the_next_eigenvalue_is(k, monkeypatch):
    monkeypatch.setattr(dual_bounds, "EXACT", 1)
    rng, ways = np.random.default_rng(0), {"factorised": 0, "all": 0}
    factorise = dual_bounds._by_cholesky

    def watched(*given):
        found = factorise(*given)
        ways["all" if found is None else "factorised"] += 1
        return found

    monkeypatch.setattr(dual_bounds, "_by_cholesky", watched)
    for slack in (1e-3, 0.1):
        edge = 0.0 if k is None else 1.0  # where the rest of the spectrum begins to count
        for next_one in edge + slack / N * np.array([-50.0, -1.0, -0.01, 0.0, 0.5, 0.99, 1.01, 2.0, 50.0]):
            top = np.array([3.0, 2.0, 1.0])
            values = np.concatenate([top, np.full(N - 4, next_one)])  # each within what one row may be loose, or not
            A, near = with_spectrum(rng, values)
            exact, bound = by_definition(values, k), upper_bound(A.copy(), k, slack, near)
            assert exact - 1e-9 <= bound <= exact + slack + 1e-9, (k, slack, next_one)
            assert upper_bound(A.copy(), k) == pytest.approx(exact, abs=1e-9)
    assert ways["factorised"] > 4 and (ways["all"] > 0 or k is not None)


def test_more_groups_than_vectors_and_one_group():
    rng = np.random.default_rng(1)
    A, near = with_spectrum(rng, np.linspace(1, -1, N - 1))
    assert dual_bounds._by_cholesky(A.copy(), R + 2, 0.1, near) is None
    assert upper_bound(A + 2.0, 1) == pytest.approx(2.0 * N)


@pytest.mark.parametrize("budget", [1, 2, 9, 10, 11, 37])
def test_a_budget_of_iterations_is_held_and_used_up_where_the_gap_stays_open(budget):
    """Iterations, counted by what is told; whatever the distance between two checks of the certificate."""
    W = np.random.default_rng(0).integers(-5, 6, (12, 12)).astype(float)
    told = []
    made = solve(
        W + W.T, k=3, tol=1e-14, max_iterations=budget, progress=lambda done, total, **more: told.append((done, total))
    )
    assert made.iterations == budget == told[-1][0] and {total for _, total in told} == {budget}
    numbers = [done for done, _ in told]
    assert numbers == sorted(set(numbers)) and numbers[0] >= 1
    assert solve(W + W.T, k=3, tol=10.0, max_iterations=budget).iterations <= min(budget, 10)
