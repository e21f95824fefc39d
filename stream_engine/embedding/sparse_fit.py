"""Few non-negative weights of objects on dimensions that people can name, from odd-one-out responses and triplets.

    s_ab = sum_c x_ac x_bc,  x >= 0
    P(a and b are the most similar of a, b, c) = exp(s_ab) / (exp(s_ab) + exp(s_ac) + exp(s_bc))
    P(b is nearer to a than c is)              = exp(s_ab) / (exp(s_ab) + exp(s_ac))
    min  - sum log P + sparsity sum x

(SPoSE: Zheng, Pereira, Baker & Hebart 2019; Hebart, Zheng, Pereira & Baker 2020.) The penalty is an exponential prior
of every weight, which VICE replaces by a spike and a slab (Muttenthaler et al. 2022). Descent is by Adam (Kingma & Ba
2015) over batches in a random order, each weight kept at 0 or above; the rate falls by a cosine. Dimensions that are
empty are dropped on the way. Compiled, in single precision, without the interpreter's lock: fits with different seeds
run at once. O(t d) a pass and O(n d) memory; deterministic by seed.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.embedding.odd_one_out import Responses

RATE, LAST_RATE = 0.02, 1e-4
STEPS, PASSES, MAX_PASSES = 5_500, 8, 200  # so many steps at least, and so many passes
BATCHES, MIN_BATCH, BATCH = 100, 32, 8192  # batches a pass at least, and responses in one
BEGIN = 0.1  # weights begin between 0 and this
RISE = 0.4  # share of the passes in which the sparsity grows: at once, it would keep all weights at 0
EMPTY = 0.02  # a dimension with no weight above it is dropped
REPRODUCIBLE = 0.9  # correlation with the matching dimension of another fit, at least


class Sparse(NamedTuple):
    """A fit."""

    weights: np.ndarray  # (n, d) float32, dimensions by their sum, largest first
    objective: float  # of all responses, in nats
    passes: int


def fit(responses: Responses, d: int, sparsity: float, seed: int) -> Sparse:
    """Fit weights.

    Parameters
    ----------
    responses : Responses
        The responses.
    d : int
        Number of dimensions at most.
    sparsity : float
        Weight of the sum of all weights, in nats.
    seed : int
        Of the weights at first and of the order of the responses.

    Returns
    -------
    Sparse
        Weights on the dimensions that are not empty.
    """
    rng, total = np.random.default_rng(seed), float(responses.times.sum())
    weights = (rng.random((responses.n_objects, d)) * BEGIN).astype(np.float32)
    if total == 0.0:
        return Sparse(weights[:, :0], 0.0, 0)
    mean, square, size = np.zeros_like(weights), np.zeros_like(weights), len(responses.rows)
    batch = int(np.clip(size // BATCHES, MIN_BATCH, BATCH))
    passes = int(np.clip(np.ceil(STEPS * batch / size), PASSES, MAX_PASSES))
    step = 0
    for number in range(passes):
        rate, last = (max(RATE * (1 + np.cos(np.pi * at / passes)) / 2, LAST_RATE) for at in (number, number + 1))
        order = rng.permutation(size).astype(np.int32)
        penalty = sparsity / total * min(1.0, (number + 1) / (RISE * passes))
        step = _pass(*responses[:3], order, weights, mean, square, step, rate, last, np.float32(penalty), batch)
        full = weights.max(axis=0) > EMPTY
        if not full.all() and number + 1 >= RISE * passes:
            weights, mean, square = (np.ascontiguousarray(each[:, full]) for each in (weights, mean, square))
    weights = np.ascontiguousarray(weights[:, weights.max(axis=0) > EMPTY])
    weights = np.ascontiguousarray(weights[:, np.argsort(-weights.sum(axis=0), kind="stable")])
    objective = float(responses.times @ losses(responses, weights)) + sparsity * float(weights.sum())
    return Sparse(weights, objective, passes)


def losses(responses: Responses, weights: np.ndarray) -> np.ndarray:
    """(t,) - log P of each kind of response. O(t d).

    >>> pair = Responses(np.array([[0, 1, 2]], np.int32), np.array([True]), np.ones(1, np.float32), np.zeros(1), 3)
    >>> round(float(losses(pair, np.zeros((3, 1), np.float32))[0]), 4)  # one of three
    1.0986
    """
    out = np.empty(len(responses.rows))
    _losses(responses.rows, responses.three, np.ascontiguousarray(weights, np.float32), out, np.empty(len(out)))
    return out


def hits(responses: Responses, weights: np.ndarray) -> np.ndarray:
    """(t,) whether what was found is the likeliest: 1, or a share where others are as likely. O(t d)."""
    out = np.empty(len(responses.rows))
    _losses(responses.rows, responses.three, np.ascontiguousarray(weights, np.float32), np.empty(len(out)), out)
    return out


def gradient(responses: Responses, weights: np.ndarray) -> np.ndarray:
    """(n, d) slope of - sum log P, as batches take it. O(t d)."""
    slope = np.zeros(weights.shape, np.float32)
    order = np.arange(len(responses.rows), dtype=np.int32)
    _add(*responses[:3], order, 0, len(order), np.ascontiguousarray(weights, np.float32), slope)
    return slope


def standard_errors(responses: Responses, weights: np.ndarray, sparsity: float) -> np.ndarray:
    """(n, d) of each weight, all others given: 1 / sqrt(the Fisher information + that of the prior, sparsity^2)."""
    information = np.zeros(weights.shape)
    _inform(*responses[:3], np.ascontiguousarray(weights, np.float32), information)
    return 1.0 / np.sqrt(information + sparsity**2)


@njit(cache=True, nogil=True, inline="always", fastmath=True)
def _shares(rows, three, r, weights):
    """Probabilities of the pairs (a, b), (a, c) and (b, c); that of the last is 0 in triplets."""
    a, b, c = rows[r, 0], rows[r, 1], rows[r, 2]
    ab = ac = bc = np.float32(0.0)
    for k in range(weights.shape[1]):
        ab += weights[a, k] * weights[b, k]
        ac += weights[a, k] * weights[c, k]
        bc += weights[b, k] * weights[c, k]
    top = max(ab, ac, bc) if three[r] else max(ab, ac)
    ab, ac = np.exp(ab - top), np.exp(ac - top)
    bc = np.exp(bc - top) if three[r] else np.float32(0.0)
    total = ab + ac + bc
    return ab / total, ac / total, bc / total


@njit(cache=True, nogil=True, fastmath=True)
def _add(rows, three, times, order, begin, end, weights, slope):
    """Add the slopes of the responses order[begin:end]; gives how many they are."""
    answers = np.float32(0.0)
    for t in range(begin, end):
        r = order[t]
        a, b, c = rows[r, 0], rows[r, 1], rows[r, 2]
        ab, ac, bc = _shares(rows, three, r, weights)
        ab, ac, bc = times[r] * (ab - np.float32(1.0)), times[r] * ac, times[r] * bc
        answers += times[r]
        for k in range(weights.shape[1]):
            u, v, w = weights[a, k], weights[b, k], weights[c, k]
            slope[a, k] += ab * v + ac * w
            slope[b, k] += ab * u + bc * w
            slope[c, k] += ac * u + bc * v
    return answers


@njit(cache=True, nogil=True, fastmath=True)
def _pass(rows, three, times, order, weights, mean, square, step, rate, last, penalty, batch):
    """One pass of Adam over all responses, changing weights, mean and square; the rate goes to `last` evenly. Gives
    the number of steps done by now."""
    n, d = weights.shape
    slope, one = np.empty((n, d), np.float32), np.float32(1.0)
    keep, keep_square = np.float32(0.9), np.float32(0.999)
    batches = (len(order) + batch - 1) // batch
    for number in range(batches):
        slope[:] = np.float32(0.0)
        end = min((number + 1) * batch, len(order))
        share = one / _add(rows, three, times, order, number * batch, end, weights, slope)
        step += 1
        length = np.float32((rate + (last - rate) * number / batches) / (1.0 - 0.9**step))
        unbiased = np.float32(1.0 / (1.0 - 0.999**step))
        for i in range(n):
            for k in range(d):
                down = slope[i, k] * share + penalty
                mean[i, k] = keep * mean[i, k] + (one - keep) * down
                square[i, k] = keep_square * square[i, k] + (one - keep_square) * down * down
                weight = weights[i, k] - length * mean[i, k] / (np.sqrt(square[i, k] * unbiased) + np.float32(1e-8))
                weights[i, k] = max(weight, np.float32(0.0))
    return step


@njit(cache=True, nogil=True, fastmath=True)
def _losses(rows, three, weights, loss, likeliest):
    for r in range(len(rows)):
        ab, ac, bc = _shares(rows, three, r, weights)
        loss[r] = -np.log(max(ab, np.float32(1e-30)))
        largest = max(ac, bc)
        ties = 1.0 + (ac == ab) + (bc == ab and three[r])
        likeliest[r] = 0.0 if largest > ab else 1.0 / ties


@njit(cache=True, nogil=True, fastmath=True)
def _inform(rows, three, times, weights, information):
    """Add the variance of each weight's score, given what was asked."""
    for r in range(len(rows)):
        a, b, c = rows[r, 0], rows[r, 1], rows[r, 2]
        ab, ac, bc = _shares(rows, three, r, weights)
        for k in range(weights.shape[1]):
            u, v, w = weights[a, k], weights[b, k], weights[c, k]
            information[a, k] += times[r] * (ab * v * v + ac * w * w - (ab * v + ac * w) ** 2)
            information[b, k] += times[r] * (ab * u * u + bc * w * w - (ab * u + bc * w) ** 2)
            information[c, k] += times[r] * (ac * u * u + bc * v * v - (ac * u + bc * v) ** 2)
