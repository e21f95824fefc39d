"""Few answers: predictions averaged over draws from the posterior instead of those of one fit, which is over-confident.

The model is STE with a lapse rate, and everything about it is unknown: x_ic = s_c z_ic with standard normal z, the
standard deviations log s_c ~ N(log SPREAD_c, WIDTH^2) of `len(SPREAD)` axes, each smaller than the one before, so that
a draw has as many dimensions and as strong a ridge, 1 / (2 s^2), as the answers bear; logit lapse ~ N(LAPSE). The
vector of all these is normal a priori, which elliptical slice sampling takes as it is (Murray, Adams & MacKay 2010,
fig. 2): every step is accepted and there is nothing to tune. The chain begins at a fit, and draws of its later part are
kept:

    P(near) = mean over draws of  lapse / 2 + (1 - lapse) sigma(c Delta)

with a scale c of all margins that is calibrated on a validation set (`Posterior.calibrated_scale`).

With e^D of each pair's squared distance D, sigmoid(Delta) = e^D_far / (e^D_far + e^D_near): a chain takes as many
exponentials as there are different pairs. O(steps (p d + m)) for p pairs and m answers; steps fall with the questions.
Deterministic by seed.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from stream_engine.data.compiled import njit
from stream_engine.embedding.calibration import PRIOR_ANSWERS
from stream_engine.embedding.descent import minimise
from stream_engine.embedding.fit import Embedding
from stream_engine.embedding.questions import Questions, asked_about
from stream_engine.evaluation.answer_probabilities import margins

MIN_ANSWERS, LEAST_DIMENSIONS = (
    10.0,
    3,
)  # answers an object and dimension, of 3 at least, below which predictions are averaged
MAX_AVERAGED_ANSWERS = 2_000  # answers above which they are not: chains would have to be too long
SPREAD = (0.7, 0.5, 0.35, 0.25, 0.18)  # median standard deviations of the axes
WIDTH = 0.7  # standard deviation of their logarithms
LAPSE = -2.5, 1.0  # mean and standard deviation of its logit
STEPS, LEAST, WORK = 20_000, 6_000, 4e6  # of a chain: WORK / questions, between LEAST and STEPS
BURN = 0.25  # share of the steps before the first draw
DRAWS = 64
SMALLEST_SCALE = 0.05  # of calibrated margins
ANY = -1e300  # below every log likelihood
FARTHEST = 700.0  # squared distance that larger ones count as: the prior has nothing there, and e^D is finite


class _PairNumbers(NamedTuple):
    """Answers by the pairs that they are about."""

    pairs: np.ndarray  # (p, 2): each once
    near: np.ndarray  # (m,): the number of the nearer pair of each answer
    far: np.ndarray  # (m,)


class Posterior(NamedTuple):
    """Draws of everything that is unknown."""

    points: np.ndarray  # (s, n, d) float32
    lapse: np.ndarray  # (s,)

    def scaled(self, scale: float) -> "Posterior":
        """With margins, differences of squared distances, times `scale`."""
        return self._replace(points=self.points * np.float32(np.sqrt(scale)))

    def calibrated_scale(self, rows: np.ndarray, times: np.ndarray) -> float:
        """The scale of the margins with the least log loss of other answers, (m, 4) with the nearer pair first. Answers
        of a response depend on each other and chains are finite, so the draws of few answers are too certain. O(20 s
        m)."""
        delta = np.stack([margins(points, rows) for points in self.points])
        lapse = self.lapse[:, None]

        def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
            scale = np.exp(at[0])
            sigma = expit(scale * delta)
            p = np.maximum((lapse / 2 + (1 - lapse) * sigma).mean(axis=0), 1e-300)
            slope = ((1 - lapse) * sigma * (1 - sigma) * scale * delta).mean(axis=0)
            prior = PRIOR_ANSWERS / 4 * at[0] ** 2
            return float(prior - times @ np.log(p)), np.array([PRIOR_ANSWERS / 2 * at[0] - (times / p) @ slope])

        found = minimise(loss, np.zeros(1), tolerance=1e-9, max_iterations=100).x
        return float(np.clip(np.exp(found[0]), SMALLEST_SCALE, 1.0 / SMALLEST_SCALE))


def has_few_answers(questions: Questions, d: int) -> bool:
    """Whether answers are so few that predictions are averaged, where d dimensions were chosen for one fit.

    >>> from stream_engine.embedding.questions import of_rows
    >>> [has_few_answers(of_rows(np.array([[0, 1, 0, 2]] * m), 3), 1) for m in (89, 90)]
    [True, False]
    """
    return questions.answers < min(
        MIN_ANSWERS * max(d, LEAST_DIMENSIONS) * int(asked_about(questions).sum()), MAX_AVERAGED_ANSWERS
    )


def posterior(
    questions: Questions, begin: Embedding, seed: int, steps: int | None = None, draws: int | None = None
) -> Posterior:
    """Draws given answers, by a chain that begins at a fit in any number of dimensions.

    Parameters
    ----------
    questions : Questions
        The answers; whoever gave them has one lapse rate.
    begin : Embedding
        Where the chain begins.
    seed : int
        Random seed.
    steps : int, optional
        Of the chain; default: `WORK` / questions, between `LEAST` and `STEPS`.
    draws : int, optional
        How many are kept; default: `DRAWS`.

    Returns
    -------
    Posterior
        The draws.
    """
    n, axes = questions.n_objects, len(SPREAD)
    rng = np.random.default_rng(seed)
    state = rng.normal(size=n * axes + axes + 1)
    given_axes = min(axes, begin.points.shape[1])
    points = state[: n * axes].reshape(n, axes)
    points[:, :given_axes] = np.clip(begin.points[:, :given_axes] / np.array(SPREAD[:given_axes]), -3.0, 3.0)
    state[n * axes :] = 0.0
    steps = steps or int(np.clip(WORK / max(len(questions.rows), 1), LEAST, STEPS))
    draws = draws or DRAWS
    drawn_points, lapse = np.empty((draws, n, axes)), np.empty(draws)
    _chain(
        *_by_pair(questions),
        np.log(SPREAD),
        WIDTH,
        *LAPSE,
        state,
        rng,
        steps,
        int(BURN * steps),
        drawn_points,
        lapse,
    )
    return Posterior(drawn_points.astype(np.float32), lapse)


def _by_pair(questions: Questions) -> _PairNumbers:
    opposite = questions.rows[:, [2, 3, 0, 1]]
    rows = [
        np.repeat(each, times.astype(int), 0)
        for each, times in ((questions.rows, questions.near), (opposite, questions.far))
    ]
    pairs, number = np.unique(np.sort(np.concatenate(rows).reshape(-1, 2)), axis=0, return_inverse=True)
    near, far = np.ascontiguousarray(number.reshape(-1, 2).T)
    return _PairNumbers(pairs, near, far)


@njit(cache=True, nogil=True)
def _exponentials(x, powers):
    """e^x in place for 0 <= x <= `FARTHEST`, to 1e-13, four at a time where `np.exp` takes one: 2^k times a polynomial
    (Taylor) of the rest. Adding 1.5 2^52 rounds k into the low bits, which are then shifted to the exponent."""
    shift = 6755399441055744.0
    for at in range(len(x)):
        powers[at] = x[at] * 1.4426950408889634 + shift
        f = x[at] - (powers[at] - shift) * 0.6931471805599453
        tail = 1 / 5040 + f * (1 / 40320 + f * (1 / 362880 + f * (1 / 3628800 + f / 39916800)))
        x[at] = 1.0 + f * (1.0 + f * (1 / 2 + f * (1 / 6 + f * (1 / 24 + f * (1 / 120 + f * (1 / 720 + f * tail))))))
    bits = powers.view(np.int64)
    for at in range(len(x)):
        bits[at] = (bits[at] + 1023) << 52
    for at in range(len(x)):
        x[at] *= powers[at]


@njit(cache=True, nogil=True, fastmath=True)
def _log_likelihood(pairs, near, far, log_spread, width, middle, deviation, state, points, room, lower_limit):
    """Of a state, whose points (n, d) it fills in, and the lapse; `room` (2, p). Products need few logarithms.

    Every answer lowers it, so it ends where it is below `lower_limit`, with a number that is below, too.
    """
    n, d = points.shape
    for c in range(d):
        scale = np.exp(log_spread[c] + width * state[n * d + c])
        for i in range(n):
            points[i, c] = scale * state[i * d + c]
    exponential = room[0]
    for p in range(len(pairs)):
        i, j = pairs[p, 0], pairs[p, 1]
        distance = 0.0
        for c in range(d):
            u = points[i, c] - points[j, c]
            distance += u * u
        exponential[p] = min(distance, FARTHEST)
    _exponentials(exponential, room[1])
    lapse = 1.0 / (1.0 + np.exp(-(middle + deviation * state[n * d + d])))
    total, product = 0.0, 1.0
    lower_limit -= 1e-9  # more than rounding can change
    too_low = np.exp(min(lower_limit, 1.0))
    for q in range(len(near)):
        closer, farther = exponential[near[q]], exponential[far[q]]
        product *= 0.5 * lapse + (1.0 - lapse) * farther / (farther + closer)
        if product < 1e-150:
            total += np.log(max(product, 1e-300))
            product, too_low = 1.0, np.exp(min(lower_limit - total, 1.0))
        if product < too_low:
            break
    return total + np.log(max(product, 1e-300)), lapse


@njit(cache=True, nogil=True)
def _chain(pairs, near, far, log_spread, width, middle, deviation, state, rng, steps, burn, drawn_points, lapses):
    """Elliptical slice sampling; fills drawn_points (s, n, d) and lapses (s,) with evenly spaced draws after
    `burn` steps."""
    size, draws = len(state), len(drawn_points)
    n, d = drawn_points.shape[1], drawn_points.shape[2]
    points, proposal, direction, room = np.empty((n, d)), np.empty(size), np.empty(size), np.empty((2, len(pairs)))
    log_likelihood, lapse = _log_likelihood(
        pairs, near, far, log_spread, width, middle, deviation, state, points, room, ANY
    )
    n_drawn = 0
    for step in range(steps):
        for at in range(size):
            direction[at] = rng.standard_normal()
        lower_limit = log_likelihood + np.log(rng.random())
        angle = 2.0 * np.pi * rng.random()
        low, high = angle - 2.0 * np.pi, angle
        while True:
            cos, sin = np.cos(angle), np.sin(angle)
            for at in range(size):
                proposal[at] = cos * state[at] + sin * direction[at]
            accepted = ANY if high - low < 1e-12 else lower_limit
            new_log_likelihood, lapse = _log_likelihood(
                pairs, near, far, log_spread, width, middle, deviation, proposal, points, room, accepted
            )
            if new_log_likelihood > accepted:
                break
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = low + (high - low) * rng.random()
        log_likelihood, state, proposal = new_log_likelihood, proposal, state
        if step >= burn and n_drawn < draws and (step - burn + 1) * draws >= (n_drawn + 1) * (steps - burn):
            lapses[n_drawn] = lapse
            for i in range(n):  # assigned as a whole, arrays compile text of a message for four seconds
                for c in range(d):
                    drawn_points[n_drawn, i, c] = points[i, c]
            n_drawn += 1
