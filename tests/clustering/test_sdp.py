"""The SDPs agree with cvxpy over a family of similarities, and every answer proves itself: it is feasible, and its
upper bound holds for what another solver found."""

import numpy as np
import pytest
from scipy import sparse

from stream_engine.clustering import sdp_by_cvxpy
from stream_engine.clustering.projection import project_eigenvalues
from stream_engine.clustering.similarity_matrix import checked
from stream_engine.counts.spectral import top_eigenpairs
from stream_engine.data import available_memory as free_memory
from stream_engine.refits.sdp_clustering import solve, spur
from tests.support.facts import states, stating
from tests.support.planted_similarities import planted_adds3, planted_adds4, planted_mulk3


def gaussian(n: int, seed: int) -> np.ndarray:
    G = np.random.default_rng(seed).normal(size=(n, n))
    return checked((G + G.T) / 2)


def sparse_signs(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    W = np.triu(rng.choice([-1.0, 0.0, 1.0], (n, n), p=[0.05, 0.88, 0.07]), 1)
    return W + W.T


def ties(n: int) -> np.ndarray:
    W = np.kron(np.eye(3), np.ones((n // 3, n // 3)))
    return checked(W - W.mean())


FAMILY = {
    "planted AddS-3": lambda: planted_adds3(40, 3, 2.5)[0],
    "planted AddS-4": lambda: planted_adds4(40, 2, 3.0)[0],
    "MulK-3": lambda: planted_mulk3(36, 3, 4.0)[0],
    "noise": lambda: gaussian(30, 1),
    "sparse": lambda: sparse_signs(40, 3),
    "all zero": lambda: np.zeros((12, 12)),
    "repelling": lambda: -checked(np.ones((15, 15))),
    "ties": lambda: ties(18),
}


def assert_feasible(X: np.ndarray, k: int | None):
    assert np.abs(X.sum(axis=1) - 1).max() < 1e-10 and np.abs(X - X.T).max() < 1e-12
    assert X.min() >= 0 and np.linalg.eigvalsh(X)[0] > -1e-10
    assert k is None or abs(np.trace(X) - k) < 1e-9


def assert_honest(s, W, k, lam):
    """What the solution says about itself is so."""
    X, penalty = s.X, lam or 0.0
    assert_feasible(X, k)
    assert s.objective == pytest.approx(np.vdot(W, X) - penalty * np.trace(X), rel=1e-9, abs=1e-9)
    assert s.upper_bound >= s.objective - 1e-12 * max(1, abs(s.objective))
    assert s.residuals.trace == (0.0 if k is None else pytest.approx(abs(np.trace(X) - k), abs=1e-9))
    assert s.residuals.row_sums < 1e-10
    assert s.residuals.most_negative == 0
    assert s.residuals.least_eigenvalue > -1e-10
    assert s.certified == bool(s.certified_by)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("which", ["k", "many", "lam", "low lam"])
def test_agrees_with_an_interior_point_solution(name, which):
    W = FAMILY[name]()
    edge = max(top_eigenpairs(W, 1)[0][0], 0.5)
    k = {"k": 3, "many": len(W) // 3}.get(which)
    lam = {"lam": 0.6 * edge, "low lam": 0.1 * edge}.get(which)
    s = solve(W, k=k, lam=lam, tol=1e-6)
    assert s.gap <= 5e-6  # of degenerate ones the last digit comes slowly, and is not claimed
    assert_honest(s, W, k, lam)
    r = sdp_by_cvxpy.optimum(W, k, lam)
    size = max(abs(r.objective), abs(r.objective + (lam or 0) * np.trace(r.X)), 0.01 * np.linalg.norm(W, 2), 1e-3)
    assert abs(s.objective - r.objective) <= 1e-5 * size
    assert r.objective <= s.upper_bound + 1e-6 * size  # the bound is above what another solver found
    if abs(r.objective) > 0.3 * size:
        assert abs(s.objective - r.objective) <= 1e-5 * abs(r.objective)


def test_sparse_and_dense_similarities_give_the_same():
    W = sparse_signs(70, 5)
    for how in ({"k": 4}, {"lam": 1.5}):
        a, b = solve(W, tol=1e-5, **how), solve(sparse.csr_array(W), tol=1e-5, **how)
        assert a.objective == pytest.approx(b.objective, rel=1e-4)
        assert a.certified
        assert b.certified


@pytest.mark.parametrize(
    "W",
    [np.zeros((200, 200)), sparse.csr_array((200, 200)), np.ones((200, 200))],
    ids=["all zero", "all zero, sparse", "one block"],
)
def test_degenerate_similarities_of_many_objects(W):
    """Above 160 objects the eigenpairs come from Lanczos, which has nowhere to start from when W is zero."""
    a, b, choice = solve(W, k=3, tol=1e-4), solve(W, lam=1.0, tol=1e-4), spur(W, 100)
    assert a.certified
    assert b.certified
    assert b.labels.tolist() == [0] * 200
    assert choice.k == 1
    assert a.objective == pytest.approx(197 * W[0, 1], abs=1e-4) and b.objective == pytest.approx(199 * W[0, 1] - 1)


def test_a_low_rank_solution_of_many_objects_takes_the_krylov_steps():
    """Above 128 objects the eigen step is partial; the gap is closed rigorously all the same."""
    W, labels, c = planted_adds3(300, 3, 3.0)
    s = solve(W, lam=2 * np.sqrt(c * np.log(300) / 300), tol=1e-5)
    assert s.certified
    assert len(s.x) < 24
    assert s.iterations > 10
    assert_feasible(s.X, None)


def test_out_of_iterations_is_said_and_the_gap_is_still_rigorous():
    W = gaussian(40, 7)
    s = solve(W, k=4, tol=1e-9, max_iterations=20)
    assert not s.certified
    assert s.certified_by == ""
    assert s.iterations == 20
    assert s.gap > 1e-9
    assert_honest(s, W, 4, None)
    best = solve(W, k=4, tol=1e-7)
    assert s.objective <= best.upper_bound and best.objective <= s.upper_bound


def test_forced_answers():
    W = gaussian(7, 3)
    one, all_ = solve(W, k=1), solve(W, k=7)
    assert one.objective == pytest.approx(W.sum() / 7) and all_.objective == 0.0
    assert one.certified_by == all_.certified_by == "only feasible point"
    np.testing.assert_array_equal(all_.X, np.eye(7))
    single = solve(np.zeros((1, 1)), lam=2.0)
    assert single.objective == -2.0 and single.X.tolist() == [[1.0]]
    pair = solve(np.array([[0, 1.0], [1.0, 0]]), lam=0.5)
    assert pair.objective == pytest.approx(0.5) and pair.labels.tolist() == [0, 0]


@pytest.mark.parametrize(
    "given, said",
    [
        (dict(W=[[0, np.nan], [np.nan, 0]], k=1), "similarity"),
        (dict(W=[[0, 1], [2, 0]], k=1), "similarity … W' … 1"),
        (
            dict(W=[[0, 1e300], [1e300, 0]], k=1),
            "similarity … 1e+300 … 1e-120 … 1e+120",
        ),
        (dict(W=np.zeros((2, 2))), "sdp … k=None … lam=None"),
        (dict(W=np.zeros((2, 2)), k=3), "sdp: got k=3 for 2 objects, expected 1 to 2"),
    ],
)
def test_unusable_arguments_are_named(given, said):
    with pytest.raises(ValueError) as error:
        solve(**given)
    assert states(str(error.value), said) and "\n" not in str(error.value)


def test_memory_is_asked_for_before_it_is_taken(monkeypatch):
    W = gaussian(100, 0)
    monkeypatch.setattr(free_memory, "available", lambda: 18 * 8 * 100**2 - 1)
    with pytest.raises(free_memory.TooLarge, match=stating("sdp … 100 … 18 … 100 x 100 … 0.0014 GB")):
        solve(W, k=4)
    monkeypatch.setattr(free_memory, "available", lambda: 18 * 8 * 100**2)
    assert solve(W, k=4, tol=1e-2).certified


def test_projection_of_eigenvalues_is_the_nearest_point():
    rng = np.random.default_rng(0)
    for r in (3, 9, 80):
        d = rng.normal(size=r) * 2
        for k in range(2, r):
            x = project_eigenvalues(d, k)
            assert x.min() >= 0
            assert x.max() <= 1
            assert x.sum() == pytest.approx(k - 1)
            inside = (x > 1e-9) & (x < 1 - 1e-9)  # optimality: d - x is one number where x is strictly inside
            tau = (d - x)[inside].mean() if inside.any() else None
            if tau is not None:
                assert np.allclose((d - x)[inside], tau) and (d[x <= 1e-9] <= tau + 1e-9).all()
                assert (d[x >= 1 - 1e-9] - 1 >= tau - 1e-9).all()


def test_acceleration_does_not_run_away_where_the_dual_is_not_unique():
    """All objects alone is the optimum, with much room: the multiplier of X >= 0 is not unique, and V must not
    drift."""
    W = np.zeros((9, 9))
    for i, j, w in ((0, 4, -1), (0, 7, 1), (1, 7, -1), (3, 4, 1), (5, 6, -1), (6, 8, 1)):
        W[i, j] = W[j, i] = w
    made = solve(W, lam=-3.0, tol=1e-6, max_iterations=300)
    assert made.certified
    assert made.objective == pytest.approx(27, rel=1e-5)
    assert made.iterations < 150
    assert_honest(made, W, None, -3.0)


@pytest.mark.parametrize("factor", [2.0**60, 1e100, 1e-100])
def test_the_size_of_w_does_not_matter(factor):
    W, lam = np.round(3 * gaussian(12, 0)), 2.5
    plain, scaled = solve(W, lam=lam, tol=1e-6), solve(W * factor, lam=lam * factor, tol=1e-6)
    assert plain.certified
    assert scaled.certified
    assert scaled.objective == pytest.approx(plain.objective * factor, rel=1e-5)


def test_partial_eigenpairs_match_the_full_ones_and_leave_ones_out():
    W = sparse_signs(400, 1) + 3.0 * np.ones((400, 400))  # a large trivial component must not show
    np.fill_diagonal(W, 0)
    P = np.eye(400) - 1 / 400
    full = np.sort(np.linalg.eigvalsh(P @ W @ P))[::-1]
    values, vectors = top_eigenpairs(checked(W), 5)
    assert np.allclose(values, full[:5], atol=1e-6) and np.abs(vectors.sum(axis=0)).max() < 1e-8
    values, vectors = top_eigenpairs(-checked(W), 2)
    assert np.allclose(values, np.sort(np.linalg.eigvalsh(-P @ W @ P))[::-1][:2], atol=1e-6)
