"""Answers of a snapshot as an embedding takes them: by worker where that is kept, each with its unit and its part.

Triplets come from `worker_votes` where that accumulator is on, else from `triplet_counts`; comparisons of four objects
from `quadruplet_counts`. Counts do not know judgements: the unit is then the question, both answers and all repeats of
it, and the parts are drawn by the names of its objects. O(keys log keys).
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.triplet_columns import pair_of_entry
from stream_engine.embedding.held_out import Answers
from stream_engine.kernel_learning import hash_split
from stream_engine.state.snapshot import Snapshot, triplet_columns
from stream_engine.statistics.worker_reliability import votes_of

FIT, CHOOSE, REPORT = 0, 1, 2


class Evidence(NamedTuple):
    """All answers, and which part each unit is of."""

    answers: Answers
    by: str  # what a unit is: "judgements" or "questions"
    part: np.ndarray  # (m,) of each answer: FIT, CHOOSE or REPORT
    workers: tuple[str, ...]

    def of(self, *parts: int) -> Answers:
        """The answers of these parts."""
        return self.answers.of(np.isin(self.part, parts))


def evidence(snapshot: Snapshot, seed: int, by_worker: bool, report: float, choose: float) -> Evidence:
    """What a snapshot holds. `report` is the share of units that is only reported on, `choose` that of the rest which
    chooses."""
    rows, counts, worker, names = _counted(snapshot, by_worker)
    draw = hash_split.comparison_draws(rows, hash_split.name_hashes(snapshot.objects, seed))
    part = np.where(draw < report, REPORT, np.where(draw < report + choose * (1 - report), CHOOSE, FIT))
    unit = np.unique(draw, return_inverse=True)[1].reshape(-1)
    said = counts.ravel() > 0
    answers = Answers(
        np.concatenate([rows, rows[:, [2, 3, 0, 1]]])[said],
        counts.ravel()[said],
        np.tile(worker, 2)[said],
        np.tile(unit, 2)[said],
        len(snapshot.objects),
        len(names),
    )
    return Evidence(answers, "questions", np.tile(part, 2)[said], names)


def _counted(snapshot: Snapshot, by_worker: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[str, ...]]:
    """`((q, 4) rows, (2, q) how often each side was nearer, (q,) worker or -1, their names)`."""
    names: tuple[str, ...] = ()
    if by_worker and snapshot.section("worker_votes"):
        votes = votes_of(snapshot)
        lo, hi, anchor = votes.keys[votes.key].T
        sides, names = [votes.n_lo, votes.n_hi], votes.names
        worker = votes.worker.astype(np.int32)
        if "" in names:  # nobody in particular; names are sorted
            worker, names = worker - 1, names[1:]
    else:
        columns = triplet_columns(snapshot)
        pair = pair_of_entry(columns)
        anchor, lo, hi, sides = columns.anchor, columns.lo[pair], columns.hi[pair], [columns.n_lo, columns.n_hi]
        worker = np.full(len(anchor), -1, np.int32)
    rows, counts = np.stack([anchor, lo, anchor, hi], axis=1), np.stack(sides)
    if four := snapshot.section("quadruplet_counts"):
        rows = np.concatenate([rows, np.stack([four[name] for name in "ijkl"], axis=1)])
        counts = np.concatenate([counts, np.stack([four["n_lo"], four["n_hi"]])], axis=1)
        worker = np.concatenate([worker, np.full(len(four["i"]), -1, np.int32)])
    return rows.astype(np.int32), counts.astype(np.float64), worker, names
