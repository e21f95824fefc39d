"""Partial order embedding: optimal by cvxpy and by certificate, out of sample, GNMDS, constraint sets, the
refit."""

from graphlib import CycleError, TopologicalSorter

import msgspec
import numpy as np
import pytest

from stream_engine.data.comparisons import Batch
from stream_engine.data.triplet_columns import net_triplets
from stream_engine.evaluation.coordinates import margin_scale
from stream_engine.kernel_learning import auxiliary_kernels, constant_shift, linear, mkpoe, programs
from stream_engine.kernel_learning.constraints import (
    NAMES,
    Constraints,
    constraints,
    without_contradictions,
)
from stream_engine.kernel_learning.gram_comparisons import excess, satisfied, triplet_rows
from stream_engine.kernel_learning.object_folds import by_objects_out
from stream_engine.refits import CannotRefit, beta_choice, kernel_refits
from stream_engine.refits import partial_order_embedding as poe
from stream_engine.state.snapshot import triplet_columns
from tests.support import kernel_reference as reference
from tests.support.facts import stating
from tests.support.generators import dense_batch, planted_triplets

POINTS, TRIPLETS = reference.planted(3, 15, 80)
ROWS = reference.rows_of(TRIPLETS)
KERNELS = reference.helpful_kernels(POINTS)


def world(kind):
    """Kernels for one test: a single one, three of them, or the identity (GNMDS)."""
    return {"one": KERNELS[:1], "three": KERNELS, "identity": [np.eye(15)]}[kind]


@pytest.mark.parametrize("kind", ["one", "three", "identity"])
@pytest.mark.parametrize("diagonal", [False, True], ids=["full", "diagonal"])
def test_as_good_as_cvxpy_at_15_objects(kind, diagonal):
    """Within 1e-4 relative at a beta that learns little and one that learns much; W reproduces the objective."""
    kernels, rng = world(kind), np.random.default_rng(1)
    weight = rng.integers(1, 4, len(ROWS)).astype(float)
    for beta in (20.0, 600.0):
        found = mkpoe.fit(ROWS, kernels, beta, diagonal=diagonal, weight=weight, tolerance=9e-5)
        second = mkpoe.fit(ROWS, kernels, beta, diagonal=diagonal, weight=weight, tolerance=1e-5, solver="cvxpy")
        assert found.converged and abs(found.objective - second.objective) <= 1e-4 * second.objective
        assert second.converged
        assert found.bound <= second.objective
        assert second.bound <= found.objective
        for each in (found, second):
            whole = [np.diag(w) if w.ndim == 1 else w for w in each.weights]
            gram = sum(k @ w @ k for k, w in zip(kernels, whole))
            again = sum(np.vdot(w, k) for k, w in zip(kernels, whole))
            again += beta / weight.sum() * weight @ np.maximum(0, 1.0 + excess(gram, ROWS))
            assert again == pytest.approx(each.objective, rel=1e-6)
            np.testing.assert_allclose(gram, each.gram, atol=1e-6 * max(1, np.abs(gram).max()))
            assert all(np.linalg.eigvalsh(w)[0] >= -1e-9 * max(1, np.abs(w).max()) for w in whole)


@pytest.mark.parametrize("diagonal", [False, True], ids=["full", "diagonal"])
def test_embedding_is_the_metric_in_and_out_of_sample(diagonal):
    """|g(x) - g(y)|^2 = d_W; a training object embedded as if it were new lands where it was."""
    found = mkpoe.fit(ROWS, KERNELS, 600.0, diagonal=diagonal)
    points = mkpoe.embed(found, KERNELS)
    assert points.shape[0] == 15
    for n_p, w in zip(found.maps, found.weights, strict=True):
        np.testing.assert_allclose(n_p.T @ n_p, np.diag(w) if diagonal else w, atol=1e-6 * np.abs(w).max())
    np.testing.assert_allclose(points @ points.T, found.gram, atol=1e-7 * np.abs(found.gram).max())
    np.testing.assert_allclose(mkpoe.embed(found, [k[:, [4]] for k in KERNELS])[0], points[4])
    assert reference.gauc(points, ROWS) == pytest.approx(satisfied(found.gram, ROWS))
    assert reference.gauc(points, ROWS[:0]) is None


def test_lpoe_is_kpoe_with_a_linear_kernel():
    """The same program (sec. 3.2): equal objectives and distances, and cvxpy's value for Algorithm 2; diagonal is per
    feature."""
    features = POINTS + 0.1
    one = mkpoe.fit_linear(ROWS, features, 100.0)
    two = mkpoe.fit(ROWS, [features @ features.T], 100.0)
    by_cvxpy = mkpoe.fit_linear(ROWS, features, 100.0, solver="cvxpy")
    assert by_cvxpy.converged and abs(one.objective - by_cvxpy.objective) <= 1e-4 * one.objective
    assert two.objective == pytest.approx(one.objective, rel=2e-4)
    np.testing.assert_allclose(mkpoe.embed(one, [features.T]) @ mkpoe.embed(one, [features.T]).T, one.gram, atol=1e-9)
    axes = mkpoe.fit_linear(
        ROWS, np.hstack([features, np.random.default_rng(0).normal(size=(15, 2))]), 100.0, diagonal=True
    )
    assert axes.weights[0].shape == (5,) and axes.weights[0][3:].mean() < 0.5 * axes.weights[0][:3].mean()
    assert mkpoe.embed(axes, [np.eye(5)]).shape == (5, (axes.weights[0] > 0).sum())


def test_diagonal_columns_against_their_definition():
    columns = mkpoe.diagonal_map(ROWS, KERNELS)
    d = columns.take(np.arange(45))
    for column in (0, 14, 15, 44):
        w = np.zeros((15, 15))
        w[column % 15, column % 15] = 1.0
        k = KERNELS[column // 15]
        np.testing.assert_allclose(d[:, column], excess(k @ w @ k, ROWS), atol=1e-12)
    y = np.random.default_rng(0).random(len(ROWS))
    np.testing.assert_allclose(columns.back(y), d.T @ y, atol=1e-12)
    assert linear.solve(columns, np.full(len(ROWS), 1e-3)).mu.any() == False  # noqa: E712  nothing is worth learning


# --- constraint sets ----------------------------------------------------------------------------------------------


def loaded(batch: Batch):
    """A snapshot with triplet and quadruplet counts."""
    from stream_engine.counts import accumulator

    quads = accumulator("quadruplet_counts")()
    quads.update(batch)
    arrays = {f"quadruplet_counts__{k}": v for k, v in quads.state().items()}
    return reference.snapshot_of(batch.triplets, batch.n_objects, **arrays)


def longest_paths(rows):
    """The longest path to every pair of an order, by the standard library. Raises `CycleError`."""
    before = {}
    for i, j, k, l in rows.tolist():
        before.setdefault((min(k, l), max(k, l)), set()).add((min(i, j), max(i, j)))
    depth = {}
    for pair in TopologicalSorter(before).static_order():
        depth[pair] = 1 + max((depth[each] for each in before.get(pair, ())), default=0)
    return depth


def as_set(found: Constraints):
    return {(*sorted(r[:2]), *sorted(r[2:])) for r in found.rows.tolist()}


def test_constraint_sets():
    """Each against its definition over triplets and quadruplets with contradictions and cycles; sizes fall as in Table
    2."""
    batch = dense_batch(np.random.default_rng(11), 6, 250)
    snapshot = loaded(batch)
    said = [(a, b, a, c) for a, b, c in batch.triplets.tolist()] + [tuple(q) for q in batch.quadruplets.tolist()]
    said = [(*sorted(q[:2]), *sorted(q[2:])) for q in said]
    raw = constraints(snapshot, "raw")
    assert as_set(raw) == set(said) and raw.weight.sum() == len(said)
    drop_both = constraints(snapshot, "drop-both")
    assert as_set(drop_both) == {q for q in said if (*q[2:], *q[:2]) not in set(said)}
    one = lambda which: constraints(snapshot, which, weights="one")  # noqa: E731
    assert all((one(which).weight == 1).all() for which in NAMES)
    canonical, least = constraints(snapshot, "canonical"), one("algorithm1-reduced")
    assert as_set(canonical) <= set(said) and any(len({*q}) == 4 for q in as_set(canonical))
    longest_paths(canonical.rows)
    net = {q: said.count(q) - said.count((*q[2:], *q[:2])) for q in said}
    for which, every in (("canonical", canonical), ("algorithm1-reduced", least)):
        voted = constraints(snapshot, which)
        assert as_set(voted) == {q for q in as_set(every) if net[q] > 0}  # against the vote: left out
        assert dict(zip(rows_as_said(voted), voted.weight)) == {q: net[q] for q in as_set(voted)}
    few = reference.inside(raw, np.array([1, 1, 1, 1, 0, 0], bool))
    assert as_set(few) == {q for q in said if max(q) < 4} and few.weight.sum() == sum(max(q) < 4 for q in said)
    inside = np.array([1, 1, 1, 1, 1, 0], bool)
    keep = lambda rows: inside[rows].all(axis=1)  # noqa: E731
    part = Batch(
        batch.triplets[inside[batch.triplets].all(axis=1)],
        batch.quadruplets[inside[batch.quadruplets].all(axis=1)],
        np.zeros(inside[batch.quadruplets].all(axis=1).sum(), np.int64),
        6,
    )
    for which in NAMES:  # chosen first, then processed
        assert as_set(constraints(snapshot, which, keep)) == as_set(constraints(loaded(part), which))
    with pytest.raises(ValueError, match="'everything'.*'votes'..*drop-both"):
        constraints(snapshot, "everything")
    with pytest.raises(ValueError, match=stating("'raw' … 'two' … votes … one")):
        constraints(snapshot, "raw", weights="two")


def rows_as_said(found: Constraints):
    return [(*sorted(r[:2]), *sorted(r[2:])) for r in found.rows.tolist()]


def test_algorithm_1_in_a_random_order():
    """Each order of a seed is the reduction of what the greedy definition keeps of what was said one way only: what is
    not in it follows from it, or closes a cycle with it. Seeds differ."""
    batch = dense_batch(np.random.default_rng(4), 6, 70)
    snapshot = loaded(batch)
    one_way = as_set(constraints(snapshot, "drop-both"))
    kept = [as_set(constraints(snapshot, "algorithm1-reduced", weights="one", seed=seed)) for seed in range(6)]
    assert len({frozenset(each) for each in kept}) > 1
    assert kept[2] == as_set(constraints(snapshot, "algorithm1-reduced", weights="one", seed=2))
    closing = 0
    for each in kept:
        assert each < one_way
        depth = longest_paths(np.array(sorted(each)))  # acyclic
        for left_out in one_way - each:
            whole = np.array(sorted(each | {left_out}))
            try:
                assert longest_paths(whole) == depth  # it follows, so a path is as long without it
            except CycleError:
                closing += 1
    assert closing


def test_no_answers_no_constraints():
    assert len(without_contradictions(Constraints(np.empty((0, 4), np.int32), np.empty(0))).rows) == 0
    nobody = reference.snapshot_of(np.empty((0, 3), np.int32), 15)
    assert all(len(constraints(nobody, which).rows) == 0 for which in NAMES)


# --- the order alone (App. A) -------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_algorithm_5_is_the_longest_path_and_the_shift_keeps_its_order(seed):
    """Delta against the standard library's topological order; squared distances are Delta + 2 shift, so every
    comparison holds, and with a margin of 1, as the appendix proves."""
    batch = dense_batch(np.random.default_rng(seed), 7, 120)
    rows, n = constraints(loaded(batch), "algorithm1-reduced").rows, 7
    found = constant_shift.embed_order(rows, n)
    depth = longest_paths(rows)
    for i in range(n):
        for j in range(n):
            assert found.delta[i, j] == (0 if i == j else depth.get((min(i, j), max(i, j)), 1))
    H = np.eye(n) - 1 / n
    least = np.linalg.eigvalsh(-0.5 * H @ found.delta @ H)[0]
    assert found.shift == pytest.approx(-least)
    assert found.shift > 0
    assert found.delta.max() > 2
    own = np.diag(found.gram)
    squared = own[:, None] + own - 2 * found.gram
    np.testing.assert_allclose(squared, found.delta + 2 * found.shift * (1 - np.eye(n)), atol=1e-9)
    assert excess(found.gram, rows).max() <= -1 + 1e-9
    assert np.linalg.eigvalsh(found.gram)[0] > -1e-9 and np.linalg.matrix_rank(found.gram, tol=1e-9) <= n - 1


def test_an_order_of_one_object_of_nothing_and_with_a_cycle():
    empty = np.empty((0, 4), np.int32)
    assert constant_shift.embed_order(empty, 1).gram.tolist() == [[0.0]]
    np.testing.assert_allclose(constant_shift.embed_order(empty, 4).gram, (np.eye(4) - 0.25) / 2)
    with pytest.raises(ValueError, match="cycle"):
        constant_shift.naive_order(np.array([[0, 1, 0, 2], [0, 2, 1, 2], [1, 2, 0, 1]], np.int32), 3)


@pytest.mark.parametrize("which", ["canonical", "algorithm1-reduced"])
def test_the_form_order_satisfies_the_whole_order(aux, which):
    points, triplets, specs = aux
    snapshot = reference.snapshot_of(triplets, 24)
    made = poe.refit(snapshot, poe.Params(form="order", constraints=which), 0)
    rows = constraints(snapshot, which).rows
    assert made.report["violated"] == 0
    assert made.report["satisfied"] == 1.0
    assert made.report["size"] == len(rows)
    assert np.array_equal(made.arrays["constraints"], rows) and excess(made.arrays["K"], rows).max() < -0.99
    assert made.report["levels"] == constant_shift.naive_order(rows, 24).max()
    assert made.report["held_out"] == "comparisons" and 0 < made.report["log_loss"] < 1
    fresh = triplet_rows(planted_triplets(np.random.default_rng(9), points, 5000))
    assert satisfied(made.arrays["K"], fresh) > 0.55


def test_the_form_order_refuses_what_it_does_not_have(aux):
    _, triplets, specs = aux
    snapshot = reference.snapshot_of(triplets, 24)
    for given, got in (
        ({"constraints": "drop-both"}, "drop-both"),
        ({"constraints": "raw"}, "raw"),
        ({"kernels": specs}, "kernels"),
        ({"beta": 2.0}, "beta"),
        ({"solver": "cvxpy"}, "solver"),
        ({"rest": "extended", "objects": 12}, "extended"),
    ):
        with pytest.raises(CannotRefit, match=got):
            poe.refit(snapshot, poe.Params(form="order", **given), 0)


# --- the refit ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def aux(tmp_path_factory):
    """A file that knows the points and one that knows nothing."""
    folder = tmp_path_factory.mktemp("aux")
    rng = np.random.default_rng(0)
    points = rng.normal(size=(24, 2))
    names = np.array([f"o{i}" for i in range(24)])
    np.savez(folder / "points.npz", objects=names, X=points)
    np.savez(folder / "noise.npz", objects=names, X=rng.normal(size=(24, 3)))
    specs = {name: auxiliary_kernels.KernelSpec(str(folder / f"{name}.npz"), "rbf") for name in ("points", "noise")}
    return points, planted_triplets(rng, points, 500, 0.05), specs


@pytest.mark.parametrize("variant", ["full", "diagonal"])
def test_refit_with_kernels(aux, variant, monkeypatch):
    points, triplets, specs = aux
    monkeypatch.setattr(beta_choice, "MULTIPLES", (4.0, 40.0))
    snapshot, said = reference.snapshot_of(triplets, 24), []
    params = poe.Params(form=variant, kernels=specs)
    made = poe.refit(snapshot, params, 0, None, lambda done, total, **figures: said.append((done, total)))
    fresh = triplet_rows(planted_triplets(np.random.default_rng(9), points, 5000))
    assert satisfied(made.arrays["K"], fresh) > 0.88
    assert made.report["mu"]["points"] > 0.8 and made.report["constraints"] == "canonical"
    assert made.report["weights"] == "votes" and made.report["certified"]
    assert made.report["size"] < made.report["raw_size"] and made.report["gap"] <= params.tolerance
    tried = len(made.report["tried"])
    assert made.report["chosen_by"] == "cross-validation, 3 folds of objects held out" and tried >= 2
    assert made.arrays["W"].shape == ((2, 24, 24) if variant == "full" else (2, 24))
    assert said[-1] == (tried + 2, tried + 2) and made.arrays["objective"] >= made.report["bound"] > 0
    helpers = auxiliary_kernels.load(specs, snapshot.objects)
    points_again = np.concatenate([made.arrays[f"map_{p}"] @ k for p, k in enumerate(helpers.kernels)]).T
    np.testing.assert_allclose(
        points_again @ points_again.T, made.arrays["K"], atol=1e-6 * np.abs(made.arrays["K"]).max()
    )


def test_objects_are_held_out_as_the_paper_says(aux):
    """Train among the rest, test (i, j, i, k) with i out, j and k in."""
    _, triplets, specs = aux
    snapshot = reference.snapshot_of(triplets, 24)
    voted = net_triplets(triplet_columns(snapshot))
    folds = by_objects_out(snapshot, "drop-both", voted, 3, 0)
    assert sorted(np.concatenate([np.flatnonzero(~f.inside) for f in folds]).tolist()) == list(range(24))
    whole = as_set(constraints(snapshot, "drop-both"))
    kernels = auxiliary_kernels.load(specs, snapshot.objects).kernels
    for fold in folds:
        ids = np.flatnonzero(fold.inside)
        assert as_set(fold.train._replace(rows=ids[fold.train.rows])) == {
            q for q in whole if fold.inside[list(q)].all()
        }
        asked = {
            tuple(t) for t in voted[0].tolist() if not fold.inside[t[0]] and fold.inside[t[1]] and fold.inside[t[2]]
        }
        assert {(i, j, k) for i, j, _, k in fold.test.rows.tolist()} == asked
        votes = {tuple(t): v for t, v in zip(voted[0].tolist(), voted[1].tolist())}
        assert [votes[i, j, k] for i, j, _, k in fold.test.rows.tolist()] == fold.test.weight.tolist()
        for variant in ("full", "diagonal"):
            params = poe.Params(form=variant, constraints="drop-both", kernels=specs)
            whole_inputs = beta_choice.Inputs(fold.train, ["a", "b"], kernels, None, [])
            gram = beta_choice.gram_of_test(params, whole_inputs, 2000.0, fold)
            x = excess(gram, fold.test.rows)
            inner = [k[np.ix_(ids, ids)] for k in kernels]
            rows, weight = fold.train
            options = {"diagonal": variant == "diagonal", "weight": weight}
            found = mkpoe.fit(rows, inner, 2000.0, **options, tolerance=beta_choice.ROUGH_GAP)
            points = {i: mkpoe.embed(found, [k[ids][:, [i]] for k in kernels])[0] for i in range(24)}
            d = lambda i, j, p=points: ((p[i] - p[j]) ** 2).sum()  # noqa: E731
            np.testing.assert_allclose(x, [d(i, j) - d(i, k) for i, j, _, k in fold.test.rows.tolist()], atol=1e-9)
            done, gauc = beta_choice._attempt(params, whole_inputs, 2000.0, [fold])
            assert gauc == pytest.approx((x < 0) @ fold.test.weight / fold.test.weight.sum()) and gauc > 0.75
            by_anchor = np.bincount(
                fold.test.rows[:, 0], fold.test.weight * np.log1p(np.exp(done.slope / margin_scale(gram) * x)), 24
            )
            np.testing.assert_allclose(done.losses.sums, by_anchor[np.unique(fold.test.rows[:, 0])])


def test_refit_without_kernels_is_gnmds_and_holds_out_comparisons(aux):
    points, triplets, specs = aux
    made = poe.refit(reference.snapshot_of(triplets, 24), poe.Params(constraints="length2"), 0)
    assert made.report["constraints"] == "drop-both"
    assert made.report["chosen_by"] == "held-out comparisons" and made.report["mu"] == {"identity": 1.0}
    fresh = triplet_rows(planted_triplets(np.random.default_rng(9), points, 5000))
    assert satisfied(made.arrays["K"], fresh) > 0.85
    linear_one = poe.refit(
        reference.snapshot_of(triplets, 24),
        poe.Params(features=msgspec.structs.replace(specs["points"], kind="linear"), constraints="raw", beta=50.0),
        0,
    )
    assert linear_one.arrays["W"].shape == (2, 2) and linear_one.report["chosen_by"] == "given"
    assert linear_one.report["size"] == linear_one.report["raw_size"]


@pytest.mark.parametrize("variant", ["full", "diagonal"])
def test_the_sum_kernel_is_one_metric_over_the_sum_of_the_kernels(aux, variant):
    """K1 of Table 1: KPOE with the kernel of eq. 7; a subset's others join by the sum of their rows."""
    _, triplets, specs = aux
    snapshot = reference.snapshot_of(triplets, 24)
    params = poe.Params(form=variant, kernels=specs, combination="sum", constraints="drop-both", beta=300.0)
    made = poe.refit(snapshot, params, 0)
    kernel = sum(auxiliary_kernels.load(specs, snapshot.objects).kernels)
    rows, weight = constraints(snapshot, "drop-both")
    alone = mkpoe.fit(rows, [kernel], 300.0, diagonal=variant == "diagonal", weight=weight, tolerance=1e-3)
    assert made.report["objective"] == pytest.approx(alone.objective, rel=2e-3)
    assert made.report["mu"] == {"sum": 1.0}
    assert len(made.arrays["W"]) == 1
    assert len(made.report["kernels"]) == 2
    some = poe.refit(snapshot, msgspec.structs.replace(params, objects=16, rest="extended"), 0)
    ids, x = some.arrays["ids"], int(np.setdiff1d(np.arange(24), some.arrays["ids"])[0])
    across = [each.columns(np.array([x])) for each in auxiliary_kernels.across(specs, snapshot.objects, ids)]
    point, factor = some.arrays["map_0"] @ sum(across)[:, 0], some.arrays["factor"]
    inner = some.arrays["map_0"] @ sum(auxiliary_kernels.load(specs, [snapshot.objects[i] for i in ids]).kernels)
    np.testing.assert_allclose(factor[ids] @ factor[x], inner.T @ point, atol=1e-6 * np.abs(inner).max() ** 2)
    with pytest.raises(CannotRefit, match="kernels"):
        poe.refit(snapshot, poe.Params(combination="sum"), 0)


def test_smallest_beta_is_where_learning_starts(aux):
    _, triplets, specs = aux
    for variant in ("full", "diagonal"):
        made = poe.refit(reference.snapshot_of(triplets, 24), poe.Params(form=variant, kernels=specs, beta=1.0), 0)
        assert not made.arrays["W"].any() and made.report["gap"] < 1e-7
        least = made.report["smallest_beta"]
        more = poe.refit(
            reference.snapshot_of(triplets, 24),
            poe.Params(form=variant, kernels=specs, beta=least * 1.003, tolerance=1e-6),
            0,
        )
        assert more.arrays["W"].any() and more.report["objective"] < least * 1.003
        less = poe.refit(
            reference.snapshot_of(triplets, 24), poe.Params(form=variant, kernels=specs, beta=least * 0.99), 0
        )
        assert not less.arrays["W"].any()


@pytest.mark.parametrize("beta", [1e-3, 1e3, 1e6])
@pytest.mark.parametrize("variant", ["full", "diagonal"])
def test_any_beta_publishes_its_best_iterate_and_says_if_it_is_not_certified(aux, beta, variant, monkeypatch):
    """The gap of the report is exact: the objective is attained by K's own W, and the bound is below the optimum."""
    monkeypatch.setattr(programs, "MAX_OBJECTS", 10)  # no second solver
    monkeypatch.setattr(kernel_refits.KernelEvaluation, "evaluate", lambda *_: None)  # figures are most of a fit
    _, triplets, specs = aux
    params = poe.Params(form=variant, kernels=specs, beta=beta, constraints="raw", max_iterations=40)
    made = poe.refit(reference.snapshot_of(triplets, 24), params, 0)
    report = made.report
    assert report["certified"] == (report["gap"] <= params.tolerance)
    assert report["gap"] == pytest.approx(1 - report["bound"] / report["objective"], abs=1e-9)
    better = poe.refit(
        reference.snapshot_of(triplets, 24), msgspec.structs.replace(params, max_iterations=2_000), 0
    ).report
    assert report["bound"] <= better["objective"] * (1 + 1e-9)
    if variant == "full" and beta == 1e6:
        assert not report["certified"]
        assert report["iterations"] <= 40
        assert made.arrays["K"].any()


def test_too_few_to_hold_any_out():
    made = poe.refit(reference.snapshot_of(np.array([[0, 1, 2]]), 3), poe.Params(), 0)
    assert made.report["chosen_by"].startswith("too few comparisons") and made.arrays["satisfied"] == 1.0
