"""What the two refits that learn a kernel share: parameters, the subset they learn over, held-out answers, the
artifact.

A kernel may be learned over a subset of the objects, from comparisons among them; all others can then be added to it
(out-of-sample extension, see `kernel_learning.out_of_sample`). No array is n by n except over the subset.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from stream_engine.data import available_memory, interior_point
from stream_engine.data.answers import Answers
from stream_engine.evaluation import coordinates, cross_fit, held_out, noise_ceiling, subset
from stream_engine.evaluation.coordinates import margin_scale
from stream_engine.evaluation.counts_without import without
from stream_engine.evaluation.cross_fit import Setting
from stream_engine.evaluation.held_out import HeldOut
from stream_engine.evaluation.responses import CHOOSE, FIT, HELD, Responses, responses_of
from stream_engine.evaluation.subset import Subset, renumbering
from stream_engine.kernel_learning import programs
from stream_engine.kernel_learning.auxiliary_kernels import CrossKernel
from stream_engine.kernel_learning.factor_extension import IN_SUBSET, NO_DATA, Extension
from stream_engine.kernel_learning.gram_comparisons import excess
from stream_engine.refits import CannotRefit, Progress
from stream_engine.refits.second_solver import Solver
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import KERNEL_AXES
from stream_engine.state.snapshot import Snapshot, triplet_columns

Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]

AXES = KERNEL_AXES
DIRECTIONS = 32  # leading directions in the factor of an extension (O(DIRECTIONS^3) an object)


class KernelParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Parameters of both refits.

    Parameters
    ----------
    solver : {'engine', 'cvxpy'}
        What solves the published program.
    dimensions : int
        Number of coordinates.
    objects : int or tuple of str, optional
        Use only these names, or the given number of objects with the most answers.
    rest : {'none', 'extended'}
        The other objects are excluded ("none"), or added to the learned kernel ("extended").
    """

    solver: Solver = "engine"
    dimensions: Annotated[int, msgspec.Meta(ge=0)] = 2
    objects: Annotated[int, msgspec.Meta(ge=2)] | tuple[str, ...] | None = None
    rest: Literal["none", "extended"] = "none"


class Task(NamedTuple):
    """The input of a refit, and the subset of the objects that it learns over."""

    kind: str
    snapshot: Snapshot
    params: Any  # of the refit: a KernelParams
    seed: int
    previous: Artifact | None
    subset: Subset

    @property
    def restricted(self) -> Snapshot:
        """The snapshot restricted to the subset."""
        return self.subset.snapshot

    @property
    def subset_words(self) -> str:
        """Words for a message about the subset; "" if it has all objects."""
        return self.subset.all_of(self.snapshot)


def task(
    kind: str, snapshot: Snapshot, params, seed: int, previous: Artifact | None, quadruplets: bool = False
) -> Task:
    """The task, with the subset of `params.objects`. Raises `CannotRefit` for names that the snapshot does not have."""
    try:
        restricted = subset.restrict(snapshot, params.objects, quadruplets)
    except subset.UnknownObjects as error:
        raise CannotRefit(f"{kind}: {error}; expected names of the snapshot, next: see `export objects`") from None
    return Task(kind, snapshot, params, seed, previous, restricted)


def require_memory(task: Task, matrices: int, comparison_bytes: int = 0) -> None:
    """Raise `CannotRefit` unless so many matrices over the subset and `comparison_bytes` fit into memory."""
    n = len(task.subset.ids)
    what = f"{matrices} matrices of {n} x {n}, {comparison_bytes / 1e9:.2g} GB of comparisons"
    try:
        available_memory.require(
            f"{task.kind} of {n:,} objects ({what})",
            available_memory.matrices(matrices, n) + comparison_bytes,
            "choose objects (--set objects=500, or --objects FILE)",
        )
    except available_memory.TooLarge as error:
        raise CannotRefit(str(error)) from None


def require_few_for_cvxpy(task: Task, comparisons: int) -> None:
    """Raise `CannotRefit` for a program that is too large for cvxpy, before anything is selected."""
    try:
        interior_point.require_at_most("the objects", len(task.subset.ids), programs.MAX_OBJECTS, programs.NEXT_STEP)
        interior_point.require_at_most("the comparisons", comparisons, programs.MAX_COMPARISONS, programs.NEXT_STEP)
    except available_memory.TooLarge as error:
        raise CannotRefit(f"{task.kind}: {error}") from None


def require_subset_to_extend(task: Task) -> None:
    """Raise `CannotRefit` if other objects are to be added but the subset has all of them."""
    if task.params.rest == "extended" and task.params.objects is None:
        raise CannotRefit(f"{task.kind}: rest 'extended' needs a subset; expected names or a number in `objects`")


def last_solve(progress: Progress, solves: int) -> Progress:
    """A progress callback for the iterations of the last of so many solves."""

    def report_iterations(done: int, total: int, **figures: Any) -> bool | None:
        return progress(solves - 1, solves, iteration=done, **figures)

    return report_iterations


def rows_from_files(
    across: Sequence[CrossKernel], maps: Sequence[np.ndarray], n: int
) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """`(function from ids (q,) to (q, s): rows maps[p] K^p(subset, x) side by side, (n,) whether x has any)`; zeros for
    an x that a file lacks."""
    has_any_row = np.logical_or.reduce([kernel.in_file for kernel in across]) if across else np.zeros(n, bool)

    def rows(ids: np.ndarray) -> np.ndarray:
        side_by_side = [np.zeros((len(ids), 0))]
        for kernel, n_p in zip(across, maps, strict=True):
            kernel_rows, has_kernel_row = np.zeros((len(ids), len(n_p))), kernel.in_file[ids]
            if has_kernel_row.any():
                kernel_rows[has_kernel_row] = (n_p @ kernel.columns(ids[has_kernel_row])).T
            side_by_side.append(kernel_rows)
        return np.concatenate(side_by_side, axis=1)

    return rows, has_any_row


def artifact(
    task: Task,
    gram: np.ndarray,
    arrays: dict[str, np.ndarray],
    report: dict[str, Any],
    extension: Extension | None,
) -> Artifact:
    """The artifact of a learned kernel, with its coordinates; over a subset also the ids, and the extension."""
    if task.params.objects is not None:
        report |= {"objects": len(task.snapshot.objects), "chosen": len(task.subset.ids)}
        report |= {} if extension is None else extension.report
    return Artifact(
        task.kind,
        task.snapshot.digest,
        task.snapshot.sequence,
        plain_params(task.params),
        task.seed,
        arrays | _coordinates(task, gram, extension),
        report,
    )


def _coordinates(task: Task, gram: np.ndarray, extension: Extension | None) -> dict[str, np.ndarray]:
    """Coordinates; over a subset also `ids`, `membership` and, with an extension, `factor`."""
    params, previous = task.params, None
    if task.previous is not None:
        previous = coordinates.previous_map(task.previous.arrays)
    ids, n = task.subset.ids, len(task.snapshot.objects)
    if params.objects is None:
        return coordinates.coordinates(gram, ids, n, params.dimensions, previous)
    if extension is None:
        membership, factor = np.where(renumbering(ids, n) >= 0, IN_SUBSET, NO_DATA).astype(np.int8), None
    else:
        membership, factor = extension.source, extension.factor
    arrays = coordinates.coordinates(gram, ids, n, params.dimensions, previous, factor, membership)
    arrays |= {"ids": ids.astype(np.int32), "known": membership}
    return arrays if factor is None else arrays | {"factor": factor}


class TrainingSplit:
    """The training set and the validation set of one group of folds, by which its setting is selected. They are made
    when they are used."""

    def __init__(self, restricted: Snapshot, responses: Responses, part: np.ndarray):
        self._restricted, self._answers, self._part, self.by = restricted, responses.answers, part, responses.by

    @cached_property
    def validation(self) -> Answers:
        """The answers in the validation set."""
        return self._answers.of_responses(self._part == CHOOSE)

    @cached_property
    def outside(self) -> Snapshot:
        """The snapshot of the subset without the held-out answers."""
        return without(self._restricted, self._answers.of_responses(self._part == HELD))

    @cached_property
    def fitting(self) -> Snapshot:
        """The snapshot of the subset without the held-out answers and the validation set."""
        return without(self._restricted, self._answers.of_responses(self._part != FIT))

    @property
    def can_choose(self) -> bool:
        """Whether neither the training set nor the validation set is empty."""
        return bool(len(self.validation.rows)) and _has_evidence(self.fitting)


class KernelEvaluation:
    """Held-out answers of a task's subset, and the figures of kernels on them; of triplets alone unless the refit
    learns from `quadruplets` too. `choose`: the validation set's share of the other answers; without `evaluate`,
    nothing is held out."""

    def __init__(self, task: Task, choose: float, quadruplets: bool = False, evaluate: bool = True):
        responses = responses_of(task.snapshot, task.seed)
        answers = responses.answers
        if task.params.objects is not None:
            answers = answers.among(task.subset.ids)
        self._responses = responses.about(answers if quadruplets else answers.triplets())
        self._restricted, self._plan = task.restricted, cross_fit.plan(self._responses, choose, evaluate)

    def split(self, part: np.ndarray | None = None) -> TrainingSplit | None:
        """The split of a part; by default of the first group. None if nothing to learn from is left."""
        training_split = TrainingSplit(
            self._restricted, self._responses, self._plan.responses[0].part if part is None else part
        )
        return training_split if _has_evidence(training_split.outside) else None

    def evaluate(
        self,
        first: Setting,
        choose: Callable[[TrainingSplit | None], Setting],
        fit: Callable[[Setting, Snapshot], tuple[np.ndarray, float] | None],
    ) -> HeldOut | None:
        """The figures of the kernels of `fit`, which returns (kernel, slope of its margins); `first` is the setting of
        the first group."""

        def predict(setting: Setting, out: np.ndarray) -> dict[str, np.ndarray]:
            targets = self._responses.answers.of_responses(out)
            training = without(self._restricted, targets)
            kernel_and_slope = fit(setting, training) if _has_evidence(training) else None
            return (
                {}
                if kernel_and_slope is None
                else {"": kernel_and_slope[1] * margins(kernel_and_slope[0], targets.rows)}
            )

        def choose_outside(part: np.ndarray) -> Setting:
            return choose(self.split(part))

        return cross_fit.evaluate(self._responses, self._plan, first, choose_outside, predict).get("")

    def report(self, figures: HeldOut | None, slope: float | None, gram: np.ndarray) -> dict[str, Any]:
        """The fields of an artifact's report, also if nothing was held out; `probability_slope` is that of the
        published kernel's margins without a unit."""
        figures = figures or HeldOut(self._responses.by, None, None, noise_ceiling.ceiling(self._responses))
        return figures._replace(slope=None if slope is None else slope / margin_scale(gram)).report()


def _has_evidence(snapshot: Snapshot) -> bool:
    """Whether any question about three objects has a majority, or there is a comparison of four objects."""
    columns = triplet_columns(snapshot)
    return bool((columns.n_lo != columns.n_hi).any()) or bool(len(snapshot.section("quadruplet_counts").get("i", ())))


def margins(gram: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(m,) margins of rows, > 0 where the kernel predicts them, in units of its `margin_scale`. O(n^2 + m)."""
    # Probabilities are sigma(slope * margin). Fits to more or fewer answers differ in scale (a hinge asks for margins
    # of 1 in whatever order is left), so in this unit the slope of one fit also suits another.
    return -excess(gram, rows) / margin_scale(gram)


def calibrated_slope(gram: np.ndarray, answers: Answers) -> float:
    """The slope of margins that fits these answers best, to which the kernel was not fitted."""
    return held_out.slope_of(margins(gram, answers.rows), answers.times)
