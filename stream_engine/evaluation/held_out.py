"""Evaluation on held-out answers: accuracy, log loss and calibration, with standard errors.

A figure is a ratio of sums over comparisons, and its standard error that of a ratio estimator over clusters (Cochran
1977, eq. 6.4: units drawn, comparisons counted), because comparisons of one judgement, or of one worker, are not
independent. Beside it stands the ceiling: how far people agree with each other, and with themselves. O(m log m).
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from stream_engine.data.triplet_columns import first_of_equal
from stream_engine.evaluation.responses import Responses

BINS = 10  # of calibration, of equal width from 1/2 to 1
MIN_CEILING_ANSWERS = 100  # answers to questions that somebody else answered, below which no ceiling is said
SURE = 0.05  # half a 95 % interval of the ceiling for one answer for everybody, above which it is not said
CLUSTERS = 5  # below which no standard error is said: of fewer, the spread says little, and of one nothing


class Figures(NamedTuple):
    """Of comparisons that were held out, counted as often as they were given; ties count one half. `log_loss` is in
    nats a comparison; `calibration_error` the expected calibration error (Guo et al. 2017, eq. 3) over ten bins."""

    accuracy: float
    standard_error: float | None  # of the accuracy, over `clusters`; None, unknown: fewer than `CLUSTERS` of them
    log_loss: float
    calibration_error: float
    comparisons: int
    clusters: int  # judgements, or workers


class Ceiling(NamedTuple):
    """How often an answer is that of the majority of the other workers' (of a worker's own other) answers to the same
    comparison, ties one half; None where fewer than `MIN_CEILING_ANSWERS` answers can say.

    `at_most`: no model that answers alike for everybody does better on these comparisons. If a share p of the people
    answers one way, two of them agree with probability a = p^2 + (1 - p)^2, and the best answer is right with
    max(p, 1 - p) = (1 + sqrt(2 a - 1)) / 2; that is concave in a, so the mean of it is at most its value at the mean
    agreement of two people (Jensen). `others` lies below it where few answered the same, being noisy itself."""

    others: float | None
    answers: int
    themselves: float | None
    own_answers: int
    at_most: float | None = None


class HeldOut(NamedTuple):
    """What a refit reports of answers that neither it nor what it chose by ever had (`evaluation.cross_fit`)."""

    by: str  # what was held out: "judgements" or "comparisons"
    judgement: Figures | None  # of judgements by workers and about questions that are known otherwise
    worker: Figures | None  # of workers who were never heard
    ceiling: Ceiling | None
    slope: float | None = None  # P(the answer came) = sigmoid(slope * margin)

    def report(self) -> dict[str, Any]:
        """The fields of an artifact's report: those of `judgement` by their own names, and `error`."""
        own = self.judgement._asdict() if self.judgement else dict.fromkeys(Figures._fields)
        return {
            "held_out": self.by,
            "error": None if self.judgement is None else 1.0 - self.judgement.accuracy,
            **{f"held_out_{name}" if name in ("comparisons", "clusters") else name: own[name] for name in own},
            "by_worker": self.worker._asdict() if self.worker else None,
            "ceiling": self.ceiling._asdict() if self.ceiling else None,
            "probability_slope": self.slope,
        }


def figures(margin: np.ndarray, slope: float, times: np.ndarray, cluster: np.ndarray) -> Figures:
    """The figures of (m,) margins, > 0 where the answer came as expected, with P = sigmoid(slope * margin).

    >>> f = figures(np.array([2.0, 1.0, -1.0, 0.0]), 1.0, np.ones(4), np.array([0, 0, 1, 1]))
    >>> f.accuracy, f.standard_error, round(f.log_loss, 3), f.comparisons, f.clusters
    (0.625, None, 0.612, 4, 2)
    >>> figures(np.array([1.0, 1.0, 1.0, -1.0, -1.0]), 1.0, np.ones(5), np.arange(5)).standard_error.__round__(3)
    0.245
    """
    right = times * _majority(margin)
    total, number = times.sum(), np.unique(cluster, return_inverse=True)[1].reshape(-1)
    clusters, accuracy = int(number.max()) + 1, float(right.sum() / total)
    return Figures(
        accuracy,
        standard_error(np.bincount(number, right - accuracy * times), float(total)),
        float(times @ losses(margin, slope) / total),
        _calibration_error(expit(slope * np.abs(margin)), right, times),
        int(total),
        clusters,
    )


def standard_error(off: np.ndarray, total: float) -> float | None:
    """Of a ratio, by what each of (c,) clusters is off from it; None for fewer than `CLUSTERS`.

    Where none is off, as with all right, they have no spread to go by. Then it is z / (c + z^2), so that an interval of
    95 % from it is Wilson's for c of c."""
    clusters = len(off)
    if clusters < CLUSTERS:
        return None
    if not off.any():
        return 1.96 / (clusters + 1.96**2)
    return float(np.sqrt(clusters / (clusters - 1.0) * (off @ off)) / total)


def losses(margin: np.ndarray, slope: float) -> np.ndarray:
    """(m,) -log sigmoid(slope * margin), in nats."""
    return np.logaddexp(0.0, -slope * margin)


def _calibration_error(confidence: np.ndarray, right: np.ndarray, times: np.ndarray) -> float:
    number = np.minimum(((confidence - 0.5) * 2 * BINS).astype(np.int64), BINS - 1)
    apart = np.bincount(number, right - times * confidence)
    return float(np.abs(apart).sum() / times.sum())


def slope_of(margin: np.ndarray, times: np.ndarray) -> float:
    """The slope s >= 0 with the least log loss of P = sigmoid(s * margin): Platt's fit without intercept, by Newton. A
    model whose loss is no likelihood (the hinge) has no probabilities of its own; fit it where nothing is reported.

    One more answer each way at a usual margin keeps s finite while all comes as expected.

    >>> round(slope_of(np.array([1.0, 1.0, 1.0, -1.0]), np.ones(4)), 4)  # log 2: four in six come as expected
    0.6931
    """
    size = float(np.sqrt(times @ margin**2 / times.sum())) if len(margin) else 0.0
    if size == 0.0 or times @ margin <= 0.0:
        return 0.0
    x, low, high, s = margin / size, 0.0, np.inf, 1.0
    for _ in range(100):  # convex in s: Newton, kept between what is known to lie on either side of the minimum
        p, q = expit(s * x), expit(s)
        rise = float(times @ (x * (1.0 - p))) + 1.0 - 2.0 * q
        curve = float(times @ (x * x * p * (1.0 - p))) + 2.0 * q * (1.0 - q)
        low, high = (s, high) if rise > 0 else (low, s)
        step = min(rise / max(curve, 1e-300), s)
        if abs(step) <= 1e-10 * s:
            break
        s = s + step if low < s + step < high else (low + min(high, 4.0 * s)) / 2.0
    return float(s / size)


def ceiling(responses: Responses) -> Ceiling | None:
    """How far the answers agree with each other. O(m log m), O(questions) where nobody is ever named: then every answer
    counts, as somebody else's."""
    answers = responses.answers
    if not len(answers.rows):
        return None
    if responses.votes is not None:
        n_lo, n_hi = (each.astype(np.float64) for each in responses.votes)
        given = n_lo + n_hi  # each is somebody's only one
        others = _agreement(np.stack([n_lo - n_hi, given]), n_lo, n_hi)
        return Ceiling(*others, None, 0, _at_most(n_lo, n_hi, given, given))
    if responses.together is not None:
        answers = answers.without(responses.together)
    near, far = np.sort(answers.rows[:, :2], axis=1), np.sort(answers.rows[:, 2:], axis=1)
    first = (near[:, 0] < far[:, 0]) | ((near[:, 0] == far[:, 0]) & (near[:, 1] < far[:, 1]))
    lo, hi = np.where(first[:, None], near, far), np.where(first[:, None], far, near)
    participant = answers.participant.astype(np.int64)
    who = np.where(participant >= 0, participant, len(responses.participant_hash) + answers.response)
    order = np.lexsort((who, hi[:, 1], hi[:, 0], lo[:, 1], lo[:, 0]))
    begins = first_of_equal(*(column[order] for column in (*lo.T, *hi.T)))
    key, mine = np.cumsum(begins) - 1, np.cumsum(begins | first_of_equal(who[order])) - 1
    n_lo, n_hi = np.where(first, answers.times, 0.0)[order], np.where(first, 0.0, answers.times)[order]
    net, given, named = n_lo - n_hi, n_lo + n_hi, participant[order] >= 0
    all_net, all_answers = np.bincount(key, net)[key], np.bincount(key, given)[key]
    # what nobody's name stands on is an answer of somebody who gave no other, however often the same was given
    own_net, own_answers = np.bincount(mine, net)[mine], np.bincount(mine, given)[mine]
    apart = all_answers > np.where(named, own_answers, 1.0)
    right = sum(
        counts * _majority(way * (all_net - np.where(named, own_net, way)))
        for counts, way in ((n_lo, 1.0), (n_hi, -1.0))
    )
    total = float(given[apart].sum())
    others = (float(np.sum(right, where=apart) / total) if total >= MIN_CEILING_ANSWERS else None, int(total))
    own = np.stack([own_net, own_answers])[:, named]
    own_lo, own_hi, first_row = np.bincount(mine, n_lo), np.bincount(mine, n_hi), np.flatnonzero(_begins(mine))
    of_key, alone = key[first_row], ~named[first_row]
    best = _at_most(
        np.bincount(key, n_lo),
        np.bincount(key, n_hi),
        np.bincount(of_key, np.where(alone, own_lo + own_hi, own_lo**2 + own_hi**2)),
        np.bincount(of_key, np.where(alone, own_lo + own_hi, (own_lo + own_hi) ** 2)),
    )
    return Ceiling(*others, *_agreement(own, n_lo[named], n_hi[named]), best)


def _begins(number: np.ndarray) -> np.ndarray:
    return np.diff(number, prepend=-1) > 0


def _majority(net: np.ndarray) -> np.ndarray:
    """1 where an answer is the majority's, whose net vote for it is given; 0 where it is not, ties one half."""
    return np.where(net > 0, 1.0, np.where(net == 0, 0.5, 0.0))


def _at_most(n_lo: np.ndarray, n_hi: np.ndarray, own_agreeing: np.ndarray, own_pairs: np.ndarray) -> float | None:
    """`Ceiling.at_most` of (K,) comparisons with their answers each way; `own_...` are ordered pairs of answers of one
    worker (each answer with itself among them), which say nothing of two people. None where it is not known to `SURE`.

    >>> given = np.full(10, 10.0)
    >>> round(_at_most(np.full(10, 8.0), np.full(10, 2.0), given, given) or 0, 3)  # of 90 pairs of two, 58 agree
    0.769
    """
    answers = n_lo + n_hi
    pairs = answers**2 - own_pairs
    asked = pairs > 0
    if answers[asked].sum() < MIN_CEILING_ANSWERS:
        return None
    agree = (n_lo**2 + n_hi**2 - own_agreeing)[asked] / pairs[asked]
    weight = answers[asked] / answers[asked].sum()
    mean = float(weight @ agree)
    error = 1.96 * float(np.sqrt(weight**2 @ (agree - mean) ** 2))
    low, best, high = (0.5 + 0.5 * np.sqrt(np.clip(2.0 * (mean + e) - 1.0, 0.0, 1.0)) for e in (-error, 0.0, error))
    return float(best) if high - low <= 2.0 * SURE else None


def _agreement(group: np.ndarray, n_lo: np.ndarray, n_hi: np.ndarray) -> tuple[float | None, int]:
    """`(how often an answer is that of the majority of the rest of its group, of how many answers)`: `group` (2, m) is
    the net vote and the number of answers of each row's group."""
    net, answers = group
    rest = answers > 1
    right = np.zeros(len(net))
    for counts, after in ((n_lo, net - 1.0), (n_hi, -net - 1.0)):  # one answer taken out of its own side
        right += counts * _majority(after)
    total = float((n_lo + n_hi)[rest].sum())
    return (float(right[rest].sum() / total) if total >= MIN_CEILING_ANSWERS else None), int(total)
