"""What the refits that learn from answers share about holding them out: three parts, and what is told of the third.

Answers are *fitted*, they *choose* (a lambda, a beta), or they are *reported*. Nothing that chose is reported, and the
model that is published is fitted to all three. See `evaluation.judgement_folds`.

Probabilities are sigma(slope * margin), with margins in units of the kernel's own `margin_scale`. Fits to more and
to fewer answers put the objects further apart and less far (a hinge asks for margins of 1 in whatever order is left),
so a slope of bare margins that suits one suits no other.
"""

from functools import cached_property
from typing import Any

import numpy as np

from stream_engine.evaluation import held_out, judgement_folds
from stream_engine.evaluation.coordinates import margin_scale
from stream_engine.evaluation.held_out import HeldOut
from stream_engine.evaluation.judgement_folds import CHOOSE, FIT, Evidence
from stream_engine.evaluation.subset import renumbering
from stream_engine.kernel_learning.distance_operator import excess
from stream_engine.refits.kernel_refits import Task
from stream_engine.state.snapshot import Snapshot, triplet_columns


class Split:
    """The answers of a task over its subset, and which part each judgement is of; every field is made when asked."""

    def __init__(self, restricted: Snapshot, found: Evidence, part: np.ndarray):
        self._restricted, self.found, self._part = restricted, found, part

    @cached_property
    def choosing(self) -> Evidence:
        """Answers that choose."""
        return self.found.of(self._part == CHOOSE)

    @cached_property
    def reported(self) -> Evidence:
        """Answers that are reported on."""
        return self.found.of(self._part > CHOOSE)

    @cached_property
    def outside(self) -> Snapshot:
        """The snapshot of the subset without what is reported."""
        return judgement_folds.without(self._restricted, self.reported)

    @cached_property
    def fitting(self) -> Snapshot:
        """The snapshot of the subset without what is reported and what chooses."""
        return judgement_folds.without(self._restricted, self.found.of(self._part != FIT))

    @property
    def can_choose(self) -> bool:
        """Whether there is something to fit and something to choose by."""
        return bool(len(self.choosing.rows)) and _says_something(self.fitting)

    @property
    def can_report(self) -> bool:
        """Whether there is something to report on."""
        return bool(len(self.reported.rows))

    def figures(self, gram: np.ndarray, slope: float) -> HeldOut:
        """Figures of a kernel that was learned without the `reported` answers, with a calibrated `slope`."""
        return held_out.held_out(self.found, self._part, self.reported, margins(gram, self.reported.rows), slope)


def split(task: Task, report: float, choose: float, quadruplets: bool = False) -> Split | None:
    """Where the answers of a task go; None where holding some out would leave nothing to learn from. Triplets alone
    unless `quadruplets` are learned from too."""
    whole = judgement_folds.evidence(task.snapshot, task.seed)
    part = judgement_folds.parts(whole, report, choose)
    found = whole
    if task.params.objects is not None:
        found = whole.among(renumbering(task.subset.ids, len(task.snapshot.objects)))
    made = Split(task.restricted, found if quadruplets else found.of_triplets(), part)
    return made if _says_something(made.outside) else None


def _says_something(snapshot: Snapshot) -> bool:
    """Whether there is a triplet that was not contradicted as often as it was said, or any comparison of four."""
    columns = triplet_columns(snapshot)
    return bool((columns.n_lo != columns.n_hi).any()) or bool(len(snapshot.section("quadruplet_counts").get("i", ())))


def margins(gram: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(m,) how far rows are expected, > 0 where they are, in units of `margin_scale`. O(n^2 + m)."""
    return -excess(gram, rows) / margin_scale(gram)


def calibrated_slope(gram: np.ndarray, asked: Evidence) -> float:
    """The slope of margins in their units that suits these answers, which the kernel did not have."""
    return held_out.slope_of(margins(gram, asked.rows), asked.times)


def report(made: Split | None, figures: HeldOut | None, gram: np.ndarray) -> dict[str, Any]:
    """The fields of an artifact's report, also where there was too little to hold any out; `probability_slope` is that
    of the bare margins of the published kernel."""
    if figures is None:
        by, ceiling = ("none", None) if made is None else (made.found.by, held_out.ceiling(made.found))
        figures = HeldOut(by, None, None, None, ceiling)
    if figures.slope is not None:
        figures = figures._replace(slope=figures.slope / margin_scale(gram))
    return figures.report()
