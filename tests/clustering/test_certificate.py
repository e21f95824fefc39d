"""Certificates are issued for optimal partitions only, and the bounds behind them hold for every N >= 0.

The dual is checked here from its definition (stationarity, complementary slackness, dual feasibility), not through the
code that made it.
"""

import numpy as np
import pytest
from scipy import sparse

from stream_engine.clustering import certificate, dual_bounds, partition, sdp_by_cvxpy
from stream_engine.clustering.cascade import partition_factor, solve
from stream_engine.clustering.feasible_points import feasible
from stream_engine.clustering.similarity_matrix import blocks, checked
from stream_engine.counts.spectral import centred


def strong(n=48, k=3, seed=0):
    """A similarity whose planted partition is provably optimal."""
    rng = np.random.default_rng([seed, n])
    labels = np.arange(n) * k // n
    noise = np.triu(rng.normal(0, 1.0, (n, n)), 1)
    return checked(np.where(labels[:, None] == labels, 3.0, -1.0) + noise + noise.T), labels


def spoiled(labels: np.ndarray) -> dict[str, np.ndarray]:
    """Partitions that are not optimal: one object moved, two clusters merged, one split, two objects swapped."""
    flipped, merged, split, swapped = (labels.copy() for _ in range(4))
    flipped[0] = (flipped[0] + 1) % (labels.max() + 1)
    merged[merged == labels.max()] = 0
    split[np.flatnonzero(labels == 0)[::2]] = labels.max() + 1
    a, b = np.flatnonzero(labels == 0)[0], np.flatnonzero(labels == 1)[0]
    swapped[[a, b]] = labels[[b, a]]
    return {"flipped": flipped, "merged": merged, "split": split, "swapped": swapped}


@pytest.mark.parametrize("seed", range(4))
def test_the_planted_partition_is_certified_and_cvxpy_agrees(seed):
    W, labels = strong(30, 3, seed)
    proof = certificate.certify(W, labels, None)
    assert proof.by == "partition"
    assert proof.upper_bound == pytest.approx(partition.value(W, labels), rel=1e-7)
    best = sdp_by_cvxpy.optimum(W, 3, None).objective
    assert best == pytest.approx(partition.value(W, labels), rel=1e-6)
    # the multiplier of the trace is a lambda at which SDP-lambda has the same optimum
    at_lam = certificate.certify(W, labels, proof.lam)
    assert at_lam is not None and at_lam.upper_bound == pytest.approx(best - 3 * proof.lam, rel=1e-6)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", ["flipped", "merged", "split", "swapped"])
def test_worse_partitions_are_never_certified(kind, seed):
    W, labels = strong(48, 3, seed)
    assert certificate.certify(W, labels, None) is not None
    wrong = partition.compact(spoiled(labels)[kind])
    assert certificate.certify(W, wrong, None) is None
    assert certificate.certify(W, wrong, certificate.certify(W, labels, None).lam) is None


def test_the_dual_satisfies_the_kkt_conditions_of_sdp_lambda():
    """Perrot et al. 2020, App. B.1: S = y 1' + 1 y' + lambda I - W - N psd, S X = 0, N >= 0, N o X = 0."""
    W, labels = strong(48, 3, 1)
    proof = certificate.certify(W, labels, None)
    of = blocks(W, labels, 3)
    N = certificate.multiplier(certificate.dual(labels, of, proof.lam))
    X, lam = partition.normalised_matrix(labels), proof.lam
    own, size = np.diag(of.sums), of.sizes
    y = (of.rows[np.arange(48), labels] - lam - own[labels] / (2 * size[labels]) + lam / 2) / size[labels]
    S = y[:, None] + y + lam * np.eye(48) - W - N
    scale = np.abs(W).max()
    assert N.min() >= 0
    assert np.abs(N - N.T).max() < 1e-9 * scale
    assert np.abs(N * X).max() == 0
    assert np.abs(S @ X).max() < 1e-9 * scale
    assert np.linalg.eigvalsh(S)[0] > -1e-9 * scale
    assert 2 * y.sum() == pytest.approx(partition.value(W, labels) - 3 * lam)  # strong duality


def test_proposition_1_a_perturbed_block_matrix_is_recovered_in_an_interval_of_lambda():
    """SDP-lambda has the planted clustering as its optimum for lambda between the deviation and the separation."""
    rng = np.random.default_rng(2)
    sizes = [8, 12, 16]
    labels = np.repeat([0, 1, 2], sizes)
    ideal = np.where(labels[:, None] == labels, 3.0, -1.0)
    noise = np.triu(rng.normal(0, 0.3, ideal.shape), 1)
    W = checked(ideal + noise + noise.T)
    deviation, separation = np.linalg.norm(W - ideal, 2), min(sizes) * 4.0
    assert deviation < separation / 3
    for lam in np.linspace(1.2 * deviation, 0.5 * separation, 4):
        s = solve(W, lam=lam)
        assert s.certified_by == "partition"
        assert np.array_equal(s.labels, labels)
        assert s.trace == 3
        proof = certificate.certify(W, labels, lam)
        assert proof.lam == lam
    assert solve(W, lam=2 * np.linalg.eigvalsh(centred(W))[-1]).trace == 1  # far above: everything in one cluster


def test_the_range_of_the_multiplier_is_respected():
    W, labels = strong()
    lam = certificate.certify(W, labels, None).lam
    assert certificate.certify(W, labels, None, (0.5 * lam, 2 * lam)) is not None
    assert certificate.certify(W, labels, None, (10 * lam, 11 * lam)) is None
    assert certificate.certify(W, labels, 10 * lam) is None


def test_large_sparse_similarities_are_certified_by_lanczos_and_the_verdict_says_so():
    n = certificate.CHOLESKY_UP_TO + 100
    rng = np.random.default_rng(0)
    half = n // 2
    rows, cols = rng.integers(0, n, (2, 60 * n))
    keep = rows != cols
    rows, cols = rows[keep], cols[keep]
    sign = np.where((rows < half) == (cols < half), 1.0, -1.0)
    W = sparse.csr_array((sign, (rows, cols)), shape=(n, n))
    W = checked(W + W.T)
    s = solve(W, k=2)
    assert s.certified_by == "partition, Lanczos"
    assert s.iterations == 0
    assert s.matrix is None
    assert np.array_equal(s.labels, (np.arange(n) >= half).astype(int))
    wrong = s.labels.copy()
    wrong[:5] = 1
    assert certificate.certify(W, wrong, None) is None


@pytest.mark.parametrize("k", [None, 2, 4])
def test_every_nonnegative_multiplier_gives_an_upper_bound(k):
    rng = np.random.default_rng(3)
    for n in (5, 12, 25):
        G = rng.normal(size=(n, n))
        W, lam = checked((G + G.T) / 2), 0.0 if k is None else None
        r = sdp_by_cvxpy.optimum(W, k, lam)
        best = r.objective
        for size in (0.0, 0.1, 1.0, 10.0):
            N = np.abs(rng.normal(size=(n, n))) * size
            assert dual_bounds.upper_bound(W + N + N.T, k) >= best - 1e-6
        assert dual_bounds.upper_bound(W + r.multiplier, k) == pytest.approx(
            best, abs=1e-4
        )  # and the right one is tight


@pytest.mark.parametrize("k", [None, 4])
def test_repair_gives_a_feasible_point_close_by(k):
    rng = np.random.default_rng(6)
    for n in (6, 20, 60):
        labels = np.arange(n) % 4
        factor, x = partition_factor(labels)
        turn = np.linalg.qr(rng.normal(size=(n, n)) * 0.02 + np.eye(n))[0]
        factor = turn @ factor
        factor -= factor.mean(axis=0)
        factor = np.linalg.qr(factor)[0]
        X = (factor * x) @ factor.T + 1 / n
        assert X.min() < 0
        Y = feasible(X.copy(), k)
        assert Y.min() >= 0
        assert np.abs(Y.sum(axis=1) - 1).max() < 1e-12
        assert np.linalg.eigvalsh(Y)[0] > -1e-12
        assert k is None or np.trace(Y) == pytest.approx(4)
        lift = -X.min() / (-X.min() + 1 / n)
        assert np.linalg.norm(Y - X) <= 2.5 * lift * np.linalg.norm(X)
    nothing_to_repair = np.eye(3)
    assert feasible(nothing_to_repair, None) is nothing_to_repair


@pytest.mark.parametrize("seed", range(5))
def test_refinement_never_loses_value_nor_clusters_and_ends_at_a_local_optimum(seed):
    rng = np.random.default_rng(seed)
    G = rng.integers(-3, 4, (14, 14))
    W = checked(np.triu(G, 1) + np.triu(G, 1).T)
    labels = partition.compact(np.concatenate([np.arange(4), rng.integers(0, 4, 10)]))
    after = partition.refine(W, labels)
    assert partition.value(W, after) >= partition.value(W, labels) - 1e-12
    assert np.unique(after).tolist() == [0, 1, 2, 3]
    for i in range(14):  # no single move helps
        for b in range(4):
            moved = after.copy()
            moved[i] = b
            if len(np.unique(moved)) == 4:
                assert partition.value(W, moved) <= partition.value(W, after) + 1e-9
    assert partition.value(W, after) == pytest.approx(np.vdot(W, partition.normalised_matrix(after)))
    np.testing.assert_array_equal(after, partition.refine(sparse.csr_array(W), labels))
