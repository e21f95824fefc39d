"""Relative comparison kernel learning (Heim et al. 2014) from a snapshot: RCKL-T, -MKL and -AK, STE or hinge.

All directions of all triplets count, with their multiplicities (E is a sum over triplets). lambda1 and lambda2 are
given, or selected on a validation set from a grid in units of the smallest values at which nothing is learned. The
figures of the report are cross-fitted (`evaluation.cross_fit`), each with a selection of its own. The published kernel
is fitted to all answers. It is certified: `gap` bounds how far its objective can be above the optimum. Cost: a grid of
solves and two more for each group of folds, of O(m r) an iteration for a rank of r (O(m + n^3) for few objects), all
but the last rough.

With `objects` the kernel is learned over a subset, and n is its size. The other objects can be added to it by their own
comparisons as anchors, with the same loss and lambda1, and by the auxiliary kernels: K ~ F F' over all.
"""

from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.data.triplet_columns import net_triplets
from stream_engine.evaluation import held_out
from stream_engine.evaluation.held_out import slope_of
from stream_engine.evaluation.responses import VALIDATION_SHARE
from stream_engine.evaluation.subset import common, learned_ids
from stream_engine.kernel_learning import auxiliary_kernels, factor_extension, lambda_search, mkpoe, rckl
from stream_engine.kernel_learning.auxiliary_kernels import AuxiliaryKernels, KernelSpec
from stream_engine.kernel_learning.gram_comparisons import excess, share_satisfied, weighted_triplets
from stream_engine.kernel_learning.lambda_search import Attempt, Lambdas, Losses
from stream_engine.kernel_learning.problem import Problem
from stream_engine.refits import (
    CannotRefit,
    Progress,
    SolverFailed,
    kernel_refits,
    next_step,
    no_progress,
    second_solver,
)
from stream_engine.refits.kernel_refits import Count, KernelEvaluation, KernelParams, Positive, Task, TrainingSplit
from stream_engine.state.artifact import Artifact
from stream_engine.state.artifact_schemas import KERNEL_LEARNING
from stream_engine.state.snapshot import Snapshot, triplet_columns

KIND = "kernel_learning"
AXES = KERNEL_LEARNING.axes
MATRICES = 16  # of n^2 doubles, besides the auxiliary ones: K, K0, a step's points, gradients, eigenvectors, workspace
ROUGH = 1e-3  # relative gap of solves that only rank lambdas
GRID = (0.5, 0.2, 0.08, 0.03)  # candidate lambdas, as fractions of the smallest values at which K0 or mu is 0


class Params(KernelParams, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit.

    Parameters
    ----------
    form : {'ak', 'mkl', 't'}
        "t" learns K0 alone, "mkl" weights of the auxiliary kernels alone, "ak" both (without kernels: the same as t).
    loss : {'hinge', 'ste'}
        "ste" or "hinge" (GNMDS).
    kernels : dict
        Name -> file and kind, see `auxiliary_kernels.KernelSpec`.
    lambda1, lambda2 : float, optional
        Weights of the trace of K0 and of the sum of mu; default: selected by held-out log loss from a grid, which is
        extended while its edge is best (a path of lambda1 ends at the first value that is clearly worse).
    tolerance : float
        Relative dual gap to reach.
    max_iterations : int
        Maximum for the last solve; if it is reached and cvxpy comes no closer, the refit fails and reports the gap.
    solver : {'engine', 'cvxpy'}
        What solves the published program: "engine", or "cvxpy" (Clarabel, an interior-point method) for a second
        opinion on up to 100 objects and 20,000 comparisons. If the engine misses
        the tolerance, cvxpy is tried as well, up to that size.
    dimensions : int
        Number of coordinates.
    objects : int or tuple of str, optional
        Use only these names, or the given number of objects with the most answers.
    rest : {'extended', 'none'}
        The other objects are excluded ("none"), or added to the learned kernel ("extended").
    """

    form: Literal["t", "mkl", "ak"] = "ak"
    loss: Literal["ste", "hinge"] = "ste"
    kernels: dict[str, KernelSpec] = msgspec.field(default_factory=dict)
    lambda1: Positive | None = None
    lambda2: Positive | None = None
    tolerance: Positive = 1e-4
    max_iterations: Count = 20000


class Inputs(NamedTuple):
    """What a kernel over n objects is learned from."""

    n: int
    triplets: np.ndarray  # (m, 3) int32
    weight: np.ndarray  # (m,) float64: how often each was said
    helpers: AuxiliaryKernels

    def of(self, restricted: Snapshot) -> "Inputs":
        """The same with the triplets that another snapshot of these objects counts."""
        triplets, weight = weighted_triplets(triplet_columns(restricted))
        return self._replace(triplets=triplets, weight=weight)


class Choice(NamedTuple):
    """The lambdas to learn with, every pair that was tried with its held-out log loss, where to start from, and the
    slope of its probabilities; None where nothing is there to calibrate it by."""

    lambdas: Lambdas
    tried: list[dict[str, float]]
    start: rckl.Start | None
    slope: float | None


def refit(
    snapshot: Snapshot,
    params: Params,
    seed: int,
    previous: Artifact | None = None,
    progress: Progress = no_progress,
    *,
    evaluate: bool = True,
) -> Artifact:
    """Learn a kernel over the snapshot's objects, or over a subset.

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
    evaluate : bool
        Whether to compute the figures of prediction accuracy.

    Returns
    -------
    Artifact
        Arrays: Over a subset, `ids` (n,) are the objects of K and K0; coordinates and `known` (0: nothing,
        1: learned, 2: joined) have one row per object of the snapshot, and so has `factor` F if rest is "extended".

    Raises
    ------
    CannotRefit
        If the snapshot lacks what the refit needs.
    SolverFailed
        If the tolerance is not reached.
    BadKernel
        If an auxiliary file cannot be used.
    """
    with threadpool_limits(1):
        task = kernel_refits.task(KIND, snapshot, params, seed, previous)
        inputs = _inputs(task)
        evaluation = KernelEvaluation(task, VALIDATION_SHARE, evaluate=evaluate)
        choose = partial(_choose, task, inputs, progress=progress)
        choice = choose(evaluation.split())
        outside = _Outside(params, inputs)
        figures = evaluation.evaluated(choice, choose, outside.learned)
        near = (outside.first or choice.start) if choice.tried else None
        start = _warm_start(previous, inputs, task.subset.ids, params.loss) or near
        solves = len(choice.tried) + 2
        progress(solves - 1, solves)
        last = partial(_fit, params, inputs, choice.lambdas, tolerance=params.tolerance)
        learned, solver = second_solver.solved(
            KIND,
            params.solver,
            lambda tell: last(start, max_iterations=params.max_iterations, progress=tell),
            lambda: last(None, solver="cvxpy"),
            lambda found: found.converged,
            kernel_refits.last_solve(progress, solves),
        )
        if not learned.converged:
            raise SolverFailed(
                f"kernel_learning: gap {learned.gap:.2g} after {learned.iterations} iterations; expected <= "
                f"{params.tolerance}, next: raise max_iterations, tolerance or lambda1"
            )
        extension = _extension(task, inputs.helpers, choice.lambdas.lambda1, learned)
        progress(solves, solves, gap=learned.gap)
        told = evaluation.report(figures, choice.slope, learned.gram)
        return _artifact(task, inputs, choice, learned, extension, told | {"solver": solver})


def _inputs(task: Task) -> Inputs:
    """The comparisons among the subset and the auxiliary kernels over it, where these can teach something and fit."""
    params, restricted = task.params, task.restricted
    columns, names = triplet_columns(restricted), restricted.objects
    triplets, weight = weighted_triplets(columns)
    _check(task, triplets, len(net_triplets(columns)[0]))
    if params.solver == "cvxpy":
        kernel_refits.require_few(task, len(triplets))
    extra = len(params.kernels)
    kernel_refits.require_memory(task, MATRICES + extra, 8 * len(triplets) * (20 + extra))
    helpers = auxiliary_kernels.load(params.kernels, names, task.snapshot.objects)
    return Inputs(len(names), triplets, weight, helpers)


def _check(task: Task, triplets: np.ndarray, decided: int) -> None:
    among, params = task.among, task.params
    if len(triplets) == 0:
        raise CannotRefit(
            f"kernel_learning: got 0 triplets{among}; expected at least one, next: "
            + (
                "choose more objects, or others"
                if among
                else next_step(task.snapshot.counters["comparisons"], "triplet_counts")
            )
        )
    if decided == 0:
        raise CannotRefit(
            f"kernel_learning: all {len(triplets) // 2} triplets{among} are ties, so nothing can be learned; expected "
            "a majority for at least one"
        )
    if params.form == "mkl" and not params.kernels:
        raise CannotRefit(
            "kernel_learning: form 'mkl' needs auxiliary kernels; expected some in `kernels`, or form 't'"
        )
    kernel_refits.require_subset_to_extend(task)


def _built(params: Params, inputs: Inputs) -> Problem:
    """The problem at lambdas of 1."""
    return rckl.build(
        inputs.triplets, inputs.weight, inputs.helpers.kernels, inputs.n, params.form, params.loss, 1.0, 1.0
    )


def _fit(
    params: Params, inputs: Inputs, lambdas: Lambdas, start: rckl.Start | None, **limits: Any
) -> rckl.LearnedKernel:
    """`rckl.fit` with the form and the loss that the refit was asked for."""
    return rckl.fit(
        inputs.triplets,
        inputs.n,
        inputs.helpers.kernels,
        form=params.form,
        loss=params.loss,
        lambda1=lambdas.lambda1,
        lambda2=lambdas.lambda2,
        weight=inputs.weight,
        start=start,
        **limits,
    )


def _extension(
    task: Task, helpers: AuxiliaryKernels, lambda1: float, learned: rckl.LearnedKernel
) -> factor_extension.Extension | None:
    """All other objects joined to the learned points: their auxiliary parts by Nystrom, the rest by the refit's own
    loss and lambda1; None where they are excluded."""
    params, ids = task.params, task.subset.ids
    if params.rest == "none":
        return None
    used = [a for a, weight in enumerate(learned.mu.tolist()) if weight > 0]
    specs = {helpers.names[a]: params.kernels[helpers.names[a]] for a in used}
    across = auxiliary_kernels.across(specs, task.snapshot.objects, ids)
    roots = [mkpoe.factor(helpers.kernels[a]) for a in used]
    scales = np.sqrt(learned.mu[used])
    maps = [scale * each.inverse for scale, each in zip(scales, roots)]
    fixed = [scale * each.root for scale, each in zip(scales, roots)]
    model = factor_extension.Model(
        float(np.trace(learned.gram)),
        factor_extension.root(learned.k0, kernel_refits.DIRECTIONS),
        np.concatenate([np.zeros((len(ids), 0)), *fixed], axis=1),
        *kernel_refits.rows_from_files(across, maps, len(task.snapshot.objects)),
        lambda1,
        params.loss,
    )
    return factor_extension.extension(
        triplet_columns(task.snapshot), ids, model, kernel_refits.DIRECTIONS, params.tolerance
    )


def _choose(task: Task, inputs: Inputs, split: TrainingSplit | None, *, progress: Progress) -> Choice:
    """lambda1 and lambda2: as given, or with the least held-out log loss; ties go to the larger, simpler, ones. E is a
    sum: against fewer answers the same lambdas are made smaller by as much."""
    params, whole = task.params, float(inputs.weight.sum())
    outside = inputs if split is None else inputs.of(split.outside)
    largest = rckl.largest_lambdas(_built(params, outside))
    largest1, largest2 = (float(each * whole / outside.weight.sum()) for each in largest)
    first = lambda_search.grid(params.lambda1, GRID, largest1, params.form != "mkl")
    second = lambda_search.grid(params.lambda2, GRID, largest2, params.form != "t" and bool(inputs.helpers.kernels))
    middle = Lambdas(*(grid.values[len(grid.values) // 2] for grid in (first, second)))
    if split is None or not split.can_choose:  # the middle of the grid, and the report says so
        return Choice(middle, [], None, None)
    training, asked, n_grid = inputs.of(split.fitting), split.choosing, len(first.values) * len(second.values)
    if first.is_single and second.is_single:
        learned = _rough(params, training, middle, whole, None)
        slope = kernel_refits.calibrated_slope(learned.gram, asked)
        return Choice(middle, [], rckl.Start(learned.k0, learned.mu), slope)
    tried: list[dict[str, float]] = []
    response = np.unique(asked.response, return_inverse=True)[1].reshape(-1)

    def attempt(lambdas: Lambdas, start: rckl.Start | None) -> Attempt:
        """A rough fit with these two, begun at `start`: its log loss on the answers that choose, and where it ended."""
        learned = _rough(params, training, lambdas, whole, start)
        margin = -excess(learned.gram, asked.rows)
        slope = 1.0 if params.loss == "ste" else slope_of(margin, asked.times)
        calibrated = kernel_refits.calibrated_slope(learned.gram, asked)
        sums = np.bincount(response, asked.times * held_out.losses(margin, slope))
        losses = Losses(sums, np.bincount(response, asked.times))
        error = 1.0 - share_satisfied(learned.gram, asked.rows, asked.times)
        told = {"log_loss": losses.mean, "error": error, "rank": learned.rank, "gap": learned.gap}
        tried.append(lambdas._asdict() | told)
        progress(len(tried), max(n_grid, len(tried)) + 2, **told)
        return Attempt(lambdas, losses, rckl.Start(learned.k0, learned.mu, learned.dual), calibrated)

    best = lambda_search.best_lambdas(attempt, first, second)
    return Choice(best.lambdas, tried, best.start._replace(dual=None), best.calibration_slope)


class _Outside:
    """Kernels learned from all answers but some; `first` is where the first of them ended."""

    def __init__(self, params: Params, inputs: Inputs):
        self._params, self._inputs = params, inputs
        self.first: rckl.Start | None = None

    def learned(self, choice: Choice, training: Snapshot) -> tuple[np.ndarray, float] | None:
        """The kernel that the chosen lambdas learn, and its slope.

        The slope comes from the validation set, even for a likelihood: the trace shrinks distances, so that a fit is
        underconfident about held-out answers.
        """
        if choice.slope is None:
            return None
        whole = self._inputs.weight.sum()
        learned = _rough(self._params, self._inputs.of(training), choice.lambdas, whole, choice.start)
        self.first = self.first or rckl.Start(learned.k0, learned.mu)
        return learned.gram, choice.slope


def _rough(
    params: Params, training: Inputs, lambdas: Lambdas, whole: float, start: rckl.Start | None
) -> rckl.LearnedKernel:
    """A solve that only ranks lambdas, or only answers questions; `lambdas` are for answers of the weight `whole`."""
    share = training.weight.sum() / whole
    scaled = Lambdas(lambdas.lambda1 * share, lambdas.lambda2 * share)
    return _fit(params, training, scaled, start, tolerance=ROUGH, max_iterations=3000)


def _warm_start(previous: Artifact | None, inputs: Inputs, ids: np.ndarray, loss: str) -> rckl.Start | None:
    """The previous answer as a start: objects are matched by id, which never changes, kernels by name, duals by
    triplet."""
    if previous is None or not {"K0", "mu", "dual", "triplets"} <= set(previous.arrays):
        return None
    k0, old = np.zeros((len(ids), len(ids))), previous.arrays["K0"]
    here, there = common(ids, learned_ids(previous.arrays))
    k0[np.ix_(here, here)] = old[np.ix_(there, there)]
    mu = np.array([previous.report["mu"].get(name, 0.0) for name in inputs.helpers.names])
    dual = None
    if loss == "hinge" and previous.params.get("loss") == "hinge":
        key = {tuple(t): y for t, y in zip(previous.arrays["triplets"].tolist(), previous.arrays["dual"].tolist())}
        dual = np.array([key.get(tuple(t), 0.0) for t in ids[inputs.triplets].tolist()])
    return rckl.Start(k0, mu, dual)


def _artifact(
    task: Task,
    inputs: Inputs,
    choice: Choice,
    learned: rckl.LearnedKernel,
    extension: factor_extension.Extension | None,
    figures: dict[str, Any],
) -> Artifact:
    report: dict[str, Any] = {
        "form": task.params.form,
        "loss": task.params.loss,
        **choice.lambdas._asdict(),
        "chosen_by": "held-out log loss" if choice.tried else "given, or too few answers for a validation set",
        "tried": choice.tried,
        **figures,
        "triplets": len(inputs.triplets),
        "objective": learned.objective,
        "bound": learned.bound,
        "gap": learned.gap,
        "iterations": learned.iterations,
        "rank_K0": learned.rank,
        "satisfied": learned.satisfied,
        "mu": dict(zip(inputs.helpers.names, learned.mu.tolist())),
        "kernels": inputs.helpers.report,
    }
    arrays = {
        "K": learned.gram,
        "K0": learned.k0,
        "mu": learned.mu,
        "objective": np.array(learned.objective),
        "satisfied": np.array(learned.satisfied),
        "triplets": task.subset.ids[inputs.triplets].astype(np.int32),
        "dual": learned.dual,
    }
    return kernel_refits.artifact(task, learned.gram, arrays, report, extension)
