"""The same questions answered anew, by coins or by positions; and the answers themselves, resampled as whole responses.

Answers of one judgement hang together, and so they do here. By coins, all of them are turned round together or not at
all. By positions, a judgement has one error for each pair of objects it is about, and the nearer pair is the one that
looks nearer. Gumbel errors differ by a logistic one, normal errors by a normal one, so that each answer by itself has
the probability that its model gives it (Luce 1959; Yellott 1977). A worker's lapse makes the whole judgement chance. An
answer that is by itself is drawn by its probability.

Halves are of whole responses, or of participants where enough are named. What one half tells differs from what all tell
by as much as all differ from the truth: the variance of an estimate from half of the units about that from all of them
is its sampling variance (Efron 1979, sec. 3, half-sampling). So halves stand for other studies of the same size.

How people may answer, given where objects lie: more than one, since nobody knows which it is.

    P(d(i, j) < d(k, l)) = lapse / 2 + (1 - lapse) F(scale delta)
    ste     delta = |x_k - x_l|^2 - |x_i - x_j|^2,   F logistic    (van der Maaten & Weinberger 2012)
    t-ste   delta = log(1 + |x_k - x_l|^2 / v) - log(1 + |x_i - x_j|^2 / v),   F logistic; v the spread of the points
    probit  delta = |x_k - x_l| - |x_i - x_j|,   F the normal distribution    (Thurstone 1927)
    city block  as probit, with the sum of the differences along each axis for |.|,   F logistic    (Attneave 1950)

The scale is that under which the study's own answers are likeliest, with objects and workers' lapses where the
embedding has them.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import ndtr

MODELS = ("ste", "t-ste", "probit", "city block")


def differences(model: str, points: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(q,) delta of (q, 4) rows: above 0 where d(i, j) < d(k, l).

    >>> differences("probit", np.array([[0.0], [1.0], [3.0]]), np.array([[0, 1, 0, 2]])).tolist()
    [2.0]
    """
    i, j, k, l = rows.T
    if model == "city block":
        return np.abs(points[k] - points[l]).sum(axis=1) - np.abs(points[i] - points[j]).sum(axis=1)
    near, far = (((points[one] - points[other]) ** 2).sum(axis=1) for one, other in ((i, j), (k, l)))
    if model == "ste":
        return far - near
    if model == "probit":
        return np.sqrt(far) - np.sqrt(near)
    spread = max(float(points.var(axis=0).sum()), 1e-300)
    return np.log1p(far / spread) - np.log1p(near / spread)


def probability(model: str, delta: np.ndarray, lapse: np.ndarray | float) -> np.ndarray:
    """(q,) P(yes) of scaled differences."""
    p = ndtr(np.clip(delta, -30, 30)) if model == "probit" else 1 / (1 + np.exp(-np.clip(delta, -500, 500)))
    return lapse / 2 + (1 - lapse) * p


def scale(model: str, delta: np.ndarray, yes: np.ndarray, no: np.ndarray, lapse: np.ndarray) -> float:
    """Of the differences, by maximum likelihood, from questions (q,) that were answered `yes` and `no` so often."""
    unit = float(np.sqrt((delta**2).mean())) or 1.0

    def cost(at: float) -> float:
        p = probability(model, np.exp(at) / unit * delta, lapse)
        return -float(yes @ np.log(np.maximum(p, 1e-12)) + no @ np.log(np.maximum(1 - p, 1e-12)))

    return float(np.exp(minimize_scalar(cost, bounds=(-5, 7), method="bounded").x)) / unit


PEOPLE = 8  # named participants from which on they, not their responses, are resampled
LOOSE = -1  # the judgement of an answer that is by itself


class AnswerSet(NamedTuple):
    """m answers to q questions; a question is (i, j, k, l) of one worker: is d(i, j) < d(k, l)?"""

    rows: np.ndarray  # (q, 4) int32
    worker: np.ndarray  # (q,) int32, -1: nobody
    question: np.ndarray  # (m,) which question each answer is to
    near: np.ndarray  # (m,) float64: how often it was yes
    times: np.ndarray  # (m,) float64: how often it was given, alike
    judgement: np.ndarray  # (m,) int64, LOOSE or 0, 1, ...
    pairs: np.ndarray  # (m, 2) int64: which error of its judgement each side has
    n_objects: int

    def counted(self, near: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(q,) how often each question was answered yes, and no, when the answers are `near` times yes."""
        yes = np.bincount(self.question, near, len(self.rows))
        return yes, np.bincount(self.question, self.times, len(self.rows)) - yes


def answer_set(rows: np.ndarray, times: np.ndarray, worker: np.ndarray, unit: np.ndarray, n_objects: int) -> AnswerSet:
    """From m answers d(i, j) < d(k, l), rows (m, 4), each `times` over, of `unit` (m,), the judgement it is from.
    Answers are put in an order of their own. O(m log m).

    >>> made = answer_set(np.array([[0, 1, 0, 2], [2, 0, 1, 0]]), np.ones(2), np.full(2, -1), np.arange(2), 3)
    >>> made.rows.tolist(), made.near.tolist(), made.judgement.tolist()
    ([[0, 1, 0, 2]], [1.0, 0.0], [-1, -1])
    """
    rows = np.asarray(rows, np.int64).reshape(-1, 4)
    one, other = (_pair(rows[:, at], rows[:, at + 1], n_objects) for at in (0, 2))
    low, high = np.minimum(one, other), np.maximum(one, other)
    order = np.lexsort((unit, one > other, worker, high, low))
    one, other, low, high = one[order], other[order], low[order], high[order]
    times, worker, unit = np.asarray(times, np.float64)[order], np.asarray(worker)[order], np.asarray(unit)[order]
    keys, first, question = np.unique(
        np.stack([low, high, worker], axis=1), axis=0, return_index=True, return_inverse=True
    )
    sides = np.concatenate([np.divmod(keys[:, 0], n_objects), np.divmod(keys[:, 1], n_objects)])
    judgement = _judgements(unit)
    _, pairs = np.unique(np.stack([np.tile(judgement, 2), np.concatenate([low, high])]), axis=1, return_inverse=True)
    near = np.where(one < other, times, 0.0)
    made = np.ascontiguousarray(sides.T.astype(np.int32)), worker[first].astype(np.int32)
    return AnswerSet(*made, question.reshape(-1), near, times, judgement, pairs.reshape(2, -1).T, n_objects)


def by_coins(rng: np.random.Generator, known: AnswerSet) -> np.ndarray:
    """(m,) how often each answer is yes when every judgement is a coin."""
    turned = rng.random(1 + int(known.judgement.max(initial=-1))) < 0.5
    alone = known.judgement == LOOSE
    flip = np.zeros(len(alone), bool)
    flip[~alone] = turned[known.judgement[~alone]]
    near = np.where(flip, known.times - known.near, known.near)
    near[alone] = rng.binomial(known.times[alone].astype(np.int64), 0.5)
    return near


def by_positions(
    rng: np.random.Generator, known: AnswerSet, delta: np.ndarray, lapse: np.ndarray, model: str = "ste"
) -> np.ndarray:
    """(m,) how often each answer is yes, where `delta` (q,) are the scaled differences of `model` and `lapse` (q,) is
    how often the worker of a question answers by chance."""
    delta, lapse = delta[known.question], lapse[known.question]
    alone = known.judgement == LOOSE
    p = probability(model, delta, lapse)
    near = np.zeros(len(delta))
    near[alone] = rng.binomial(known.times[alone].astype(np.int64), p[alone])
    if alone.all():
        return near
    size = int(known.pairs.max()) + 1
    error = rng.normal(scale=np.sqrt(0.5), size=size) if model == "probit" else rng.gumbel(size=size)
    chance = rng.random(1 + int(known.judgement.max()))[known.judgement] < lapse  # LOOSE takes the last: not used
    seen = np.where(chance, 0.0, delta) + error[known.pairs[:, 0]] - error[known.pairs[:, 1]]
    near[~alone] = np.where(seen > 0, known.times, 0.0)[~alone]
    return near


def halved(rng: np.random.Generator, known: AnswerSet) -> tuple[AnswerSet, AnswerSet]:
    """Two halves of the responses, or of the participants where at least `PEOPLE` are named."""
    worker, answer = known.worker[known.question], np.arange(len(known.times))
    unit = np.where(known.judgement == LOOSE, answer, len(answer) + known.judgement)
    if len(np.unique(worker[worker >= 0])) >= PEOPLE:
        unit = np.where(worker >= 0, -1 - worker, unit)
    units, number = np.unique(unit, return_inverse=True)
    first = (rng.permutation(len(units)) % 2 == 0)[number.reshape(-1)]
    times = np.where(first, known.times, 0.0)
    alone = (unit == answer) & (known.times > 1)  # equal answers by nobody in particular: responses of their own
    times[alone] = rng.binomial(known.times[alone].astype(np.int64), 0.5)
    yes = known.near > 0
    other = known.times - times
    return (
        known._replace(times=times, near=np.where(yes, times, 0.0)),
        known._replace(times=other, near=np.where(yes, other, 0.0)),
    )


def _pair(i: np.ndarray, j: np.ndarray, n: int) -> np.ndarray:
    return np.minimum(i, j) * n + np.maximum(i, j)


def _judgements(unit: np.ndarray) -> np.ndarray:
    """(m,) numbers of the units with more than one answer, by first appearance; LOOSE for all others."""
    _, first, inverse, sizes = np.unique(unit, return_index=True, return_inverse=True, return_counts=True)
    several = np.flatnonzero(sizes > 1)
    number = np.full(len(sizes), LOOSE, np.int64)
    number[several[np.argsort(first[several])]] = np.arange(len(several))
    return number[inverse.reshape(-1)]
