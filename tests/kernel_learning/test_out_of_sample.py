"""Objects outside a choice, placed by their own answers and by what files know of them.

References: the objective of one object by scipy, and kernels computed over all objects at once.
"""

from collections import Counter

import msgspec
import numpy as np
import pytest
from scipy.optimize import minimize

from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.evaluation import predictor, subset
from stream_engine.kernel_learning import auxiliary_kernels, out_of_sample
from stream_engine.kernel_learning.auxiliary_kernels import KernelSpec
from stream_engine.kernel_learning.out_of_sample import AnchorTriplets
from stream_engine.refits import kernel_learning, partial_order_embedding
from stream_engine.state import artifact as artifacts
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot, triplet_columns
from tests.support.generators import planted_triplets
from tests.support.kernel_reference import snapshot_of
from tests.support.subset_world import KERNEL, NAMES, ORDER, OTHERS, POINTS, SOME, N, learned, planted


@pytest.fixture(scope="module")
def world() -> Snapshot:
    return planted()


# --- extending -------------------------------------------------------------------------------------------------------


def asked_world(seed=0, n=9, r=3, s=2, counts=(0, 1, 6, 25)) -> tuple:
    rng = np.random.default_rng(seed)
    m = sum(counts)
    lo = rng.integers(0, n, m)
    said = AnchorTriplets(
        np.append(0, np.cumsum(counts)),
        lo.astype(np.int32),
        ((lo + rng.integers(1, n, m)) % n).astype(np.int32),
        rng.integers(0, 4, m).astype(float),
        rng.integers(0, 3, m) * 0.5,
    )
    return rng.normal(size=(n, r)), rng.normal(size=(n, s)), rng.normal(size=(len(counts), s)), said


def objective(y, x, free, fixed, given, said, ridge, loss) -> float:
    """From the definition: squared distances between whole points."""
    whole, here, total = np.concatenate([free, fixed], axis=1), np.concatenate([y, given[x]]), ridge * y @ y
    for t in range(said.start[x], said.start[x + 1]):
        excess = ((here - whole[said.lo[t]]) ** 2).sum() - ((here - whole[said.hi[t]]) ** 2).sum()
        for votes, z in ((said.n_lo[t], excess), (said.n_hi[t], -excess)):
            total += votes * (np.logaddexp(0, z) if loss == "ste" else max(0.0, 1 + z))
    return total


@pytest.mark.parametrize("loss", ["ste", "hinge"])
@pytest.mark.parametrize("ridge", [0.05, 1.0, 20.0])
def test_a_placed_object_is_where_its_answers_cost_least(loss, ridge):
    """No worse than what scipy finds from many starts, by no more than the gap says; the gap is a true bound."""
    free, fixed, given, said = asked_world()
    found = out_of_sample.extend(free, fixed, given, said, ridge, loss, 1e-8)
    assert not found.points[0].any() and (found.gap <= 1e-8).all()
    rough = out_of_sample.extend(free, fixed, given, said, ridge, loss, 0.3)
    for x in range(1, 4):
        arguments = (x, free, fixed, given, said, ridge, loss)
        mine = objective(found.points[x], *arguments)
        start = found.points[x] + np.random.default_rng(x).normal(0, 0.3, 3)
        best = min(
            minimize(objective, start, arguments, method, options={"maxiter": 3000}).fun
            for method in ("Powell", "BFGS")
        )
        assert mine <= best * (1 + 1e-6) and mine == pytest.approx(best, rel=1e-3 if loss == "ste" else 2e-2)  # kinks
        assert objective(rough.points[x], *arguments) * (1 - rough.gap[x]) <= mine * (1 + 1e-9)
    assert rough.gap.max() > 1e-6 or (loss, ridge) == ("hinge", 20.0)  # which ten passes solve


def test_answers_of_others_come_object_by_object():
    """Against a walk over all rows, in Python."""
    rng = np.random.default_rng(3)
    triplets = np.array([rng.permutation(8)[:3] for _ in range(400)])
    columns, ids, rest = columns_from_triplets(triplets, 8), np.array([1, 4, 6, 7]), np.array([0, 2, 5])
    said = out_of_sample.answers_of(columns, subset.renumbering(ids, 8), subset.renumbering(rest, 8), 3)
    found = Counter()
    for x in range(3):
        for t in range(said.start[x], said.start[x + 1]):
            lo, hi = ids[said.lo[t]], ids[said.hi[t]]
            found[rest[x], lo, hi] += said.n_lo[t]
            found[rest[x], hi, lo] += said.n_hi[t]
    expected = Counter(tuple(row) for row in triplets.tolist() if row[0] in rest and row[1] in ids and row[2] in ids)
    assert +found == expected


@pytest.mark.parametrize(
    "params, tolerance",
    [(KERNEL, 1e-7), (msgspec.structs.replace(KERNEL, loss="hinge"), 1e-6), (ORDER, 1e-7)],
    ids=["ste", "hinge", "gnmds"],
)
def test_the_others_are_placed_by_the_refits_own_objective(params, tolerance, world):
    """The whole artifact from its own arrays: F of the chosen makes K, F of each other one minimises the refit's
    loss."""
    made = learned(msgspec.structs.replace(params, rest="extended", tolerance=tolerance), world)
    F, K, ids = made.arrays["factor"].astype(float), made.arrays["K"], made.arrays["ids"]
    assert ids.tolist() == list(SOME) and K.shape == (8, 8)
    assert made.arrays["known"].tolist() == [1 if i in SOME else 2 for i in range(N)]
    np.testing.assert_allclose(F[ids] @ F[ids].T, K, atol=1e-5 * np.abs(K).max())
    hinge = isinstance(params, partial_order_embedding.Params)
    weight, ridge = 1.0, made.report.get("lambda1", 1.0)
    if hinge:  # beta / |C| of the comparisons among the chosen
        part = subset.restrict(world, params.objects)
        weight = params.beta / (
            part.snapshot.section("triplet_counts")["n_lo"].sum()
            + part.snapshot.section("triplet_counts")["n_hi"].sum()
        )
    loss = "hinge" if hinge else params.loss
    said = out_of_sample.answers_of(
        triplet_columns(world), subset.renumbering(ids, N), subset.renumbering(np.array(OTHERS), N), len(OTHERS)
    )
    said = said._replace(n_lo=said.n_lo * weight, n_hi=said.n_hi * weight)
    none = np.zeros((len(OTHERS), 0))
    for x, i in enumerate(OTHERS):
        arguments = (x, F[ids], np.zeros((8, 0)), none, said, ridge, loss)
        mine = objective(F[i], *arguments)
        for step in np.random.default_rng(i).normal(0, 0.05, (60, F.shape[1])):
            assert mine <= objective(F[i] + step, *arguments) + 1e-5
    assert made.report["placed"] == len(OTHERS)
    assert made.report["placed_gap"] <= tolerance
    assert made.report["directions_share"] == pytest.approx(1)
    fresh = planted_triplets(np.random.default_rng(8), POINTS, 3000)[:, [0, 1, 0, 2]]
    margin = predictor(made.kind, Published(world._replace(sequence=9), {made.kind: made})).margins(fresh)
    assert not np.isnan(margin).any() and (margin > 0).mean() > 0.85
    away = np.isin(fresh, OTHERS).any(axis=1)
    assert (margin[away] > 0).mean() > 0.84


# --- what files know of the others -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Features of all objects but o2 (chosen) and o9 (not), a kernel of all, and features in the order of ids."""
    folder = tmp_path_factory.mktemp("files")
    there = [i for i in range(N) if i not in (2, 9)]
    counts = np.random.default_rng(1).integers(0, 9, (N, 3)).astype(float)
    gram = POINTS @ POINTS.T
    np.savez(folder / "points.npz", objects=np.array(NAMES)[there], X=POINTS[there])
    np.savez(folder / "counts.npz", objects=np.array((*NAMES, "nobody")), X=np.append(counts, [[1, 1, 1]], axis=0))
    np.savez(folder / "gram.npz", objects=np.array(NAMES), K=gram)
    np.save(folder / "rows.npy", POINTS)
    return folder, counts


SPECS = {
    "kernel": "gram.npz",
    "linear": "points.npz",
    "rbf": "counts.npz",
    "ids": "rows.npy",
}


@pytest.mark.parametrize("what", SPECS)
def test_columns_of_others_are_those_of_the_same_kernel(files, what):
    """The entries of the kernel of all, in the scale of the chosen ones' kernel. The files say nothing of o9, and 0 of
    o2."""
    folder, _ = files
    kind = {"ids": "rbf"}.get(what, what)
    spec = KernelSpec(str(folder / SPECS[what]), kind, gamma=0.3 if kind == "rbf" else None)
    mine = auxiliary_kernels.load({"a": spec}, [NAMES[i] for i in SOME], NAMES)
    (across,) = auxiliary_kernels.across({"a": spec}, NAMES, np.array(SOME))
    assert across.in_file.tolist() == [not (what == "linear" and i in (2, 9)) for i in range(N)]
    others = np.array([i for i in OTHERS if across.in_file[i]])
    found = across.columns(others)
    assert mine.report[0]["unknown"] == (SPECS[what] == "counts.npz")
    whole = auxiliary_kernels.load({"a": spec}, NAMES).kernels[0]
    inside = whole[np.ix_(SOME, SOME)]
    expected = whole[np.ix_(SOME, others)] * (
        mine.kernels[0][0, 1] / inside[0, 1] if what != "linear" else mine.kernels[0][0, 2] / inside[0, 2]
    )
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found.shape == (8, len(others)) and (what != "linear" or not found[1].any())


def test_an_embedding_by_kernels_places_by_g(files):
    """Eq. 9 with the artifact's own maps; o9, of which no file knows, is nowhere and predicts nothing."""
    folder, _ = files
    specs = {"points": KernelSpec(str(folder / "points.npz"), "rbf", gamma=0.5)}
    snapshot = snapshot_of(planted_triplets(np.random.default_rng(6), POINTS, 2500, 0.05), N)
    made = learned(msgspec.structs.replace(ORDER, kernels=specs, rest="extended", beta=3000.0), snapshot)
    mine = auxiliary_kernels.load(specs, [NAMES[i] for i in SOME], NAMES).kernels[0]
    whole = auxiliary_kernels.load(specs, NAMES).kernels[0]
    F, g = made.arrays["factor"].astype(float), made.arrays["map_0"] @ whole[list(SOME)] * (mine[0, 2] / whole[0, 3])
    assert (
        made.arrays["known"].tolist() == [0 if i == 9 else 1 if i in SOME else 2 for i in range(N)] and not F[9].any()
    )
    known = np.array([i for i in range(N) if i not in (2, 9)])  # o2 is chosen and has its identity row
    np.testing.assert_allclose(
        F[known] @ F[known].T, g[:, known].T @ g[:, known], atol=1e-4 * np.abs(made.arrays["K"]).max()
    )
    margin = predictor(made.kind, Published(snapshot, {made.kind: made})).margins
    rows = np.array([[0, 1, 0, 4], [0, 9, 0, 4], [1, 4, 7, 10], [3, 99, 3, 1]])
    d = ((F[:, None] - F[None]) ** 2).sum(axis=2)
    expected = [d[0, 4] - d[0, 1], np.nan, d[7, 10] - d[1, 4], np.nan]
    np.testing.assert_allclose(margin(rows), expected)
    np.testing.assert_allclose(
        margin(np.tile(rows, (20_000, 1)))[-6:], [*expected[2:], *expected]
    )  # more than one block of them


@pytest.mark.parametrize("form", ["ak", "mkl"])
def test_auxiliary_kernels_place_what_they_know(files, form):
    """K'' = K0 + mu K_a; the known part of an outsider is Nystrom's, exact towards the chosen: <F_x, F_j> = mu K_a(x,
    j) where nobody said anything of x, and the whole loss is at its least where somebody did."""
    folder, _ = files
    specs = {"gram": KernelSpec(str(folder / "gram.npz"))}
    triplets = planted_triplets(np.random.default_rng(6), POINTS, 2500, 0.05)
    triplets = triplets[(triplets[:, 0] != 12)]  # nobody was asked about o12
    params = msgspec.structs.replace(KERNEL, form=form, kernels=specs, lambda2=1.0, lambda1=2.0, rest="extended")
    made = learned(params, snapshot_of(triplets, N))
    F, ids, mu = made.arrays["factor"].astype(float), np.array(SOME), made.arrays["mu"][0]
    (across,) = auxiliary_kernels.across(specs, NAMES, ids)
    assert mu > 0 and made.arrays["known"][12] == 2
    np.testing.assert_allclose(F[ids] @ F[ids].T, made.arrays["K"], atol=1e-5)
    np.testing.assert_allclose(F[ids] @ F[12], mu * across.columns(np.array([12]))[:, 0], atol=1e-5)
    if form == "ak" and made.report["rank_K0"]:
        own = np.linalg.eigh(made.arrays["K0"])
        free = own[1][:, own[0] > 1e-9] * np.sqrt(own[0][own[0] > 1e-9])
        aux = np.sqrt(mu) * np.linalg.cholesky(mu * across.columns(ids) / mu + 1e-12 * np.eye(8))
        g = np.linalg.lstsq(aux, mu * across.columns(np.array(OTHERS)), rcond=1e-5)[0].T
        said = out_of_sample.answers_of(
            triplet_columns(snapshot_of(triplets, N)),
            subset.renumbering(ids, N),
            subset.renumbering(np.array(OTHERS), N),
            len(OTHERS),
        )
        found = out_of_sample.extend(free, aux, g, said, 2.0, "ste", 1e-7).points
        for x, i in enumerate(OTHERS):
            np.testing.assert_allclose(
                F[ids] @ F[i], free @ found[x] + aux @ g[x], atol=2e-3 * np.abs(made.arrays["K"]).max()
            )


def test_a_warm_start_goes_by_object(world):
    """Another choice starts from what both have: K0 of the common ones, duals of the common triplets."""
    params = msgspec.structs.replace(KERNEL, loss="hinge", tolerance=1e-4)
    made = artifacts.decode(b"".join(artifacts.encode(learned(params, world, evaluate=False))[0]))
    assert learned(params, world, made, evaluate=False).report["iterations"] == 0
    ids = np.array([1, 3, 5, 11, 12])
    triplets = np.array([[0, 1, 2], [1, 2, 3], [3, 1, 2]], np.int32)
    inputs = kernel_learning.Inputs(5, triplets, np.ones(3), auxiliary_kernels.AuxiliaryKernels([], [], []))
    start = kernel_learning._warm_start(made, inputs, ids, "hinge")
    K0 = made.arrays["K0"]
    for i, a in enumerate(ids.tolist()):
        for j, b in enumerate(ids.tolist()):
            assert start.k0[i, j] == (K0[SOME.index(a), SOME.index(b)] if {a, b} <= {*SOME} else 0.0)
    duals = {tuple(t): y for t, y in zip(made.arrays["triplets"].tolist(), made.arrays["dual"].tolist())}
    assert start.dual.tolist() == [0.0, duals.get((3, 5, 11), 0.0), duals.get((11, 3, 5), 0.0)] and start.dual.any()
    whole = learned(msgspec.structs.replace(params, objects=None), world, made, evaluate=False)
    assert whole.arrays["K"].shape == (N, N) and "ids" not in whole.arrays
    back = learned(params, world, whole, evaluate=False)
    assert back.report["objective"] == pytest.approx(made.report["objective"], rel=2e-4)
