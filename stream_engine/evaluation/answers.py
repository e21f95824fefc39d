"""All answers of a snapshot, as models are fitted to them: with participants and responses as far as they are known."""

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.data.triplet_columns import pair_of_entry
from stream_engine.evaluation.counts_without import without
from stream_engine.evaluation.hash_split import comparison_draws, name_hashes
from stream_engine.evaluation.responses import Responses, responses_of
from stream_engine.evaluation.worker_reliability import votes_of
from stream_engine.state.snapshot import Snapshot, triplet_columns


def answers_of(snapshot: Snapshot, seed: int, by_participant: bool = True) -> tuple[Responses, Answers]:
    """`(the responses that can be held out of a snapshot, all of its answers)`. O(m log m).

    The answers are those of the responses that the snapshot keeps. Answers that its bounded sample lacks follow,
    without a participant, each as a response by itself, with numbers from the number of responses on; they are never
    held out. A snapshot that keeps no responses has questions in their place (both answers and all repetitions of
    each), with participants if it keeps `worker_votes`."""
    responses, n = responses_of(snapshot, seed), len(snapshot.objects)
    n_responses = len(responses.draw)
    if responses.by == "comparisons":
        answers = counted_answers(snapshot, by_participant)
        draw = comparison_draws(answers.rows, name_hashes(snapshot.objects, seed))
        response = _responses_by_draw(responses.draw, draw)
        without_response = response == n_responses
        return responses, answers._replace(
            response=np.where(without_response, n_responses + np.cumsum(without_response), response)
        )
    answers = responses.answers
    if not by_participant:
        answers = answers._replace(participant=np.full(len(answers.rows), -1, np.int32), participants=())
    if responses.complete:
        return responses, answers
    other_answers = counted_answers(without(snapshot, answers), by_participant=False)
    other_answers = other_answers._replace(response=n_responses + 1 + other_answers.response)
    rows, times, participant, response = (np.concatenate(pair) for pair in zip(answers[:4], other_answers[:4]))
    return responses, Answers(rows, times, participant, response, n, answers.participants)


def _responses_by_draw(draws: np.ndarray, draws_to_find: np.ndarray) -> np.ndarray:
    """(q,) the number of the response with each draw; len(draws) if there is none."""
    if not len(draws):
        return np.zeros(len(draws_to_find), np.int64)
    order = np.argsort(draws, kind="stable")
    position = order[np.minimum(np.searchsorted(draws[order], draws_to_find), len(draws) - 1)]
    return np.where(draws[position] == draws_to_find, position, len(draws))


def counted_answers(snapshot: Snapshot, by_participant: bool = True) -> Answers:
    """The counted answers, each as a response by itself: triplets, by participant on request and if that is kept, and
    comparisons of four objects. Where triplets are not counted, votes are the counts."""
    names: tuple[str, ...] = ()
    if snapshot.section("worker_votes") and (by_participant or not snapshot.section("triplet_counts")):
        votes = votes_of(snapshot)
        lo, hi, anchor = votes.keys[votes.key].T
        sides, names = [votes.n_lo, votes.n_hi], votes.names
        participant = votes.worker.astype(np.int32)
        if "" in names:  # votes without a participant; names are sorted, so "" is the first
            participant, names = participant - 1, names[1:]
        if not by_participant:
            participant, names = np.full(len(participant), -1, np.int32), ()
    else:
        columns = triplet_columns(snapshot)
        pair = pair_of_entry(columns)
        anchor, lo, hi, sides = columns.anchor, columns.lo[pair], columns.hi[pair], [columns.n_lo, columns.n_hi]
        participant = np.full(len(anchor), -1, np.int32)
    rows, counts = np.stack([anchor, lo, anchor, hi], axis=1), np.stack(sides)
    if quadruplets := snapshot.section("quadruplet_counts"):
        rows = np.concatenate([rows, np.stack([quadruplets[name] for name in "ijkl"], axis=1)])
        counts = np.concatenate([counts, np.stack([quadruplets["n_lo"], quadruplets["n_hi"]])], axis=1)
        participant = np.concatenate([participant, np.full(len(quadruplets["i"]), -1, np.int32)])
    times = counts.ravel().astype(np.float64)
    is_given, n = times > 0, len(snapshot.objects)
    both_ways = np.concatenate([rows, rows[:, [2, 3, 0, 1]]]).astype(np.int32)[is_given]
    return Answers(both_ways, times[is_given], np.tile(participant, 2)[is_given], np.arange(len(both_ways)), n, names)
