"""All answers of a snapshot as models are fitted to them: by participant where that is known, each with its response.

Responses are those that the snapshot keeps (`evaluation.responses`), with their participants; what a bounded sample of
them does not hold is fitted to all the same, by nobody in particular, each answer a response by itself. Else they are
questions, both answers and all repeats of each, and participants are known where `worker_votes` is kept. O(m log m).
"""

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.data.triplet_columns import pair_of_entry
from stream_engine.evaluation.counts_without import without
from stream_engine.evaluation.hash_split import comparison_draws, name_hashes
from stream_engine.evaluation.responses import Responses, responses_of
from stream_engine.evaluation.worker_reliability import votes_of
from stream_engine.state.snapshot import Snapshot, triplet_columns


def answers_of(snapshot: Snapshot, seed: int, by_participant: bool = True) -> tuple[Responses, Answers]:
    """What can be held out of a snapshot, and all of its answers; those without a response, which are never held out,
    have numbers from the number of responses on."""
    responses, n = responses_of(snapshot, seed), len(snapshot.objects)
    u = len(responses.draw)
    if responses.by == "comparisons":
        answers = counted_answers(snapshot, by_participant)
        draw = comparison_draws(answers.rows, name_hashes(snapshot.objects, seed))
        response = _responses_by_draw(responses.draw, draw)
        alone = response == u
        return responses, answers._replace(response=np.where(alone, u + np.cumsum(alone), response))
    answers = responses.answers
    if not by_participant:
        answers = answers._replace(participant=np.full(len(answers.rows), -1, np.int32), participants=())
    if responses.complete:
        return responses, answers
    others = counted_answers(without(snapshot, answers), by_participant=False)
    others = others._replace(response=u + 1 + others.response)
    rows, times, participant, response = (np.concatenate(pair) for pair in zip(answers[:4], others[:4]))
    return responses, Answers(rows, times, participant, response, n, answers.participants)


def _responses_by_draw(draws: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(q,) the unit of each draw; len(draws), which is no unit, where there is none."""
    if not len(draws):
        return np.zeros(len(wanted), np.int64)
    order = np.argsort(draws, kind="stable")
    place = order[np.minimum(np.searchsorted(draws[order], wanted), len(draws) - 1)]
    return np.where(draws[place] == wanted, place, len(draws))


def counted_answers(snapshot: Snapshot, by_participant: bool = True) -> Answers:
    """The answers that were counted, each a response by itself: triplets, by participant where that is asked for and
    kept, and comparisons of four objects."""
    names: tuple[str, ...] = ()
    if by_participant and snapshot.section("worker_votes"):
        votes = votes_of(snapshot)
        lo, hi, anchor = votes.keys[votes.key].T
        sides, names = [votes.n_lo, votes.n_hi], votes.names
        participant = votes.worker.astype(np.int32)
        if "" in names:  # nobody in particular; names are sorted
            participant, names = participant - 1, names[1:]
    else:
        columns = triplet_columns(snapshot)
        pair = pair_of_entry(columns)
        anchor, lo, hi, sides = columns.anchor, columns.lo[pair], columns.hi[pair], [columns.n_lo, columns.n_hi]
        participant = np.full(len(anchor), -1, np.int32)
    rows, counts = np.stack([anchor, lo, anchor, hi], axis=1), np.stack(sides)
    if four := snapshot.section("quadruplet_counts"):
        rows = np.concatenate([rows, np.stack([four[name] for name in "ijkl"], axis=1)])
        counts = np.concatenate([counts, np.stack([four["n_lo"], four["n_hi"]])], axis=1)
        participant = np.concatenate([participant, np.full(len(four["i"]), -1, np.int32)])
    times = counts.ravel().astype(np.float64)
    given, n = times > 0, len(snapshot.objects)
    both = np.concatenate([rows, rows[:, [2, 3, 0, 1]]]).astype(np.int32)[given]
    return Answers(both, times[given], np.tile(participant, 2)[given], np.arange(len(both)), n, names)
