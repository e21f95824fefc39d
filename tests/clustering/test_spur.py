"""SPUR chooses k as the paper says, and the refit around it copes with everything a snapshot can be."""

import msgspec
import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from stream_engine.clustering import partition, similarity_of_snapshot, stability, warm_start
from stream_engine.clustering.admm import State
from stream_engine.clustering.canonical_order import canonical_order
from stream_engine.clustering.parallel_analysis import parallel_analysis, random_sign_copies
from stream_engine.clustering.spur import LARGE_TOL
from stream_engine.counts.spectral import centred
from stream_engine.data import available_memory
from stream_engine.refits import CannotRefit, sdp_clustering, spectral
from stream_engine.refits.sdp_clustering import Params, refit, solve, spur
from stream_engine.state import artifact
from tests.support.facts import stating
from tests.support.planted_similarities import adds3, adds4, planted, planted_adds3, snapshot_of


def by_name(snapshot, made):
    return dict(zip(snapshot.objects, made.arrays["labels"].tolist()))


@pytest.fixture(scope="module")
def world():
    triplets, labels = planted(60, 3, 3.5, flip=0.05, delta=0.9)
    return triplets, labels


# --- SPUR ------------------------------------------------------------------------------------------------------------


def test_the_range_and_the_criterion_are_the_papers():
    W, _, c = planted_adds3(80, 3, 3.0)
    choice = spur(W, c, tol=1e-4, early_exit=1.0)
    assert choice.lam == pytest.approx(2 * np.sqrt(c * np.log(80) / 80))
    low, high = choice.k_range
    at_min = solve(W, lam=choice.lam, tol=1e-4)
    assert low == 2
    assert high == max(2, round(at_min.trace) + 2)
    assert choice.tried.tolist() == list(range(low, high + 1))
    assert solve(W, lam=2 * c / 80).trace == pytest.approx(1)  # why k_lambda_max = 1 needs no solve
    for k, criterion in zip(choice.tried, choice.criterion):
        values = np.linalg.eigvalsh(solve(W, k=int(k), tol=1e-4).X)[::-1]
        assert criterion == pytest.approx(values[:k].sum() / values.sum(), abs=0.01)
    best = int(np.argmax(choice.criterion))
    assert choice.k == low + best
    assert choice.margin == pytest.approx(np.sort(choice.criterion)[-1] - np.sort(choice.criterion)[-2])
    assert choice.solution.gap <= 1e-4 and choice.iterations >= choice.solution.iterations


def test_a_provable_partition_is_chosen_without_solving_anything():
    W = np.kron(np.eye(4), np.full((20, 20), 4.0)) - 1.0
    choice = spur(W, 2000)
    assert choice.k == 4
    assert choice.iterations == 0
    assert choice.at_lam is None
    assert choice.solution.certified_by == "partition" and choice.criterion.tolist() == [1.0]
    same = spur(sparse.csr_array(W), 2000)
    assert np.array_equal(same.solution.labels, choice.solution.labels)


def noise(n: int, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([rng.choice(n, 3, replace=False) for _ in range(count)])


@pytest.mark.parametrize("n, count", [(150, 150), (700, 700)])
def test_answers_at_random_show_no_clusters_and_nothing_is_solved(n, count):
    chosen = [spur(adds3(noise(n, count, seed), n), count) for seed in range(4)]
    assert sum(choice.k == 1 for choice in chosen) >= 3
    for choice in chosen:
        assert choice.nothing_seen == (choice.k == 1)
        assert not choice.nothing_seen or (choice.iterations == 0 and choice.at_lam is None)


@pytest.mark.parametrize("similarity", ["adds3", "k1"])
def test_where_nothing_was_solved_nothing_is_certified(similarity):
    reports = (refit(snapshot_of(noise(30, 600, seed)), Params(similarity=similarity), 0).report for seed in range(5))
    report = next(each for each in reports if each["k"] == 1)
    assert "there is no certificate" in report["note"]
    assert not report["certified"] and not report["certified_by"] and report["solved"] == "no program was solved"


def test_the_edge_is_that_of_random_signs_by_full_decompositions():
    W = adds3(noise(60, 300, 0), 60)
    P = np.eye(60) - 1 / 60
    for given in (W, sparse.csr_array(W)):
        copies = [each.toarray() if sparse.issparse(each) else each for each in random_sign_copies(centred(W), 5)]
        off = ~np.eye(60, dtype=bool)
        assert all(np.allclose(abs(copy)[off], abs(centred(W))[off]) for copy in copies)
        assert len(copies) == 19 and all((copy == copy.T).all() for copy in copies)
        assert len({copy.tobytes() for copy in copies}) == 19
        seen = parallel_analysis(given, 6, 5)
        slow = [np.linalg.eigvalsh(P @ copy @ P)[-1] for copy in copies]
        assert seen.edge == pytest.approx(max(slow), rel=2e-3)
        values = np.linalg.eigvalsh(P @ W @ P)[::-1]
        assert seen.eigenvalues == pytest.approx(values[:5], rel=1e-3)
        assert seen.k == 1 + np.sum(values[:5] > seen.edge)


def test_evidence_counts_planted_clusters():
    W, _, _ = planted_adds3(300, 4, 3.0)
    assert parallel_analysis(W, 10, 0).k == 4 and parallel_analysis(W, 3, 0).k == 3


def test_many_objects_are_searched_downwards_from_the_spectral_k(monkeypatch):
    """Not all k, but the spectral one, and less while the criterion rises."""
    monkeypatch.setattr("stream_engine.clustering.spur.SEARCH_UP_TO", 100)
    W, labels, c = planted_adds3(150, 3, 3.0)
    choice = spur(W, c, tol=1e-3, early_exit=1.0)
    assert choice.analysis.k == 3
    assert choice.k_range[1] == 3
    assert choice.at_lam is None
    assert choice.k == choice.tried[np.argmax(choice.criterion)] and choice.solution.gap <= LARGE_TOL
    assert choice.solution.certified == (choice.solution.gap <= 1e-3)
    found = partition.k_means(choice.solution.rows, choice.k, 0)
    assert choice.k == 3 and adjusted_rand_score(labels, found) > 0.9
    stopped = spur(W, c, tol=1e-3, early_exit=float(choice.criterion[-1]) - 1e-2)
    assert stopped.tried.tolist() == [3] and stopped.margin is None


def test_every_criterion_is_converged_or_marked(monkeypatch):
    """An SDP whose iterations ran out is not passed off as solved."""
    monkeypatch.setattr("stream_engine.clustering.spur.SEARCH_UP_TO", 100)
    W, _, c = planted_adds3(150, 3, 2.8)
    exact = spur(W, c, tol=1e-3, early_exit=1.0)
    assert exact.converged.all() and exact.solution.gap <= LARGE_TOL
    tight = [solve(W, k=int(k), tol=1e-5).criterion(int(k)) for k in exact.tried]
    assert exact.criterion == pytest.approx(tight, abs=0.03) and np.argmax(exact.criterion) == np.argmax(tight)
    short = spur(W, c, tol=1e-3, early_exit=1.0, max_iterations=3)
    assert not short.converged.all()


def test_few_objects_and_no_comparisons():
    assert spur(np.zeros((1, 1)), 0).k == 1
    assert spur(np.array([[0, -1.0], [-1.0, 0]]), 1, factor=0.1).k == 2
    assert spur(np.array([[0, 1.0], [1.0, 0]]), 1).k == 1
    assert spur(np.zeros((5, 5)), 0).k >= 1
    with pytest.raises(ValueError, match="spur: got n_comparisons=-1"):
        spur(np.zeros((5, 5)), -1)
    with pytest.raises(ValueError, match="spur"):
        spur(np.zeros((0, 0)), 0)


# --- the refit -------------------------------------------------------------------------------------------------------


def test_the_artifact_holds_what_the_contract_names(world):
    snapshot = snapshot_of(world[0])
    told = []
    made = refit(snapshot, Params(), 0, progress=lambda done, total, **figures: told.append((done, total)))
    truth = [world[1][int(name[1:])] for name in snapshot.objects]
    assert adjusted_rand_score(truth, made.arrays["labels"]) == 1
    assert made.arrays["labels"].dtype == np.int32 and made.arrays["k"] == 3
    assert len(made.arrays["criterion"]) == len(made.arrays["criterion_k"]) and made.arrays["residuals"].shape == (4,)
    assert made.arrays["objective"] <= made.arrays["upper_bound"] and made.report["certified"]
    assert made.report["k_by"] == "spur"
    assert made.report["spur_k"] == 3
    assert sum(made.report["sizes"].values()) == 60
    assert made.arrays["criterion_converged"].all() and made.report["criterion_not_converged"] == []
    chunks, named = artifact.encode(made)
    assert artifact.decode(b"".join(chunks)).report == msgspec.json.decode(msgspec.json.encode(made.report))
    assert all(done <= total for done, total in told)


def test_objects_without_evidence_are_left_out_not_guessed(world):
    names = [f"o{i}" for i in range(60)] + ["x", "y", "z"]
    cancelled = np.array([[60, 61, 62], [60, 62, 61]])  # said both ways: nothing is known about these three
    snapshot = snapshot_of(np.concatenate([world[0], cancelled]), names)
    made = refit(snapshot, Params(k=3), 0)
    labels = by_name(snapshot, made)
    assert labels["x"] == labels["y"] == labels["z"] == -1 and made.report["clustered"] == 60
    assert min(labels[f"o{i}"] for i in range(60)) == 0
    more = refit(snapshot, Params(k=3, min_links=55), 0)
    assert 3 <= more.report["clustered"] < 60


def test_k_lam_and_limits_have_effect(world, monkeypatch):
    snapshot = snapshot_of(world[0][:1200])
    five = refit(snapshot, Params(k=5), 0)
    assert five.arrays["k"] == 5
    assert five.report["k_by"] == "given"
    assert np.isnan(five.arrays["lam"])
    at = refit(snapshot, Params(lam=30.0), 0)
    assert at.report["k_by"] == "lam"
    assert at.arrays["lam"] == 30.0
    assert at.arrays["k"] == round(at.report["trace"])
    small = snapshot_of(world[0][(world[0] < 20).all(axis=1)])
    few = refit(small, Params(k=5, max_iterations=10, tol=1e-9), 0)
    assert not few.report["certified"] and few.report["solver"] == "cvxpy"  # tried where the engine's misses
    with pytest.raises(CannotRefit, match=stating("k=61 … 60 … 60")):
        refit(snapshot, Params(k=61), 0)
    with pytest.raises(msgspec.ValidationError, match="k=2.*lam=1.0"):
        msgspec.convert({"k": 2, "lam": 1.0}, Params)
    monkeypatch.setattr(available_memory, "available", lambda: 1000)
    with pytest.raises(CannotRefit, match=r"sdp_clustering.*60 objects \(18.*0.00052 GB.*1e-06 GB"):
        refit(snapshot, Params(k=5), 0)


def test_the_kernels_take_k_from_adds_as_in_the_paper(world):
    snapshot = snapshot_of(world[0])
    made = refit(snapshot, Params(similarity="k1"), 0)
    truth = [world[1][int(name[1:])] for name in snapshot.objects]
    assert made.arrays["k"] == 3 and adjusted_rand_score(truth, made.arrays["labels"]) == 1
    same = refit(snapshot, Params(similarity="mulk3"), 0)
    np.testing.assert_array_equal(made.arrays["labels"], same.arrays["labels"])


def test_adds4_counts_triplets_and_quadruplets():
    rng = np.random.default_rng(2)
    t = np.array([rng.choice(8, 3, replace=False) for _ in range(40)])
    q = np.array([rng.choice(8, 4, replace=False) for _ in range(40)])
    snapshot = snapshot_of(t, [f"o{i}" for i in range(8)], q)
    at = [int(name[1:]) for name in snapshot.objects]
    found = similarity_of_snapshot.similarity(snapshot, "adds4")
    assert found.comparisons == 80 and np.array_equal(found.W, (adds3(t, 8) + adds4(q, 8))[np.ix_(at, at)])
    found = similarity_of_snapshot.similarity(snapshot, "adds3")
    assert found.comparisons == 40 and np.array_equal(found.W, adds3(t, 8)[np.ix_(at, at)])


# --- from one snapshot to the next -----------------------------------------------------------------------------------


def test_labels_keep_their_meaning_and_the_agreement_is_reported(world):
    triplets = world[0]
    first = refit(snapshot_of(triplets[:2500]), Params(k=3), 0)
    turned = first._replace(arrays=dict(first.arrays) | {"labels": (first.arrays["labels"] + 1) % 3})
    second = refit(snapshot_of(triplets), Params(k=3), 0, turned)
    same = (turned.arrays["labels"] == second.arrays["labels"][: len(turned.arrays["labels"])]).mean()
    assert same > 0.95 and second.report["ari_to_previous"] > 0.9
    assert refit(snapshot_of(triplets), Params(k=3), 0).report["ari_to_previous"] is None


def test_matching_maximises_the_overlap():
    rng = np.random.default_rng(3)
    from itertools import permutations

    for _ in range(30):
        labels, previous = rng.integers(-1, 4, 20), rng.integers(-1, 4, 20)
        out = stability.match_numbers(labels, previous)
        assert ((out == -1) == (labels == -1)).all()
        assert adjusted_rand_score(labels, out) == 1  # only the numbers change
        both = (labels >= 0) & (previous >= 0)
        overlap = [[np.sum(both & (labels == a) & (previous == b)) for b in range(4)] for a in range(4)]
        best = max(sum(overlap[a][p[a]] for a in range(4)) for p in permutations(range(4)))
        assert np.sum(both & (out == previous)) == best


def test_a_new_cluster_never_takes_the_number_of_one_that_is_gone():
    now, before = np.array([0, 0, 1, 1, -1]), np.array([0, 0, -1, -1, 1])
    assert stability.match_numbers(now, before).tolist() == [0, 0, 2, 2, -1]


def test_a_warm_start_comes_with_the_artifact_and_survives_new_objects(monkeypatch):
    triplets, _ = planted(150, 4, 2.5)
    few = triplets[(triplets < 140).all(axis=1)]
    names = [f"o{i}" for i in range(150)]
    params = Params(k=4, tol=1e-4)
    before = refit(snapshot_of(few, names), params, 0)
    assert before.arrays["warm_v"].dtype == np.float32 and before.report["warm_bytes"] > 4 * 140 * 141 / 2
    snapshot = snapshot_of(np.concatenate([few, triplets[(triplets >= 140).any(axis=1)][:60]]), names)
    cold, started = refit(snapshot, params, 0), refit(snapshot, params, 0, before)
    assert started.report["certified"] and started.report["iterations"] <= cold.report["iterations"]
    assert float(started.arrays["objective"]) == pytest.approx(float(cold.arrays["objective"]), rel=2e-4)
    again = refit(snapshot, params, 0, started)
    assert again.report["iterations"] == 10
    other = refit(snapshot, Params(k=4, tol=1e-4, similarity="k1"), 0, before)  # another similarity: no start from it
    assert other.report["certified"]
    monkeypatch.setattr(sdp_clustering, "MAX_WARM_OBJECTS", 100)
    none = refit(snapshot, Params(k=4), 0)
    assert "warm_v" not in none.arrays and none.report["warm_bytes"] == 0


# --- spectral -------------------------------------------------------------------------------------------------------


def test_spectral_finds_the_planted_clusters_and_says_how_k_was_chosen(world, monkeypatch):
    snapshot = snapshot_of(world[0])
    truth = [world[1][int(name[1:])] for name in snapshot.objects]
    made = spectral.refit(snapshot, spectral.Params(), 0)
    assert made.arrays["k"] == 3 and adjusted_rand_score(truth, made.arrays["labels"]) == 1
    values, edge = made.arrays["eigenvalues"], made.arrays["edge"]
    assert values[1] > edge and values[1] - values[2] == max(-np.diff(values[values > edge * 0.8]))
    given = spectral.refit(snapshot, spectral.Params(k=5), 0, made)
    assert given.arrays["k"] == 5
    assert given.report["k_by"] == "given"
    assert given.report["ari_to_previous"] < 1
    rough = spectral.refit(snapshot, spectral.Params(k=5, refine=False), 0)
    assert rough.arrays["objective"] <= given.arrays["objective"]
    with pytest.raises(CannotRefit, match=stating("k=99 … 60 … 60")):
        spectral.refit(snapshot, spectral.Params(k=99), 0)
    with monkeypatch.context() as patched:
        patched.setattr(spectral, "LAMBDA_FACTOR", 50.0)
        high = spectral.refit(snapshot, spectral.Params(), 0)
    assert high.arrays["k"] == 1 and (high.arrays["labels"] == 0).all()
    monkeypatch.setattr(spectral, "MAX_CLUSTERS", 2)
    assert spectral.refit(snapshot, spectral.Params(), 0).arrays["k"] == 2


def test_k_means_does_not_tell_equal_rows_apart():
    rows = np.repeat([[0.0], [1.0]], 5, axis=0)
    assert len(np.unique(partition.k_means(rows, 4, 0))) == 2


@pytest.mark.parametrize("seed", range(4))
def test_the_canonical_order_is_that_of_the_values_whatever_the_ids(seed):
    """Dense or sparse; a stored 0 that came of -1 + 1 or of 1 - 1, negative or not, is the same value."""
    rng = np.random.default_rng(seed)
    n = 9
    W = np.triu(rng.integers(-3, 4, (n, n)).astype(float), 1)
    W += W.T
    stored = sparse.coo_array(np.ones((n, n)))
    some, other = (
        sparse.coo_array((np.where(W == 0.0, zero, W).ravel(), stored.coords), shape=(n, n)) for zero in (0.0, -0.0)
    )
    order = canonical_order(some)
    assert sorted(order.tolist()) == list(range(n))
    assert canonical_order(other).tolist() == order.tolist()
    p = rng.permutation(n)
    of_others = canonical_order(sparse.csr_array(some.toarray()[p][:, p]))
    first = canonical_order(W)
    assert np.array_equal(W[first][:, first], W[p][:, p][of_others][:, of_others])


def test_states_come_back_by_object_id():
    V = np.arange(9.0).reshape(3, 3)
    V = V + V.T
    made = artifact.Artifact(
        "sdp_clustering",
        "",
        1,
        {"similarity": "adds3"},
        0,
        warm_start.warm_arrays({2: State(V, 7.0)}, np.array([5, 1, 3])),
        {},
    )
    back = warm_start.warm_states(made, Params(), np.array([3, 5, 1, 8]))
    assert back == {}  # three quarters known: not enough
    back = warm_start.warm_states(made, Params(), np.array([3, 5, 1]))[2]
    assert back.rho == 7.0 and np.array_equal(back.V, V[np.ix_([2, 0, 1], [2, 0, 1])])
