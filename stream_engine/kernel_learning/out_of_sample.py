"""Out-of-sample extension: a convex problem of r unknowns for each object outside the subset on which a kernel was
learned."""

from typing import NamedTuple

import numpy as np

from stream_engine.counts.gram_matrices import read_only
from stream_engine.data.compiled import njit
from stream_engine.data.triplet_columns import Columns

# With the points of lo and hi fixed, d(x, lo) - d(x, hi) is linear in the coordinates of x, so what a refit minimises
# over the row of one more object, its comparisons as an anchor alone, all else fixed, is
#
#     min_y  ridge |y|^2 + sum_t [n_lo loss(x_t) + n_hi loss(-x_t)],     x_t = b_t - 2 <y, v_t>
#     v_t = Y_lo - Y_hi,   b_t = |Y_lo|^2 - |Y_hi|^2 + |G_lo|^2 - |G_hi|^2 - 2 <g, G_lo - G_hi>
#
# for learned coordinates Y of the subset, and coordinates G that come from auxiliary kernels (g: those of x). loss is
# that of STE, log(1 + e^x), or the hinge max(0, 1 + x); ridge is the refit's weight of the trace, which is |y|^2 for a
# row of a factor. Solved exactly: damped Newton (STE), dual coordinate ascent (hinge), both until (primal - dual) /
# primal <= tolerance:
#
#     dual(a) = sum_t s_t a_t b_t - w_t loss*(a_t / w_t) - |sum_t s_t a_t v_t|^2 / ridge,    0 <= a_t <= w_t, s_t = +-1
#
# over directed comparisons (loss* as in `problem`). O(m_x r^2 + r^3) a step of Newton, O(m_x r) a pass of the ascent.
MAX_PASSES = 10_000  # of coordinate ascent over the comparisons of one object
MAX_NEWTON_STEPS = 200


class AnchorTriplets(NamedTuple):
    """The answers with other objects as anchors and pairs of objects of the subset, anchor by anchor: those of x are
    start[x]:start[x + 1]."""

    start: np.ndarray  # (q + 1,) int64
    lo: np.ndarray  # (m,) int32: numbers of objects of the subset
    hi: np.ndarray  # (m,) int32
    n_lo: np.ndarray  # (m,) float64: how often, or with which weight, lo was nearer
    n_hi: np.ndarray  # (m,) float64


class ExtendedPoints(NamedTuple):
    """`points` (q, r), 0 without answers; `gap` (q,): (primal - dual) / primal, at most so far from optimal."""

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
def _count(lo, hi, start, anchor, number, place, counts):
    for p in range(len(lo)):
        if number[lo[p]] >= 0 and number[hi[p]] >= 0:
            for e in range(start[p], start[p + 1]):
                if place[anchor[e]] >= 0:
                    counts[place[anchor[e]] + 1] += 1


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
    Y: np.ndarray,
    G: np.ndarray,
    g: np.ndarray,
    answers: AnchorTriplets,
    ridge: float,
    loss: str,
    tolerance: float = 1e-4,
) -> ExtendedPoints:
    """The coordinates y of the anchors of `answers`; Y (n', r) and G (n', s) of the subset, g (q, s) of the anchors.

    >>> answers = AnchorTriplets(np.array([0, 1]), np.array([0]), np.array([1]), np.array([2.0]), np.array([0.0]))
    >>> found = extend(np.array([[-1.0], [1.0]]), np.empty((2, 0)), np.empty((1, 0)), answers, 1.0, "hinge")
    >>> found.points.round(3).tolist()          # |y|^2 + 2 max(0, 1 + 4 y): as near to 0 as satisfies it
    [[-0.25]]
    """
    if not ridge > 0 or loss not in ("ste", "hinge"):
        raise ValueError(f"extend: got ridge {ridge} and loss {loss!r}; expected ridge > 0 and 'ste' or 'hinge'")
    points, gap = np.zeros((len(answers.start) - 1, Y.shape[1])), np.zeros(len(answers.start) - 1)
    Y, G, g = (read_only(array, np.float64) for array in (Y, G, g))
    start, lo, hi, n_lo, n_hi = (read_only(array) for array in answers)
    solve = _newton if loss == "ste" else _ascent
    solve(Y, G, g, start, lo, hi, n_lo, n_hi, float(ridge), float(tolerance), points, gap)
    return ExtendedPoints(points, gap)


@njit(cache=True, nogil=True)
def _lines(Y, G, g, lo, hi, v, b):
    """v (m, r) and b (m,) of one object's comparisons."""
    for t in range(len(lo)):
        i, j = lo[t], hi[t]
        b[t] = 0.0
        for q in range(Y.shape[1]):
            v[t, q] = Y[i, q] - Y[j, q]
            b[t] += Y[i, q] * Y[i, q] - Y[j, q] * Y[j, q]
        for q in range(G.shape[1]):
            b[t] += G[i, q] * G[i, q] - G[j, q] * G[j, q] - 2.0 * g[q] * (G[i, q] - G[j, q])


@njit(cache=True, nogil=True)
def _softplus(x):
    return max(x, 0.0) + np.log1p(np.exp(-abs(x)))


@njit(cache=True, nogil=True)
def _value(y, v, b, n_lo, n_hi, ridge, x):
    """The objective with the loss of STE; its x (m,) are written to `x`."""
    total = ridge * np.sum(y * y)
    for t in range(len(b)):
        x[t] = b[t]
        for q in range(len(y)):
            x[t] -= 2.0 * v[t, q] * y[q]
        total += n_lo[t] * _softplus(x[t]) + n_hi[t] * _softplus(-x[t])
    return total


@njit(cache=True, nogil=True)
def _newton(Y, G, g, start, all_lo, all_hi, all_n_lo, all_n_hi, ridge, tolerance, points, gap):
    """Damped Newton; at a = w sigma(s x) the duality gap is |gradient|^2 / (4 ridge)."""
    r = Y.shape[1]
    gradient, hessian = np.empty(r), np.empty((r, r))
    for x in range(len(points)):
        entries = slice(start[x], start[x + 1])
        n_lo, n_hi, m = all_n_lo[entries], all_n_hi[entries], start[x + 1] - start[x]
        if m == 0 or r == 0:
            continue
        v, b, excess, y = np.empty((m, r)), np.empty(m), np.empty(m), np.zeros(r)
        _lines(Y, G, g[x], all_lo[entries], all_hi[entries], v, b)
        value = _value(y, v, b, n_lo, n_hi, ridge, excess)
        for _ in range(MAX_NEWTON_STEPS):
            for p in range(r):
                gradient[p] = 2.0 * ridge * y[p]
                for q in range(p + 1):
                    hessian[p, q] = 2.0 * ridge * (p == q)
            for t in range(m):
                s = 1.0 / (1.0 + np.exp(-min(max(excess[t], -500.0), 500.0)))
                slope = 2.0 * (n_lo[t] * s - n_hi[t] * (1.0 - s))
                curvature = 4.0 * (n_lo[t] + n_hi[t]) * s * (1.0 - s)
                for p in range(r):
                    gradient[p] -= slope * v[t, p]
                    w = curvature * v[t, p]
                    for q in range(p + 1):
                        hessian[p, q] += w * v[t, q]
            gap[x] = np.sum(gradient * gradient) / (4.0 * ridge) / value
            if gap[x] <= tolerance:
                break
            for p in range(r):
                for q in range(p):
                    hessian[q, p] = hessian[p, q]
            step = np.linalg.solve(hessian, gradient)
            slope, length = np.sum(step * gradient), 1.0
            while True:
                candidate = y - length * step
                candidate_value = _value(candidate, v, b, n_lo, n_hi, ridge, excess)
                if candidate_value <= value - 1e-4 * length * slope + 1e-13 * value or length < 1e-9:
                    break
                length *= 0.5
            y, value = candidate, candidate_value
        points[x] = y


@njit(cache=True, nogil=True)
def _ascent(Y, G, g, start, all_lo, all_hi, all_n_lo, all_n_hi, ridge, tolerance, points, gap):
    """Dual coordinate ascent: the exact maximum over one a after the other, with y = sum s a v / ridge throughout."""
    r = Y.shape[1]
    for x in range(len(points)):
        entries = slice(start[x], start[x + 1])
        n_lo, n_hi, m = all_n_lo[entries], all_n_hi[entries], start[x + 1] - start[x]
        if m == 0 or r == 0:
            continue
        v, b, y, a = np.empty((m, r)), np.empty(m), np.zeros(r), np.zeros((m, 2))
        _lines(Y, G, g[x], all_lo[entries], all_hi[entries], v, b)
        length = np.empty(m)
        for t in range(m):
            length[t] = np.sum(v[t] * v[t])
        for n_passes in range(MAX_PASSES):
            for t in range(m):
                for side in range(2):
                    limit, sign = (n_lo[t], 1.0) if side == 0 else (n_hi[t], -1.0)
                    if limit == 0.0:
                        continue
                    slack = 1.0 + sign * (b[t] - 2.0 * np.sum(v[t] * y))
                    if length[t] > 0.0:
                        new = min(max(a[t, side] + slack * ridge / (2.0 * length[t]), 0.0), limit)
                    else:
                        new = limit if slack > 0.0 else 0.0
                    if new != a[t, side]:
                        y += (sign * (new - a[t, side]) / ridge) * v[t]
                        a[t, side] = new
            if n_passes % 10 == 9:
                y[:] = 0.0  # recomputed, so that rounding in the running sums never reaches the certificate
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


def net(answers: AnchorTriplets) -> AnchorTriplets:
    """Each question with its net vote, for the side with more answers; ties are left out.

    >>> one = np.ones(2)
    >>> found = net(AnchorTriplets(np.array([0, 2]), one, one, np.array([3.0, 1.0]), np.array([1.0, 1.0])))
    >>> found.start.tolist(), found.n_lo.tolist(), found.n_hi.tolist()
    ([0, 1], [2.0], [0.0])
    """
    single_votes, votes = majority(answers), np.abs(answers.n_lo - answers.n_hi)
    votes = votes[votes > 0]
    return single_votes._replace(n_lo=single_votes.n_lo * votes, n_hi=single_votes.n_hi * votes)


def majority(answers: AnchorTriplets) -> AnchorTriplets:
    """One vote a question, for the side with more answers; ties are left out.

    >>> one = np.ones(2)
    >>> found = majority(AnchorTriplets(np.array([0, 2]), one, one, np.array([3.0, 1.0]), np.array([1.0, 1.0])))
    >>> found.start.tolist(), found.n_lo.tolist(), found.n_hi.tolist()
    ([0, 1], [1.0], [0.0])
    """
    is_decided = answers.n_lo != answers.n_hi
    start = np.append(0, np.cumsum(is_decided))[answers.start].astype(np.int64)
    lo_wins = (answers.n_lo > answers.n_hi)[is_decided]
    return AnchorTriplets(
        start, answers.lo[is_decided], answers.hi[is_decided], lo_wins.astype(float), (~lo_wins).astype(float)
    )
