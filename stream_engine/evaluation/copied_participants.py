"""Participants whose responses are those of another one: probably one file that was read under two names.

In many studies all participants answer the same questions, and agree about most of them. So equal answers are no
evidence by themselves: either no other two participants have the same questions, or the answers have the same times,
or they are equal more often than the agreement of other pairs explains.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.hashing import GOLDEN_GAMMA, mix64
from stream_engine.data.triplet_columns import first_of_equal
from stream_engine.evaluation.kept_responses import KeptResponses
from stream_engine.evaluation.response_checks import LEVEL, at_least

MIN_RESPONSES = 20  # of a copy
MAX_DIFFERENT = 0.01  # share of the responses of a copy that differ
# Above which copies are not looked for: it would take more than a second
MAX_PARTICIPANTS, MAX_RESPONSES, MAX_COST = 2000, 500_000, 4e9  # the last: multiplications
# Agreement of two participants, and for how many answers that counts: where no others answered the same questions
PRIOR = 0.9, 20
PRIOR_OF_TIMES = 0.2, 5
MIN_PAIRS = 5  # pairs of participants, from which on it is estimated how much they differ
# Where everybody has questions of their own: share of the participants who have those of another one, and of the
# questions of a participant that any other one has
MAX_WITH_SAME, MAX_SHARED = 1 / 3, 0.5
N_SPREADS = 3.0  # standard deviations between pairs above their mean


class CopiedParticipant(NamedTuple):
    """A participant with the responses of another one."""

    name: str
    original: str
    responses: int  # that are the same
    because: str  # "questions": nobody else has the same ones; "times": theirs are equal, too; "answers": see `p_value`
    p_value: float | None  # that two participants agree so often, corrected for the pairs that have the same questions


def copied_participants(kept: KeptResponses | None) -> list[CopiedParticipant]:
    """Every participant whose responses are those of another one: of the two, who has fewer, or else the later name.
    Nothing unless all responses are kept. O(participants^2 questions)."""
    if kept is None or not kept.complete or len(kept.times) > MAX_RESPONSES:
        return []
    named, p = kept.worker >= 0, len(kept.worker_names)
    if p < 2 or p > MAX_PARTICIPANTS:
        return []
    participant, (question, answer) = kept.worker[named], (code[named] for code in _codes(kept))
    n_asked, shared = _in_common(question, participant, p)
    n_given, same = _in_common(answer, participant, p)
    is_candidate = _nearly_all(shared, n_asked)
    is_same = is_candidate & _nearly_all(same, n_given)
    if not is_same.any():
        return []
    # pairs whose answers are all equal are no evidence of how much others agree, unless there are many
    others = np.where(is_same, 0, shared) if 2 * is_same.sum() < is_candidate.sum() else shared
    n_pairs, bound = int(np.triu(is_candidate).sum()), _highest_agreement(same, others, *PRIOR)
    if _have_own_questions(shared, n_asked, is_candidate):
        because = np.where(is_same, "questions", "")
    else:
        because = np.where(is_same & _same_times(kept, named, answer, others), "times", "")
    copies: dict[int, CopiedParticipant] = {}
    for one, other in zip(*np.nonzero(np.triu(is_same))):
        sizes = [(-int(n_given[each]), kept.worker_names[each], each) for each in (one, other)]
        (_, original, _), (size, name, copy) = sorted(sizes)
        reason, p_value = str(because[one, other]), None
        if not reason:
            p_one = at_least(np.array([same[one, other]]), np.array([-size]), np.array([bound]))
            reason, p_value = "answers", min(1.0, n_pairs * float(p_one[0]))
        if copy not in copies and (p_value is None or p_value <= LEVEL):
            copies[copy] = CopiedParticipant(name, original, int(same[one, other]), reason, p_value)
    return sorted(copies.values())


def _have_own_questions(shared: np.ndarray, n_asked: np.ndarray, is_candidate: np.ndarray) -> bool:
    """Whether hardly any participant has the questions of another one, and all others have few in common."""
    has_enough = n_asked >= MIN_RESPONSES
    smaller = np.minimum(n_asked[:, None], n_asked[None, :])
    others = np.triu(has_enough[:, None] & has_enough[None, :] & ~is_candidate, 1)
    are_few = is_candidate.any(axis=1).sum() <= MAX_WITH_SAME * has_enough.sum()
    return bool(has_enough.sum() > MIN_PAIRS and are_few and (shared[others] < MAX_SHARED * smaller[others]).all())


def _same_times(kept: KeptResponses, named: np.ndarray, answer: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(p, p) bool: whether nearly all answers have the same times, and this is more than others' times explain."""
    participant, time, p = kept.worker[named], kept.time[named], len(kept.worker_names)
    if not np.isfinite(time).all():
        return np.zeros((p, p), bool)
    code = mix64(answer ^ mix64(time.astype(np.float64).view(np.uint64)))
    n_given, same = _in_common(code, participant, p)
    explained = _highest_agreement(same, others, *PRIOR_OF_TIMES) ** MIN_RESPONSES > LEVEL / p**2
    return _nearly_all(same, n_given) & (not explained)


def _codes(kept: KeptResponses) -> tuple[np.ndarray, np.ndarray]:
    """`(question, answer)` of each response, (J,) uint64 hashes: a question is its two pairs, or else the objects and
    the one that all others are compared with; an answer is all that the response says."""
    rows, of, n = np.asarray(kept.rows, np.int64), kept.judgement, len(kept.times)
    object_hash = mix64(np.arange(int(rows.max(initial=0)) + 1, dtype=np.uint64) + np.uint64(1))
    i, j, k, l = (object_hash[column] for column in rows.T)
    near, far = mix64(i + j), mix64(k + l)
    answer, pairs, objects = np.zeros((3, n), np.uint64)
    np.add.at(answer, of, mix64(near + np.uint64(GOLDEN_GAMMA) * far))
    np.add.at(pairs, of, near + far)
    seen, which = np.divmod(
        _unique(np.repeat(of.astype(np.int64), 4) * len(object_hash) + rows.ravel()), len(object_hash)
    )
    np.add.at(objects, seen, object_hash[which])
    begin = np.searchsorted(of, np.arange(n))
    anchor = rows[begin, 0] if len(rows) else np.zeros(0, np.int64)
    has_anchor = np.ones(n, bool)
    np.logical_and.at(has_anchor, of, (rows[:, 0] == anchor[of]) & (rows[:, 2] == anchor[of]))
    objects = np.where(has_anchor, mix64(objects + object_hash[anchor]), objects)
    return np.where(np.bincount(of, minlength=n) == 1, pairs, objects), answer


def _unique(values: np.ndarray) -> np.ndarray:
    """The different values in order: a tenth of the time of NumPy's, which hashes them."""
    values = np.sort(values)
    return values[first_of_equal(values)]


def _in_common(code: np.ndarray, participant: np.ndarray, p: int) -> tuple[np.ndarray, np.ndarray]:
    """`((p,) how many each has, (p, p) how many two have in common)` of different codes; zeros if it takes too long."""
    _, number = np.unique(code, return_inverse=True)
    column, who = np.divmod(_unique(number * p + participant), p)
    n_each = np.bincount(who, minlength=p)
    several = np.bincount(column)[column] > 1
    column, who = np.cumsum(first_of_equal(column[several])) - 1, who[several]
    n_columns = int(column.max(initial=-1)) + 1
    common = np.zeros((p, p), np.int64)
    for first in range(0, n_columns, _BLOCK) if float(p) ** 2 * n_columns <= MAX_COST else ():
        low, high = np.searchsorted(column, [first, first + _BLOCK])
        has = np.zeros((p, _BLOCK), np.float32)
        has[who[low:high], column[low:high] - first] = 1.0
        common += (has @ has.T).astype(np.int64)
    np.fill_diagonal(common, 0)
    return n_each, common


_BLOCK = 2048  # columns of a product


def _nearly_all(common: np.ndarray, n_each: np.ndarray) -> np.ndarray:
    """(p, p) bool: whether two participants have all but a few of the smaller one's in common, and these are enough."""
    smaller = np.minimum(n_each[:, None], n_each[None, :])
    return (common >= MIN_RESPONSES) & (smaller - common <= MAX_DIFFERENT * smaller)


def _highest_agreement(same: np.ndarray, shared: np.ndarray, prior: float, prior_answers: int) -> float:
    """How often two participants give the same answer to a question, at most: the mean over pairs, and some standard
    deviations between pairs above it. `shared` (p, p) is 0 for pairs that do not count."""
    upper = np.triu(shared > 0)
    n, agree = shared[upper], np.minimum(same[upper], shared[upper])
    mean = (agree.sum() + prior * prior_answers) / (n.sum() + prior_answers)
    enough = n >= MIN_RESPONSES
    if enough.sum() < MIN_PAIRS:
        return float(mean)
    # Who guesses agrees less with everybody, and must not hide copies: only pairs above the median count.
    share = agree[enough] / n[enough]
    middle = float(np.median(share))
    above = share >= middle
    excess = (share[above] - middle) ** 2 - middle * (1 - middle) / n[enough][above]
    return min(1.0, max(mean, middle) + N_SPREADS * float(np.sqrt(max(excess.mean(), 0.0))))
