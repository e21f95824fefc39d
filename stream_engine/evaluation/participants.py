"""Checks of participants: whose answers look random, and for which reason.

Responses count as independent, their comparisons do not: n of an interval is at most the number of responses.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.counts.adds_similarity import pair_sums
from stream_engine.data.packed_names import unpack_names
from stream_engine.data.triplet_columns import net_vote, pair_of_entry
from stream_engine.evaluation.response_checks import (
    LEVEL,
    MIN_ANSWERS,
    ResponseChecks,
    at_least,
    at_most,
    holm,
    response_checks,
)
from stream_engine.state.published import Published
from stream_engine.state.snapshot import triplet_columns

MIN_PARTICIPANTS = 5  # participants, below which flags are not counted: a count could identify a person


class ParticipantChecks(NamedTuple):
    """A row a participant, in the order of names. Unknown figures are NaN."""

    names: tuple[str, ...]
    responses: np.ndarray  # (p,) int64: events answered, catch trials not among them
    accuracy: np.ndarray  # (p,) float64: share of answers that all other participants predict, ties one half
    low: np.ndarray  # (p,) its 95 % interval
    high: np.ndarray
    passed: np.ndarray  # (p,) int64: catch trials
    failed: np.ndarray
    lapse: np.ndarray  # (p,) float64
    responding: ResponseChecks  # positions, straight lines and pace
    power: float | None  # share of participants who only guess that the accuracy would reveal; None: none is checked
    power_range: tuple[float, float] | None  # its least and largest value of a participant, by their answers
    tested: np.ndarray  # (p,) bool: whether enough of their answers were compared with others' predictions
    consistent: np.ndarray  # (p,) bool: their answers look random to others, but follow a view of their own
    reasons: tuple[str, ...]  # why a participant is flagged, "" if they are not

    @property
    def flagged(self) -> int:
        """How many participants are flagged."""
        return sum(map(bool, self.reasons))


def wilson(share: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """95 % intervals of shares of n answers, within 0 and 1 (Wilson 1927).

    >>> [round(float(bound), 3) for bound in wilson(np.array(1.0), np.array(5))]
    [0.566, 1.0]
    """
    z2 = 1.96**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = 1.96 * np.sqrt(share * (1 - share) / n + z2 / (4 * n**2)) / (1 + z2 / n)
    return np.clip(centre - half, 0.0, share), np.clip(centre + half, share, 1.0)


class _Accuracy(NamedTuple):
    """How well all other participants predict the answers of each; (p,) arrays."""

    accuracy: np.ndarray
    low: np.ndarray  # 95 % interval
    high: np.ndarray
    of_others: np.ndarray  # the accuracy of all other participants
    random: np.ndarray  # bool: at chance level or below, and below the others
    below_chance: np.ndarray  # bool: below chance level
    reverse: np.ndarray  # bool: below chance level, and their answers reversed are predicted as well as those of others
    tested: np.ndarray  # bool, see `ParticipantChecks`
    power: np.ndarray  # (t,) float64: of those who are tested


def check_participants(published: Published, model_beats_chance: bool) -> ParticipantChecks | None:
    """The checks of every named participant; None if events name none. O(votes log votes).

    A participant is flagged if others do not predict their answers (`_check_accuracy`), if they failed catch trials
    (`_failed_catch_trials`), if their lapse rate in the embedding is above one half (unless their accuracy is
    compatible with that of all others), or by the way in which they answer (`response_checks`). Nobody guesses whose
    answers follow a view of their own (`_follow_own_view`).
    """
    votes = published.snapshot.section("worker_votes")
    if not votes:
        return None
    names = unpack_names(votes["utf8"], votes["offsets"])
    named = np.array([bool(name) for name in names], bool)
    if not named.any():
        return None
    responses, passed, failed = (np.asarray(votes[field], np.int64) for field in ("events", "passed", "failed"))
    checks = _check_accuracy(published, votes, names, responses)
    lapse = _lapse(published, names) if model_beats_chance else np.full(len(names), np.nan)
    # above one half, answers are random more often than not
    guesses = (lapse > 0.5) & ~(checks.high >= checks.of_others)
    reverse = checks.random & checks.reverse
    consistent = (checks.random | guesses) & ~reverse
    if consistent.any():
        consistent &= _follow_own_view(published, votes, names, responses)
    failed_catch = _failed_catch_trials(passed, failed)
    reasons: list[list[str]] = [[] for _ in names]
    for i in range(len(names)):
        if checks.random[i] and not consistent[i]:
            level = "below chance level" if checks.below_chance[i] else "at chance level"
            level = "mostly the other way round" if reverse[i] else level
            reasons[i].append(f"answers {level} (others predict {checks.accuracy[i]:.0%})")
        if failed_catch[i]:
            reasons[i].append(f"failed {failed[i]} of {passed[i] + failed[i]} catch trials")
        if guesses[i] and not consistent[i] and not reverse[i]:
            reasons[i].append(f"lapse rate {lapse[i]:.2f}")
    rows = np.flatnonzero(named)
    responding = response_checks(published.snapshot, [names[i] for i in rows.tolist()])
    return ParticipantChecks(
        tuple(names[i] for i in rows.tolist()),
        responses[rows],
        checks.accuracy[rows],
        checks.low[rows],
        checks.high[rows],
        passed[rows],
        failed[rows],
        lapse[rows],
        responding,
        float(checks.power.mean()) if len(checks.power) else None,
        (float(checks.power.min()), float(checks.power.max())) if len(checks.power) else None,
        checks.tested[rows],
        consistent[rows],
        tuple("; ".join(reasons[i] + responding.reasons(row)) for row, i in enumerate(rows.tolist())),
    )


def _check_accuracy(
    published: Published, votes: dict[str, np.ndarray], names: list[str] | tuple[str, ...], responses: np.ndarray
) -> _Accuracy:
    """Compare each participant's answers with the predictions of all others: by a map of their answers, where the
    embedding was cross-fitted by participant (`_against_map`), else by AddS-3 similarities (`_predicted`),
    with Wilson's interval and exact binomial tests. P-values are corrected over participants by `holm`."""
    named = np.array([bool(name) for name in names], bool)
    by_map = _by_map(published, names)
    if by_map is None:
        right, total = _predicted(published, votes, len(names))
    else:
        right, total = by_map[:, 1], by_map[:, 0]
    n = np.minimum(total, responses)
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = np.where(total > 0, right / total, np.nan)
        low, high = wilson(accuracy, n.astype(float))
        of_others = (right[named].sum() - right) / (total[named].sum() - total)
        tested = named & (n >= MIN_ANSWERS) & np.isfinite(of_others)
        if by_map is None:
            right_of_n = np.ceil(np.nan_to_num(accuracy) * n - 1e-9)  # ties are no evidence
            chance = np.full(len(names), 0.5)
            p_below, p_of_chance = (at_most(right_of_n, n, share) for share in (of_others, chance))
            at_chance, power = low <= 0.5, _power(n[tested], of_others[tested])
        else:
            p_below, p_of_chance, at_chance, power = _against_map(by_map, n, tested)
        below, below_chance = (holm(np.where(tested, p, np.nan)) <= LEVEL for p in (p_below, p_of_chance))
        # by shares: a map of all others is more certain without the one whose answers are reversed
        right_of_reverse = np.where(below_chance, np.ceil((1 - np.nan_to_num(accuracy)) * n - 1e-9), n)
        reverse = below_chance & (at_most(right_of_reverse, n, of_others) > REVERSE_LEVEL)
        random = at_chance & below & (of_others - 1.96 * np.sqrt(0.25 / total[named].sum()) > 0.5)
    return _Accuracy(accuracy, low, high, of_others, random, below_chance, reverse, tested, power)


REVERSE_LEVEL = 0.05  # of the test whether reversed answers are predicted worse than those of others; not corrected
OWN_MODEL_LEVEL = 0.05  # of the p-values of `worker_gain`, as in `embedding.differences`
OWN_ANSWERS_Z = 2.33  # one-sided 1 % level


def _follow_own_view(
    published: Published, votes: dict[str, np.ndarray], names: tuple[str, ...] | list[str], responses: np.ndarray
) -> np.ndarray:
    """(p,) bool: whether a model of their own predicts a participant significantly better than the map of all, or the
    AddS-3 similarities of their own other answers predict each of their answers better than chance."""
    right, total = _predicted(published, votes, len(names), by_own=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        # two answers that agree predict each other: the variance is at most twice that of independent answers
        z = (right / total - 0.5) / np.sqrt(2 * 0.25 / total)
    # comparisons of one response predict each other, whatever was answered
    follow = (np.nan_to_num(z) >= OWN_ANSWERS_Z) & (total <= responses)
    artifact = published.artifacts.get("embedding")
    if artifact is not None and "worker_gain" in artifact.arrays and artifact.snapshot == published.snapshot.digest:
        p_values = np.asarray(artifact.arrays["worker_gain"], float)[:, 2]
        differs = dict(
            zip(unpack_names(artifact.arrays["utf8"], artifact.arrays["offsets"]), p_values < OWN_MODEL_LEVEL)
        )
        follow |= np.array([differs.get(name, False) for name in names], bool)
    return follow


SLIP_RATE, SLIP_LEVEL = 0.1, 0.05  # catch trials that attentive participants fail; level of the test for more than that


def _failed_catch_trials(passed: np.ndarray, failed: np.ndarray) -> np.ndarray:
    """(p,) bool: at least half of the catch trials failed, and more than somebody fails who slips in one of ten (an
    exact binomial test, in which one of two is not significant)."""
    p_slips = at_least(failed, passed + failed, np.full(len(failed), SLIP_RATE))
    return (failed > 0) & (2 * failed >= passed + failed) & (p_slips <= SLIP_LEVEL)


def _by_map(published: Published, names: tuple[str, ...] | list[str]) -> np.ndarray | None:
    """(p, 6) sums over the answers of each participant by maps of others' answers (the columns are
    `refits.embedding_predictions.PREDICTION_SUMS`); None if the embedding lacks them for a participant."""
    artifact = published.artifacts.get("embedding")
    if artifact is None or "worker_predicted" not in artifact.arrays or artifact.snapshot != published.snapshot.digest:
        return None
    map_names = unpack_names(artifact.arrays["utf8"], artifact.arrays["offsets"])
    sums_of = dict(zip(map_names, np.asarray(artifact.arrays["worker_predicted"], float)))
    sums = np.array([sums_of.get(name, np.zeros(6)) for name in names])
    answered = np.asarray(published.snapshot.section("worker_votes")["events"]) >= MIN_ANSWERS
    enough = answered & np.array([bool(name) for name in names], bool)
    return sums if (sums[enough, 0] > 0).all() else None


def _against_map(
    by_map: np.ndarray, n: np.ndarray, tested: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`(p-values of T against other participants, p-values of T against 0, whether T is compatible with 0 (95 %), power
    of those tested)`; T is a participant's sum of log odds."""
    # By a map of other participants' answers, each answer has log odds l, positive if it was predicted. For random
    # answers, their sum T has mean 0 and variance sum l^2. For answers like those of other participants, its mean is c
    # sum |l| tanh(|l| / 2), where c is the share of that mean which the others reach. So answers about which the map is
    # certain have more weight. Comparisons of one response are dependent: variances are multiplied by their number.
    from scipy.special import ndtr, ndtri  # imported here: most commands that look at a state do without

    answers, _, total, expected, variance, square = by_map.T
    with np.errstate(invalid="ignore", divide="ignore"):
        comparisons_each = np.where(n > 0, answers / n, 1.0)
        share_of_others = np.clip((total.sum() - total) / (expected.sum() - expected), 0.0, 1.0)
        # the smaller the share c that others reach, the more their answers vary
        spread = np.sqrt(
            comparisons_each * np.maximum(square * (1 - share_of_others**2) + variance * share_of_others**2, 1e-12)
        )
        spread_at_chance = np.sqrt(comparisons_each * np.maximum(square, 1e-12))
        mean = share_of_others * expected
        strictest = ndtri(1 - LEVEL / max(int(tested.sum()), 1))
        power = ndtr(np.minimum(1.96, (mean - strictest * spread) / spread_at_chance))
    at_chance = total <= 1.96 * spread_at_chance
    return ndtr((total - mean) / spread), ndtr(total / spread_at_chance), at_chance, power[tested]


def _power(n: np.ndarray, accuracy_of_others: np.ndarray) -> np.ndarray:
    """(t,) the probability that a participant who only guesses is flagged, at the strictest corrected level. Their
    correct answers must be too few for the others, and their interval must contain chance."""
    power = np.zeros(len(n))
    for at, (answers, share) in enumerate(zip(n.tolist(), accuracy_of_others.tolist())):
        right = np.arange(answers + 1)
        flagged = (_up_to(answers, share) <= LEVEL / len(n)) & (
            wilson(right / answers, np.array(float(answers)))[0] <= 0.5
        )
        power[at] = _up_to(answers, 0.5)[flagged].max(initial=0.0)
    return power


def _up_to(n: int, share: float) -> np.ndarray:
    """(n + 1,) the probability that at most k = 0 ... n of n independent trials succeed. O(n).

    >>> _up_to(2, 0.5).tolist()
    [0.25, 0.75, 1.0]
    """
    k, logs = np.arange(n + 1.0), np.append(0.0, np.cumsum(np.log(np.arange(1.0, n + 1.0))))
    with np.errstate(divide="ignore", invalid="ignore"):
        log = logs[-1] - logs - logs[::-1] + k * np.log(share) + (n - k) * np.log1p(-share)
    return np.minimum(np.cumsum(np.exp(np.nan_to_num(log, nan=0.0))), 1.0)


MAX_VOTE_ROWS = 4_000_000  # rows of votes above which answers are not predicted by AddS-3


def _predicted(
    published: Published, votes: dict[str, np.ndarray], n_participants: int, by_own: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """`(p,)` numbers of answers that are predicted by the similarities of all other participants, or `by_own` other
    answers (to other questions), and of all answers; zeros if there are too many votes, or triplets are not counted.
    The similarities are AddS-3 of the others' answers, W - W_p (Perrot et al. 2020, sec. 4): W is linear in the
    answers, so a participant, or a question, is left out by a subtraction."""
    n, rows = len(published.snapshot.objects), len(votes["anchor"])
    if not rows or rows > MAX_VOTE_ROWS or not published.snapshot.section("triplet_counts"):
        return np.zeros(n_participants), np.zeros(n_participants, np.int64)
    anchor, lo, hi, participant = (np.asarray(votes[field], np.int64) for field in ("anchor", "lo", "hi", "worker"))
    n_lo, n_hi = (np.asarray(votes[field], np.int64) for field in ("n_lo", "n_hi"))
    columns = triplet_columns(published.snapshot)
    pair = pair_of_entry(columns)
    net = net_vote(columns.n_lo, columns.n_hi).astype(np.int64)
    all_sums = pair_sums(columns.anchor, columns.lo[pair], columns.hi[pair], net, n)
    # a participant's own sums: objects have other numbers for each, so that two participants have no pair in common
    shift = participant * n
    own_sums = pair_sums(anchor + shift, lo + shift, hi + shift, n_lo - n_hi, n * n_participants)

    def total(object: np.ndarray) -> np.ndarray:
        code = np.minimum(anchor, object) * n + np.maximum(anchor, object)
        index = np.minimum(np.searchsorted(all_sums.pair, code), len(all_sums.pair) - 1)
        return np.where(all_sums.pair[index] == code, all_sums.w[index], 0)

    own_margin = own_sums.w[own_sums.near] - own_sums.w[own_sums.far]
    margin = own_margin - 2 * (n_lo - n_hi) if by_own else total(lo) - total(hi) - own_margin
    right = np.where(margin > 0, n_lo, np.where(margin < 0, n_hi, 0.5 * (n_lo + n_hi)))
    answers = np.bincount(participant, n_lo + n_hi, n_participants).astype(np.int64)
    return np.bincount(participant, right, n_participants), answers


def _lapse(published: Published, names: tuple[str, ...] | list[str]) -> np.ndarray:
    """(p,) lapse rates of the embedding, NaN if it has none."""
    artifact = published.artifacts.get("embedding")
    arrays = artifact.arrays if artifact is not None else {}
    if not len(arrays.get("worker_lapse", ())):
        return np.full(len(names), np.nan)
    lapse_of = dict(zip(unpack_names(arrays["utf8"], arrays["offsets"]), np.asarray(arrays["worker_lapse"], float)))
    return np.array([lapse_of.get(name, np.nan) for name in names])
