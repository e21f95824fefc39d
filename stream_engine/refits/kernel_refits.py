"""What the two refits that learn a kernel share: parameters, the subset they learn over, memory, and the artifact.

A kernel may be learned over a subset of the objects, from what was said among them; all others can then be joined to it
(out-of-sample extension, see `kernel_learning.out_of_sample`). Then no array is n by n but for the subset.

Answers are *fitted*, they *choose* (a lambda, a beta), or they are *held out* (`evaluation.cross_fit`). Nothing that
chose is reported, and the model that is published is fitted to all three.

Probabilities are sigma(slope * margin), with margins in units of the kernel's own `margin_scale`. Fits to more and
to fewer answers put the objects further apart and less far (a hinge asks for margins of 1 in whatever order is left),
so a slope of bare margins that suits one suits no other.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from stream_engine.data import available_memory, interior_point
from stream_engine.data.answers import Answers
from stream_engine.evaluation import coordinates, cross_fit, held_out, subset
from stream_engine.evaluation.coordinates import margin_scale
from stream_engine.evaluation.counts_without import without
from stream_engine.evaluation.cross_fit import Setting
from stream_engine.evaluation.held_out import HeldOut
from stream_engine.evaluation.responses import CHOOSE, FIT, HELD, Responses, responses_of
from stream_engine.evaluation.subset import Subset, renumbering
from stream_engine.kernel_learning import programs
from stream_engine.kernel_learning.auxiliary_kernels import CrossKernel
from stream_engine.kernel_learning.out_of_sample import LEARNED, NOTHING, Extension
from stream_engine.kernel_learning.pair_lists import excess
from stream_engine.refits import CannotRefit, Progress
from stream_engine.refits.second_solver import Solver
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import KERNEL_AXES
from stream_engine.state.snapshot import Snapshot, triplet_columns

Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]

AXES = KERNEL_AXES
DIRECTIONS = 32  # number of directions in the factor of an extension, the largest ones (O(DIRECTIONS^3) an object)


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
    """What a refit was asked to do, and the subset of the objects that it does it over."""

    kind: str
    snapshot: Snapshot
    params: Any  # of the refit: a KernelParams
    seed: int
    previous: Artifact | None
    subset: Subset

    @property
    def restricted(self) -> Snapshot:
        """The snapshot as if the objects of the subset were all there is."""
        return self.subset.snapshot

    @property
    def among(self) -> str:
        """Words for a message: of which objects, "" for all."""
        return self.subset.all_of(self.snapshot)


def task(
    kind: str, snapshot: Snapshot, params, seed: int, previous: Artifact | None, quadruplets: bool = False
) -> Task:
    """The task, its subset chosen by `params.objects`. Raises `CannotRefit` for names that the snapshot does not
    know."""
    try:
        restricted = subset.restrict(snapshot, params.objects, quadruplets)
    except subset.UnknownObjects as error:
        raise CannotRefit(f"{kind}: {error}; expected names of the snapshot, next: see `export objects`") from None
    return Task(kind, snapshot, params, seed, previous, restricted)


def require_memory(task: Task, matrices: int, comparison_bytes: int = 0) -> None:
    """Raise `CannotRefit` unless so many matrices over the subset fit, and `comparison_bytes` beside them."""
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


def require_few(task: Task, comparisons: int) -> None:
    """Raise `CannotRefit` for what cvxpy cannot solve, before anything is selected."""
    try:
        interior_point.require_at_most("the objects", len(task.subset.ids), programs.MOST_OBJECTS, programs.NEXT)
        interior_point.require_at_most("the comparisons", comparisons, programs.MOST_COMPARISONS, programs.NEXT)
    except available_memory.TooLarge as error:
        raise CannotRefit(f"{task.kind}: {error}") from None


def require_subset_to_extend(task: Task) -> None:
    """Raise `CannotRefit` where all other objects are to be joined and there are no others."""
    if task.params.rest == "extended" and task.params.objects is None:
        raise CannotRefit(f"{task.kind}: rest 'extended' needs a subset; expected names or a number in `objects`")


def last_solve(progress: Progress, solves: int) -> Progress:
    """The progress of the last of so many solves, told by its iterations."""

    def tell(done: int, total: int, **figures: Any) -> bool | None:
        return progress(solves - 1, solves, iteration=done, **figures)

    return tell


def rows_from_files(
    across: Sequence[CrossKernel], maps: Sequence[np.ndarray], n: int
) -> tuple[Callable[[np.ndarray], np.ndarray], np.ndarray]:
    """`(ids (q,) -> (q, s) rows maps[p] K^p(subset, x) side by side, who has any)`; 0 where a file does not have x."""
    has_row = np.logical_or.reduce([each.known for each in across]) if across else np.zeros(n, bool)

    def rows(ids: np.ndarray) -> np.ndarray:
        side_by_side = [np.zeros((len(ids), 0))]
        for each, n_p in zip(across, maps, strict=True):
            out, there = np.zeros((len(ids), len(n_p))), each.known[ids]
            if there.any():
                out[there] = (n_p @ each.columns(ids[there])).T
            side_by_side.append(out)
        return np.concatenate(side_by_side, axis=1)

    return rows, has_row


def artifact(
    task: Task,
    gram: np.ndarray,
    arrays: dict[str, np.ndarray],
    report: dict[str, Any],
    extension: Extension | None,
) -> Artifact:
    """What was learned, with coordinates of its kernel; of a subset also who was learned over and who was joined to
    it."""
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
    """Coordinates; of a subset also `ids`, `known` and, where others were joined, `factor`."""
    params, before = task.params, None
    if task.previous is not None:
        before = coordinates.earlier(task.previous.arrays)
    ids, n = task.subset.ids, len(task.snapshot.objects)
    if params.objects is None:
        return coordinates.coordinates(gram, ids, n, params.dimensions, before)
    if extension is None:
        known, factor = np.where(renumbering(ids, n) >= 0, LEARNED, NOTHING).astype(np.int8), None
    else:
        known, factor = extension.known, extension.factor
    made = coordinates.coordinates(gram, ids, n, params.dimensions, before, factor, known)
    made |= {"ids": ids.astype(np.int32), "known": known}
    return made if factor is None else made | {"factor": factor}


class TrainingSplit:
    """What the setting of one group of folds is chosen by; every field is made when asked."""

    def __init__(self, restricted: Snapshot, responses: Responses, part: np.ndarray):
        self._restricted, self._answers, self._part, self.by = restricted, responses.answers, part, responses.by

    @cached_property
    def choosing(self) -> Answers:
        """Answers that choose."""
        return self._answers.of_responses(self._part == CHOOSE)

    @cached_property
    def outside(self) -> Snapshot:
        """The snapshot of the subset without what is held out."""
        return without(self._restricted, self._answers.of_responses(self._part == HELD))

    @cached_property
    def fitting(self) -> Snapshot:
        """The snapshot of the subset without what is held out and what chooses."""
        return without(self._restricted, self._answers.of_responses(self._part != FIT))

    @property
    def can_choose(self) -> bool:
        """Whether there is something to fit and something to choose by."""
        return bool(len(self.choosing.rows)) and _says_something(self.fitting)


class KernelEvaluation:
    """The figures of a task on answers over its subset that are held out; of triplets alone unless `quadruplets` are
    learned from too. `choose`: the share of the others that chooses; without `evaluate` nothing is held out."""

    def __init__(self, task: Task, choose: float, quadruplets: bool = False, evaluate: bool = True):
        responses = responses_of(task.snapshot, task.seed)
        answers = responses.answers
        if task.params.objects is not None:
            answers = answers.among(task.subset.ids)
        self._responses = responses.about(answers if quadruplets else answers.triplets())
        self._restricted, self._plan = task.restricted, cross_fit.plan(self._responses, choose, evaluate)

    def split(self, part: np.ndarray | None = None) -> TrainingSplit | None:
        """Of a part; without one that of the first group. None where holding it out leaves nothing to learn from."""
        made = TrainingSplit(self._restricted, self._responses, self._plan.responses[0].part if part is None else part)
        return made if _says_something(made.outside) else None

    def evaluated(
        self,
        first: Setting,
        choose: Callable[[TrainingSplit | None], Setting],
        fit: Callable[[Setting, Snapshot], tuple[np.ndarray, float] | None],
    ) -> HeldOut | None:
        """The figures of kernels that `fit` gives, each with the slope of its margins; `first` is the setting of the
        first group."""

        def predict(setting: Setting, out: np.ndarray) -> dict[str, np.ndarray]:
            asked = self._responses.answers.of_responses(out)
            training = without(self._restricted, asked)
            made = fit(setting, training) if _says_something(training) else None
            return {} if made is None else {"": made[1] * margins(made[0], asked.rows)}

        def choose_outside(part: np.ndarray) -> Setting:
            return choose(self.split(part))

        return cross_fit.evaluated(self._responses, self._plan, first, choose_outside, predict).get("")

    def report(self, figures: HeldOut | None, slope: float | None, gram: np.ndarray) -> dict[str, Any]:
        """The fields of an artifact's report, also where there was too little to hold any out; `probability_slope` is
        that of the bare margins of the published kernel."""
        figures = figures or HeldOut(self._responses.by, None, None, held_out.ceiling(self._responses))
        return figures._replace(slope=None if slope is None else slope / margin_scale(gram)).report()


def _says_something(snapshot: Snapshot) -> bool:
    """Whether there is a triplet that was not contradicted as often as it was said, or any comparison of four."""
    columns = triplet_columns(snapshot)
    return bool((columns.n_lo != columns.n_hi).any()) or bool(len(snapshot.section("quadruplet_counts").get("i", ())))


def margins(gram: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(m,) how far rows are expected, > 0 where they are, in units of `margin_scale`. O(n^2 + m)."""
    return -excess(gram, rows) / margin_scale(gram)


def calibrated_slope(gram: np.ndarray, asked: Answers) -> float:
    """The slope of margins in their units that suits these answers, which the kernel did not have."""
    return held_out.slope_of(margins(gram, asked.rows), asked.times)
