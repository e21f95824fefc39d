"""Relative comparison kernel learning (Heim et al. 2014) from a snapshot: RCKL-T, -MKL and -AK, STE or hinge.

All directions of all triplets count, with their multiplicities (E is a sum over triplets). lambda1 and lambda2 are
given, or selected on a validation set from a grid in units of the smallest values at which nothing is learned. The
published kernel is fitted to all answers, and is certified: `gap` bounds how far its objective can be above the
optimum. Cost: a grid of solves and two more for each group of folds, of O(m r) an iteration for a rank of r (O(m + n^3)
for few objects), all but the last rough.

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
from stream_engine.evaluation.subset import common_positions, learned_ids
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
    weight: np.ndarray  # (m,) float64: how often each was given
    helpers: AuxiliaryKernels

    def of(self, restricted: Snapshot) -> "Inputs":
        """The same with the triplets of another snapshot of these objects."""
        triplets, weight = weighted_triplets(triplet_columns(restricted))
        return self._replace(triplets=triplets, weight=weight)


class Choice(NamedTuple):
    """The lambdas to learn with, and how they were selected."""

    lambdas: Lambdas
    tried: list[dict[str, float]]  # candidates with their held-out log loss, for the report
    start: rckl.Start | None  # where the fit to all answers starts
    slope: float | None  # of the probabilities; None without a validation set


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
        fold_fits = _FoldFits(params, inputs)
        figures = evaluation.evaluate(choice, choose, fold_fits.kernel_and_slope)
        cold_start = (fold_fits.first_end or choice.start) if choice.tried else None
        start = _warm_start(previous, inputs, task.subset.ids, params.loss) or cold_start
        solves = len(choice.tried) + 2
        progress(solves - 1, solves)
        fit_published = partial(_fit, params, inputs, choice.lambdas, tolerance=params.tolerance)
        solution, solver = second_solver.solve_by(
            KIND,
            params.solver,
            lambda report_progress: fit_published(
                start, max_iterations=params.max_iterations, progress=report_progress
            ),
            lambda: fit_published(None, solver="cvxpy"),
            lambda candidate: candidate.converged,
            kernel_refits.last_solve(progress, solves),
        )
        if not solution.converged:
            raise SolverFailed(
                f"kernel_learning: gap {solution.gap:.2g} after {solution.iterations} iterations; expected <= "
                f"{params.tolerance}, next: raise max_iterations, tolerance or lambda1"
            )
        extension = _extension(task, inputs.helpers, choice.lambdas.lambda1, solution)
        progress(solves, solves, gap=solution.gap)
        figures_report = evaluation.report(figures, choice.slope, solution.gram)
        return _artifact(task, inputs, choice, solution, extension, figures_report | {"solver": solver})


# Arrays of n^2 doubles besides the auxiliary kernels: K, K0, a step's points, gradients, eigenvectors, workspace.
MATRICES_IN_MEMORY = 16


def _inputs(task: Task) -> Inputs:
    """The comparisons among the subset, and the auxiliary kernels over it. Raises `CannotRefit` if they are too few or
    too large."""
    params, restricted = task.params, task.restricted
    columns, names = triplet_columns(restricted), restricted.objects
    triplets, weight = weighted_triplets(columns)
    _check(task, triplets, len(net_triplets(columns)[0]))
    if params.solver == "cvxpy":
        kernel_refits.require_few_for_cvxpy(task, len(triplets))
    extra = len(params.kernels)
    kernel_refits.require_memory(task, MATRICES_IN_MEMORY + extra, 8 * len(triplets) * (20 + extra))
    helpers = auxiliary_kernels.load(params.kernels, names, task.snapshot.objects)
    return Inputs(len(names), triplets, weight, helpers)


def _check(task: Task, triplets: np.ndarray, decided: int) -> None:
    subset_words, params = task.subset_words, task.params
    if len(triplets) == 0:
        raise CannotRefit(
            f"kernel_learning: got 0 triplets{subset_words}; expected at least one, next: "
            + (
                "choose more objects, or others"
                if subset_words
                else next_step(task.snapshot.counters["comparisons"], "triplet_counts")
            )
        )
    if decided == 0:
        raise CannotRefit(
            f"kernel_learning: all {len(triplets) // 2} triplets{subset_words} are ties, so nothing can be learned; "
            "expected a majority for at least one"
        )
    if params.form == "mkl" and not params.kernels:
        raise CannotRefit(
            "kernel_learning: form 'mkl' needs auxiliary kernels; expected some in `kernels`, or form 't'"
        )
    kernel_refits.require_subset_to_extend(task)


def _problem(params: Params, inputs: Inputs) -> Problem:
    """The problem at lambdas of 1."""
    return rckl.build(
        inputs.triplets, inputs.weight, inputs.helpers.kernels, inputs.n, params.form, params.loss, 1.0, 1.0
    )


def _fit(
    params: Params, inputs: Inputs, lambdas: Lambdas, start: rckl.Start | None, **limits: Any
) -> rckl.LearnedKernel:
    """`rckl.fit` with the form and the loss of the parameters."""
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
    task: Task, helpers: AuxiliaryKernels, lambda1: float, solution: rckl.LearnedKernel
) -> factor_extension.Extension | None:
    """All other objects added to the learned points: their auxiliary parts by Nystrom, the rest by the refit's own loss
    and lambda1; None if they are excluded."""
    params, ids = task.params, task.subset.ids
    if params.rest == "none":
        return None
    used_kernels = [kernel for kernel, weight in enumerate(solution.mu.tolist()) if weight > 0]
    specs = {helpers.names[kernel]: params.kernels[helpers.names[kernel]] for kernel in used_kernels}
    across = auxiliary_kernels.across(specs, task.snapshot.objects, ids)
    roots = [mkpoe.factor(helpers.kernels[kernel]) for kernel in used_kernels]
    scales = np.sqrt(solution.mu[used_kernels])
    maps = [scale * factor.inverse for scale, factor in zip(scales, roots)]
    fixed = [scale * factor.root for scale, factor in zip(scales, roots)]
    model = factor_extension.Model(
        float(np.trace(solution.gram)),
        factor_extension.root(solution.k0, kernel_refits.DIRECTIONS),
        np.concatenate([np.zeros((len(ids), 0)), *fixed], axis=1),
        *kernel_refits.rows_from_files(across, maps, len(task.snapshot.objects)),
        lambda1,
        params.loss,
    )
    return factor_extension.extension(
        triplet_columns(task.snapshot), ids, model, kernel_refits.DIRECTIONS, params.tolerance
    )


GRID = (0.5, 0.2, 0.08, 0.03)  # candidate lambdas, as fractions of the smallest values at which K0 or mu is 0


def _choose(task: Task, inputs: Inputs, split: TrainingSplit | None, *, progress: Progress) -> Choice:
    """lambda1 and lambda2: as given, or with the least held-out log loss; of equal ones the larger, which give the
    simpler model. E is a sum over answers, so for fewer answers lambdas are reduced in proportion."""
    params, total_weight = task.params, float(inputs.weight.sum())
    outside_inputs = inputs if split is None else inputs.of(split.outside)
    largest = rckl.largest_lambdas(_problem(params, outside_inputs))
    largest1, largest2 = (float(limit * total_weight / outside_inputs.weight.sum()) for limit in largest)
    first = lambda_search.grid(params.lambda1, GRID, largest1, params.form != "mkl")
    second = lambda_search.grid(params.lambda2, GRID, largest2, params.form != "t" and bool(inputs.helpers.kernels))
    middle = Lambdas(*(grid.values[len(grid.values) // 2] for grid in (first, second)))
    if split is None or not split.can_choose:  # the middle of the grid, and the report says so
        return Choice(middle, [], None, None)
    training, validation, n_grid = inputs.of(split.fitting), split.validation, len(first.values) * len(second.values)
    if first.is_single and second.is_single:
        learned = _rough(params, training, middle, total_weight, None)
        slope = kernel_refits.calibrated_slope(learned.gram, validation)
        return Choice(middle, [], rckl.Start(learned.k0, learned.mu), slope)
    trials: list[dict[str, float]] = []
    response = np.unique(validation.response, return_inverse=True)[1].reshape(-1)

    def attempt(lambdas: Lambdas, start: rckl.Start | None) -> Attempt:
        """A rough fit with these two, from `start`: its log loss on the validation set, and where it ended."""
        learned = _rough(params, training, lambdas, total_weight, start)
        margin = -excess(learned.gram, validation.rows)
        slope = 1.0 if params.loss == "ste" else slope_of(margin, validation.times)
        calibrated = kernel_refits.calibrated_slope(learned.gram, validation)
        sums = np.bincount(response, validation.times * held_out.losses(margin, slope))
        losses = Losses(sums, np.bincount(response, validation.times))
        error = 1.0 - share_satisfied(learned.gram, validation.rows, validation.times)
        trial_figures = {"log_loss": losses.mean, "error": error, "rank": learned.rank, "gap": learned.gap}
        trials.append(lambdas._asdict() | trial_figures)
        progress(len(trials), max(n_grid, len(trials)) + 2, **trial_figures)
        return Attempt(lambdas, losses, rckl.Start(learned.k0, learned.mu, learned.dual), calibrated)

    best = lambda_search.best_lambdas(attempt, first, second)
    return Choice(best.lambdas, trials, best.start._replace(dual=None), best.calibration_slope)


class _FoldFits:
    """Kernels learned without held-out answers; `first_end` is where the first of these fits ended."""

    def __init__(self, params: Params, inputs: Inputs):
        self._params, self._inputs = params, inputs
        self.first_end: rckl.Start | None = None

    def kernel_and_slope(self, choice: Choice, training: Snapshot) -> tuple[np.ndarray, float] | None:
        """`(the kernel at the selected lambdas, its slope)`.

        The slope comes from the validation set, even for a likelihood: the trace shrinks distances, so that a fit is
        underconfident about held-out answers.
        """
        if choice.slope is None:
            return None
        total_weight = self._inputs.weight.sum()
        learned = _rough(self._params, self._inputs.of(training), choice.lambdas, total_weight, choice.start)
        self.first_end = self.first_end or rckl.Start(learned.k0, learned.mu)
        return learned.gram, choice.slope


ROUGH_GAP = 1e-3  # relative gap of solves that only rank lambdas or predict held-out answers


def _rough(
    params: Params, training: Inputs, lambdas: Lambdas, total_weight: float, start: rckl.Start | None
) -> rckl.LearnedKernel:
    """A solve to a rough gap; `lambdas` are for answers of the weight `total_weight`."""
    share = training.weight.sum() / total_weight
    scaled = Lambdas(lambdas.lambda1 * share, lambdas.lambda2 * share)
    return _fit(params, training, scaled, start, tolerance=ROUGH_GAP, max_iterations=3000)


def _warm_start(previous: Artifact | None, inputs: Inputs, ids: np.ndarray, loss: str) -> rckl.Start | None:
    """The previous solution as a start: objects are matched by id, kernels by name, duals by triplet."""
    if previous is None or not {"K0", "mu", "dual", "triplets"} <= set(previous.arrays):
        return None
    k0, previous_k0 = np.zeros((len(ids), len(ids))), previous.arrays["K0"]
    positions, previous_positions = common_positions(ids, learned_ids(previous.arrays))
    k0[np.ix_(positions, positions)] = previous_k0[np.ix_(previous_positions, previous_positions)]
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
    solution: rckl.LearnedKernel,
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
        "objective": solution.objective,
        "bound": solution.bound,
        "gap": solution.gap,
        "iterations": solution.iterations,
        "rank_K0": solution.rank,
        "satisfied": solution.satisfied,
        "mu": dict(zip(inputs.helpers.names, solution.mu.tolist())),
        "kernels": inputs.helpers.report,
    }
    arrays = {
        "K": solution.gram,
        "K0": solution.k0,
        "mu": solution.mu,
        "objective": np.array(solution.objective),
        "satisfied": np.array(solution.satisfied),
        "triplets": task.subset.ids[inputs.triplets].astype(np.int32),
        "dual": solution.dual,
    }
    return kernel_refits.artifact(task, solution.gram, arrays, report, extension)
