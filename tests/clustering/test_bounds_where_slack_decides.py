"""Upper bounds of the semidefinite programs on spectra whose eigenvalues lie within the slack of where they count: by a
factorisation or by all eigenvalues, a bound is never below what its formula gives, and never looser than allowed."""

import numpy as np
import pytest

from stream_engine.clustering import admm, certificate, dual_bounds, partition
from stream_engine.clustering.cascade import solve
from stream_engine.clustering.dual_bounds import upper_bound
from stream_engine.clustering.similarity_matrix import blocks, checked
from stream_engine.counts.spectral import size_of

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
    assert lower == sorted(lower) and upper == sorted(upper)[::-1] and upper[-1] < upper[0] and lower[-1] > lower[0]


# --- the proof of a partition -------------------------------------------------------------------------------------


def planted(seed, n=12, k=3):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) * k // n
    noise = np.triu(rng.normal(0, 1.0, (n, n)), 1)
    return checked(np.where(labels[:, None] == labels, 3.0, -1.0) + noise + noise.T), labels


def beyond(W, labels, lam):
    """By how much lambda_max(Q (W + N) Q) is above lambda, with all eigenvalues; N from its definition, row by row."""
    n, k = len(labels), labels.max() + 1
    size, R = np.bincount(labels), np.stack([W[:, labels == a].sum(axis=1) for a in range(k)], axis=1)
    B = np.stack([R[labels == a].sum(axis=0) for a in range(k)])
    nu = np.zeros((n, k))
    for i, a in enumerate(labels):
        for b in set(range(k)) - {a}:
            nu[i, b] = -R[i, b] + size[b] / size[a] * R[i, a] - size[b] * B[a, a] / (2 * size[a] ** 2)
            nu[i, b] += B[b, b] / (2 * size[b]) - lam * (size[b] / (2 * size[a]) + 0.5)
    N = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if labels[i] != labels[j]:
                N[i, j] = nu[i, labels[j]] * nu[j, labels[i]] / nu[labels == labels[i], labels[j]].sum()
    Q = np.eye(n) - (labels[:, None] == labels) / size[labels]
    return float(np.linalg.eigvalsh(Q @ (W + N) @ Q)[-1]) - lam, float(nu[labels[:, None] != np.arange(k)].min())


def crossing(of, low, high, level):
    """Where a falling function is at this level, by bisection."""
    assert of(low) > level > of(high)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if of(middle) > level else (low, middle)
    return low


@pytest.mark.parametrize("seed", range(3))
def test_a_proof_is_refused_a_hair_beyond_where_it_holds(seed):
    """SDP-lambda at both ends of the lambdas at which the partition has a proof: the multiplier may fall below zero, or
    the eigenvalue stand above lambda, by the rounding that is allowed and no more."""
    W, labels = planted(seed)
    zero, of = certificate.ROUNDING * size_of(W), blocks(W, labels, 3)
    highest = crossing(lambda lam: beyond(W, labels, lam)[1], -100.0, 100.0, 0.0)
    assert certificate.largest_lambda(labels, of) == pytest.approx(highest, abs=1e-9)
    lowest = crossing(lambda lam: beyond(W, labels, lam)[0], 0.0, highest, 0.0)
    for level, proven in ((1.5, False), (1.1, False), (0.9, True), (0.0, True), (-1.0, True)):
        at = crossing(lambda lam: beyond(W, labels, lam)[0], 0.0, highest, level * zero)
        assert (certificate.certified(W, labels, at) is not None) == proven, level
        at = crossing(lambda lam: beyond(W, labels, lam)[1], lowest, 100.0, -level * zero)
        assert (certificate.certified(W, labels, at) is not None) == proven, level
    made = certificate.certified(W, labels, (lowest + highest) / 2)
    reached = partition.value(W, labels) - 3 * made.lam
    assert made.upper_bound == pytest.approx(reached + (12 - 3) * zero, abs=1e-2 * zero)
