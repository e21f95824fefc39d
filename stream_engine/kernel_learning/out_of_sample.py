"""Out-of-sample extension: a convex problem of r unknowns for each object that was not learned.

With the points of lo and hi fixed, d(x, lo) - d(x, hi) is linear in where x is, so what a refit minimises over the row
of one more object, its comparisons as an anchor alone, all else fixed, is

    min_y  ridge |y|^2 + sum_t [n_lo loss(x_t) + n_hi loss(-x_t)],     x_t = b_t - 2 <y, v_t>
    v_t = Y_lo - Y_hi,   b_t = |Y_lo|^2 - |Y_hi|^2 + |G_lo|^2 - |G_hi|^2 - 2 <g, G_lo - G_hi>

for free coordinates Y, and coordinates G that x has from elsewhere (g: from auxiliary kernels). loss is that of STE,
log(1 + e^x), or the hinge max(0, 1 + x); ridge is the refit's weight of the trace, which is |y|^2 for a row of a
factor. Solved exactly: damped Newton (STE), dual coordinate ascent (hinge), both until (primal - dual) / primal <=
tolerance:

    dual(a) = sum_t s_t a_t b_t - w_t loss*(a_t / w_t) - |sum_t s_t a_t v_t|^2 / ridge,    0 <= a_t <= w_t, s_t = +-1

over directed comparisons (loss* as in `problem`). O(m_x r^2 + r^3) a step of Newton, O(m_x r) a pass of the other.

Out-of-sample extension of a kernel learned over a subset, as a factor over all objects: K ~ F F', never n by n.

A learned kernel is Y Y' + G G' over the subset, G from auxiliary kernels. Another object has its row of G from these
kernels (Nystrom: K(x, subset) (G')^+, exact towards the subset, or g(x) of McFee & Lanckriet's eq. 9), and its row of Y
from its own comparisons (`out_of_sample`). F keeps the leading directions of [Y G] over the subset.
O((r + s) d + `out_of_sample`) an object, in blocks; each block is one pass over the keys.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from stream_engine.counts.gram_matrices import read_only
from stream_engine.data.compiled import njit
from stream_engine.data.triplet_columns import Columns
from stream_engine.evaluation.subset import renumbering

PASSES = 10_000  # of coordinate ascent over the comparisons of one object, at most
STEPS = 200  # of Newton


class AnchorTriplets(NamedTuple):
    """The answers about some objects as anchors and pairs of learned objects, object by object: those of x are
    start[x]:start[x + 1]."""

    start: np.ndarray  # (q + 1,) int64
    lo: np.ndarray  # (m,) int32: numbers of learned objects
    hi: np.ndarray  # (m,) int32
    n_lo: np.ndarray  # (m,) float64: how often, or with which weight, lo was nearer
    n_hi: np.ndarray  # (m,) float64


class ExtendedPoints(NamedTuple):
    """`points` (q, r), 0 where nothing was said; `gap` (q,): (primal - dual) / primal, how far from optimal at most."""

    points: np.ndarray
    gap: np.ndarray


def answers_of(columns: Columns, number: np.ndarray, place: np.ndarray, rows: int) -> AnchorTriplets:
    """The keys whose anchor has a place (n,) >= 0, in 0 ... rows - 1, and whose lo and hi both have a number (n,) >=
    0. O(K).

    >>> from stream_engine.data.triplet_columns import columns_from_triplets
    >>> columns = columns_from_triplets(np.array([[3, 0, 1], [3, 1, 0], [3, 0, 1], [2, 0, 1], [3, 1, 2]]), 4)
    >>> found = answers_of(columns, np.array([0, 1, -1, -1]), np.array([-1, -1, 0, 1]), 2)
    >>> found.start.tolist(), found.lo.tolist(), found.hi.tolist(), found.n_lo.tolist(), found.n_hi.tolist()
    ([0, 1, 2], [0, 0], [1, 1], [1.0, 2.0], [0.0, 1.0])
    """
    lo, hi, first, anchor, n_lo, n_hi = (read_only(array) for array in columns[:6])
    number, place = read_only(number, np.int32), read_only(place, np.int32)
    start = np.zeros(rows + 1, np.int64)
    _count(lo, hi, first, anchor, number, place, start)
    start = np.cumsum(start)
    ids, votes = (np.empty(start[-1], np.int32) for _ in range(2)), (np.empty(start[-1]) for _ in range(2))
    answers = AnchorTriplets(start, *ids, *votes)
    at = start[:-1].copy()
    _sort(lo, hi, first, anchor, n_lo, n_hi, number, place, at, answers.lo, answers.hi, answers.n_lo, answers.n_hi)
    return answers


@njit(cache=True, nogil=True)
def _count(lo, hi, start, anchor, number, place, found):
    for p in range(len(lo)):
        if number[lo[p]] >= 0 and number[hi[p]] >= 0:
            for e in range(start[p], start[p + 1]):
                if place[anchor[e]] >= 0:
                    found[place[anchor[e]] + 1] += 1


@njit(cache=True, nogil=True)
def _sort(lo, hi, start, anchor, n_lo, n_hi, number, place, at, to_lo, to_hi, to_n_lo, to_n_hi):
    for p in range(len(lo)):
        a, b = number[lo[p]], number[hi[p]]
        if a >= 0 and b >= 0:
            for e in range(start[p], start[p + 1]):
                x = place[anchor[e]]
                if x >= 0:
                    to_lo[at[x]], to_hi[at[x]], to_n_lo[at[x]], to_n_hi[at[x]] = a, b, n_lo[e], n_hi[e]
                    at[x] += 1


def extend(
    free: np.ndarray,
    fixed: np.ndarray,
    given: np.ndarray,
    answers: AnchorTriplets,
    ridge: float,
    loss: str,
    tolerance: float = 1e-4,
) -> ExtendedPoints:
    """Where the objects of `answers` are: `free` (n', r) are Y, `fixed` (n', s) G, `given` (q, s) their g.

    >>> answers = AnchorTriplets(np.array([0, 1]), np.array([0]), np.array([1]), np.array([2.0]), np.array([0.0]))
    >>> found = extend(np.array([[-1.0], [1.0]]), np.empty((2, 0)), np.empty((1, 0)), answers, 1.0, "hinge")
    >>> found.points.round(3).tolist()          # |y|^2 + 2 max(0, 1 + 4 y): as near to 0 as satisfies it
    [[-0.25]]
    """
    if not ridge > 0 or loss not in ("ste", "hinge"):
        raise ValueError(f"extend: got ridge {ridge} and loss {loss!r}; expected ridge > 0 and 'ste' or 'hinge'")
    points, gap = np.zeros((len(answers.start) - 1, free.shape[1])), np.zeros(len(answers.start) - 1)
    free, fixed, given = (read_only(array, np.float64) for array in (free, fixed, given))
    start, lo, hi, n_lo, n_hi = (read_only(array) for array in answers)
    solve = _newton if loss == "ste" else _ascent
    solve(free, fixed, given, start, lo, hi, n_lo, n_hi, float(ridge), float(tolerance), points, gap)
    return ExtendedPoints(points, gap)


@njit(cache=True, nogil=True)
def _lines(free, fixed, given, lo, hi, v, b):
    """v (m, r) and b (m,) of one object's comparisons."""
    for t in range(len(lo)):
        i, j = lo[t], hi[t]
        b[t] = 0.0
        for q in range(free.shape[1]):
            v[t, q] = free[i, q] - free[j, q]
            b[t] += free[i, q] * free[i, q] - free[j, q] * free[j, q]
        for q in range(fixed.shape[1]):
            b[t] += fixed[i, q] * fixed[i, q] - fixed[j, q] * fixed[j, q] - 2.0 * given[q] * (fixed[i, q] - fixed[j, q])


@njit(cache=True, nogil=True)
def _softplus(x):
    return max(x, 0.0) + np.log1p(np.exp(-abs(x)))


@njit(cache=True, nogil=True)
def _value(y, v, b, n_lo, n_hi, ridge, x):
    """The objective with the loss of STE; x (m,) is left behind."""
    total = ridge * np.sum(y * y)
    for t in range(len(b)):
        x[t] = b[t]
        for q in range(len(y)):
            x[t] -= 2.0 * v[t, q] * y[q]
        total += n_lo[t] * _softplus(x[t]) + n_hi[t] * _softplus(-x[t])
    return total


@njit(cache=True, nogil=True)
def _newton(free, fixed, given, start, all_lo, all_hi, all_n_lo, all_n_hi, ridge, tolerance, points, gap):
    """At a = w sigma(s x) the duality gap is |gradient|^2 / (4 ridge)."""
    r = free.shape[1]
    gradient, curve = np.empty(r), np.empty((r, r))
    for x in range(len(points)):
        here = slice(start[x], start[x + 1])
        n_lo, n_hi, m = all_n_lo[here], all_n_hi[here], start[x + 1] - start[x]
        if m == 0 or r == 0:
            continue
        v, b, excess, y = np.empty((m, r)), np.empty(m), np.empty(m), np.zeros(r)
        _lines(free, fixed, given[x], all_lo[here], all_hi[here], v, b)
        value = _value(y, v, b, n_lo, n_hi, ridge, excess)
        for _ in range(STEPS):
            for p in range(r):
                gradient[p] = 2.0 * ridge * y[p]
                for q in range(p + 1):
                    curve[p, q] = 2.0 * ridge * (p == q)
            for t in range(m):
                s = 1.0 / (1.0 + np.exp(-min(max(excess[t], -500.0), 500.0)))
                slope = 2.0 * (n_lo[t] * s - n_hi[t] * (1.0 - s))
                bend = 4.0 * (n_lo[t] + n_hi[t]) * s * (1.0 - s)
                for p in range(r):
                    gradient[p] -= slope * v[t, p]
                    w = bend * v[t, p]
                    for q in range(p + 1):
                        curve[p, q] += w * v[t, q]
            gap[x] = np.sum(gradient * gradient) / (4.0 * ridge) / value
            if gap[x] <= tolerance:
                break
            for p in range(r):
                for q in range(p):
                    curve[q, p] = curve[p, q]
            step = np.linalg.solve(curve, gradient)
            slope, length = np.sum(step * gradient), 1.0
            while True:
                there = y - length * step
                found = _value(there, v, b, n_lo, n_hi, ridge, excess)
                if found <= value - 1e-4 * length * slope + 1e-13 * value or length < 1e-9:
                    break
                length *= 0.5
            y, value = there, found
        points[x] = y


@njit(cache=True, nogil=True)
def _ascent(free, fixed, given, start, all_lo, all_hi, all_n_lo, all_n_hi, ridge, tolerance, points, gap):
    """y = sum s a v / ridge throughout; the exact maximum over one a after the other."""
    r = free.shape[1]
    for x in range(len(points)):
        here = slice(start[x], start[x + 1])
        n_lo, n_hi, m = all_n_lo[here], all_n_hi[here], start[x + 1] - start[x]
        if m == 0 or r == 0:
            continue
        v, b, y, a = np.empty((m, r)), np.empty(m), np.zeros(r), np.zeros((m, 2))
        _lines(free, fixed, given[x], all_lo[here], all_hi[here], v, b)
        length = np.empty(m)
        for t in range(m):
            length[t] = np.sum(v[t] * v[t])
        for done in range(PASSES):
            for t in range(m):
                for side in range(2):
                    most, sign = (n_lo[t], 1.0) if side == 0 else (n_hi[t], -1.0)
                    if most == 0.0:
                        continue
                    slack = 1.0 + sign * (b[t] - 2.0 * np.sum(v[t] * y))
                    if length[t] > 0.0:
                        new = min(max(a[t, side] + slack * ridge / (2.0 * length[t]), 0.0), most)
                    else:
                        new = most if slack > 0.0 else 0.0
                    if new != a[t, side]:
                        y += (sign * (new - a[t, side]) / ridge) * v[t]
                        a[t, side] = new
            if done % 10 == 9:
                y[:] = 0.0  # afresh, so that rounding in the running sums never reaches the certificate
                for t in range(m):
                    y += ((a[t, 0] - a[t, 1]) / ridge) * v[t]
                trace = ridge * np.sum(y * y)
                primal, dual = trace, -trace
                for t in range(m):
                    excess = b[t] - 2.0 * np.sum(v[t] * y)
                    primal += n_lo[t] * max(0.0, 1.0 + excess) + n_hi[t] * max(0.0, 1.0 - excess)
                    dual += a[t, 0] * (1.0 + b[t]) + a[t, 1] * (1.0 - b[t])
                gap[x] = (primal - dual) / primal if primal > 0.0 else 0.0
                if gap[x] <= tolerance:
                    break
        points[x] = y


BLOCK = 1 << 15  # objects that are joined at once
SMALL = 1e-9  # eigenvalues below this fraction of the largest are 0
NOTHING, LEARNED, EXTENDED = range(3)  # what is known of an object


class Model(NamedTuple):
    """What was learned over a subset of n' objects, and how others join."""

    trace: float  # of the learned kernel, of which Y and G may hold the largest directions only
    free: np.ndarray  # (n', r): Y
    fixed: np.ndarray  # (n', s): G
    given: Callable[[np.ndarray], np.ndarray]  # ids (q,) -> (q, s): rows of G, zeros where nothing is known
    has_given: np.ndarray  # (n,) bool: who has such a row
    ridge: float
    loss: str
    votes: Callable[[AnchorTriplets], AnchorTriplets] = lambda answers: answers  # weights of the answers


class Extension(NamedTuple):
    """`factor` (n, d) float32, zeros where nothing is known; `known` (n,) int8: NOTHING, LEARNED or EXTENDED."""

    factor: np.ndarray
    known: np.ndarray
    report: dict[str, Any]


def root(gram: np.ndarray, most: int) -> np.ndarray:
    """(n, r) with root root' ~ gram: its r <= `most` largest positive directions. O(n^3).

    >>> root(np.diag([4.0, 0.0, 1.0]), 1).round(3).tolist()
    [[2.0], [0.0], [0.0]]
    """
    values, vectors = np.linalg.eigh(gram)
    keep = np.flatnonzero(values > SMALL * max(values[-1], 0.0))[::-1][:most]
    vectors = vectors[:, keep] * np.sqrt(values[keep])
    largest = np.argmax(np.abs(vectors), axis=0) if len(keep) else keep
    return vectors * np.where(vectors[largest, np.arange(len(keep))] < 0, -1.0, 1.0)


def extension(columns: Columns, ids: np.ndarray, model: Model, directions: int, tolerance: float) -> Extension:
    """The factor over all of the snapshot's objects, whose triplet counts are `columns`; the subset are `ids`."""
    n, rest = columns.n_objects, np.setdiff1d(np.arange(columns.n_objects), ids)
    learned = np.concatenate([model.free, model.fixed], axis=1)
    _, sizes, axes = np.linalg.svd(learned, full_matrices=False)
    axes = axes[sizes > np.sqrt(SMALL) * sizes.max(initial=0.0)][:directions].T
    factor, known = np.zeros((n, axes.shape[1]), np.float32), np.full(n, NOTHING, np.int8)
    factor[ids], known[ids] = learned @ axes, LEARNED
    number, worst, beyond = renumbering(ids, n), 0.0, 0
    for begin in range(0, len(rest), BLOCK):
        here = rest[begin : begin + BLOCK]
        answers = model.votes(answers_of(columns, number, renumbering(here, n), len(here)))
        given = model.given(here)
        points, gap = extend(model.free, model.fixed, given, answers, model.ridge, model.loss, tolerance)
        joined = model.has_given[here] | ((np.diff(answers.start) > 0) & (model.free.shape[1] > 0))
        factor[here] = np.concatenate([points, given], axis=1) @ axes
        known[here[joined]] = EXTENDED
        worst, beyond = max(worst, float(gap.max(initial=0.0))), beyond + int((gap > tolerance).sum())
    extended = int((known == EXTENDED).sum())
    report = {
        "placed": extended,
        "nothing_known": len(rest) - extended,
        "directions": axes.shape[1],
        "directions_share": float((factor[ids].astype(float) ** 2).sum() / max(model.trace, 1e-300)),
        "placed_gap": worst,
        "placed_unfinished": beyond,
    }
    return Extension(factor, known, report)


def net(answers: AnchorTriplets) -> AnchorTriplets:
    """Each question with its net vote, for the side that more answers are for; ties count for none.

    >>> one = np.ones(2)
    >>> found = net(AnchorTriplets(np.array([0, 2]), one, one, np.array([3.0, 1.0]), np.array([1.0, 1.0])))
    >>> found.start.tolist(), found.n_lo.tolist(), found.n_hi.tolist()
    ([0, 1], [2.0], [0.0])
    """
    one, votes = majority(answers), np.abs(answers.n_lo - answers.n_hi)
    votes = votes[votes > 0]
    return one._replace(n_lo=one.n_lo * votes, n_hi=one.n_hi * votes)


def majority(answers: AnchorTriplets) -> AnchorTriplets:
    """One vote a question, for the side that more answers are for; ties count for none.

    >>> one = np.ones(2)
    >>> found = majority(AnchorTriplets(np.array([0, 2]), one, one, np.array([3.0, 1.0]), np.array([1.0, 1.0])))
    >>> found.start.tolist(), found.n_lo.tolist(), found.n_hi.tolist()
    ([0, 1], [1.0], [0.0])
    """
    decided = answers.n_lo != answers.n_hi
    start = np.append(0, np.cumsum(decided))[answers.start].astype(np.int64)
    lo_wins = (answers.n_lo > answers.n_hi)[decided]
    return AnchorTriplets(
        start, answers.lo[decided], answers.hi[decided], lo_wins.astype(float), (~lo_wins).astype(float)
    )
