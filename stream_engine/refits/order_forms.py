"""Embeddings that satisfy every comparison of an acyclic order: Algorithm 5, and the hard margin with K = I.

Forms of the refit `partial_order_embedding` without a loss: nothing is weighed, so there is no beta to choose and
nothing to join other objects by. What is reported of them is of judgements that they never had.
"""

from typing import Any

import numpy as np

from stream_engine.guard.partial_order import transitive_reduction
from stream_engine.kernel_learning import constant_shift, hard_margin
from stream_engine.kernel_learning.constraints import Constraints
from stream_engine.kernel_learning.distance_operator import excess
from stream_engine.refits import CannotRefit, Progress, beta_choice, held_out_answers, kernel_refits
from stream_engine.refits.held_out_answers import Split
from stream_engine.refits.kernel_refits import Task
from stream_engine.state.artifact import Artifact
from stream_engine.statistics.held_out import HeldOut

FORMS = ("order", "hard")


def check(task: Task) -> None:
    """Raise `CannotRefit` where the form asks for an order, or for no kernels, and the parameters say otherwise."""
    params = task.params
    if params.form not in FORMS:
        return
    if params.constraints in ("raw", "length2"):
        raise CannotRefit(
            f"{task.kind}: form {params.form!r} needs an acyclic order and got constraints {params.constraints!r}; "
            "expected 'acyclic', 'canonical' or 'algorithm1'"
        )
    if params.form == "hard" and (params.kernels or params.features is not None):
        raise CannotRefit(
            f"{task.kind}: form 'hard' is K = I, where an order can always be satisfied; got kernels or features, "
            "expected none, or form 'full' with a large beta"
        )
    if params.rest == "extended":
        raise CannotRefit(
            f"{task.kind}: rest 'extended' joins the other objects by the loss that the subset was learned with; got "
            f"form {params.form!r}, which has none, expected 'full' or 'diagonal'"
        )


def artifact(
    task: Task, comparisons: Constraints, split: Split | None, report: dict[str, Any], progress: Progress
) -> Artifact:
    """The embedding, what is held out of it, and what it satisfies. Raises `CannotRefit` for an order with a cycle."""
    progress(0, 2)
    figures = _held_out(task, split)
    gram, objective, said = _embedded(task, comparisons, kernel_refits.last_solve(progress, 2))
    violated = int((excess(gram, comparisons.rows) >= 0).sum())
    fraction = 1.0 - violated / len(comparisons.rows)
    progress(2, 2)
    report = {**report, "violated": violated, **said, "satisfied": fraction}
    report |= held_out_answers.report(split, figures, gram)
    arrays = {**of_every_form(task, comparisons, gram, objective, fraction), "mu": np.empty(0)}
    return kernel_refits.artifact(task, gram, arrays, report, None)


def of_every_form(
    task: Task, comparisons: Constraints, gram: np.ndarray, objective: float, fraction: float
) -> dict[str, np.ndarray]:
    """Arrays that an artifact has whatever its form."""
    return {
        "K": gram,
        "objective": np.array(objective),
        "satisfied": np.array(fraction),
        "constraints": task.subset.ids[comparisons.rows].astype(np.int32),
    }


def _held_out(task: Task, split: Split | None) -> HeldOut | None:
    """How well it answers what it never had; the sureness is fitted on answers that are not reported."""
    if split is None or not split.can_report or not split.can_choose:
        return None
    gram = _embedded(task, beta_choice.held_to(task, split.fitting))[0]
    return split.figures(gram, held_out_answers.sureness(gram, split.choosing))


def _embedded(task: Task, comparisons: Constraints, progress=None) -> tuple[np.ndarray, float, dict[str, Any]]:
    """`(gram, objective, what to report of it)`."""
    params, n = task.params, len(task.subset.ids)
    if params.form == "order":
        shifted = constant_shift.embed_order(comparisons.rows, n)
        return shifted.gram, 0.0, {"levels": int(shifted.delta.max(initial=0)), "shift": shifted.shift}
    limits = {} if progress is None else {"progress": progress}
    reduced = transitive_reduction(comparisons.rows)  # what follows with margins of 1 asks for nothing new
    solved = hard_margin.fit(reduced, n, tolerance=params.tolerance, max_iterations=params.max_iterations, **limits)
    objective, bound, _ = solved.certificate
    said = {
        "objective": objective,
        "bound": bound,
        "gap": solved.certificate.gap,
        "certified": solved.converged,
        "iterations": solved.iterations,
    }
    return solved.gram, objective, said
