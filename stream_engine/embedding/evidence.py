"""Answers of a snapshot as an embedding takes them: by worker where that is known, each with its unit.

Judgements are the units where the snapshot keeps them (`evaluation.responses`), with their workers; what a
bounded sample of them does not hold is fitted to all the same, by nobody in particular. Else the units are questions,
both answers and all repeats of each, and workers are known where `worker_votes` is kept. O(m log m).
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data import answers as data_answers
from stream_engine.data.hashing import mix64
from stream_engine.data.triplet_columns import pair_of_entry
from stream_engine.embedding.held_out import Answers
from stream_engine.evaluation import hash_split
from stream_engine.evaluation.counts_without import without
from stream_engine.evaluation.responses import FIT, Responses, responses_of
from stream_engine.evaluation.worker_reliability import votes_of
from stream_engine.state.snapshot import Snapshot, triplet_columns

Sides = tuple[np.ndarray, np.ndarray, np.ndarray]  # (q, 4) rows; (2, q) how often each side was nearer; (q,) worker


class Evidence(NamedTuple):
    """All answers. A (U,) part says what each unit is for: see `responses.parts`."""

    units: Responses  # what can be held out
    answers: Answers  # these and all others
    workers: tuple[str, ...]

    def of(self, part: np.ndarray, *wanted: int) -> Answers:
        """The answers of these parts; those of no unit are fitted."""
        return self.answers.of(np.isin(np.append(part, FIT)[self.answers.unit], wanted))

    def outside(self, held: np.ndarray) -> Answers:
        """The answers of all units but (U,) bool `held`."""
        return self.answers.of(~np.append(held, False)[self.answers.unit])

    def some(self, answers: Answers, most: int) -> Answers:
        """The same answers; where they are more than `most`, those of about as many of their units as make it."""
        share = most / max(len(answers.rows), 1)
        if share >= 1:
            return answers
        unit = self.apart(answers).unit.astype(np.uint64)
        return answers.of(mix64(unit) < np.uint64(share * 2.0**64))

    def apart(self, answers: Answers) -> Answers:
        """The same answers; each of those that are of no unit is one by itself."""
        units = len(self.units.draw)
        alone = answers.unit == units
        return answers._replace(unit=np.where(alone, units + np.cumsum(alone), answers.unit))

    def workers_of(self, asked: data_answers.Answers) -> np.ndarray:
        """(m,) the worker of each answer; -1: nobody, or not known by name."""
        return asked.participant if len(self.workers) else np.full(len(asked.rows), -1, np.int32)


def evidence(snapshot: Snapshot, seed: int, by_worker: bool) -> Evidence:
    """What a snapshot holds."""
    units = responses_of(snapshot, seed)
    kept = units.answers
    n = len(snapshot.objects)
    if units.by == "comparisons":
        sides, names = _counted(snapshot, by_worker)
        draw = hash_split.comparison_draws(sides[0], hash_split.name_hashes(snapshot.objects, seed))
        return Evidence(units, _answers(sides, _found(units.draw, draw), n, len(names)), names)
    names = kept.participants if by_worker else ()
    worker = kept.participant if by_worker else np.full(len(kept.rows), -1, np.int32)
    answers = Answers(kept.rows, kept.times, worker, kept.response, n, len(names))
    if units.complete:
        return Evidence(units, answers, names)
    sides, _ = _counted(without(snapshot, kept), by_worker=False)
    rest = _answers(sides, np.full(len(sides[0]), len(units.draw)), n, 0)
    rows, times, worker, unit = (np.concatenate(pair) for pair in zip(answers[:4], rest[:4]))
    return Evidence(units, Answers(rows, times, worker, unit, n, len(names)), names)


def _found(draws: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(q,) the unit of each draw; len(draws), which is no unit, where there is none."""
    if not len(draws):
        return np.zeros(len(wanted), np.int64)
    order = np.argsort(draws, kind="stable")
    place = order[np.minimum(np.searchsorted(draws[order], wanted), len(draws) - 1)]
    return np.where(draws[place] == wanted, place, len(draws))


def _answers(sides: Sides, unit: np.ndarray, n: int, n_workers: int) -> Answers:
    """Answers from questions with two counts each."""
    rows, counts, worker = sides
    said = counts.ravel() > 0
    both = np.concatenate([rows, rows[:, [2, 3, 0, 1]]])
    return Answers(both[said], counts.ravel()[said], np.tile(worker, 2)[said], np.tile(unit, 2)[said], n, n_workers)


def _counted(snapshot: Snapshot, by_worker: bool) -> tuple[Sides, tuple[str, ...]]:
    """Triplets, by worker where that is asked for and kept, and comparisons of four objects; the workers' names."""
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
    return (rows.astype(np.int32), counts.astype(np.float64), worker), names
