"""Relative comparison kernel learning (Heim et al. 2015) from a snapshot: RCKL-T, -MKL and -AK, STE or hinge.

All directions of all triplets count, with their multiplicities (E is a sum over triplets). lambda1 and lambda2 are
given, or chosen on held-out comparisons from a grid in units of the smallest values at which nothing is learned. The
answer is certified: `gap` bounds how far its objective can be above the optimum. Cost: (grid + 1) solves of O(m + n^3)
an iteration.

With `objects` n is their number: the kernel is learned over the chosen ones, from what was said among them. The others
can be placed among them, see `kernel_learning.placing`: by their own comparisons as anchors, with the same loss and
lambda1, and by the auxiliary kernels. Then K ~ F F' over all, and no array is n by n but for the chosen.
"""

from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.data.triplet_columns import net_triplets
from stream_engine.kernel_learning import auxiliary_kernels, hash_split, mkpoe, out_of_sample_factor, rckl
from stream_engine.kernel_learning.auxiliary_kernels import Auxiliary, KernelSpec
from stream_engine.kernel_learning.distance_operator import satisfied, triplet_rows
from stream_engine.kernel_learning.triplet_lists import weighted_triplets
from stream_engine.refits import CannotRefit, SolverFailed, quiet, subset_refits
from stream_engine.state.artifact import Artifact
from stream_engine.state.snapshot import Snapshot, triplet_columns
from stream_engine.statistics.subset import Subset, common, learned_ids

KIND = "kernel_learning"
MATRICES = 16  # of n'^2 doubles, besides the auxiliary ones: K, K0, a step's points, gradients, eigenvectors, workspace
BEYOND = 6  # how many smaller lambda1 than the grid's are tried while the error falls
ROUGH = 1e-3  # relative gap of solves that only rank lambdas
Positive = Annotated[float, msgspec.Meta(gt=0)]
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


LAWS_EXCLUDED = {
    "renamed_objects": "comparisons are held out by a hash of names: ids and arrival do not matter; see held_out",
    "permuted_ids": "there are no labels; that ids do not matter is tested on the objective and the choice",
}


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`form`: "t" learns K0 alone, "mkl" weights of the auxiliary kernels alone, "ak" both (without kernels: the same
    as t). `loss`: "ste" or "hinge" (GNMDS). `kernels`: name -> file and kind, see `auxiliary.KernelSpec`. `lambda1`
    (trace of K0) and `lambda2` (sum of mu): none chooses each by held-out error from `grid`, fractions of the smallest
    value at which K0 or mu is 0 (lambda1 goes on below the grid while that helps). `held_out`: which share of the
    comparisons validates. `tolerance`: relative dual gap to reach. `dimensions` of the coordinates; `neighbours` listed
    per object. `memory_gb`: what may be used; none: what is free. `objects`: learn over these names only, or so many with
    the most evidence; `rest`: the others are left out, or placed among them, with a factor of so many `directions`, the
    largest (O(directions^3) an object)."""

    form: Literal["t", "mkl", "ak"] = "ak"
    loss: Literal["ste", "hinge"] = "ste"
    kernels: dict[str, KernelSpec] = {}
    lambda1: Positive | None = None
    lambda2: Positive | None = None
    grid: Annotated[tuple[Share, ...], msgspec.Meta(min_length=1)] = (0.5, 0.2, 0.08, 0.03)
    held_out: Share = 0.2
    tolerance: Positive = 1e-4
    max_iterations: Annotated[int, msgspec.Meta(ge=1)] = 20000
    dimensions: Annotated[int, msgspec.Meta(ge=0)] = 2
    neighbours: Annotated[int, msgspec.Meta(ge=0)] = 5
    memory_gb: Positive | None = None
    objects: Annotated[int, msgspec.Meta(ge=2)] | tuple[str, ...] | None = None
    rest: Literal["none", "placed"] = "none"
    directions: Annotated[int, msgspec.Meta(ge=1)] = 32


class Chosen(NamedTuple):
    """The lambdas to learn with, every pair that was tried with its held-out error, and where to start from."""

    lambda1: float
    lambda2: float
    tried: list[dict[str, float]]
    start: rckl.Start | None


def refit(snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress=quiet) -> Artifact:
    """Learn a kernel over the snapshot's objects, or over the chosen ones. Raises `CannotRefit`, `SolverFailed`,
    `auxiliary.BadKernel`.

    Arrays of a choice: `ids` (n',), whom K and K0 are over; coordinates, neighbours and `known` (0: nothing, 1: learned,
    2: placed) have a row for each of the snapshot's objects, and with rest = "placed" so has `factor` F.
    """
    with threadpool_limits(1):
        part = subset_refits.chosen_part(KIND, snapshot, params.objects)
        columns, names = triplet_columns(part.snapshot), part.snapshot.objects
        triplets, weight = weighted_triplets(columns)
        _check(params, part.all_of(snapshot), triplets, len(net_triplets(columns)[0]))
        subset_refits.require(
            KIND,
            snapshot,
            part,
            MATRICES + len(params.kernels),
            8 * len(triplets) * (20 + len(params.kernels)),
            params.memory_gb,
        )
        helpers = auxiliary_kernels.load(params.kernels, names, snapshot.objects)
        chosen = _choose(part.snapshot, params, seed, triplets, weight, helpers, progress)
        start = _warm(previous, helpers, triplets, part.ids, params) or chosen.start
        total = len(chosen.tried) + 1
        learned = rckl.fit(
            triplets,
            len(names),
            helpers.kernels,
            form=params.form,
            loss=params.loss,
            lambda1=chosen.lambda1,
            lambda2=chosen.lambda2,
            weight=weight,
            start=start,
            tolerance=params.tolerance,
            max_iterations=params.max_iterations,
            progress=lambda done, most, **figures: progress(total - 1, total, iteration=done, **figures),
        )
        if not learned.converged:
            raise SolverFailed(
                f"kernel_learning: gap {learned.gap:.2g} after {learned.iterations} iterations; expected <= "
                f"{params.tolerance}, next: raise max_iterations, tolerance or lambda1"
            )
        placed = _placed(snapshot, params, part, helpers, chosen, learned)
        progress(total, total, gap=learned.gap)
        return _artifact(snapshot, params, seed, previous, part, triplets, helpers, chosen, learned, placed)


def _check(params: Params, among: str, triplets: np.ndarray, decided: int) -> None:
    if len(triplets) == 0:
        raise CannotRefit(
            f"kernel_learning: got 0 triplets{among}; expected at least one, next: "
            + ("choose more objects, or others" if among else "keep triplet_counts and feed comparisons")
        )
    if decided == 0:
        raise CannotRefit(
            f"kernel_learning: all {len(triplets) // 2} triplets{among} are contradicted as often as they were said, so "
            "nothing can be learned; expected a majority for one at least"
        )
    if params.form == "mkl" and not params.kernels:
        raise CannotRefit(
            "kernel_learning: form 'mkl' weighs auxiliary kernels and got none; expected some in `kernels`, or form 't'"
        )
    if params.rest == "placed" and params.objects is None:
        raise CannotRefit(
            "kernel_learning: rest 'placed' places all objects but the chosen, and none were chosen; expected names or a "
            "number in `objects`"
        )


def _placed(
    snapshot, params: Params, part: Subset, helpers: Auxiliary, chosen, learned
) -> out_of_sample_factor.Spread | None:
    """The others beside the learned points: auxiliary parts by Nystrom, the rest by the refit's own loss and lambda1."""
    if params.rest == "none":
        return None
    used = [a for a, weight in enumerate(learned.mu.tolist()) if weight > 0]
    specs = {helpers.names[a]: params.kernels[helpers.names[a]] for a in used}
    across = auxiliary_kernels.across(specs, snapshot.objects, part.ids)
    roots = [mkpoe.factor(helpers.kernels[a]) for a in used]
    scales = np.sqrt(learned.mu[used])
    maps = [scale * each.inverse for scale, each in zip(scales, roots)]
    fixed = [scale * each.root for scale, each in zip(scales, roots)]
    model = out_of_sample_factor.Model(
        float(np.trace(learned.gram)),
        out_of_sample_factor.root(learned.k0, params.directions),
        np.concatenate([np.zeros((len(part.ids), 0)), *fixed], axis=1),
        *subset_refits.given(across, maps, len(snapshot.objects)),
        chosen.lambda1,
        params.loss,
    )
    return out_of_sample_factor.spread(triplet_columns(snapshot), part.ids, model, params.directions, params.tolerance)


def _choose(snapshot: Snapshot, params: Params, seed: int, triplets, weight, helpers: Auxiliary, progress) -> Chosen:
    """lambda1 and lambda2: as given, or with the smallest held-out error; ties go to the larger, simpler, ones."""
    n, rows = len(snapshot.objects), triplet_rows(triplets)
    full = rckl.build(triplets, weight, helpers.kernels, n, params.form, params.loss, 1.0, 1.0)
    most = rckl.largest_lambdas(full)
    first, second = (
        _candidates(params, given, largest) for given, largest in zip((params.lambda1, params.lambda2), most)
    )
    first = first if params.form != "mkl" else first[:1]
    second = second if params.form != "t" and helpers.kernels else second[:1]
    if len(first) * len(second) == 1:
        return Chosen(first[0], second[0], [], None)
    test = hash_split.comparison_draws(rows, hash_split.name_hashes(snapshot.objects, seed)) < params.held_out
    if test.all() or not test.any():  # too few to hold any out: the middle of the grid, and the report says so
        return Chosen(first[len(first) // 2], second[len(second) // 2], [], None)
    kept = weight[~test].sum() / weight.sum()  # E is a sum: the same lambda weighs more against fewer triplets
    n_grid, tried = len(first) * len(second), []

    def attempt(lambda1: float, lambda2: float, start: rckl.Start | None) -> Attempt:
        found = rckl.fit(
            triplets[~test],
            n,
            helpers.kernels,
            form=params.form,
            loss=params.loss,
            weight=weight[~test],
            lambda1=lambda1 * kept,
            lambda2=lambda2 * kept,
            start=start,
            tolerance=ROUGH,
            max_iterations=3000,
        )
        error = 1.0 - satisfied(found.gram, rows[test], weight[test])
        tried.append({"lambda1": lambda1, "lambda2": lambda2, "error": error, "rank": found.rank, "gap": found.gap})
        progress(len(tried), max(n_grid, len(tried)) + 1, gap=found.gap, error=error)
        return Attempt(error, lambda1, lambda2, rckl.Start(found.k0, found.mu, found.dual))

    best = _best(attempt, first, second)
    return Chosen(best.lambda1, best.lambda2, tried, best.start._replace(dual=None))


class Attempt(NamedTuple):
    """One pair of lambdas, its held-out error, and its answer as a start for the next."""

    error: float
    lambda1: float
    lambda2: float
    start: rckl.Start


def _best(attempt, first: list[float], second: list[float]) -> Attempt:
    """The grid, each lambda1 started from the one before; then below it for as long as the edge is the best place."""
    best = None
    for lambda2 in second:
        start = None
        for lambda1 in first:
            made = attempt(lambda1, lambda2, start)
            start = made.start
            best = made if best is None or made.error < best.error else best
    at_edge = len(first) > 1 and best.lambda1 == first[-1]
    for _ in range(BEYOND):
        if not at_edge:
            break
        made = attempt(best.lambda1 * first[-1] / first[-2], best.lambda2, best.start)
        at_edge = made.error < best.error
        best = made if at_edge else best
    return best


def _candidates(params: Params, given: float | None, largest: float) -> list[float]:
    """Largest first, so that each solve starts from a simpler one; 1 where the data sets no scale (nothing to
    learn)."""
    if given is not None:
        return [given]
    return [largest * fraction for fraction in sorted(params.grid, reverse=True)] if largest > 0 else [1.0]


def _warm(
    previous: Artifact | None, helpers: Auxiliary, triplets, ids: np.ndarray, params: Params
) -> rckl.Start | None:
    """The previous answer as a start: objects are matched by id, which never changes, kernels by name, duals by triplet."""
    if previous is None or not {"K0", "mu", "dual", "triplets"} <= set(previous.arrays):
        return None
    k0, old = np.zeros((len(ids), len(ids))), previous.arrays["K0"]
    here, there = common(ids, learned_ids(previous.arrays))
    k0[np.ix_(here, here)] = old[np.ix_(there, there)]
    mu = np.array([previous.report["mu"].get(name, 0.0) for name in helpers.names])
    dual = None
    if params.loss == "hinge" and previous.params.get("loss") == "hinge":
        key = {tuple(t): y for t, y in zip(previous.arrays["triplets"].tolist(), previous.arrays["dual"].tolist())}
        dual = np.array([key.get(tuple(t), 0.0) for t in ids[triplets].tolist()])
    return rckl.Start(k0, mu, dual)


def _artifact(
    snapshot, params, seed, previous, part: Subset, triplets, helpers, chosen: Chosen, learned: rckl.Learned, placed
) -> Artifact:
    weights = dict(zip(helpers.names, learned.mu.tolist()))
    report: dict[str, Any] = {
        "form": params.form,
        "loss": params.loss,
        "lambda1": chosen.lambda1,
        "lambda2": chosen.lambda2,
        "chosen_by": "held-out error" if chosen.tried else "given, or too few comparisons to hold any out",
        "tried": chosen.tried,
        "held_out_error": min((t["error"] for t in chosen.tried), default=None),
        "triplets": len(triplets),
        "objective": learned.objective,
        "bound": learned.bound,
        "gap": learned.gap,
        "iterations": learned.iterations,
        "rank_K0": learned.rank,
        "satisfied": learned.satisfied,
        "mu": weights,
        "kernels": helpers.report,
    }
    arrays = {
        "K": learned.gram,
        "K0": learned.k0,
        "mu": learned.mu,
        "objective": np.array(learned.objective),
        "satisfied": np.array(learned.satisfied),
        "triplets": part.ids[triplets].astype(np.int32),
        "dual": learned.dual,
        **subset_refits.arrays(snapshot, params, part, learned.gram, placed, previous),
    }
    report |= subset_refits.report(snapshot, params, part, placed)
    return Artifact(
        KIND,
        snapshot.digest,
        snapshot.sequence,
        msgspec.json.decode(msgspec.json.encode(params)),
        seed,
        arrays,
        report,
    )
