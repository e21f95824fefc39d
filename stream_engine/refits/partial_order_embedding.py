"""Partial order embedding (McFee & Lanckriet 2011) from a snapshot: LPOE, KPOE, MKPOE and GNMDS.

The constraint set is a parameter, and the report states its size. Comparisons are weighted by their net votes, or
equally as in the paper. beta is given, or selected by held-out log loss (`beta_choice`): objects are held out, as in
sec. 5.1; without kernels (K = I, GNMDS), new objects cannot be embedded, and responses are held out. The result has an
exact dual gap, and is certified if the gap is at most `tolerance`; otherwise the best iterate is published. Cost:
(folds * betas + 2) solves of O(m + sum r^3) per iteration (full), see `mkpoe`.

With `objects`, the order and the embedding are restricted to a subset. g(x) = N K_x (eq. 9) extends the embedding to
any other object in the files of the kernels or features. Without kernels, where K = I and tr W = tr W K is the sum of
squared lengths, another object is added from its own comparisons as an anchor, with the same hinge and beta.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.data.triplet_columns import net_triplets
from stream_engine.kernel_learning import auxiliary_kernels, factor_extension, mkpoe, out_of_sample
from stream_engine.kernel_learning.auxiliary_kernels import KernelSpec
from stream_engine.kernel_learning.constraints import Constraints, raw
from stream_engine.kernel_learning.out_of_sample import AnchorTriplets
from stream_engine.refits import (
    CannotRefit,
    Progress,
    beta_choice,
    kernel_refits,
    no_progress,
    order_embedding,
    second_solver,
)
from stream_engine.refits.beta_choice import Choice, Inputs
from stream_engine.refits.kernel_refits import Count, KernelEvaluation, KernelParams, Positive, Task
from stream_engine.state.artifact import Artifact
from stream_engine.state.artifact_schemas import PARTIAL_ORDER_EMBEDDING
from stream_engine.state.snapshot import Snapshot, triplet_columns

KIND = "partial_order_embedding"
AXES = PARTIAL_ORDER_EMBEDDING.axes


class Params(KernelParams, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit.

    Parameters
    ----------
    form : {'diagonal', 'full', 'order'}
        "full" (W PSD) or "diagonal" (W diagonal: a weight for each kernel and object); "order" satisfies every
        comparison of an acyclic order, without kernels or a loss (App. A: Algorithm 5 and the constant shift).
    constraints : str
        See `kernel_learning.constraints`; "length2" is another name of "drop-both".
    weights : {'one', 'votes'}
        "votes" (a comparison counts its net votes, "raw" and "drop-both" every answer), or the paper's "one".
    kernels : dict
        Name -> file and kind; none: K = I, which is GNMDS.
    combination : {'learned', 'sum'}
        "learned": a metric for each kernel (MKPOE), or "sum": one metric over the unweighted sum of the kernels
        (sec. 4.1).
    features : dict, optional
        LPOE on one file of features, in place of kernels.
    beta : float, optional
        Weight of the hinge loss relative to the regularisation; default: selected from multiples of the smallest beta
        that learns anything, smallest first, until one is clearly worse, and beyond an edge while the edge is best.
    tolerance : float
        Relative dual gap to reach.
    max_iterations : int
        Maximum for the last solve; if it is reached and cvxpy comes no closer, the artifact is not certified.
    solver : {'engine', 'cvxpy'}
        What solves the published program: "engine", or "cvxpy" (Clarabel, an interior-point method) for a second
        opinion on up to 100 objects, 20,000 comparisons and kernels of rank 60. If the engine misses
        the tolerance, cvxpy is tried as well, up to that size.
    dimensions : int
        Number of coordinates.
    objects : int or tuple of str, optional
        Use only these names, or the given number of objects with the most answers.
    rest : {'extended', 'none'}
        The other objects are excluded ("none"), or added to the learned kernel ("extended").
    """

    form: Literal["full", "diagonal", "order"] = "full"
    constraints: Literal["raw", "drop-both", "length2", "canonical", "algorithm1-reduced"] = "canonical"
    weights: Literal["votes", "one"] = "votes"
    kernels: dict[str, KernelSpec] = msgspec.field(default_factory=dict)
    combination: Literal["learned", "sum"] = "learned"
    features: KernelSpec | None = None
    beta: Positive | None = None
    tolerance: Positive = 1e-3
    max_iterations: Count = 20000

    def __post_init__(self):
        if self.constraints == "length2":
            msgspec.structs.force_setattr(self, "constraints", "drop-both")


# Arrays of n^2 doubles for each kernel: itself, its factor and inverse, W, A, a step's points, eigenvectors, and as
# many more.
MATRICES_PER_KERNEL = 12
VALIDATION_SHARE = 0.3  # of the responses outside the test set, if no objects are held out to select beta


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Embed the snapshot's objects, or a subset, by a partial order of their comparisons.

    Parameters
    ----------
    snapshot : Snapshot
        The counts.
    params : Params
        The parameters.
    seed : int
        Random seed.
    previous : Artifact, optional
        The previous artifact of this refit, to start from.
    progress : callable
        Called with the number of steps done, their total, and figures.

    Returns
    -------
    Artifact
        Arrays: Over a subset as in `refits.kernel_learning`; W and the maps are over the subset.

    Raises
    ------
    CannotRefit
        If the snapshot lacks what the refit needs.
    BadKernel
        If an auxiliary file cannot be used.
    """
    with threadpool_limits(1):
        task = kernel_refits.task(KIND, snapshot, params, seed, previous, quadruplets=True)
        kernel_refits.require_memory(task, MATRICES_PER_KERNEL * (1 + max(len(params.kernels), 1)))
        comparisons = beta_choice.constraints_of(task, task.restricted)
        _check(task, comparisons, len(net_triplets(triplet_columns(task.restricted))[0]))
        if params.solver == "cvxpy":
            kernel_refits.require_few_for_cvxpy(task, len(comparisons.rows))
        evaluation = KernelEvaluation(task, VALIDATION_SHARE, quadruplets=True)
        if params.form == "order":
            return order_embedding.artifact(task, comparisons, evaluation, progress)
        inputs = _inputs(task, comparisons)
        choose = partial(beta_choice.choose, task, inputs, progress=progress)
        choice = choose(evaluation.split())
        solves = len(choice.tried) + 2
        progress(solves - 1, solves)
        figures = evaluation.evaluate(choice, choose, partial(beta_choice.learned_from, task, inputs))
        fit_published = partial(beta_choice.fit, params, inputs, choice.beta, tolerance=params.tolerance)
        solution, solver = second_solver.solve_by(
            KIND,
            params.solver,
            lambda report_progress: fit_published(max_iterations=params.max_iterations, progress=report_progress),
            lambda: fit_published(solver="cvxpy"),
            lambda candidate: candidate.converged,
            kernel_refits.last_solve(progress, solves),
        )
        extension = _extension(task, inputs, choice.beta, solution)
        progress(solves, solves, gap=solution.gap)
        figures_report = evaluation.report(figures, choice.slope, solution.gram)
        return _artifact(task, inputs, choice, solution, extension, figures_report | {"solver": solver})


def _check(task: Task, comparisons: Constraints, decided: int) -> None:
    params, subset_words = task.params, task.subset_words
    if params.kernels and params.features is not None:
        raise CannotRefit(
            f"{KIND}: got both kernels and features; expected one of them (features: LPOE, kernels: MKPOE)"
        )
    if params.combination == "sum" and not params.kernels:
        raise CannotRefit(f"{KIND}: combination 'sum' is one of kernels; got none, expected some in `kernels`")
    kernel_refits.require_subset_to_extend(task)
    if params.form == "order":
        order_embedding.check(task)
    if len(comparisons.rows) == 0:
        counted = task.restricted.counters.get("comparisons", 0)
        raise CannotRefit(
            f"{KIND}: got 0 comparisons{subset_words} in constraints {params.constraints!r} (of {counted} in the "
            "stream); expected at least one that is not a tie"
        )
    if decided == 0 and params.constraints == "raw" and not task.restricted.section("quadruplet_counts"):
        raise CannotRefit(
            f"{KIND}: all {len(comparisons.rows) // 2} triplets{subset_words} are ties, so nothing can be learned; "
            "expected a majority for at least one"
        )


def _inputs(task: Task, comparisons: Constraints) -> Inputs:
    params, names, everyone = task.params, task.restricted.objects, task.snapshot.objects
    if params.features is not None:
        features, report = auxiliary_kernels.load_features("features", params.features, names, everyone)
        return Inputs(comparisons, ["features"], [features @ features.T], features, [report])
    if not params.kernels:
        return Inputs(comparisons, ["identity"], [np.eye(len(names))], None, [])
    helpers = auxiliary_kernels.load(params.kernels, names, everyone)
    if params.combination == "sum":
        return Inputs(comparisons, ["sum"], [np.sum(helpers.kernels, axis=0)], None, helpers.report)
    return Inputs(comparisons, helpers.names, helpers.kernels, None, helpers.report)


def _extension(task: Task, inputs: Inputs, beta: float, solution: mkpoe.Embedding) -> factor_extension.Extension | None:
    """All other objects added to the embedded ones: by the files of kernels or features, or without such by their own
    comparisons; None if they are excluded."""
    params, ids, objects = task.params, task.subset.ids, task.snapshot.objects
    if params.rest == "none":
        return None
    no_columns = np.zeros((len(ids), 0))
    free, fixed = no_columns, no_columns
    if inputs.names == ["identity"]:
        across = []
        free = factor_extension.root(solution.gram, kernel_refits.DIRECTIONS)
    elif inputs.features is not None:
        across = [auxiliary_kernels.features_across(params.features, objects, inputs.features.shape[1])]
        fixed = inputs.features @ solution.maps[0].T
    else:
        across = auxiliary_kernels.across(params.kernels, objects, ids)
        if params.combination == "sum":
            across = [auxiliary_kernels.sum_kernels(across, len(ids))]
        fixed = mkpoe.embed(solution, inputs.kernels)
    rows, has_row = kernel_refits.rows_from_files(across, solution.maps if across else [], len(objects))
    votes = _votes(params, beta / float(inputs.comparisons.weight.sum()))
    model = factor_extension.Model(float(np.trace(solution.gram)), free, fixed, rows, has_row, 1.0, "hinge", votes)
    return factor_extension.extension(
        triplet_columns(task.snapshot), ids, model, kernel_refits.DIRECTIONS, params.tolerance
    )


def _votes(params: Params, scale: float) -> Callable[[AnchorTriplets], AnchorTriplets]:
    """The weights of an added object's answers, which are those of the constraints: beta / |C| for each answer ("raw"),
    or for the net vote of each question; with weights "one" each question counts once."""

    def votes(answers: AnchorTriplets) -> AnchorTriplets:
        if params.weights == "one":
            answers = out_of_sample.majority(answers)
        elif params.constraints != "raw":
            answers = out_of_sample.net(answers)
        return answers._replace(n_lo=answers.n_lo * scale, n_hi=answers.n_hi * scale)

    return votes


def _artifact(
    task: Task,
    inputs: Inputs,
    choice: Choice,
    solution: mkpoe.Embedding,
    extension: factor_extension.Extension | None,
    figures: dict[str, Any],
) -> Artifact:
    weights = np.stack(solution.weights) if inputs.features is None else solution.weights[0]
    kernels = inputs.kernels if inputs.features is None else [np.eye(inputs.features.shape[1])]  # LPOE charges tr W
    mass = np.array([w @ np.diag(k) if w.ndim == 1 else np.vdot(w, k) for w, k in zip(solution.weights, kernels)])
    share = mass / max(mass.sum(), 1e-300)
    report = {
        "form": task.params.form,
        "constraints": task.params.constraints,
        "weights": task.params.weights,
        "size": len(inputs.comparisons.rows),
        "raw_size": len(raw(task.restricted).rows),
        "beta": choice.beta,
        "smallest_beta": choice.smallest,
        "chosen_by": choice.how,
        "tried": choice.tried,
        **figures,
        "objective": solution.objective,
        "bound": solution.bound,
        "gap": solution.gap,
        "certified": solution.converged,
        "iterations": solution.iterations,
        "satisfied": solution.satisfied,
        "dimensions": sum(len(m) for m in solution.maps),
        "mu": dict(zip(inputs.names, share.tolist())),
        "kernels": inputs.report,
    }
    arrays = {
        "K": solution.gram,
        "objective": np.array(solution.objective),
        "satisfied": np.array(solution.satisfied),
        "constraints": task.subset.ids[inputs.comparisons.rows].astype(np.int32),
        "W": weights,
        "mu": share,
        **{f"map_{p}": n_p for p, n_p in enumerate(solution.maps)},
    }
    return kernel_refits.artifact(task, solution.gram, arrays, report, extension)
