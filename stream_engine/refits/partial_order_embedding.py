"""Partial order embedding (McFee & Lanckriet 2011) from a snapshot: LPOE, KPOE, MKPOE, GNMDS, and Algorithm 5.

The constraint set is a parameter and stands in the report with its size. beta is given, or chosen by cross-validation
with objects held out, as in sec. 5.1: trained on comparisons among the rest, tested on (i, j, i, k) with i held out and
j, k not. Without kernels (K = I, GNMDS) new objects cannot be embedded, so comparisons are held out instead. The answer
is certified by an exact dual gap. Cost: (folds * betas + 1) solves of O(m + sum r^3) an iteration (full), see `mkpoe`.

With `objects` the order is one of comparisons among the chosen, and so is the embedding. g(x) = N K_x (eq. 9) places any
other object that the kernels' files (or the features') name; without kernels, where K = I and tr W = tr W K is the sum of
squared lengths, its own comparisons as an anchor do, with the same hinge and beta: see `kernel_learning.placing`.
"""

from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.data.triplet_columns import net_triplets
from stream_engine.kernel_learning import auxiliary_kernels, constant_shift, mkpoe, out_of_sample_factor
from stream_engine.kernel_learning.auxiliary_kernels import KernelSpec
from stream_engine.kernel_learning.constraints import Constraints, constraints, raw
from stream_engine.kernel_learning.distance_operator import excess
from stream_engine.kernel_learning.out_of_sample import Asked
from stream_engine.kernel_learning.splits import Split, by_comparisons_out, by_objects_out
from stream_engine.refits import CannotRefit, SolverFailed, quiet, subset_refits
from stream_engine.state.artifact import Artifact
from stream_engine.state.snapshot import Snapshot, triplet_columns
from stream_engine.statistics.subset import Subset

KIND = "partial_order_embedding"
MATRICES = 12  # of n'^2 doubles for each kernel: itself, its factor and inverse, W, A, a step's points, eigenvectors; as many more
ROUGH = 1e-2  # relative gap of solves that only rank betas
Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


LAWS_EXCLUDED = {
    "renamed_objects": "objects and comparisons are held out by a hash of names: ids and arrival do not matter",
    "permuted_ids": "there are no labels; that ids do not matter is tested on the objective and the choice",
}


class Params(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`form`: "full" (W PSD), "diagonal" (W diagonal: a weight per kernel and object) or "order" (Algorithm 5: every
    comparison of the order satisfied, nothing regularised). `constraints`: see `kernel_learning.constraints`.
    `kernels`: name -> file and kind; none: K = I, which is GNMDS. `features` instead: LPOE on one file of features.
    `beta`: none chooses from `betas`, or where those are none from `multiples` of the smallest beta at which anything
    is learned. `hold_out`: "objects", "comparisons" (a `share` of them), or "auto": objects where there are kernels.
    `folds` of objects. `rank` keeps that many directions a kernel (full form, an approximation). `tolerance`: relative
    dual gap to reach. `dimensions`, `neighbours`: of the pictures. `memory_gb`: what may be used; none: what is free.
    `objects`: embed these names only, or so many with the most evidence; `rest`: the others are left out, or placed among
    them (not in form "order", which has no loss to place by), with a factor of so many `directions`, the largest."""

    form: Literal["full", "diagonal", "order"] = "full"
    constraints: Literal["raw", "length2", "acyclic", "canonical", "acyclic-reduced", "canonical-reduced"] = (
        "canonical-reduced"
    )
    kernels: dict[str, KernelSpec] = {}
    features: KernelSpec | None = None
    beta: Positive | None = None
    betas: tuple[Positive, ...] = ()
    multiples: Annotated[tuple[Positive, ...], msgspec.Meta(min_length=1)] = (2.0, 8.0, 40.0, 200.0)
    hold_out: Literal["auto", "objects", "comparisons"] = "auto"
    folds: Annotated[int, msgspec.Meta(ge=2)] = 3
    share: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.3
    rank: Count | None = None
    tolerance: Positive = 1e-3
    max_iterations: Count = 20000
    dimensions: Annotated[int, msgspec.Meta(ge=0)] = 2
    neighbours: Annotated[int, msgspec.Meta(ge=0)] = 5
    memory_gb: Positive | None = None
    objects: Annotated[int, msgspec.Meta(ge=2)] | tuple[str, ...] | None = None
    rest: Literal["none", "placed"] = "none"
    directions: Count = 32


class Inputs(NamedTuple):
    """What the program is solved over: kernels, or features (LPOE)."""

    names: list[str]
    kernels: list[np.ndarray]
    features: np.ndarray | None
    report: list[dict[str, Any]]


class Chosen(NamedTuple):
    """The beta to embed with, the smallest at which anything is learned, how it was chosen, and what was tried."""

    beta: float
    smallest: float
    how: str
    tried: list[dict[str, float]]


def refit(snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress=quiet) -> Artifact:
    """Embed the snapshot's objects, or the chosen ones. Raises `CannotRefit`, `SolverFailed`, `auxiliary.BadKernel`.

    Arrays of a choice: as in `refits.kernel_learning`; W and the maps are over the chosen objects.
    """
    with threadpool_limits(1):
        part = subset_refits.chosen_part(KIND, snapshot, params.objects, quadruplets=True)
        blocks = 1 if params.form == "order" else MATRICES * max(len(params.kernels), 1)
        subset_refits.require(KIND, snapshot, part, MATRICES + blocks, 0, params.memory_gb)
        found = constraints(part.snapshot, params.constraints)
        voted = net_triplets(triplet_columns(part.snapshot))
        _check(part.snapshot, params, part.all_of(snapshot), found, len(voted[0]))
        if params.form == "order":
            progress(1, 1)
            return _order_artifact(snapshot, params, seed, previous, part, found)
        given = _inputs(part.snapshot, params, snapshot.objects)
        chosen = _choose(part.snapshot, params, seed, found, voted, given, progress)
        total = len(chosen.tried) + 1
        solved = _fit(
            params,
            found,
            given,
            chosen.beta,
            params.tolerance,
            params.max_iterations,
            lambda done, most, **figures: progress(total - 1, total, iteration=done, **figures),
        )
        if not solved.converged:
            raise SolverFailed(
                f"partial_order_embedding: gap {solved.gap:.2g} after {solved.iterations} iterations at beta "
                f"{chosen.beta:.3g}; expected <= {params.tolerance}, next: raise tolerance or lower beta"
            )
        placed = _placed(snapshot, params, part, found, given, chosen.beta, solved)
        progress(total, total, gap=solved.gap)
        return _artifact(snapshot, params, seed, previous, part, found, given, chosen, solved, placed)


def _check(snapshot: Snapshot, params: Params, among: str, found: Constraints, decided: int) -> None:
    if params.kernels and params.features is not None:
        raise CannotRefit(
            f"{KIND}: got both kernels and features; expected one of them (features: LPOE, kernels: MKPOE)"
        )
    if params.form == "order" and params.constraints in ("raw", "length2"):
        raise CannotRefit(
            f"{KIND}: form 'order' needs an acyclic order and got constraints {params.constraints!r}; expected "
            "'acyclic' or 'canonical'"
        )
    if params.rest == "placed" and (params.objects is None or params.form == "order"):
        raise CannotRefit(
            f"{KIND}: rest 'placed' places all objects but the chosen by the loss that these were learned with; got objects "
            f"{'none' if params.objects is None else 'chosen'} and form {params.form!r}, expected names or a number in `objects` "
            "and form 'full' or 'diagonal'"
        )
    counted = snapshot.counters.get("comparisons", 0)
    if len(found.rows) == 0:
        raise CannotRefit(
            f"{KIND}: got 0 comparisons{among} in constraints {params.constraints!r} (of {counted} in the stream); "
            "expected at least one that is not contradicted as often as it was said"
        )
    if decided == 0 and params.constraints == "raw" and not snapshot.section("quadruplet_counts"):
        raise CannotRefit(
            f"{KIND}: all {len(found.rows) // 2} triplets{among} are contradicted as often as they were said, so nothing "
            "can be learned; expected a majority for one at least"
        )


def _inputs(snapshot: Snapshot, params: Params, every) -> Inputs:
    n = len(snapshot.objects)
    if params.features is not None:
        features, said = auxiliary_kernels.load_features("features", params.features, snapshot.objects, every)
        return Inputs(["features"], [features @ features.T], features, [said])
    if not params.kernels:
        return Inputs(["identity"], [np.eye(n)], None, [])
    helpers = auxiliary_kernels.load(params.kernels, snapshot.objects, every)
    return Inputs(helpers.names, helpers.kernels, None, helpers.report)


def _placed(
    snapshot, params: Params, part: Subset, found: Constraints, given: Inputs, beta, solved
) -> out_of_sample_factor.Spread | None:
    """All others beside the embedded ones: by what files know of them, or without any by their own comparisons."""
    if params.rest == "none":
        return None
    n, none, trace = len(snapshot.objects), np.zeros((len(part.ids), 0)), float(np.trace(solved.gram))
    ridge, votes = 1.0, _votes(params.constraints, beta / float(found.weight.sum()))
    if given.names == ["identity"]:
        rows, known = subset_refits.given([], [], n)
        model = out_of_sample_factor.Model(
            trace, out_of_sample_factor.root(solved.gram, params.directions), none, rows, known, ridge, "hinge", votes
        )
    else:
        if given.features is not None:
            across = [auxiliary_kernels.features_across(params.features, snapshot.objects, given.features.shape[1])]
            embedded = given.features @ solved.maps[0].T
        else:
            across = auxiliary_kernels.across(params.kernels, snapshot.objects, part.ids)
            embedded = mkpoe.embed(solved, given.kernels)
        rows, known = subset_refits.given(across, solved.maps, n)
        model = out_of_sample_factor.Model(trace, none, embedded, rows, known, ridge, "hinge", votes)
    return out_of_sample_factor.spread(triplet_columns(snapshot), part.ids, model, params.directions, params.tolerance)


def _votes(which: str, scale: float):
    """What an object's own answers count for: "raw" with multiplicities, else one for the majority, each as much as a
    constraint does, beta / |C|."""

    def votes(said: Asked) -> Asked:
        said = said if which == "raw" else out_of_sample_factor.majority(said)
        return said._replace(n_lo=said.n_lo * scale, n_hi=said.n_hi * scale)

    return votes


def _fit(
    params: Params, found: Constraints, given: Inputs, beta: float, tolerance: float, most: int, progress=quiet
) -> mkpoe.Embedding:
    diagonal = params.form == "diagonal"
    if given.features is not None:
        return mkpoe.fit_linear(
            found.rows,
            given.features,
            beta,
            diagonal=diagonal,
            weight=found.weight,
            tolerance=tolerance,
            max_iterations=most,
            progress=progress,
        )
    return mkpoe.fit(
        found.rows,
        given.kernels,
        beta,
        diagonal=diagonal,
        weight=found.weight,
        rank=params.rank,
        tolerance=tolerance,
        max_iterations=most,
        progress=progress,
    )


def _choose(snapshot, params: Params, seed: int, found: Constraints, voted, given: Inputs, progress) -> Chosen:
    smallest = mkpoe.smallest_beta(
        found.rows, found.weight, given.kernels, diagonal=params.form == "diagonal", features=given.features
    )
    if smallest is None:
        raise CannotRefit(
            "partial_order_embedding: no scaling of the kernels satisfies more comparisons than it violates, so "
            "W = 0 is optimal at every beta; expected kernels that say something, or none (K = I)"
        )
    if params.beta is not None:
        return Chosen(params.beta, smallest, "given", [])
    betas = sorted(params.betas or [m * smallest for m in params.multiples])
    if len(betas) == 1:
        return Chosen(betas[0], smallest, "given", [])
    objects_out = params.hold_out == "objects" or (params.hold_out == "auto" and given.names != ["identity"])
    splits = by_objects_out(snapshot, params.constraints, voted, params.folds, seed) if objects_out else []
    how = f"cross-validation, {len(splits)} folds of objects held out"
    if not splits:
        splits, how = (
            by_comparisons_out(snapshot, params.constraints, voted, params.share, seed),
            "held-out comparisons",
        )
    if not splits:
        return Chosen(betas[len(betas) // 2], smallest, "too few comparisons to hold any out", [])
    tried = []
    for beta in betas:
        scores = [_score(params, given, beta, split) for split in splits]
        tried.append({"beta": beta, "gauc": float(np.mean(scores))})
        progress(len(tried), len(betas) + 1, gauc=tried[-1]["gauc"])
    return Chosen(max(tried, key=lambda t: t["gauc"])["beta"], smallest, how, tried)  # ties: the smaller beta


def _score(params: Params, given: Inputs, beta: float, split: Split) -> float:
    """GAUC of the test comparisons, held-out objects embedded by g(x) = N K_x."""
    inside = split.inside
    part = Inputs(
        given.names,
        [k[np.ix_(inside, inside)] for k in given.kernels],
        None if given.features is None else given.features[inside],
        [],
    )
    learned = _fit(params, split.train, part, beta, ROUGH, 2000)
    columns = [k[inside] for k in given.kernels] if given.features is None else [given.features.T]
    points = mkpoe.embed(learned, columns)
    right = excess(points @ points.T, split.test.rows) < 0
    return float(split.test.weight[right].sum() / split.test.weight.sum())


def _artifact(
    snapshot, params, seed, previous, part: Subset, found, given, chosen: Chosen, solved: mkpoe.Embedding, placed
) -> Artifact:
    weights = np.stack(solved.weights) if given.features is None else solved.weights[0]
    kernels = given.kernels if given.features is None else [np.eye(given.features.shape[1])]  # LPOE charges tr W
    mass = np.array([w @ np.diag(k) if w.ndim == 1 else np.vdot(w, k) for w, k in zip(solved.weights, kernels)])
    share = mass / max(mass.sum(), 1e-300)
    report = {
        "form": params.form,
        "constraints": params.constraints,
        "size": len(found.rows),
        "raw_size": len(raw(part.snapshot).rows),
        "beta": chosen.beta,
        "smallest_beta": chosen.smallest,
        "chosen_by": chosen.how,
        "tried": chosen.tried,
        "objective": solved.objective,
        "bound": solved.bound,
        "gap": solved.gap,
        "iterations": solved.iterations,
        "satisfied": solved.satisfied,
        "dimensions": sum(len(m) for m in solved.maps),
        "mu": dict(zip(given.names, share.tolist())),
        "kernels": given.report,
    }
    arrays = {"W": weights, "mu": share}
    arrays |= {f"map_{p}": n_p for p, n_p in enumerate(solved.maps)}
    return _made(
        snapshot,
        params,
        seed,
        previous,
        part,
        found,
        solved.gram,
        solved.objective,
        solved.satisfied,
        arrays,
        report,
        placed,
    )


def _order_artifact(snapshot, params, seed, previous, part: Subset, found: Constraints) -> Artifact:
    made = constant_shift.embed_order(found.rows, len(part.ids))
    left = int((excess(made.gram, found.rows) >= 0).sum())
    report = {
        "form": params.form,
        "constraints": params.constraints,
        "size": len(found.rows),
        "raw_size": len(raw(part.snapshot).rows),
        "violated": left,
        "levels": int(made.delta.max(initial=0)),
        "shift": made.shift,
        "satisfied": 1.0 - left / len(found.rows),
    }
    arrays = {"mu": np.empty(0)}
    return _made(
        snapshot, params, seed, previous, part, found, made.gram, 0.0, report["satisfied"], arrays, report, None
    )


def _made(
    snapshot, params, seed, previous, part: Subset, found, gram, objective, fraction, arrays, report, placed
) -> Artifact:
    arrays = {
        "K": gram,
        "objective": np.array(objective),
        "satisfied": np.array(fraction),
        "constraints": part.ids[found.rows].astype(np.int32),
        **arrays,
        **subset_refits.arrays(snapshot, params, part, gram, placed, previous),
    }
    return Artifact(
        KIND,
        snapshot.digest,
        snapshot.sequence,
        msgspec.json.decode(msgspec.json.encode(params)),
        seed,
        arrays,
        report | subset_refits.report(snapshot, params, part, placed),
    )
