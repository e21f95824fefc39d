"""The noise ceiling of prediction accuracy: how far participants agree with each other, and with themselves."""

from typing import NamedTuple

import numpy as np

from stream_engine.data.answers import Answers
from stream_engine.data.triplet_columns import first_of_equal
from stream_engine.evaluation.responses import Responses

MIN_CEILING_ANSWERS = 100  # answers to questions with other answers, below which no rate is reported


class Ceiling(NamedTuple):
    """Agreement of the answers to the same question; ties count one half. A rate is None if it is over fewer than
    `MIN_CEILING_ANSWERS` answers.

    `others` is a noisy estimate, and below `at_most` if few participants answered the same question."""

    others: float | None  # how often an answer is that of the majority of the other participants
    answers: int  # in `others`
    themselves: float | None  # how often it is that of the majority of the participant's own other answers
    own_answers: int  # in `themselves`
    at_most: float | None = None  # accuracy that no model without individual differences exceeds on these questions


class _Votes(NamedTuple):
    """A row an answer, sorted by question and participant."""

    question: np.ndarray  # (m,) number of the question
    own: np.ndarray  # (m,) number of the question and the participant
    named: np.ndarray  # (m,) bool: the participant is named
    n_lo: np.ndarray  # (m,) float64: answers for the first pair of the question
    n_hi: np.ndarray  # (m,) float64: answers for the second one


def ceiling(responses: Responses) -> Ceiling | None:
    """How far the answers agree; None without answers. O(m log m), or O(questions) if no participant is named: then
    each answer counts as that of another participant."""
    answers = responses.answers
    if not len(answers.rows):
        return None
    if responses.votes is not None:
        n_lo, n_hi = (votes.astype(np.float64) for votes in responses.votes)
        total = n_lo + n_hi
        agreement_with_others = _agreement(np.stack([n_lo - n_hi, total]), n_lo, n_hi)
        return Ceiling(*agreement_with_others, None, 0, _upper_bound(n_lo, n_hi, total, total))
    if responses.together is not None:
        answers = answers.without(responses.together)
    votes = _sorted_votes(answers, len(responses.participant_hash))
    return _ceiling_of(votes)


def _sorted_votes(answers: Answers, n_participants: int) -> _Votes:
    near, far = np.sort(answers.rows[:, :2], axis=1), np.sort(answers.rows[:, 2:], axis=1)
    first = (near[:, 0] < far[:, 0]) | ((near[:, 0] == far[:, 0]) & (near[:, 1] < far[:, 1]))
    lo, hi = np.where(first[:, None], near, far), np.where(first[:, None], far, near)
    participant = answers.participant.astype(np.int64)
    # an answer without a participant is that of somebody who gave no other, however often it was given
    code = np.where(participant >= 0, participant, n_participants + answers.response)
    order = np.lexsort((code, hi[:, 1], hi[:, 0], lo[:, 1], lo[:, 0]))
    begins = first_of_equal(*(column[order] for column in (*lo.T, *hi.T)))
    return _Votes(
        np.cumsum(begins) - 1,
        np.cumsum(begins | first_of_equal(code[order])) - 1,
        participant[order] >= 0,
        np.where(first, answers.times, 0.0)[order],
        np.where(first, 0.0, answers.times)[order],
    )


def _ceiling_of(votes: _Votes) -> Ceiling:
    question, own_number, named, n_lo, n_hi = votes
    net, total = n_lo - n_hi, n_lo + n_hi
    own_net, own_total = np.bincount(own_number, net)[own_number], np.bincount(own_number, total)[own_number]
    return Ceiling(
        *_agreement_with_others(votes, own_net, own_total),
        *_agreement(np.stack([own_net, own_total])[:, named], n_lo[named], n_hi[named]),
        _upper_bound(np.bincount(question, n_lo), np.bincount(question, n_hi), *_own_pairs(votes)),
    )


def _agreement_with_others(votes: _Votes, own_net: np.ndarray, own_total: np.ndarray) -> tuple[float | None, int]:
    """`(how often an answer is that of the majority of other participants, over how many answers)`; `own_...` (m,) are
    the net vote and the number of the participant's own answers to the question."""
    question, _, named, n_lo, n_hi = votes
    question_net = np.bincount(question, n_lo - n_hi)[question]
    question_total = np.bincount(question, n_lo + n_hi)[question]
    has_others = question_total > np.where(named, own_total, 1.0)
    right = sum(
        counts * credit(sign * (question_net - np.where(named, own_net, sign)))
        for counts, sign in ((n_lo, 1.0), (n_hi, -1.0))
    )
    total = float((n_lo + n_hi)[has_others].sum())
    return (float(np.sum(right, where=has_others) / total) if total >= MIN_CEILING_ANSWERS else None), int(total)


def _own_pairs(votes: _Votes) -> tuple[np.ndarray, np.ndarray]:
    """Of each question the ordered pairs of answers of one participant: those that agree, and all."""
    own_lo, own_hi = np.bincount(votes.own, votes.n_lo), np.bincount(votes.own, votes.n_hi)
    first_row = np.flatnonzero(np.diff(votes.own, prepend=-1) > 0)
    question, unnamed = votes.question[first_row], ~votes.named[first_row]
    return (
        np.bincount(question, np.where(unnamed, own_lo + own_hi, own_lo**2 + own_hi**2)),
        np.bincount(question, np.where(unnamed, own_lo + own_hi, (own_lo + own_hi) ** 2)),
    )


def credit(net: np.ndarray) -> np.ndarray:
    """What an answer counts as a correct one, by the net vote for it: 1 with the majority, 0 against it, 1/2 for
    ties."""
    return np.where(net > 0, 1.0, np.where(net == 0, 0.5, 0.0))


# Half the 95 % interval of `Ceiling.at_most`, above which it is not reported.
MAX_CEILING_HALF_WIDTH = 0.05


def _upper_bound(n_lo: np.ndarray, n_hi: np.ndarray, own_agreeing: np.ndarray, own_pairs: np.ndarray) -> float | None:
    """`Ceiling.at_most` of (K,) questions with their answers each way; None if its interval is too wide.

    `own_pairs` are the ordered pairs of answers of the same participant, each answer with itself among them, and
    `own_agreeing` those of them that agree: they are subtracted, as they say nothing about two participants.

    >>> answers = np.full(10, 10.0)
    >>> round(_upper_bound(np.full(10, 8.0), np.full(10, 2.0), answers, answers) or 0, 3)  # of 90 pairs, 58 agree
    0.769
    """
    # If a share p of the participants answers one way, two of them agree with probability a = p^2 + (1 - p)^2, and the
    # best answer is correct with probability max(p, 1 - p) = (1 + sqrt(2 a - 1)) / 2. That is concave in a, so its mean
    # over questions is at most its value at the mean agreement of two participants (Jensen).
    answers = n_lo + n_hi
    pairs = answers**2 - own_pairs
    compared = pairs > 0
    if answers[compared].sum() < MIN_CEILING_ANSWERS:
        return None
    agree = (n_lo**2 + n_hi**2 - own_agreeing)[compared] / pairs[compared]
    weight = answers[compared] / answers[compared].sum()
    mean = float(weight @ agree)
    error = 1.96 * float(np.sqrt(weight**2 @ (agree - mean) ** 2))
    low, middle, high = (0.5 + 0.5 * np.sqrt(np.clip(2.0 * (mean + e) - 1.0, 0.0, 1.0)) for e in (-error, 0.0, error))
    return float(middle) if high - low <= 2.0 * MAX_CEILING_HALF_WIDTH else None


def _agreement(group: np.ndarray, n_lo: np.ndarray, n_hi: np.ndarray) -> tuple[float | None, int]:
    """`(how often an answer is that of the majority of the other answers of its group, over how many answers)`: `group`
    (2, m) is the net vote and the number of answers of each row's group."""
    net, answers = group
    has_others = answers > 1
    right = np.zeros(len(net))
    for counts, net_of_others in ((n_lo, net - 1.0), (n_hi, -net - 1.0)):  # one answer taken out of its own side
        right += counts * credit(net_of_others)
    total = float((n_lo + n_hi)[has_others].sum())
    return (float(right[has_others].sum() / total) if total >= MIN_CEILING_ANSWERS else None), int(total)
