"""The form "order" of partial order embedding: Algorithm 5 and the constant shift (McFee & Lanckriet 2011, App. A).

It satisfies every comparison of an acyclic order, in n - 1 dimensions, without kernels and without a loss: there is
nothing to weigh, so it is the proof that the order can be embedded rather than a model of the answers. Its accuracy on
held-out answers is reported like that of the other forms.
"""

from functools import partial
from typing import Any

import numpy as np

from stream_engine.kernel_learning import constant_shift
from stream_engine.kernel_learning.constraints import Constraints, raw
from stream_engine.kernel_learning.gram_comparisons import excess
from stream_engine.refits import CannotRefit, Progress, beta_choice, kernel_refits
from stream_engine.refits.kernel_refits import KernelEvaluation, Task, TrainingSplit
from stream_engine.state.artifact import Artifact
from stream_engine.state.snapshot import Snapshot


def check(task: Task) -> None:
    """Raise `CannotRefit` for parameters that the form does not have."""
    params = task.params
    if params.constraints in ("raw", "drop-both"):
        raise CannotRefit(
            f"{task.kind}: form 'order' needs an acyclic order and got constraints {params.constraints!r}; expected "
            "'canonical' or 'algorithm1-reduced'"
        )
    if params.kernels or params.features is not None or params.beta is not None or params.solver != "engine":
        raise CannotRefit(
            f"{task.kind}: form 'order' has neither kernels nor a loss; got kernels, features, beta or solver, "
            "expected none of them, or form 'full'"
        )
    if params.rest == "extended":
        raise CannotRefit(
            f"{task.kind}: form 'order' has no loss by which other objects could join; got rest 'extended', expected "
            "'none', or form 'full'"
        )


def artifact(task: Task, comparisons: Constraints, evaluation: KernelEvaluation, progress: Progress) -> Artifact:
    """The embedding, and how it predicts held-out answers."""
    progress(0, 2)
    slope = _slope(task, evaluation.split())
    figures = evaluation.evaluated(slope, partial(_slope, task), partial(_part, task))
    progress(1, 2)
    found = constant_shift.embed_order(comparisons.rows, len(task.subset.ids))
    violated = int((excess(found.gram, comparisons.rows) >= 0).sum())
    fraction = 1.0 - violated / len(comparisons.rows)
    report: dict[str, Any] = {
        "form": task.params.form,
        "constraints": task.params.constraints,
        "weights": task.params.weights,
        "size": len(comparisons.rows),
        "raw_size": len(raw(task.restricted).rows),
        **evaluation.report(figures, slope, found.gram),
        "levels": int(found.delta.max(initial=0)),
        "shift": found.shift,
        "violated": violated,
        "satisfied": fraction,
    }
    arrays = {
        "K": found.gram,
        "mu": np.empty(0),
        "objective": np.array(float(np.trace(found.gram))),
        "satisfied": np.array(fraction),
        "constraints": task.subset.ids[comparisons.rows].astype(np.int32),
    }
    progress(2, 2)
    return kernel_refits.artifact(task, found.gram, arrays, report, None)


def _gram(task: Task, snapshot: Snapshot) -> np.ndarray | None:
    """The embedding of the order that some of the answers make; None where they make none."""
    rows = beta_choice.held_to(task, snapshot).rows
    return constant_shift.embed_order(rows, len(task.subset.ids)).gram if len(rows) else None


def _slope(task: Task, split: TrainingSplit | None) -> float | None:
    """The slope that makes probabilities of distances, from answers that the embedding did not have."""
    if split is None or not split.can_choose:
        return None
    gram = _gram(task, split.fitting)
    return None if gram is None else kernel_refits.calibrated_slope(gram, split.choosing)


def _part(task: Task, slope: float | None, snapshot: Snapshot) -> tuple[np.ndarray, float] | None:
    gram = None if slope is None else _gram(task, snapshot)
    return None if gram is None or slope is None else (gram, slope)
