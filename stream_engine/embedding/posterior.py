"""Few answers: predictions averaged over draws from the posterior instead of those of one fit, which is over-confident.

The model is STE with a lapse rate, and everything about it is unknown: x_ic = s_c z_ic with standard normal z, the
standard deviations log s_c ~ N(log SPREAD_c, WIDTH^2) of `len(SPREAD)` axes, each smaller than the one before, so that
a draw has as many dimensions and as strong a ridge, 1 / (2 s^2), as the answers bear; logit lapse ~ N(LAPSE). The
vector of all these is normal a priori. Hamiltonian Monte Carlo draws it: under the prior alone a trajectory is a
rotation of position and momentum, which is exact for any step, so that only the likelihood is integrated by leaps
(Shahbaba, Lan, Johnson & Neal 2014, sec. 3; Neal 2011, sec. 5.5.1). The length of a leap is adapted by dual averaging,
less and less, so that a chain that is stuck gets free (Hoffman & Gelman 2014, sec. 3.2). The chain begins at a fit, and
draws of its later part are kept:

    P(near) = mean over draws of  lapse / 2 + (1 - lapse) sigma(c Delta)

with a scale c of all margins that is calibrated on validation sets (`calibrated_scale`).

With e^D of each pair's squared distance D, sigmoid(Delta) = e^D_far / (e^D_far + e^D_near): an evaluation takes as many
exponentials as there are different pairs. O(evaluations (p d + m)) for p pairs and m answers. Deterministic by seed.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from stream_engine.data.compiled import njit
from stream_engine.embedding.calibration import PRIOR_ANSWERS
from stream_engine.embedding.descent import minimise
from stream_engine.embedding.questions import Questions, asked_about
from stream_engine.evaluation.answer_probabilities import margins

MIN_ANSWERS, LEAST_DIMENSIONS = 10.0, 3  # answers an object and dimension, of 3 at least, below which they are few
MAX_FEW_ANSWERS = 2_000  # of all objects
MAX_AVERAGED_ANSWERS = 5_000  # above which draws are not tried: one fit predicts as well, and chains take long
SPREAD = (0.7, 0.5, 0.35, 0.25, 0.18)  # median standard deviations of the axes
WIDTH = 0.7  # standard deviation of their logarithms
LAPSE = -2.5, 1.0  # mean and standard deviation of its logit
LEAST, MOST, WORK = 2_400, 5_000, 2e6  # evaluations of a chain: WORK / answers, between LEAST and MOST
WARM_UP = 0.3  # share of them before the first draw
DRAWS = 64
TURN = 1.5  # radians of a trajectory: after a quarter of a turn the prior's position is independent of its start
LEAPS = 30  # of a trajectory at most
ACCEPTED = 0.7  # share of trajectories for which the length of a leap is adapted
FIRST_LEAP, GAMMA, OFFSET, KAPPA = 0.1, 0.05, 10.0, 0.75  # of dual averaging
DIVERGED = 200.0  # nats that the likelihood lost along a trajectory, which then ends and is rejected
SMALLEST_SCALE = 0.05  # of calibrated margins
FARTHEST = 700.0  # squared distance that larger ones count as: the prior has nothing there, and e^D is finite
WIDEST = 8.0  # standard deviations of a logarithm of `SPREAD` that larger ones count as, for the same reason


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

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """(m,) P(d(i, j) < d(k, l)) of an unknown participant. O(s m d)."""
        sigma = expit(np.stack([margins(points, rows) for points in self.points]))
        return (self.lapse[:, None] / 2 + (1 - self.lapse[:, None]) * sigma).mean(axis=0)


def calibrated_scale(predictions: Sequence[tuple[Posterior, np.ndarray, np.ndarray]]) -> float:
    """The scale of the margins with the least log loss of answers, (m, 4) with the nearer pair first and (m,) times
    over, that the posterior beside them does not know. Answers of a response depend on each other and chains are
    finite, so the draws of few answers are too certain. O(20 s m)."""
    parts = [
        (np.stack([margins(points, rows) for points in draws.points]), draws.lapse[:, None], times)
        for draws, rows, times in predictions
    ]

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        scale, total, by_scale = np.exp(at[0]), PRIOR_ANSWERS / 4 * at[0] ** 2, PRIOR_ANSWERS / 2 * at[0]
        for delta, lapse, times in parts:
            sigma = expit(scale * delta)
            p = np.maximum((lapse / 2 + (1 - lapse) * sigma).mean(axis=0), 1e-300)
            slope = ((1 - lapse) * sigma * (1 - sigma) * scale * delta).mean(axis=0)
            total, by_scale = total - times @ np.log(p), by_scale - (times / p) @ slope
        return float(total), np.array([by_scale])

    found = minimise(loss, np.zeros(1), tolerance=1e-9, max_iterations=100).x
    return float(np.clip(np.exp(found[0]), SMALLEST_SCALE, 1.0 / SMALLEST_SCALE))


def has_few_answers(questions: Questions, d: int) -> bool:
    """Whether answers are so few that predictions are averaged where nothing else says so, in d dimensions.

    >>> from stream_engine.embedding.questions import of_rows
    >>> [has_few_answers(of_rows(np.array([[0, 1, 0, 2]] * m), 3), 1) for m in (89, 90)]
    [True, False]
    """
    return questions.answers < min(
        MIN_ANSWERS * max(d, LEAST_DIMENSIONS) * int(asked_about(questions).sum()), MAX_FEW_ANSWERS
    )


def posterior(
    questions: Questions, begin: np.ndarray, seed: int, evaluations: int | None = None, draws: int | None = None
) -> Posterior:
    """Draws given answers, by a chain that begins at points of a fit in any number of dimensions.

    Parameters
    ----------
    questions : Questions
        The answers; whoever gave them has one lapse rate.
    begin : (n, k) array
        Where the chain begins.
    seed : int
        Random seed.
    evaluations : int, optional
        Of the likelihood; default: `WORK` / answers, between `LEAST` and `MOST`.
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
    given_axes = min(axes, begin.shape[1])
    points = state[: n * axes].reshape(n, axes)
    points[:, :given_axes] = np.clip(begin[:, :given_axes] / np.array(SPREAD[:given_axes]), -3.0, 3.0)
    state[n * axes :] = 0.0
    evaluations = evaluations or int(np.clip(WORK / max(questions.answers, 1.0), LEAST, MOST))
    draws = draws or DRAWS
    drawn_points, lapse = np.empty((draws, n, axes)), np.empty(draws)
    _chain(
        *_by_pair(questions),
        np.log(SPREAD),
        WIDTH,
        *LAPSE,
        state,
        rng,
        evaluations,
        int(WARM_UP * evaluations),
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
    low, high = np.sort(np.concatenate(rows).reshape(-1, 2), axis=1).T
    keys, number = np.unique(low.astype(np.int64) * questions.n_objects + high, return_inverse=True)
    near, far = np.ascontiguousarray(number.reshape(-1, 2).T)
    pairs = np.stack(np.divmod(keys, questions.n_objects), axis=1).astype(questions.rows.dtype)
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
def _log_likelihood(pairs, near, far, log_spread, width, middle, deviation, state, points, room, slope):
    """Of a state, whose points (n, d) and slope (N,) it fills in, and the lapse; `room` (3, p). Products need few
    logarithms."""
    n, d = points.shape
    for c in range(d):
        scale = np.exp(log_spread[c] + width * min(max(state[n * d + c], -WIDEST), WIDEST))
        for i in range(n):
            points[i, c] = scale * state[i * d + c]
    exponential, pull = room[0], room[2]
    for p in range(len(pairs)):
        i, j = pairs[p, 0], pairs[p, 1]
        distance = 0.0
        for c in range(d):
            u = points[i, c] - points[j, c]
            distance += u * u
        exponential[p] = min(distance, FARTHEST)
        pull[p] = 0.0
    _exponentials(exponential, room[1])
    lapse = 1.0 / (1.0 + np.exp(-(middle + deviation * state[n * d + d])))
    total, product, lapse_slope = 0.0, 1.0, 0.0
    for q in range(len(near)):
        closer, farther = exponential[near[q]], exponential[far[q]]
        share = farther / (farther + closer)
        likely = max(0.5 * lapse + (1.0 - lapse) * share, 1e-300)
        push = (1.0 - lapse) * share * (1.0 - share) / likely
        lapse_slope += (0.5 - share) / likely
        pull[far[q]] += push
        pull[near[q]] -= push
        product *= likely
        if product < 1e-150:
            total += np.log(max(product, 1e-300))
            product = 1.0
    for t in range(len(slope)):
        slope[t] = 0.0
    for p in range(len(pairs)):
        i, j, by = pairs[p, 0], pairs[p, 1], 2.0 * pull[p]
        for c in range(d):
            step = by * (points[i, c] - points[j, c])
            slope[i * d + c] += step
            slope[j * d + c] -= step
    for c in range(d):
        scale = np.exp(log_spread[c] + width * min(max(state[n * d + c], -WIDEST), WIDEST))
        for i in range(n):
            slope[n * d + c] += width * slope[i * d + c] * points[i, c]
            slope[i * d + c] *= scale
    slope[n * d + d] = deviation * lapse * (1.0 - lapse) * lapse_slope
    return total + np.log(max(product, 1e-300)), lapse


@njit(cache=True, nogil=True)
def _chain(
    pairs, near, far, log_spread, width, middle, deviation, state, rng, evaluations, warm_up, drawn_points, lapses
):
    """Hamiltonian Monte Carlo; fills drawn_points (s, n, d) and lapses (s,) with evenly spaced draws after
    `warm_up` evaluations."""
    size, draws = len(state), len(drawn_points)
    n, d = drawn_points.shape[1], drawn_points.shape[2]
    position, momentum, slope, new_slope = state.copy(), np.empty(size), np.empty(size), np.empty(size)
    points, new_points, room = np.empty((n, d)), np.empty((n, d)), np.empty((3, len(pairs)))
    value, lapse = _log_likelihood(pairs, near, far, log_spread, width, middle, deviation, state, points, room, slope)
    log_leap, mean_log_leap, shortfall, n_adapted = np.log(FIRST_LEAP), np.log(FIRST_LEAP), 0.0, 0
    n_evaluations, n_drawn = 1, 0
    while n_drawn < draws:
        leap = min(np.exp(log_leap if n_evaluations < warm_up else mean_log_leap), 1.0) * (0.9 + 0.2 * rng.random())
        leaps = min(max(int(TURN * (0.7 + 0.6 * rng.random()) / max(leap, 1e-6)), 1), LEAPS)
        energy = -value
        for t in range(size):
            momentum[t], position[t], new_slope[t] = rng.standard_normal(), state[t], slope[t]
            energy += 0.5 * (momentum[t] ** 2 + position[t] ** 2)
        cos, sin, new_value, new_lapse = np.cos(leap), np.sin(leap), value, lapse
        for _ in range(leaps):
            for t in range(size):
                kicked = momentum[t] + 0.5 * leap * new_slope[t]
                momentum[t] = cos * kicked - sin * position[t]
                position[t] = cos * position[t] + sin * kicked
            new_value, new_lapse = _log_likelihood(
                pairs, near, far, log_spread, width, middle, deviation, position, new_points, room, new_slope
            )
            n_evaluations += 1
            for t in range(size):
                momentum[t] += 0.5 * leap * new_slope[t]
            if new_value < value - DIVERGED:
                break
        energy += new_value
        for t in range(size):
            energy -= 0.5 * (momentum[t] ** 2 + position[t] ** 2)
        accepted = 0.0 if new_value < value - DIVERGED else np.exp(min(energy, 0.0))
        if rng.random() < accepted:
            value, lapse = new_value, new_lapse
            state, position = position, state
            slope, new_slope = new_slope, slope
            points, new_points = new_points, points
        n_adapted += 1
        shortfall += (ACCEPTED - accepted - shortfall) / (n_adapted + OFFSET)
        log_leap = np.log(10.0 * FIRST_LEAP) - np.sqrt(n_adapted) / GAMMA * shortfall
        mean_log_leap += n_adapted**-KAPPA * (log_leap - mean_log_leap)
        while n_drawn < draws and (n_evaluations - warm_up) * draws >= (n_drawn + 1) * (evaluations - warm_up):
            lapses[n_drawn] = lapse
            for i in range(n):  # assigned as a whole, arrays compile text of a message for four seconds
                for c in range(d):
                    drawn_points[n_drawn, i, c] = points[i, c]
            n_drawn += 1
