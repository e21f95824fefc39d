"""RCKL: optimal by certificate and by cvxpy, exact zeros, lambdas, warm starts and the refit."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stream_engine.data.triplet_columns import net_triplets
from stream_engine.evaluation import hash_split
from stream_engine.kernel_learning import auxiliary_kernels, lambda_search, rckl
from stream_engine.kernel_learning.gram_comparisons import adjoint, excess, satisfied, triplet_rows, weighted_triplets
from stream_engine.refits import kernel_learning
from stream_engine.state import artifact
from stream_engine.state.snapshot import triplet_columns
from tests.support import kernel_reference as reference
from tests.support.generators import planted_triplets


def slow_excess(gram, rows):
    """The definition: d(i, j) - d(k, l), one comparison at a time."""
    d = lambda i, j: gram[i, i] + gram[j, j] - 2 * gram[i, j]  # noqa: E731
    return np.array([d(i, j) - d(k, l) for i, j, k, l in rows])


@given(st.integers(0, 10_000))
@settings(max_examples=30, deadline=None)
def test_the_map_and_its_adjoint(seed):
    """Against the definition, and <excess(G), y> = <G, adjoint(y)>, for comparisons that share 0, 1 and 2 objects."""
    rng = np.random.default_rng(seed)
    n, m = 5, 12
    rows = np.stack([rng.choice(n, 2, replace=False) for _ in range(2 * m)]).reshape(m, 4)
    gram = rng.normal(size=(n, n))
    gram = gram + gram.T
    y = rng.normal(size=m) * (rng.random(m) < 0.7)
    np.testing.assert_allclose(excess(gram, rows), slow_excess(gram, rows), atol=1e-12)
    s = adjoint(y, rows, n)
    assert np.array_equal(s, s.T)
    np.testing.assert_allclose(np.vdot(gram, s), excess(gram, rows) @ y, atol=1e-10)


@pytest.mark.parametrize("loss", ["ste", "hinge"])
@pytest.mark.parametrize("variant", ["t", "mkl", "ak"])
def test_as_good_as_clarabel_at_20_objects(variant, loss):
    """Within 1e-4 relative of the interior point, and the certificate says so too."""
    points, triplets = reference.planted(3, 20, 200)
    kernels = reference.helpful_kernels(points)
    weight = np.random.default_rng(0).integers(1, 4, 200).astype(float)
    said = {"form": variant, "loss": loss, "lambda1": 2.0, "lambda2": 0.05, "weight": weight}
    second = rckl.fit(triplets, 20, kernels, **said, solver="cvxpy", tolerance=1e-6)
    value, gram, mu = second.objective, second.gram, second.mu
    assert second.gap <= 2e-5  # an interior point of exponential cones ends where a processor's rounding stops it
    by_definition = weight @ (
        np.logaddexp(0, excess(gram, triplet_rows(triplets)))
        if loss == "ste"
        else np.maximum(0, 1 + excess(gram, triplet_rows(triplets)))
    )
    assert by_definition + 2.0 * np.trace(second.k0) + 0.05 * mu.sum() == pytest.approx(value, rel=1e-9)
    found = rckl.fit(triplets, 20, kernels, **said, tolerance=5e-5)
    assert found.converged and found.gap <= 5e-5
    assert found.bound <= value * (1 + 1e-6)
    assert abs(found.objective - value) <= 1e-4 * value
    assert satisfied(gram, triplet_rows(triplets), weight) == pytest.approx(found.satisfied, abs=0.03)
    np.testing.assert_allclose(found.gram, found.k0 + np.tensordot(found.mu, kernels[: len(found.mu)], 1), atol=1e-12)
    assert np.linalg.eigvalsh(found.k0)[0] > -1e-9 and (found.mu >= 0).all()
    assert len(mu) == len(found.mu)
    assert set(np.flatnonzero(found.mu == 0)) >= set(np.flatnonzero(mu < 1e-7))


def test_noise_kernels_weigh_exactly_nothing_and_the_rank_is_that_of_k0():
    points, triplets = reference.planted(5, 25, 400, flip=0.0, dimensions=2)
    kernels = [reference.rbf(points[:, :1]), reference.rbf(np.random.default_rng(1).normal(size=(25, 3)))]
    for loss in ("ste", "hinge"):
        most = rckl.largest_lambdas(rckl.build(triplets, None, kernels, 25, "ak", loss, 1.0, 1.0))
        found = rckl.fit(triplets, 25, kernels, loss=loss, lambda1=most[0] * 0.4, lambda2=most[1] * 0.1)
        assert found.mu[0] > 0 and found.mu[1] == 0.0
        assert found.rank == np.linalg.matrix_rank(found.k0, tol=1e-9 * np.linalg.norm(found.k0), hermitian=True) < 25


@pytest.mark.parametrize("loss", ["ste", "hinge"])
def test_lambdas_have_a_largest_useful_value(loss):
    """From there on nothing is learned, certified without an iteration to speak of; below it something is."""
    points, triplets = reference.planted(7, 12, 150, flip=0.0)
    kernels = reference.helpful_kernels(points)
    first, second = rckl.largest_lambdas(rckl.build(triplets, None, kernels, 12, "ak", loss, 1.0, 1.0))
    none = rckl.fit(triplets, 12, kernels, loss=loss, lambda1=first * 1.001, lambda2=second * 1.001)
    assert none.rank == 0
    assert not none.mu.any()
    assert none.gap <= 1e-4
    assert rckl.fit(triplets, 12, kernels, loss=loss, lambda1=first * 0.9, lambda2=second * 2, tolerance=1e-7).rank > 0
    assert rckl.fit(triplets, 12, kernels, loss=loss, lambda1=first * 2, lambda2=second * 0.9, tolerance=1e-7).mu.any()


# --- counts and held-out sets -------------------------------------------------------------------------------------


def test_counts_keep_both_directions_and_their_votes():
    triplets = np.array([[0, 1, 2]] * 3 + [[0, 2, 1]] + [[1, 0, 2], [1, 2, 0]], np.int32)
    columns = triplet_columns(reference.snapshot_of(triplets, 3))
    rows, weight = weighted_triplets(columns)
    assert sorted(zip(rows.tolist(), weight.tolist())) == [
        ([0, 1, 2], 3.0),
        ([0, 2, 1], 1.0),
        ([1, 0, 2], 1.0),
        ([1, 2, 0], 1.0),
    ]
    net, votes = net_triplets(columns)
    assert net.tolist() == [[0, 1, 2]] and votes.tolist() == [2.0]


@given(st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_held_out_by_name_not_by_number(seed):
    """A permutation of ids with their names moves nothing; both directions fall together; the share is about right."""
    rng = np.random.default_rng(seed)
    names = [f"object {i}" for i in range(12)]
    rows = np.stack([rng.choice(12, 2, replace=False) for _ in range(400)]).reshape(200, 4)
    new_id = rng.permutation(12)
    renamed = [names[i] for i in np.argsort(new_id)]
    before = hash_split.comparison_draws(rows, hash_split.name_hashes(names, seed))
    after = hash_split.comparison_draws(new_id[rows], hash_split.name_hashes(renamed, seed))
    assert np.array_equal(before, after)
    assert np.array_equal(
        before, hash_split.comparison_draws(rows[:, [3, 2, 0, 1]], hash_split.name_hashes(names, seed))
    )
    assert 0.05 < (before < 0.3).mean() < 0.6 and len(np.unique(before)) > 100
    folds = hash_split.object_folds(hash_split.name_hashes(names, seed), 5)
    assert np.array_equal(hash_split.object_folds(hash_split.name_hashes(renamed, seed), 5)[new_id], folds)
    assert np.bincount(folds).tolist() == [3, 3, 2, 2, 2]


# --- the refit ----------------------------------------------------------------------------------------------------


def test_refit_finds_the_planted_kernel_and_fills_the_contract(tmp_path):
    points, triplets = reference.planted(17, 20, 500, flip=0.05, dimensions=2)
    np.savez(tmp_path / "known.npz", objects=np.array([f"o{i}" for i in range(20)]), X=points[:, :1])
    np.savez(
        tmp_path / "noise.npz",
        objects=np.array([f"o{i}" for i in range(20)]),
        X=np.random.default_rng(0).normal(size=(20, 3)),
    )
    params = kernel_learning.Params(
        kernels={
            "known": auxiliary_kernels.KernelSpec(str(tmp_path / "known.npz"), "linear"),
            "noise": auxiliary_kernels.KernelSpec(str(tmp_path / "noise.npz"), "rbf"),
        }
    )
    snapshot, said = reference.snapshot_of(triplets, 20), []
    made = kernel_learning.refit(
        snapshot, params, 0, None, lambda done, total, **figures: said.append((done, total, figures))
    )
    assert {"K", "mu", "objective", "satisfied", "K0", "coordinates"} <= made.arrays.keys()
    fresh = triplet_rows(planted_triplets(np.random.default_rng(99), points, 5000))
    assert satisfied(made.arrays["K"], fresh) > 0.85
    assert made.report["gap"] <= 1e-4 and made.report["rank_K0"] < 20
    assert made.report["mu"]["known"] > 0 and made.report["mu"]["noise"] < 0.2 * made.report["mu"]["known"]
    assert len(made.report["tried"]) >= 16 and made.report["lambda1"] in {t["lambda1"] for t in made.report["tried"]}
    assert said[-1][0] == said[-1][1] == len(made.report["tried"]) + 2 and "gap" in said[-1][2]
    chunks, _ = artifact.encode(made)
    back = artifact.decode(b"".join(bytes(c) for c in chunks))
    assert np.array_equal(back.arrays["K"], made.arrays["K"]) and back.report["kernels"][0]["missing"] == 0
    again = kernel_learning.refit(snapshot, params, 0)
    assert all(np.array_equal(again.arrays[k], made.arrays[k]) for k in made.arrays)
    grown = reference.snapshot_of(np.concatenate([triplets, [[0, 21, 1], [21, 20, 2]]]), 22)
    warm = kernel_learning.refit(
        grown, msgspec.structs.replace(params, lambda1=made.report["lambda1"], lambda2=made.report["lambda2"]), 0, made
    )
    cold = kernel_learning.refit(
        grown, msgspec.structs.replace(params, lambda1=made.report["lambda1"], lambda2=made.report["lambda2"]), 0
    )
    assert warm.report["iterations"] <= cold.report["iterations"]
    assert warm.report["objective"] == pytest.approx(cold.report["objective"], rel=2e-4)
    assert np.linalg.norm(warm.arrays["coordinates"][:20] - made.arrays["coordinates"]) < 0.5 * np.linalg.norm(
        made.arrays["coordinates"]
    )


def test_a_loss_is_a_mean_over_answers():
    assert lambda_search.Losses(np.array([1.0, 4.0, 1.0]), np.array([1.0, 4.0, 3.0])).mean == 6 / 8


def test_the_search_goes_on_below_the_grid_while_that_helps(monkeypatch):
    """A grid of values that are all too large: the chosen lambda1 lies below it, and the next smaller one did not
    help."""
    _, triplets = reference.planted(43, 12, 400, flip=0.0, dimensions=2)
    monkeypatch.setattr(kernel_learning, "GRID", (0.9, 0.45))
    made = kernel_learning.refit(reference.snapshot_of(triplets, 12), kernel_learning.Params(form="t"), 0)
    tried = made.report["tried"]
    steps = [t["lambda1"] for t in tried]
    assert len(tried) > 3 and np.allclose(np.divide(steps[:-1], steps[1:]), 2)
    best = min(tried, key=lambda t: t["log_loss"])
    assert made.report["lambda1"] == best["lambda1"] < steps[1] and made.report["chosen_by"] == "held-out log loss"
    assert tried[-1]["log_loss"] >= best["log_loss"] or len(tried) == 2 + lambda_search.MAX_BELOW


@pytest.mark.parametrize("loss", ["ste", "hinge"])
def test_ids_and_names_do_not_matter(loss):
    """Another numbering of the same names: same lambdas and objective, permuted kernel. Other names, lambdas given:
    same bytes."""
    _, triplets = reference.planted(41, 10, 200)
    new_id = np.random.default_rng(0).permutation(10)
    params = kernel_learning.Params(loss=loss, tolerance=1e-6)
    names = [f"o{i}" for i in range(10)]
    one = kernel_learning.refit(reference.snapshot_of(triplets, 10, names), params, 0)
    two = kernel_learning.refit(
        reference.snapshot_of(new_id[triplets], 10, [names[i] for i in np.argsort(new_id)]), params, 0
    )
    assert [t["error"] for t in one.report["tried"]] == pytest.approx(
        [t["error"] for t in two.report["tried"]], abs=0.1
    )
    assert [t["lambda1"] for t in one.report["tried"]] == pytest.approx([t["lambda1"] for t in two.report["tried"]])
    given = msgspec.structs.replace(params, lambda1=one.report["lambda1"])
    two = kernel_learning.refit(reference.snapshot_of(new_id[triplets], 10), given, 0, evaluate=False)
    assert two.report["objective"] == pytest.approx(one.report["objective"], rel=1e-5)
    three = kernel_learning.refit(reference.snapshot_of(triplets, 10, "abcdefghij"), given, 0, evaluate=False)
    four = kernel_learning.refit(reference.snapshot_of(triplets, 10), given, 0, evaluate=False)
    assert all(np.array_equal(three.arrays[name], four.arrays[name]) for name in four.arrays)


def test_one_comparison_is_enough():
    made = kernel_learning.refit(reference.snapshot_of(np.array([[0, 1, 2]]), 3), kernel_learning.Params(), 0)
    assert made.arrays["satisfied"] == 1.0 and made.report["tried"] == []
