"""Checks of the way of answering, whatever the answers are: always at one position, in straight lines, or too fast.

P-values are corrected over participants by `holm`: a check flags any honest participant of a study with a probability
of at most `LEVEL`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.counts.response_patterns import BOUNDS
from stream_engine.data.packed_names import unpack_names
from stream_engine.evaluation.kept_responses import kept_responses
from stream_engine.state.snapshot import Snapshot

LEVEL = 0.01  # of each check, over all participants together
MIN_ANSWERS = 10  # answers below which a participant is not checked, and a run is no straight line
# Pace: more than this share of the answers within 300 ms (Greenwald, Nosek & Banaji 2003), by an exact binomial test;
# by response times, or else by the time since the answer before.
FAST_SECONDS, FAST_SHARE = 0.3, 0.1


class ResponseChecks(NamedTuple):
    """A row a participant. Without enough answers, figures are NaN and p-values 1."""

    position: np.ndarray  # (p,) int64: the position with the least probable share, from 0; -1: unknown
    shown: np.ndarray  # (p,) int64: number of objects to choose from; 0: unknown
    share: np.ndarray  # (p,) float64: of the position, in answers with so many objects
    p_position: np.ndarray  # (p,) float64, corrected over participants, as all p-values here
    longest: np.ndarray  # (p,) int64: answers in a row at the same position; 0: unknown
    p_run: np.ndarray
    seconds: np.ndarray  # (p,) float64: median response time to a tenth of it, or median time between two answers
    timed: np.ndarray  # (p,) bool: `seconds` are response times
    fast: np.ndarray  # (p,) float64: share of answers within `FAST_SECONDS`
    p_fast: np.ndarray
    duplicates: np.ndarray  # (p,) int64: answers that were recorded again with the same time

    def reasons(self, i: int) -> list[str]:
        """Why participant i is flagged; empty if they are not."""
        reasons = []
        if self.p_position[i] <= LEVEL:
            place = f"at position {self.position[i] + 1} of {self.shown[i]}"
            reasons.append(f"{self.share[i]:.0%} of answers {place}")
        if self.p_run[i] <= LEVEL:
            reasons.append(f"{self.longest[i]} answers in a row at the same position")
        if self.p_fast[i] <= LEVEL:
            since = "" if self.timed[i] else " of the one before"
            reasons.append(f"{self.fast[i]:.0%} of answers within {1000 * FAST_SECONDS:.0f} ms{since}")
        return reasons


def holm(p: np.ndarray) -> np.ndarray:
    """P-values corrected for their number (Holm 1979); NaN stay NaN, and are not counted.

    >>> holm(np.array([0.01, 0.5, np.nan, 0.03])).round(3).tolist()
    [0.03, 0.5, nan, 0.06]
    """
    corrected, finite = np.full(len(p), np.nan), np.flatnonzero(np.isfinite(p))
    order = finite[np.argsort(p[finite], kind="stable")]
    factor = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * factor), 1.0)
    return corrected


def at_least(k: np.ndarray, n: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Probability that at least k of n independent trials succeed, each with probability `share`.

    >>> at_least(np.array([0, 2]), np.array([2, 2]), np.array([0.5, 0.5])).tolist()
    [1.0, 0.25]
    """
    return at_most(np.asarray(n) - k, n, 1.0 - np.asarray(share))


def at_most(k: np.ndarray, n: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Probability that at most k of n independent trials succeed. O(sum of k).

    >>> at_most(np.array([0, 2]), np.array([2, 2]), np.array([0.5, 0.5])).tolist()
    [0.25, 1.0]
    """
    successes, trials, probability = np.broadcast_arrays(
        np.asarray(k, np.int64), np.asarray(n, np.int64), np.clip(share, 1e-300, 1 - 1e-16)
    )
    factorials = np.append(0.0, np.cumsum(np.log(np.arange(1.0, trials.max(initial=0) + 1.0))))  # logarithms
    total = np.ones(successes.shape)
    for trial in zip(
        *np.nonzero(successes < trials)
    ):  # summed here: importing scipy takes longer than all of `inspect`
        counts, failures = np.arange(successes[trial] + 1), trials[trial] - np.arange(successes[trial] + 1)
        ways = factorials[trials[trial]] - factorials[counts] - factorials[failures]
        total[trial] = min(
            1.0, np.exp(ways + counts * np.log(probability[trial]) + failures * np.log1p(-probability[trial])).sum()
        )
    return total


def response_checks(snapshot: Snapshot, names: Sequence[str]) -> ResponseChecks:
    """The checks of these participants, in this order. O(rows of `response_patterns` + J log J responses)."""
    p = len(names)
    place = {name: number for number, name in enumerate(names)}
    fast, n_fast, seconds, duplicates = _intervals(snapshot, place)
    timed = np.zeros(p, bool)
    position, n_objects, longest = np.full(p, -1), np.zeros(p, np.int64), np.zeros(p, np.int64)
    share, p_position, p_run = (np.full(p, np.nan) for _ in range(3))
    patterns = snapshot.section("response_patterns")
    if patterns:
        participant = np.array(
            [place.get(name, -1) for name in unpack_names(patterns["utf8"], patterns["offsets"])], np.int64
        )
        requested = participant >= 0
        rows = requested[patterns["worker"]]
        worker = participant[patterns["worker"][rows]]
        size, value, n = (patterns[key][rows] for key in ("shown", "value", "n"))
        of_times = size == 0
        timed, *time_figures = _times(worker[of_times], value[of_times], n[of_times], p)
        fast, n_fast, seconds = (
            np.where(timed, by_patterns, by_times)
            for by_patterns, by_times in zip(time_figures, (fast, n_fast, seconds))
        )
        positions = worker[~of_times], size[~of_times].astype(np.int64), value[~of_times].astype(np.int64), n[~of_times]
        answers_each, expected = _expected(*positions)
        position, n_objects, share, p_position = _positions(*positions, answers_each, expected, p)
        longest[participant[requested]] = patterns["longest"][requested]
        followed, changes = np.zeros((2, p), np.int64)
        followed[participant[requested]], changes[participant[requested]] = (
            patterns["followed"][requested],
            patterns["changes"][requested],
        )
        p_run = _runs(positions[0], positions[3], expected, longest, followed, followed - changes)
    p_fast = np.where(n_fast >= MIN_ANSWERS, at_least(fast, n_fast, np.full(p, FAST_SHARE)), np.nan)
    corrected = [np.nan_to_num(holm(p_values), nan=1.0) for p_values in (p_position, p_run, p_fast)]
    with np.errstate(invalid="ignore", divide="ignore"):
        fast_share = np.where(n_fast >= MIN_ANSWERS, fast / n_fast, np.nan)
    return ResponseChecks(
        position,
        n_objects,
        share,
        corrected[0],
        longest,
        corrected[1],
        seconds,
        timed,
        fast_share,
        corrected[2],
        duplicates,
    )


BY_DESIGN = 0.95  # share of answers at one position, above which the order of the objects carries the answer


class PreferredPosition(NamedTuple):
    """The position at which the chosen object was most often, in answers of all participants with so many objects."""

    position: int  # from 0
    shown: int
    share: float
    answers: int

    @property
    def excess(self) -> float:
        """By how much the share is above chance."""
        return self.share - 1.0 / self.shown

    def in_words(self) -> str:
        """How often the position was chosen, beside chance."""
        return (
            f"{100 * self.share:.1f} % of {self.answers:,} answers name the object at position {self.position + 1} of "
            f"{self.shown} ({100 * self.excess:.1f} points more than by chance)"
        )

    def by_design(self) -> bool:
        """Whether nearly all answers name it: the file, and not the screen, has this order."""
        return self.share >= BY_DESIGN


# Excess over chance, in shares of answers and in standard errors, from which a position is preferred; and participants
# from which on their differences tell the standard error.
MIN_EXCESS, CERTAIN_ERRORS, ENOUGH_PARTICIPANTS = 0.03, 3.5, 10


def preferred_position(snapshot: Snapshot) -> PreferredPosition | None:
    """The position that participants choose more often than by chance; None where none is. O(rows)."""
    patterns = snapshot.section("response_patterns")
    return most_chosen(*(patterns[key] for key in ("worker", "shown", "value", "n"))) if patterns else None


def most_chosen(worker: np.ndarray, shown: np.ndarray, value: np.ndarray, n: np.ndarray) -> PreferredPosition | None:
    """The position that is chosen more often than by chance, of rows as in `ResponsePatterns`, `worker` -1 for nobody:
    by all participants, not only by one or some. None where none is."""
    if not (shown > 1).any():
        return None
    shown = shown.astype(np.int64)
    size = int(np.bincount(shown[shown > 1], n[shown > 1]).argmax())
    rows = shown == size
    worker, value, n = worker[rows], value[rows], n[rows]
    answers_at = np.bincount(value, n)
    best, total = int(answers_at.argmax()), int(answers_at.sum())
    share, chance = answers_at[best] / total, 1.0 / size
    answers, chosen = (np.bincount(worker + 1, each) for each in (n, np.where(value == best, n, 0)))
    excess = chosen - chance * answers  # of each participant
    error, p = np.sqrt(chance * (1 - chance) * total), np.count_nonzero(answers[1:])
    least = excess.sum() - CERTAIN_ERRORS * error
    if p >= ENOUGH_PARTICIPANTS and not answers[0]:
        between = (excess[answers > 0] - excess.sum() / total * answers[answers > 0]) ** 2
        least = min(least, excess.sum() - CERTAIN_ERRORS * np.sqrt(between.sum() * p / (p - 1)))
    elif p > 1 and not answers[0]:
        least -= excess.max()  # what one participant alone does
    if total < MIN_ANSWERS or share - chance < MIN_EXCESS or least < 0:
        return None
    return PreferredPosition(best, size, float(share), total)


def _expected(worker: np.ndarray, size: np.ndarray, value: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For rows (participant, number of objects, position, number of answers): `(the participant's answers with so many
    objects, the share that is expected at the position)`; NaN if nobody else answered."""
    # One in so many objects, or the others' share if that is larger: an order that carries the answer biases everybody.
    answers_each = _sums(worker << 32 | size, n)
    with np.errstate(invalid="ignore", divide="ignore"):
        share_of_others = (_sums(size << 32 | value, n) - n) / (_sums(size, n) - answers_each)
    return answers_each, np.maximum(1.0 / size, share_of_others)


MIN_BIAS = 0.1  # share of answers at one position above the expected one, below which a bias is harmless


def _positions(
    worker: np.ndarray,
    size: np.ndarray,
    value: np.ndarray,
    n: np.ndarray,
    answers_each: np.ndarray,
    expected: np.ndarray,
    n_participants: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`(position, number of objects, its share, p)` of each participant: an exact binomial test of the share at the
    position against the expected one, Bonferroni-corrected over positions."""
    position, n_objects = np.full(n_participants, -1), np.zeros(n_participants, np.int64)
    share, p = np.full(n_participants, np.nan), np.full(n_participants, np.nan)
    compared = (answers_each >= MIN_ANSWERS) & np.isfinite(expected)
    n_tests = np.bincount(worker, size / np.maximum(_sums(worker << 32 | size, np.ones_like(n)), 1), n_participants)
    p_rows = np.where(compared, at_least(n, answers_each, np.nan_to_num(expected)), np.inf)
    for row in np.argsort(-p_rows, kind="stable").tolist():  # the least probable stays
        if compared[row]:
            i = worker[row]
            position[i], n_objects[i], share[i] = value[row], size[row], n[row] / answers_each[row]
            p[i] = min(1.0, p_rows[row] * n_tests[i]) if share[i] - expected[row] >= MIN_BIAS else 1.0
    return position, n_objects, share, p


def _runs(
    worker: np.ndarray, n: np.ndarray, expected: np.ndarray, longest: np.ndarray, followed: np.ndarray, same: np.ndarray
) -> np.ndarray:
    """(p,) the largest probability of a run that long; NaN with too few answers."""
    # If an answer is at the position of the last one with probability at most q, n answers contain a run of at least L
    # with probability at most (n - L + 1) * q**(L - 1), the sum over its possible beginnings. q is the largest of
    # chance, the other participants' share of such answers, and their share at any position that the participant
    # chooses.
    answers, q = np.bincount(worker, n, len(longest)), np.zeros(len(longest))
    np.maximum.at(q, worker, np.where(np.isfinite(expected), expected, 1.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        q = np.maximum(q, (same.sum() - same) / (followed.sum() - followed))
    p = np.minimum(1.0, np.maximum(answers - longest + 1.0, 1.0) * q ** np.maximum(longest - 1.0, 0.0))
    return np.where(answers < MIN_ANSWERS, np.nan, np.where(longest < MIN_ANSWERS, 1.0, p))


def _sums(keys: np.ndarray, n: np.ndarray) -> np.ndarray:
    """For each row the sum of n over the rows of the same key."""
    _, number = np.unique(keys, return_inverse=True)
    return np.bincount(number, n)[number] if len(n) else np.zeros(0)


def _times(
    worker: np.ndarray, value: np.ndarray, n: np.ndarray, n_participants: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`(whether there are enough, number of fast answers, number of answers, median seconds)` for rows (participant,
    bin of `BOUNDS`, number of answers). Within the bin of the median, times are assumed to be evenly spread."""
    answers = np.bincount(worker, n, n_participants)
    fast = np.bincount(worker, np.where(value <= np.searchsorted(BOUNDS, 1000 * FAST_SECONDS), n, 0), n_participants)
    median, bounds = np.full(n_participants, np.nan), np.concatenate([[0], BOUNDS, BOUNDS[-1:]])
    order = np.lexsort((value, worker))
    worker, value, n = worker[order], value[order], n[order]
    answers_before = np.cumsum(n) - n
    first = np.searchsorted(worker, worker)
    answers_before = answers_before - answers_before[first] if len(n) else answers_before
    half = 0.5 * answers[worker]
    for row in np.flatnonzero((answers_before < half) & (half <= answers_before + n)).tolist():
        low, high = bounds[value[row]], bounds[value[row] + 1]
        median[worker[row]] = (low + (half[row] - answers_before[row]) / n[row] * (high - low)) / 1000.0
    return answers >= MIN_ANSWERS, fast, answers, median


def _intervals(snapshot: Snapshot, place: dict[str, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`(number of fast answers, number of intervals, median interval, duplicates)` of each participant by the times of
    answers. Answers with equal times arrived together, and say nothing about pace; neither do times in whole seconds.
    O(J log J)."""
    n_participants = len(place)
    fast, n_fast, median = np.zeros(n_participants), np.zeros(n_participants), np.full(n_participants, np.nan)
    responses = kept_responses(snapshot)
    if responses is None:
        return fast, n_fast, median, np.zeros(n_participants, np.int64)
    timed = np.flatnonzero((responses.worker >= 0) & np.isfinite(responses.time))
    number = np.array([place.get(name, -1) for name in responses.worker_names], np.int64)
    timed = timed[number[responses.worker[timed]] >= 0]
    participant, time = number[responses.worker[timed]], responses.time[timed]
    duplicates = np.bincount(participant, responses.times[timed] - 1, n_participants).astype(np.int64)
    if not (time % 1.0 > 0).any():
        return fast, n_fast, median, duplicates
    order = np.lexsort((time, participant))
    gap = np.diff(time[order])
    same = (np.diff(participant[order]) == 0) & (gap > 0)
    gap, participant = gap[same], participant[order][1:][same]
    gaps_each = np.bincount(participant, minlength=n_participants)
    order = np.argsort(participant, kind="stable")
    for number_of_participant, gaps in zip(
        np.unique(participant).tolist(), np.split(gap[order], np.cumsum(gaps_each[gaps_each > 0])[:-1])
    ):
        median[number_of_participant] = np.median(gaps)
    return np.bincount(participant, gap < FAST_SECONDS, n_participants), gaps_each.astype(float), median, duplicates
