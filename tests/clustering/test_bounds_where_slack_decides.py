"""Upper bounds of the semidefinite programs on spectra whose eigenvalues lie within the slack of where they count: by a
factorisation or by all eigenvalues, a bound is never below what its formula gives, and never looser than allowed."""

import numpy as np
import pytest

from stream_engine.clustering import admm, dual_bounds
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
    monkeypatch.setattr(dual_bounds, "CHOLESKY_FROM", 1)
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


@pytest.mark.parametrize("k", [None, 3])
@pytest.mark.parametrize(
    ("seed", "rho"), [(4, 3.0), (3, 0.3)]
)  # one where the lower bound falls, one where the upper rises
def test_what_is_published_is_the_best_point_and_the_best_bound_of_all_that_were_looked_at(k, seed, rho):
    """The iterate of the last check is neither: more iterations never give less of either."""
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(16, 16))
    C = (C + C.T) / 8 - (0.0 if k else 0.4) * np.eye(16)
    begin = admm.State(np.full((16, 16), 1 / 16), rho)
    runs = [admm.run(C, k, 2.0, lambda X, value: 1.0, 1e-14, most, begin) for most in range(10, 130, 10)]
    for most, made in zip(range(10, 130, 10), runs):
        assert made.iterations == most and made.objective <= made.upper_bound
        assert made.objective == pytest.approx(2.0 * np.vdot(C, made.X), rel=1e-12)
        assert made.X.min() >= 0 and np.abs(made.X.sum(axis=1) - 1).max() < 1e-12
        assert k is None or np.trace(made.X) == pytest.approx(k)
    lower, upper = [made.objective for made in runs], [made.upper_bound for made in runs]
    assert lower == sorted(lower)
    assert upper == sorted(upper)[::-1]
    assert upper[-1] < upper[0]
    assert lower[-1] > lower[0]
