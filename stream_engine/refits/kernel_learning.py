"""Relative comparison kernel learning (Heim et al. 2015) from a snapshot: RCKL-T, -MKL and -AK, STE or hinge.

All directions of all triplets count, with their multiplicities (E is a sum over triplets). lambda1 and lambda2 are
given, or chosen on held-out comparisons from a grid in units of the smallest values at which nothing is learned. The
answer is certified: `gap` bounds how far its objective can be above the optimum. Cost: up to (grid + 1) solves of
O(m r) an iteration for a rank of r (O(m + n^3) for few objects).

With `objects` the kernel is learned over a subset, and n is its size. The other objects can be joined to it by their
own comparisons as anchors, with the same loss and lambda1, and by the auxiliary kernels: K ~ F F' over all.
"""

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.data.triplet_columns import net_triplets
from stream_engine.kernel_learning import auxiliary_kernels, hash_split, mkpoe, out_of_sample_factor, rckl
from stream_engine.kernel_learning.auxiliary_kernels import Auxiliary, KernelSpec
from stream_engine.kernel_learning.distance_operator import share_satisfied, triplet_rows
from stream_engine.kernel_learning.triplet_lists import weighted_triplets
from stream_engine.refits import CannotRefit, Progress, SolverFailed, kernel_refits, no_progress
from stream_engine.refits.kernel_refits import Count, KernelParams, Positive, Task
from stream_engine.state.artifact import Artifact
from stream_engine.state.artifact_schemas import KERNEL_LEARNING
from stream_engine.state.snapshot import Snapshot, triplet_columns
from stream_engine.statistics.subset import common, learned_ids

KIND = "kernel_learning"
AXES = KERNEL_LEARNING.axes
LAWS_EXCLUDED = kernel_refits.LAWS_EXCLUDED
MATRICES = 16  # of n^2 doubles, besides the auxiliary ones: K, K0, a step's points, gradients, eigenvectors, workspace
BEYOND = 6  # how many smaller lambda1 than the grid's are tried while the error falls
ROUGH = 1e-3  # relative gap of solves that only rank lambdas
Share = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class Params(KernelParams, frozen=True, forbid_unknown_fields=True):
    """Parameters of the refit; those of `kernel_refits.KernelParams` besides.

    form: "t" learns K0 alone, "mkl" weights of the auxiliary kernels alone, "ak" both (without kernels: the same as t)
    loss: "ste" or "hinge" (GNMDS)
    kernels: name -> file and kind, see `auxiliary_kernels.KernelSpec`
    lambda1, lambda2: of the trace of K0 and of the sum of mu; none chooses each by held-out error
    grid: what is tried, as fractions of the smallest value at which K0 or mu is 0 (lambda1 goes on below it while that
        helps, and ends at the first that is clearly worse)
    held_out: which share of the comparisons validates
    tolerance: relative dual gap to reach
    """

    form: Literal["t", "mkl", "ak"] = "ak"
    loss: Literal["ste", "hinge"] = "ste"
    kernels: dict[str, KernelSpec] = msgspec.field(default_factory=dict)
    lambda1: Positive | None = None
    lambda2: Positive | None = None
    grid: Annotated[tuple[Share, ...], msgspec.Meta(min_length=1)] = (0.5, 0.2, 0.08, 0.03)
    held_out: Share = 0.2
    tolerance: Positive = 1e-4
    max_iterations: Count = 20000


class Inputs(NamedTuple):
    """What a kernel over n objects is learned from."""

    n: int
    triplets: np.ndarray  # (m, 3) int32
    weight: np.ndarray  # (m,) float64: how often each was said
    helpers: Auxiliary

    def kept(self, kept: np.ndarray) -> "Inputs":
        """The same with the triplets of a (m,) bool mask only."""
        return self._replace(triplets=self.triplets[kept], weight=self.weight[kept])


class Lambdas(NamedTuple):
    """The weights of the trace of K0 and of the sum of mu."""

    lambda1: float
    lambda2: float


class Choice(NamedTuple):
    """The lambdas to learn with, every pair that was tried with its held-out error, and where to start from."""

    lambdas: Lambdas
    tried: list[dict[str, float]]
    start: rckl.Start | None


def refit(
    snapshot: Snapshot, params: Params, seed: int, previous: Artifact | None = None, progress: Progress = no_progress
) -> Artifact:
    """Learn a kernel over the snapshot's objects, or over a subset. Raises `CannotRefit`, `SolverFailed`,
    `auxiliary_files.BadKernel`.

    Arrays over a subset: `ids` (n,), whom K and K0 are over; coordinates, neighbours and `known` (0: nothing, 1:
    learned, 2: joined) have a row for each of the snapshot's objects, and with rest = "extended" so has `factor` F.
    """
    with threadpool_limits(1):
        task = kernel_refits.task(KIND, snapshot, params, seed, previous)
        inputs = _inputs(task)
        choice = _choose(task, inputs, progress)
        start = _warm_start(previous, inputs, task.subset.ids, params.loss) or choice.start
        solves = len(choice.tried) + 1
        learned = _fit(
            params,
            inputs,
            choice.lambdas,
            start,
            tolerance=params.tolerance,
            max_iterations=params.max_iterations,
            progress=kernel_refits.last_solve(progress, solves),
        )
        if not learned.converged:
            raise SolverFailed(
                f"kernel_learning: gap {learned.gap:.2g} after {learned.iterations} iterations; expected <= "
                f"{params.tolerance}, next: raise max_iterations, tolerance or lambda1"
            )
        extension = _extension(task, inputs.helpers, choice.lambdas.lambda1, learned)
        progress(solves, solves, gap=learned.gap)
        return _artifact(task, inputs, choice, learned, extension)


def _inputs(task: Task) -> Inputs:
    """The comparisons among the subset and the auxiliary kernels over it, where these can teach something and fit."""
    params, restricted = task.params, task.restricted
    columns, names = triplet_columns(restricted), restricted.objects
    triplets, weight = weighted_triplets(columns)
    _check(task, triplets, len(net_triplets(columns)[0]))
    extra = len(params.kernels)
    kernel_refits.require_memory(task, MATRICES + extra, 8 * len(triplets) * (20 + extra))
    helpers = auxiliary_kernels.load(params.kernels, names, task.snapshot.objects)
    return Inputs(len(names), triplets, weight, helpers)


def _check(task: Task, triplets: np.ndarray, decided: int) -> None:
    among, params = task.among, task.params
    if len(triplets) == 0:
        raise CannotRefit(
            f"kernel_learning: got 0 triplets{among}; expected at least one, next: "
            + ("choose more objects, or others" if among else "keep triplet_counts and feed comparisons")
        )
    if decided == 0:
        raise CannotRefit(
            f"kernel_learning: all {len(triplets) // 2} triplets{among} are contradicted as often as they were said, "
            "so nothing can be learned; expected a majority for one at least"
        )
    if params.form == "mkl" and not params.kernels:
        raise CannotRefit(
            "kernel_learning: form 'mkl' weighs auxiliary kernels and got none; expected some in `kernels`, or form 't'"
        )
    kernel_refits.require_subset_to_extend(task)


def _fit(params: Params, inputs: Inputs, lambdas: Lambdas, start: rckl.Start | None, **limits: Any) -> rckl.Learned:
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
    task: Task, helpers: Auxiliary, lambda1: float, learned: rckl.Learned
) -> out_of_sample_factor.Extension | None:
    """All other objects joined to the learned points: their auxiliary parts by Nystrom, the rest by the refit's own
    loss and lambda1; None where they are left out."""
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
    model = out_of_sample_factor.Model(
        float(np.trace(learned.gram)),
        out_of_sample_factor.root(learned.k0, params.directions),
        np.concatenate([np.zeros((len(ids), 0)), *fixed], axis=1),
        *kernel_refits.rows_from_files(across, maps, len(task.snapshot.objects)),
        lambda1,
        params.loss,
    )
    return out_of_sample_factor.extension(
        triplet_columns(task.snapshot), ids, model, params.directions, params.tolerance
    )


class Attempt(NamedTuple):
    """One pair of lambdas, its held-out error, and its answer as a start for the next."""

    error: float
    lambdas: Lambdas
    start: rckl.Start


def _choose(task: Task, inputs: Inputs, progress: Progress) -> Choice:
    """lambda1 and lambda2: as given, or with the smallest held-out error; ties go to the larger, simpler, ones."""
    params, weight = task.params, inputs.weight
    full = rckl.build(inputs.triplets, weight, inputs.helpers.kernels, inputs.n, params.form, params.loss, 1.0, 1.0)
    largest1, largest2 = rckl.largest_lambdas(full)
    first = _candidates(params.lambda1, params.grid, largest1)
    second = _candidates(params.lambda2, params.grid, largest2)
    first = first if params.form != "mkl" else first[:1]
    second = second if params.form != "t" and inputs.helpers.kernels else second[:1]
    if len(first) * len(second) == 1:
        return Choice(Lambdas(first[0], second[0]), [], None)
    rows = triplet_rows(inputs.triplets)
    test = (
        hash_split.comparison_draws(rows, hash_split.name_hashes(task.restricted.objects, task.seed)) < params.held_out
    )
    if test.all() or not test.any():  # too few to hold any out: the middle of the grid, and the report says so
        return Choice(Lambdas(first[len(first) // 2], second[len(second) // 2]), [], None)
    kept = weight[~test].sum() / weight.sum()  # E is a sum: the same lambda weighs more against fewer triplets
    training, n_grid = inputs.kept(~test), len(first) * len(second)
    tried: list[dict[str, float]] = []

    def attempt(lambdas: Lambdas, start: rckl.Start | None) -> Attempt:
        scaled = Lambdas(lambdas.lambda1 * kept, lambdas.lambda2 * kept)
        learned = _fit(params, training, scaled, start, tolerance=ROUGH, max_iterations=3000)
        error = 1.0 - share_satisfied(learned.gram, rows[test], weight[test])
        tried.append({**lambdas._asdict(), "error": error, "rank": learned.rank, "gap": learned.gap})
        progress(len(tried), max(n_grid, len(tried)) + 1, gap=learned.gap, error=error)
        return Attempt(error, lambdas, rckl.Start(learned.k0, learned.mu, learned.dual))

    best = _best(attempt, first, second, float(weight[test].sum()))
    return Choice(best.lambdas, tried, best.start._replace(dual=None))


Try = Callable[[Lambdas, rckl.Start | None], Attempt]


def _best(attempt: Try, first: list[float], second: list[float], votes: float) -> Attempt:
    """The best of the grid, of equal ones the first; then below it for as long as the edge is the best place."""
    best = min(_attempts(attempt, first, second, votes), key=lambda each: each.error)
    at_edge = len(first) > 1 and best.lambdas.lambda1 == first[-1]
    for _ in range(BEYOND):
        if not at_edge:
            break
        smaller = best.lambdas._replace(lambda1=best.lambdas.lambda1 * first[-1] / first[-2])
        lower = attempt(smaller, best.start)
        at_edge = lower.error < best.error
        best = lower if at_edge else best
    return best


def _attempts(attempt: Try, first: list[float], second: list[float], votes: float) -> Iterator[Attempt]:
    """The grid, each lambda1 started from the one before, until one is clearly worse than another of its lambda2."""
    for lambda2 in second:
        start, best = None, 1.0
        for lambda1 in first:
            done = attempt(Lambdas(lambda1, lambda2), start)
            start, best = done.start, min(best, done.error)
            yield done
            if kernel_refits.clearly_worse(done.error, best, votes):
                break


def _candidates(given: float | None, grid: tuple[float, ...], largest: float) -> list[float]:
    """Largest first, so that each solve starts from a simpler one; 1 where the data sets no scale (nothing to
    learn)."""
    if given is not None:
        return [given]
    return [largest * fraction for fraction in sorted(grid, reverse=True)] if largest > 0 else [1.0]


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
    task: Task, inputs: Inputs, choice: Choice, learned: rckl.Learned, extension: out_of_sample_factor.Extension | None
) -> Artifact:
    report: dict[str, Any] = {
        "form": task.params.form,
        "loss": task.params.loss,
        **choice.lambdas._asdict(),
        "chosen_by": "held-out error" if choice.tried else "given, or too few comparisons to hold any out",
        "tried": choice.tried,
        "held_out_error": min((t["error"] for t in choice.tried), default=None),
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
