"""Participants: whose answers look random, by these checks, each of which states its reason.

1. Against everybody else. Where the embedding was cross-fitted by participant, each answer has log odds l by a map of
   other participants' answers. A participant's sum T of them, positive where the answer was predicted, has the mean 0
   and the variance sum l^2 if they toss coins, and the mean c sum |l| tanh(|l| / 2) if they answer as others do, c
   being what others reach of it. A participant is flagged whose T cannot be distinguished from 0 (95 %) and is below
   what others reach (one-sided z-tests, corrected over participants by `response_checks.holm`); "the opposite" is said
   where it is below 0. Answers about which the map is certain thus count more. Where there is no such map, answers are
   predicted by AddS-3 similarities of all *other* participants' answers, W - W_p (Perrot et al. 2020, sec. 4; linear,
   so leaving somebody out is a subtraction), and the same is asked of the accuracy, by Wilson's interval and exact
   binomial tests.
2. Catch trials: half of them failed, and more than somebody fails who slips in one of ten (exact binomial test at .05,
   which one of two does not pass).
3. Lapse rate above one half in the embedding, where the embedding predicts better than chance, unless the accuracy
   against everybody else is compatible with that of all others (95 % Wilson interval).
4. One position, straight lines, answers within 300 ms: see `response_checks`.

Responses count as independent, their comparisons do not: n of an interval is at most the number of responses.

How many who only guess the first check would notice is said beside its result: with few answers each, few.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.counts.adds_similarity import pair_sums
from stream_engine.data.packed_names import unpack_names
from stream_engine.data.triplet_columns import net_vote, pair_of_entry
from stream_engine.evaluation.response_checks import (
    LEAST,
    LEVEL,
    ResponseChecks,
    at_least,
    at_most,
    holm,
    response_checks,
)
from stream_engine.state.published import Published
from stream_engine.state.snapshot import triplet_columns

SLIPS, SLIPPED = 0.1, 0.05  # of the test that somebody failed more catch trials than attentive people do
LAPSE = 0.5  # share of random answers above which somebody mostly guesses
MAX_VOTE_ROWS = 4_000_000  # rows of votes that are looked at


class ParticipantChecks(NamedTuple):
    """A row a participant, in the order of names. Unknown figures are NaN."""

    names: tuple[str, ...]
    responses: np.ndarray  # (p,) int64: events answered, catch trials not among them
    accuracy: np.ndarray  # (p,) float64: share of answers that everybody else's similarities predict, ties one half
    low: np.ndarray  # (p,) its 95 % interval
    high: np.ndarray
    passed: np.ndarray  # (p,) int64: catch trials
    failed: np.ndarray
    lapse: np.ndarray  # (p,) float64
    responding: ResponseChecks  # how they answer
    noticed: (
        float | None
    )  # of participants who only guess, the share that the accuracy would show; None: none is checked
    reasons: tuple[str, ...]  # why somebody is flagged, "" where not

    @property
    def flagged(self) -> int:
        """How many participants are flagged."""
        return sum(map(bool, self.reasons))


def wilson(share: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """95 % intervals of shares of n answers, within 0 and 1 (Wilson 1927).

    >>> [round(float(each), 3) for each in wilson(np.array(1.0), np.array(5))]
    [0.566, 1.0]
    """
    z2 = 1.96**2
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = 1.96 * np.sqrt(share * (1 - share) / n + z2 / (4 * n**2)) / (1 + z2 / n)
    return np.clip(middle - half, 0.0, share), np.clip(middle + half, share, 1.0)


def checked(published: Published, model_beats_chance: bool) -> ParticipantChecks | None:
    """The checks of every named participant; None where events name nobody. O(votes log votes)."""
    votes = published.snapshot.section("worker_votes")
    if not votes:
        return None
    names = unpack_names(votes["utf8"], votes["offsets"])
    named = np.array([bool(name) for name in names], bool)
    if not named.any():
        return None
    responses, passed, failed = (np.asarray(votes[each], np.int64) for each in ("events", "passed", "failed"))
    by_map = _by_map(published, names)
    right, total = _right(published, votes, len(names)) if by_map is None else (by_map[:, 1], by_map[:, 0])
    n = np.minimum(total, responses)
    with np.errstate(invalid="ignore", divide="ignore"):
        accuracy = np.where(total > 0, right / total, np.nan)
        low, high = wilson(accuracy, n.astype(float))
        others = (right[named].sum() - right) / (total[named].sum() - total)
        right_of_n = np.ceil(np.nan_to_num(accuracy) * n - 1e-9)  # ties are no evidence
        tested = named & (n >= LEAST) & np.isfinite(others)
        if by_map is None:
            coin = np.full(len(names), 0.5)
            p_below, p_opposite = (at_most(right_of_n, n, share) for share in (others, coin))
            like_coin, noticed = low <= 0.5, _noticed(n[tested], others[tested])
        else:
            p_below, p_opposite, like_coin, noticed = _against_map(by_map, n, tested)
        below, opposite = (holm(np.where(tested, p, np.nan)) <= LEVEL for p in (p_below, p_opposite))
        random = like_coin & below & (others - 1.96 * np.sqrt(0.25 / total[named].sum()) > 0.5)
    lapse = _lapse(published, names) if model_beats_chance else np.full(len(names), np.nan)
    slipped = at_least(failed, passed + failed, np.full(len(names), SLIPS))
    caught = (failed > 0) & (2 * failed >= passed + failed) & (slipped <= SLIPPED)
    guesses = (lapse > LAPSE) & ~(high >= others)
    reasons = []
    for i in range(len(names)):
        why = []
        if random[i]:
            level = "the opposite of what others answer" if opposite[i] else "at chance level"
            why.append(f"answers {level} (others predict {accuracy[i]:.0%})")
        if caught[i]:
            why.append(f"failed {failed[i]} of {passed[i] + failed[i]} catch trials")
        if guesses[i]:
            why.append(f"lapse rate {lapse[i]:.2f}")
        reasons.append(why)
    kept = np.flatnonzero(named)
    responding = response_checks(published.snapshot, [names[i] for i in kept.tolist()])
    return ParticipantChecks(
        tuple(names[i] for i in kept.tolist()),
        responses[kept],
        accuracy[kept],
        low[kept],
        high[kept],
        passed[kept],
        failed[kept],
        lapse[kept],
        responding,
        noticed,
        tuple("; ".join(reasons[i] + responding.reasons(row)) for row, i in enumerate(kept.tolist())),
    )


def _by_map(published: Published, names: tuple[str, ...] | list[str]) -> np.ndarray | None:
    """(p, 6) sums over the answers of each participant by maps of others' answers, see `refits.embedding.PREDICTED`;
    None where the embedding has none of somebody who gave enough answers."""
    artifact = published.artifacts.get("embedding")
    if artifact is None or "worker_predicted" not in artifact.arrays or artifact.digest != published.snapshot.digest:
        return None
    known = unpack_names(artifact.arrays["utf8"], artifact.arrays["offsets"])
    of = dict(zip(known, np.asarray(artifact.arrays["worker_predicted"], float)))
    found = np.array([of.get(name, np.zeros(6)) for name in names])
    answered = np.asarray(published.snapshot.section("worker_votes")["events"]) >= LEAST
    enough = answered & np.array([bool(name) for name in names], bool)
    return found if (found[enough, 0] > 0).all() else None


def _against_map(
    by_map: np.ndarray, n: np.ndarray, tested: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float | None]:
    """p-values of T against what others reach, and against 0; who cannot be distinguished from a coin; and `noticed`.
    Comparisons of one response are not independent: variances are as many times larger as there are in one."""
    from scipy.special import ndtr, ndtri  # not for everybody who looks at a state

    answers, _, total, expected, variance, square = by_map.T
    with np.errstate(invalid="ignore", divide="ignore"):
        more = np.where(n > 0, answers / n, 1.0)
        of_others = np.clip((total.sum() - total) / (expected.sum() - expected), 0.0, 1.0)
        # of others who reach a share c of what is expected, answers vary the more
        spread = np.sqrt(more * np.maximum(square * (1 - of_others**2) + variance * of_others**2, 1e-12))
        coin = np.sqrt(more * np.maximum(square, 1e-12))
        mean = of_others * expected
        strictest = ndtri(1 - LEVEL / max(int(tested.sum()), 1))
        power = ndtr(np.minimum(1.96, (mean - strictest * spread) / coin))
    noticed = float(power[tested].mean()) if tested.any() else None
    return ndtr((total - mean) / spread), ndtr(total / coin), total <= 1.96 * coin, noticed


def _noticed(n: np.ndarray, others: np.ndarray) -> float | None:
    """The mean probability that a participant who only guesses is told from others, at the strictest corrected level.
    Of n answers, so many as are too few for others, and not too many for a coin (see `checked`)."""
    if not len(n):
        return None
    noticed = 0.0
    for answers, share in zip(n.tolist(), others.tolist()):
        right = np.arange(answers + 1)
        few = (_up_to(answers, share) <= LEVEL / len(n)) & (wilson(right / answers, np.array(float(answers)))[0] <= 0.5)
        noticed += float(_up_to(answers, 0.5)[few].max(initial=0.0))
    return noticed / len(n)


def _up_to(n: int, share: float) -> np.ndarray:
    """(n + 1,) the probability that at most k = 0 ... n of n independent trials succeed. O(n).

    >>> _up_to(2, 0.5).tolist()
    [0.25, 0.75, 1.0]
    """
    k, logs = np.arange(n + 1.0), np.append(0.0, np.cumsum(np.log(np.arange(1.0, n + 1.0))))
    with np.errstate(divide="ignore", invalid="ignore"):
        log = logs[-1] - logs - logs[::-1] + k * np.log(share) + (n - k) * np.log1p(-share)
    return np.minimum(np.cumsum(np.exp(np.nan_to_num(log, nan=0.0))), 1.0)


def _right(published: Published, votes: dict[str, np.ndarray], people: int) -> tuple[np.ndarray, np.ndarray]:
    """(p,) how many answers everybody else's similarities predict, and of how many comparisons; zeros where there are
    too many votes to look at."""
    n, rows = len(published.snapshot.objects), len(votes["anchor"])
    if not rows or rows > MAX_VOTE_ROWS:
        return np.zeros(people), np.zeros(people, np.int64)
    anchor, lo, hi, who = (np.asarray(votes[each], np.int64) for each in ("anchor", "lo", "hi", "worker"))
    n_lo, n_hi = (np.asarray(votes[each], np.int64) for each in ("n_lo", "n_hi"))
    columns = triplet_columns(published.snapshot)
    pair = pair_of_entry(columns)
    net = net_vote(columns.n_lo, columns.n_hi).astype(np.int64)
    everybody = pair_sums(columns.anchor, columns.lo[pair], columns.hi[pair], net, n)
    # a participant's own sums: objects are numbered anew for each, so that pairs of two participants are never one
    shift = who * n
    own = pair_sums(anchor + shift, lo + shift, hi + shift, n_lo - n_hi, n * people)

    def total(one: np.ndarray) -> np.ndarray:
        code = np.minimum(anchor, one) * n + np.maximum(anchor, one)
        at = np.minimum(np.searchsorted(everybody.pair, code), len(everybody.pair) - 1)
        return np.where(everybody.pair[at] == code, everybody.w[at], 0)

    margin = total(lo) - total(hi) - (own.w[own.near] - own.w[own.far])
    right = np.where(margin > 0, n_lo, np.where(margin < 0, n_hi, 0.5 * (n_lo + n_hi)))
    return np.bincount(who, right, people), np.bincount(who, n_lo + n_hi, people).astype(np.int64)


def _lapse(published: Published, names: tuple[str, ...] | list[str]) -> np.ndarray:
    """(p,) lapse rates of the embedding, NaN where it knows none."""
    artifact = published.artifacts.get("embedding")
    arrays = artifact.arrays if artifact is not None else {}
    if not len(arrays.get("worker_lapse", ())):
        return np.full(len(names), np.nan)
    of = dict(zip(unpack_names(arrays["utf8"], arrays["offsets"]), np.asarray(arrays["worker_lapse"], float)))
    return np.array([of.get(name, np.nan) for name in names])
