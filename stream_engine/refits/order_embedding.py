"""The form "order" of partial order embedding: Algorithm 5 and the constant shift (McFee & Lanckriet 2011, App. A).

It satisfies every comparison of an acyclic order in n - 1 dimensions, without kernels and without a loss, so it proves
that the order can be embedded, rather than being a model of the answers.
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
    """Raise `CannotRefit` for parameters that do not apply to the form."""
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
    """The embedding, and its accuracy on held-out answers."""
    progress(0, 2)
    slope = _slope(task, evaluation.split())
    figures = evaluation.evaluate(slope, partial(_slope, task), partial(_gram_and_slope, task))
    progress(1, 2)
    embedding = constant_shift.embed_order(comparisons.rows, len(task.subset.ids))
    violated = int((excess(embedding.gram, comparisons.rows) >= 0).sum())
    fraction = 1.0 - violated / len(comparisons.rows)
    report: dict[str, Any] = {
        "form": task.params.form,
        "constraints": task.params.constraints,
        "weights": task.params.weights,
        "size": len(comparisons.rows),
        "raw_size": len(raw(task.restricted).rows),
        **evaluation.report(figures, slope, embedding.gram),
        "levels": int(embedding.delta.max(initial=0)),
        "shift": embedding.shift,
        "violated": violated,
        "satisfied": fraction,
    }
    arrays = {
        "K": embedding.gram,
        "mu": np.empty(0),
        "objective": np.array(float(np.trace(embedding.gram))),
        "satisfied": np.array(fraction),
        "constraints": task.subset.ids[comparisons.rows].astype(np.int32),
    }
    progress(2, 2)
    return kernel_refits.artifact(task, embedding.gram, arrays, report, None)


def _gram(task: Task, snapshot: Snapshot) -> np.ndarray | None:
    """The Gram matrix of the order of some of the answers; None without an order."""
    rows = beta_choice.constraints_of(task, snapshot).rows
    return constant_shift.embed_order(rows, len(task.subset.ids)).gram if len(rows) else None


def _slope(task: Task, split: TrainingSplit | None) -> float | None:
    """The slope of the probabilities, from the validation set."""
    if split is None or not split.can_choose:
        return None
    gram = _gram(task, split.fitting)
    return None if gram is None else kernel_refits.calibrated_slope(gram, split.validation)


def _gram_and_slope(task: Task, slope: float | None, snapshot: Snapshot) -> tuple[np.ndarray, float] | None:
    gram = None if slope is None else _gram(task, snapshot)
    return None if gram is None or slope is None else (gram, slope)
