"""What the kernel refits share about holding answers out (`evaluation.cross_fit`).

Answers are *fitted*, they *choose* (a lambda, a beta), or they are *held out*. Nothing that chose is reported, and the
model that is published is fitted to all three.

Probabilities are sigma(slope * margin), with margins in units of the kernel's own `margin_scale`. Fits to more and
to fewer answers put the objects further apart and less far (a hinge asks for margins of 1 in whatever order is left),
so a slope of bare margins that suits one suits no other.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from stream_engine.evaluation import cross_fit, held_out, judgement_folds
from stream_engine.evaluation.coordinates import margin_scale
from stream_engine.evaluation.cross_fit import Setting
from stream_engine.evaluation.held_out import HeldOut
from stream_engine.evaluation.judgement_folds import CHOOSE, FIT, HELD, Evidence
from stream_engine.evaluation.subset import renumbering
from stream_engine.kernel_learning.pair_lists import excess
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
    def outside(self) -> Snapshot:
        """The snapshot of the subset without what is held out."""
        return judgement_folds.without(self._restricted, self.found.of(self._part == HELD))

    @cached_property
    def fitting(self) -> Snapshot:
        """The snapshot of the subset without what is held out and what chooses."""
        return judgement_folds.without(self._restricted, self.found.of(self._part != FIT))

    @property
    def can_choose(self) -> bool:
        """Whether there is something to fit and something to choose by."""
        return bool(len(self.choosing.rows)) and _says_something(self.fitting)


class TaskAnswers:
    """The answers of a task over its subset, and who of them is held out; triplets alone unless `quadruplets` are
    learned from too. `choose`: the share of the others that chooses; without `evaluate` nothing is held out."""

    def __init__(self, task: Task, choose: float, quadruplets: bool = False, evaluate: bool = True):
        whole = judgement_folds.evidence(task.snapshot, task.seed)
        found = whole
        if task.params.objects is not None:
            found = whole.among(renumbering(task.subset.ids, len(task.snapshot.objects)))
        self._restricted, self.found = task.restricted, found if quadruplets else found.of_triplets()
        self._plan = cross_fit.plan(self.found, choose, evaluate)

    def split(self, part: np.ndarray | None = None) -> Split | None:
        """Of a part; without one that of the first group. None where holding it out leaves nothing to learn from."""
        made = Split(self._restricted, self.found, self._plan.responses[0].part if part is None else part)
        return made if _says_something(made.outside) else None

    def evaluated(
        self,
        first: Setting,
        choose: Callable[[Split | None], Setting],
        fit: Callable[[Setting, Snapshot], tuple[np.ndarray, float] | None],
    ) -> HeldOut | None:
        """The figures of kernels that `fit` gives, each with the slope of its margins; `first` is the setting of the
        first group."""

        def predict(setting: Setting, out: np.ndarray) -> dict[str, np.ndarray]:
            asked = self.found.of(out)
            training = judgement_folds.without(self._restricted, asked)
            made = fit(setting, training) if _says_something(training) else None
            return {} if made is None else {"": made[1] * margins(made[0], asked.rows)}

        return cross_fit.evaluated(self.found, self._plan, first, lambda part: choose(self.split(part)), predict).get(
            ""
        )

    def report(self, figures: HeldOut | None, slope: float | None, gram: np.ndarray) -> dict[str, Any]:
        """The fields of an artifact's report, also where there was too little to hold any out; `probability_slope` is
        that of the bare margins of the published kernel."""
        figures = figures or HeldOut(self.found.by, None, None, held_out.ceiling(self.found))
        return figures._replace(slope=None if slope is None else slope / margin_scale(gram)).report()


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
