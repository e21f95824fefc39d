"""What the two refits that learn a kernel share: parameters, the subset they learn over, memory, and the artifact.

A kernel may be learned over a subset of the objects, from what was said among them; all others can then be joined to it
(out-of-sample extension, see `kernel_learning.out_of_sample`). Then no array is n by n but for the subset.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np

from stream_engine.data import available_memory
from stream_engine.evaluation import coordinates as embedding
from stream_engine.evaluation import subset
from stream_engine.evaluation.subset import Subset
from stream_engine.kernel_learning.auxiliary_kernels import CrossKernel
from stream_engine.kernel_learning.out_of_sample import LEARNED, NOTHING, Extension
from stream_engine.refits import CannotRefit, Progress
from stream_engine.state.artifact import Artifact, plain_params
from stream_engine.state.artifact_schemas import KERNEL_AXES
from stream_engine.state.snapshot import Snapshot

Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]

AXES = KERNEL_AXES
NEIGHBOURS = 5  # number of neighbours listed for each object
DIRECTIONS = 32  # number of directions in the factor of an extension, the largest ones (O(DIRECTIONS^3) an object)


class KernelParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Parameters of both refits.

    Parameters
    ----------
    dimensions : int
        Number of coordinates.
    objects : int or tuple of str, optional
        Use only these names, or the given number of objects with the most answers.
    rest : {'none', 'extended'}
        The other objects are excluded ("none"), or added to the learned kernel ("extended"; formerly "placed").
    """

    dimensions: Annotated[int, msgspec.Meta(ge=0)] = 2
    objects: Annotated[int, msgspec.Meta(ge=2)] | tuple[str, ...] | None = None
    rest: Literal["none", "extended", "placed"] = "none"

    def __post_init__(self):
        if self.rest == "placed":
            warnings.warn('rest="placed" is deprecated; use rest="extended"', FutureWarning, stacklevel=2)
            msgspec.structs.force_setattr(self, "rest", "extended")


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


def require_subset_to_extend(task: Task) -> None:
    """Raise `CannotRefit` where all other objects are to be joined and there are no others."""
    if task.params.rest == "extended" and task.params.objects is None:
        raise CannotRefit(f"{task.kind}: rest 'extended' needs a subset; expected names or a number in `objects`")


def last_solve(progress: Progress, solves: int) -> Progress:
    """The progress of the last of so many solves, told by its iterations."""

    def tell(done: int, total: int, **figures: Any) -> None:
        progress(solves - 1, solves, iteration=done, **figures)

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
    """What was learned, with the pictures of its kernel; of a subset also who was learned over and who was joined to
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
        arrays | _pictures(task, gram, extension),
        report,
    )


def _pictures(task: Task, gram: np.ndarray, extension: Extension | None) -> dict[str, np.ndarray]:
    """Coordinates, neighbours and dendrogram; of a subset also `ids`, `known` and, where others were joined,
    `factor`."""
    params, before = task.params, None
    if task.previous is not None:
        before = embedding.earlier(task.previous.arrays)
    if params.objects is None:
        return embedding.pictures(gram, params.dimensions, NEIGHBOURS, before)
    ids, n = task.subset.ids, len(task.snapshot.objects)
    if extension is None:
        known, factor = np.where(subset.renumbering(ids, n) >= 0, LEARNED, NOTHING).astype(np.int8), None
    else:
        known, factor = extension.known, extension.factor
    pictures = embedding.pictures_of_subset(gram, ids, n, params.dimensions, NEIGHBOURS, before, factor, known)
    pictures |= {"ids": ids.astype(np.int32), "known": known}
    return pictures if factor is None else pictures | {"factor": factor}
