"""Participants whose way of answering is suspicious, whatever they answer: always at one position, or too fast.

1. Position: the share of answers at the position that a participant chooses most, against what is expected there: one
   in so many objects, or the other participants' share where that is larger (a file whose order carries the answer
   biases everybody). Exact binomial test, Bonferroni-corrected over positions.
2. Straight-lining: the longest run of answers at one position. Where an answer is at the position of the last one with
   probability at most q, n answers hold a run of at least L with probability at most (n - L + 1) * q**(L - 1), the sum
   over its possible beginnings. q is the largest of chance, the other participants' share of such answers, and their
   share at any position that the participant chooses.
3. Pace: more than a tenth of the answers within 300 ms (Greenwald, Nosek & Banaji 2003), by an exact binomial test; by
   response times, or else by the time since the answer before, where events have times of less than a second.

P-values are corrected over participants by `holm`: a check flags any honest participant of a study with a probability
of at most `LEVEL`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.counts.response_patterns import BOUNDS
from stream_engine.data.packed_names import unpack_names
from stream_engine.evaluation.responses import kept_responses
from stream_engine.state.snapshot import Snapshot

LEVEL = 0.01  # of each check, over all participants together
LEAST = 10  # answers below which a participant is not checked; a run that is shorter is no straight line
EXCESS = 0.1  # share of answers at one position, beyond the expected one, below which a bias is harmless
FAST, FAST_SHARE = 0.3, 0.1  # seconds; the share of faster answers that is too large


class ResponseChecks(NamedTuple):
    """A row a participant. Figures are NaN, p-values 1, where too little is known."""

    position: np.ndarray  # (p,) int64: the position whose share is the least probable, from 0; -1: unknown
    shown: np.ndarray  # (p,) int64: among so many objects; 0: unknown
    share: np.ndarray  # (p,) float64: of the answers among so many objects
    p_position: np.ndarray  # (p,) float64, corrected over participants, as all p-values here
    longest: np.ndarray  # (p,) int64: answers in a row at the same position; 0: unknown
    p_run: np.ndarray
    seconds: np.ndarray  # (p,) float64: median response time to a tenth of it, or median time between two answers
    timed: np.ndarray  # (p,) bool: whether that is of response times
    fast: np.ndarray  # (p,) float64: share of answers within `FAST`
    p_fast: np.ndarray
    duplicates: np.ndarray  # (p,) int64: answers that were recorded again with the same time

    def reasons(self, i: int) -> list[str]:
        """Why participant i is flagged; none where they are not."""
        why = []
        if self.p_position[i] <= LEVEL:
            place = f"at position {self.position[i] + 1} of {self.shown[i]}"
            why.append(f"{self.share[i]:.0%} of answers {place}")
        if self.p_run[i] <= LEVEL:
            why.append(f"{self.longest[i]} answers in a row at the same position")
        if self.p_fast[i] <= LEVEL:
            since = "" if self.timed[i] else " of the one before"
            why.append(f"{self.fast[i]:.0%} of answers within {1000 * FAST:.0f} ms{since}")
        return why


def holm(p: np.ndarray) -> np.ndarray:
    """P-values corrected for their number (Holm 1979); NaN are not counted, and stay.

    >>> holm(np.array([0.01, 0.5, np.nan, 0.03])).round(3).tolist()
    [0.03, 0.5, nan, 0.06]
    """
    corrected, known = np.full(len(p), np.nan), np.flatnonzero(np.isfinite(p))
    order = known[np.argsort(p[known], kind="stable")]
    times = np.arange(len(order), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * times), 1.0)
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
    most, trials, of = np.broadcast_arrays(
        np.asarray(k, np.int64), np.asarray(n, np.int64), np.clip(share, 1e-300, 1 - 1e-16)
    )
    factorials = np.append(0.0, np.cumsum(np.log(np.arange(1.0, trials.max(initial=0) + 1.0))))  # logarithms
    made = np.ones(most.shape)
    for at in zip(*np.nonzero(most < trials)):  # summed here: importing scipy takes longer than all of `inspect`
        few, left = np.arange(most[at] + 1), trials[at] - np.arange(most[at] + 1)
        ways = factorials[trials[at]] - factorials[few] - factorials[left]
        made[at] = min(1.0, np.exp(ways + few * np.log(of[at]) + left * np.log1p(-of[at])).sum())
    return made


def response_checks(snapshot: Snapshot, names: Sequence[str]) -> ResponseChecks:
    """The checks of these participants. O(rows of `response_patterns` + J log J responses)."""
    p = len(names)
    place = {name: number for number, name in enumerate(names)}
    fast, n_fast, seconds, duplicates = _intervals(snapshot, place)
    timed = np.zeros(p, bool)
    position, shown, longest = np.full(p, -1), np.zeros(p, np.int64), np.zeros(p, np.int64)
    share, p_position, p_run = (np.full(p, np.nan) for _ in range(3))
    kept = snapshot.section("response_patterns")
    if kept:
        who = np.array([place.get(name, -1) for name in unpack_names(kept["utf8"], kept["offsets"])], np.int64)
        mine = who >= 0
        rows = mine[kept["worker"]]
        worker, size, value, n = who[kept["worker"][rows]], *(kept[key][rows] for key in ("shown", "value", "n"))
        of_times = size == 0
        timed, *told = _times(worker[of_times], value[of_times], n[of_times], p)
        fast, n_fast, seconds = (np.where(timed, ours, theirs) for ours, theirs in zip(told, (fast, n_fast, seconds)))
        placed = worker[~of_times], size[~of_times].astype(np.int64), value[~of_times].astype(np.int64), n[~of_times]
        own, expected = _expected(*placed)
        position, shown, share, p_position = _positions(*placed, own, expected, p)
        longest[who[mine]] = kept["longest"][mine]
        followed, changes = np.zeros((2, p), np.int64)
        followed[who[mine]], changes[who[mine]] = kept["followed"][mine], kept["changes"][mine]
        p_run = _runs(placed[0], placed[3], expected, longest, followed, followed - changes)
    p_fast = np.where(n_fast >= LEAST, at_least(fast, n_fast, np.full(p, FAST_SHARE)), np.nan)
    corrected = [np.nan_to_num(holm(each), nan=1.0) for each in (p_position, p_run, p_fast)]
    with np.errstate(invalid="ignore", divide="ignore"):
        fast_share = np.where(n_fast >= LEAST, fast / n_fast, np.nan)
    return ResponseChecks(
        position,
        shown,
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


def _expected(worker: np.ndarray, size: np.ndarray, value: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For rows of who chose what position among so many how often: `(all their answers among so many, the share that
    is expected at the position)`; NaN where nobody else answered."""
    own = _sums(worker << 32 | size, n)
    with np.errstate(invalid="ignore", divide="ignore"):
        others = (_sums(size << 32 | value, n) - n) / (_sums(size, n) - own)
    return own, np.maximum(1.0 / size, others)


def _positions(
    worker: np.ndarray,
    size: np.ndarray,
    value: np.ndarray,
    n: np.ndarray,
    own: np.ndarray,
    expected: np.ndarray,
    people: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`(position, among how many, its share, p)` of each participant."""
    position, shown = np.full(people, -1), np.zeros(people, np.int64)
    share, p = np.full(people, np.nan), np.full(people, np.nan)
    compared = (own >= LEAST) & np.isfinite(expected)
    tests = np.bincount(worker, size / np.maximum(_sums(worker << 32 | size, np.ones_like(n)), 1), people)
    each = np.where(compared, at_least(n, own, np.nan_to_num(expected)), np.inf)
    for row in np.argsort(-each, kind="stable").tolist():  # the least probable stays
        if compared[row]:
            i = worker[row]
            position[i], shown[i], share[i] = value[row], size[row], n[row] / own[row]
            p[i] = min(1.0, each[row] * tests[i]) if share[i] - expected[row] >= EXCESS else 1.0
    return position, shown, share, p


def _runs(
    worker: np.ndarray, n: np.ndarray, expected: np.ndarray, longest: np.ndarray, followed: np.ndarray, same: np.ndarray
) -> np.ndarray:
    """(p,) the largest probability of a run that long; NaN of those of whom too little is known."""
    answers, q = np.bincount(worker, n, len(longest)), np.zeros(len(longest))
    np.maximum.at(q, worker, np.where(np.isfinite(expected), expected, 1.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        q = np.maximum(q, (same.sum() - same) / (followed.sum() - followed))
    p = np.minimum(1.0, np.maximum(answers - longest + 1.0, 1.0) * q ** np.maximum(longest - 1.0, 0.0))
    return np.where(answers < LEAST, np.nan, np.where(longest < LEAST, 1.0, p))


def _sums(keys: np.ndarray, n: np.ndarray) -> np.ndarray:
    """For each row the sum of n over the rows of the same key."""
    _, number = np.unique(keys, return_inverse=True)
    return np.bincount(number, n)[number] if len(n) else np.zeros(0)


def _times(
    worker: np.ndarray, value: np.ndarray, n: np.ndarray, people: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`(whether there are enough, how many were fast, of how many, median seconds)` for rows of who needed how long,
    a bin of `BOUNDS`, how often. Within the bin of the median, times are taken to be evenly spread."""
    answers = np.bincount(worker, n, people)
    fast = np.bincount(worker, np.where(value <= np.searchsorted(BOUNDS, 1000 * FAST), n, 0), people)
    median, bounds = np.full(people, np.nan), np.concatenate([[0], BOUNDS, BOUNDS[-1:]])
    order = np.lexsort((value, worker))
    worker, value, n = worker[order], value[order], n[order]
    before = np.cumsum(n) - n
    first = np.searchsorted(worker, worker)
    before = before - before[first] if len(n) else before
    half = 0.5 * answers[worker]
    for row in np.flatnonzero((before < half) & (half <= before + n)).tolist():
        low, high = bounds[value[row]], bounds[value[row] + 1]
        median[worker[row]] = (low + (half[row] - before[row]) / n[row] * (high - low)) / 1000.0
    return answers >= LEAST, fast, answers, median


def _intervals(snapshot: Snapshot, place: dict[str, int]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """`(how many fast answers, of how many, median interval, duplicates)` of each participant by the times of answers.
    Answers of one time came together, and say nothing of pace; times in whole seconds cannot say it. O(J log J)."""
    people = len(place)
    fast, n_fast, median = np.zeros(people), np.zeros(people), np.full(people, np.nan)
    kept = kept_responses(snapshot)
    if kept is None:
        return fast, n_fast, median, np.zeros(people, np.int64)
    timed = np.flatnonzero((kept.worker >= 0) & np.isfinite(kept.time))
    number = np.array([place.get(name, -1) for name in kept.worker_names], np.int64)
    timed = timed[number[kept.worker[timed]] >= 0]
    who, time = number[kept.worker[timed]], kept.time[timed]
    duplicates = np.bincount(who, kept.times[timed] - 1, people).astype(np.int64)
    if not (time % 1.0 > 0).any():
        return fast, n_fast, median, duplicates
    order = np.lexsort((time, who))
    gap = np.diff(time[order])
    same = (np.diff(who[order]) == 0) & (gap > 0)
    gap, who = gap[same], who[order][1:][same]
    number_of = np.bincount(who, minlength=people)
    order = np.argsort(who, kind="stable")
    for one, of in zip(np.unique(who).tolist(), np.split(gap[order], np.cumsum(number_of[number_of > 0])[:-1])):
        median[one] = np.median(of)
    return np.bincount(who, gap < FAST, people), number_of.astype(float), median, duplicates
