"""Few answers: predictions averaged over draws from the posterior instead of those of one fit, which is over-confident.

The model is STE with a lapse rate, and everything about it is unknown: x_ic = s_c z_ic with standard normal z, the
standard deviations log s_c ~ N(log SPREAD_c, WIDTH^2) of `len(SPREAD)` axes, each smaller than the one before, so that
a draw has as many dimensions and as strong a ridge, 1 / (2 s^2), as the answers bear; logit lapse ~ N(LAPSE). The
vector of all these is normal a priori, which elliptical slice sampling takes as it is (Murray, Adams & MacKay 2010,
fig. 2): every step is accepted and there is nothing to tune. The chain begins at a fit, and draws of its later part are
kept:

    P(near) = mean over draws of  lapse / 2 + (1 - lapse) sigma(Delta)

O(steps q d); steps fall with the questions. Deterministic by seed.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.embedding.fit import Embedding
from stream_engine.embedding.questions import Questions, asked_about

EACH, LEAST_D = 10.0, 3  # answers an object and dimension, of 3 at least, below which predictions are averaged
MOST = 2_000  # answers above which they are not: chains would have to be too long
SPREAD = (0.7, 0.5, 0.35, 0.25, 0.18)  # median standard deviations of the axes
WIDTH = 0.7  # standard deviation of their logarithms
LAPSE = -2.5, 1.0  # mean and standard deviation of its logit
STEPS, LEAST, WORK = 20_000, 6_000, 4e6  # of a chain: WORK / questions, between LEAST and STEPS
BURN = 0.25  # share of the steps before the first draw
DRAWS = 64
ANY = -1e300  # below every log likelihood


class Posterior(NamedTuple):
    """Draws of everything that is unknown."""

    points: np.ndarray  # (s, n, d) float32
    lapse: np.ndarray  # (s,)


def few(questions: Questions, d: int) -> bool:
    """Whether answers are so few that predictions are averaged, where d dimensions were chosen for one fit.

    >>> from stream_engine.embedding.questions import of_rows
    >>> few(of_rows(np.array([[0, 1, 0, 2]] * 89), 3), 1), few(of_rows(np.array([[0, 1, 0, 2]] * 90), 3), 1)
    (True, False)
    """
    return questions.answers < min(EACH * max(d, LEAST_D) * int(asked_about(questions).sum()), MOST)


def posterior(questions: Questions, begin: Embedding, seed: int) -> Posterior:
    """Draws given answers, by a chain that begins at a fit in any number of dimensions.

    Parameters
    ----------
    questions : Questions
        The answers; whoever gave them has one lapse rate.
    begin : Embedding
        Where the chain begins.
    seed : int
        Random seed.

    Returns
    -------
    Posterior
        `DRAWS` draws.
    """
    n, axes = questions.n_objects, len(SPREAD)
    rng = np.random.default_rng(seed)
    state = rng.normal(size=n * axes + axes + 1)
    known = min(axes, begin.points.shape[1])
    points = state[: n * axes].reshape(n, axes)
    points[:, :known] = np.clip(begin.points[:, :known] / np.array(SPREAD[:known]), -3.0, 3.0)
    state[n * axes :] = 0.0
    steps = int(np.clip(WORK / max(len(questions.rows), 1), LEAST, STEPS))
    kept, lapse = np.empty((DRAWS, n, axes)), np.empty(DRAWS)
    _chain(
        questions.rows,
        questions.near,
        questions.far,
        np.log(SPREAD),
        WIDTH,
        *LAPSE,
        state,
        rng,
        steps,
        int(BURN * steps),
        kept,
        lapse,
    )
    return Posterior(kept.astype(np.float32), lapse)


@njit(cache=True, nogil=True, fastmath=True)
def _log_likelihood(rows, near, far, log_spread, width, middle, deviation, state, points, least):
    """Of a state, whose points (n, d) it fills in, and the lapse. Products of probabilities need few logarithms.

    Every answer lowers it, so it ends where it is below `least`, with a number that is below, too.
    """
    n, d = points.shape
    for c in range(d):
        scale = np.exp(log_spread[c] + width * state[n * d + c])
        for i in range(n):
            points[i, c] = scale * state[i * d + c]
    lapse = 1.0 / (1.0 + np.exp(-(middle + deviation * state[n * d + d])))
    total, product = 0.0, 1.0
    least -= 1e-9  # more than rounding can change
    too_low = np.exp(min(least, 1.0))
    for q in range(len(rows)):
        i, j, k, l = rows[q, 0], rows[q, 1], rows[q, 2], rows[q, 3]
        delta = 0.0
        for c in range(d):
            u, v = points[i, c] - points[j, c], points[k, c] - points[l, c]
            delta += v * v - u * u
        p = 0.5 * lapse + (1.0 - lapse) / (1.0 + np.exp(-min(max(delta, -500.0), 500.0)))
        if near[q] + far[q] == 1.0:
            product *= p if near[q] == 1.0 else 1.0 - p
            if product < 1e-150:
                total += np.log(max(product, 1e-300))
                product, too_low = 1.0, np.exp(min(least - total, 1.0))
        else:
            total += near[q] * np.log(max(p, 1e-300)) + far[q] * np.log(max(1.0 - p, 1e-300))
            too_low = np.exp(min(least - total, 1.0))
        if product < too_low:
            break
    return total + np.log(max(product, 1e-300)), lapse


@njit(cache=True, nogil=True)
def _chain(rows, near, far, log_spread, width, middle, deviation, state, rng, steps, burn, kept, lapses):
    """Elliptical slice sampling; fills kept (s, n, d) and lapses (s,) with evenly spaced draws after `burn` steps."""
    size, draws = len(state), len(kept)
    points, ahead, aside = np.empty(kept.shape[1:]), np.empty(size), np.empty(size)
    now, lapse = _log_likelihood(rows, near, far, log_spread, width, middle, deviation, state, points, ANY)
    done = 0
    for step in range(steps):
        for at in range(size):
            aside[at] = rng.standard_normal()
        least = now + np.log(rng.random())
        angle = 2.0 * np.pi * rng.random()
        low, high = angle - 2.0 * np.pi, angle
        while True:
            cos, sin = np.cos(angle), np.sin(angle)
            for at in range(size):
                ahead[at] = cos * state[at] + sin * aside[at]
            accepted = ANY if high - low < 1e-12 else least
            then, lapse = _log_likelihood(
                rows, near, far, log_spread, width, middle, deviation, ahead, points, accepted
            )
            if then > accepted:
                break
            low, high = (angle, high) if angle < 0.0 else (low, angle)
            angle = low + (high - low) * rng.random()
        now, state, ahead = then, ahead, state
        if step >= burn and done < draws and (step - burn + 1) * draws >= (done + 1) * (steps - burn):
            kept[done], lapses[done] = points, lapse
            done += 1
