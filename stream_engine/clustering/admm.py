"""Two-block ADMM (Douglas-Rachford) for both SDPs, with a rigorous gap as its stopping rule.

The two sets are S1 = {X psd, X <= I, X 1 = 1 [, tr X = k]} (projection: one eigen step) and S2 = {X >= 0}. One matrix V
carries primal and dual: Z = max(V, 0) is the nonnegative iterate, N = rho max(-V, 0) the multiplier of X >= 0, and

    X = P_S1(|V| + C / rho),    V <- V + alpha (X - Z),    alpha = 1.6.

C is W - lambda I scaled to unit spectral norm about. Every `CHECK` iterations the iterate is repaired to a strictly
feasible point (lower bound) and N gives an upper bound on the optimum; rho is moved so that both sides of the gap
close together. Anderson acceleration on V is used where the eigen step dominates. Memory: about 7 n^2 doubles, 15 with
acceleration. Per iteration one eigen step: O(n^2 r) while the rank r of X is small, O(n^3) otherwise.

The elementwise passes of the ADMM over (n, n) matrices, fused so that each touches memory once.

Anderson acceleration of a fixed-point map (type II, Walker & Ni 2011), guarded.

The accelerated point is the combination of the last images whose residuals combine to the smallest norm. A residual
that more than doubles after such a jump throws the history away. History is kept in float32: it only proposes a point,
and the map itself corrects what rounding did. Its Gram matrix is regularised by far more than that rounding: else the
weights may follow it, and V drifts along directions in which the residual is flat. Memory 2 m n^2 floats for memory m.

The solver's state inside an artifact: V carries primal and dual, so the next refit starts near its optimum.

One upper triangle of float32 a state (2 n^2 bytes): it is a start, which the iteration corrects, not a result. Kept by
object id, so it survives new objects: their rows begin at zero.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stream_engine.clustering.dual_bounds import feasible, upper_bound
from stream_engine.clustering.projection import SINGLE_ABOVE, Eigen, projected
from stream_engine.data.compiled import njit
from stream_engine.state.artifact import Artifact

MEMORY = 8
REGULARISED = 1e-5  # of the mean squared residual; float32 has 1e-7


class Anderson:
    """Invariant: `images[s]` = T(v) and `residuals[s]` = T(v) - v for the same v, `products` their Gram matrix."""

    def __init__(self, size: int):
        self.images = np.empty((0, 0), np.float32)
        self.residuals = np.empty((0, 0), np.float32)
        self.size = size
        self.forget()

    def forget(self) -> None:
        """Start a new history."""
        self.count, self.at, self.squares = 0, 0, np.inf
        self.products = np.zeros((MEMORY, MEMORY))

    def offer(self, v: np.ndarray, image: np.ndarray, squares: float, jump: bool) -> None:
        """Take note of image = T(v); with `jump`, overwrite it by the accelerated point when there is a good one."""
        if squares > 4 * self.squares:
            self.forget()
        if not len(self.images):
            self.images = np.empty((MEMORY, self.size), np.float32)
            self.residuals = np.empty((MEMORY, self.size), np.float32)
        at = self.at
        self.images[at] = image.ravel()
        np.subtract(self.images[at], v.ravel(), out=self.residuals[at])
        self.count = min(self.count + 1, MEMORY)
        self.at = (at + 1) % MEMORY
        row = self.residuals[: self.count] @ self.residuals[at]
        self.products[at, : self.count] = self.products[: self.count, at] = row
        if jump and self.count >= 3:
            self._jump(image, squares)

    def _jump(self, image: np.ndarray, squares: float) -> None:
        gram = self.products[: self.count, : self.count]
        gram = gram + REGULARISED * np.trace(gram) / self.count * np.eye(self.count)
        weights = np.linalg.solve(gram, np.ones(self.count))
        weights /= weights.sum()
        if np.isfinite(weights).all() and np.abs(weights).sum() < 1e4:
            # the latest image stays exact in float64; the rest enters as float32 products, equal for (i, j) and (j, i)
            weights[(self.at - 1) % MEMORY] -= 1.0
            for weight, each in zip(weights.tolist(), self.images):
                image += (weight * each).reshape(image.shape)
            self.squares = squares


@njit(cache=True)
def target(V, C, scale, out):
    """out = |V| + scale C; returns its row means."""
    n = V.shape[0]
    means = np.empty(n)
    for i in range(n):
        total = 0.0
        for j in range(n):
            value = abs(V[i, j]) + scale * C[i, j]
            out[i, j] = value
            total += value
        means[i] = total / n
    return means


@njit(cache=True)
def reflected(V, X, flat, alpha, out):
    """out = V + alpha (X + flat - max(V, 0)); returns |X + flat - max(V, 0)|_F^2, least X + flat."""
    n = V.shape[0]
    squares, least = 0.0, np.inf
    for i in range(n):
        part = 0.0
        for j in range(n):
            x = X[i, j] + flat
            v = V[i, j]
            r = x - v if v > 0.0 else x
            least = min(least, x)
            part += r * r
            out[i, j] = v + alpha * r
        squares += part
    return squares, least


@njit(cache=True)
def with_multiplier(V, C, rho, out):
    """out = C + N with N = rho max(-V, 0)."""
    n = V.shape[0]
    for i in range(n):
        for j in range(n):
            v = V[i, j]
            out[i, j] = C[i, j] - rho * v if v < 0.0 else C[i, j]


@njit(cache=True)
def rescaled(V, factor):
    """The negative part of V times `factor`, in place."""
    n = V.shape[0]
    for i in range(n):
        for j in range(n):
            if V[i, j] < 0.0:
                V[i, j] *= factor


ALPHA = 1.6
CHECK = 10
ACCELERATE_EVERY = 5
ACCELERATE_UP_TO = 1500  # objects: above, its history would not fit beside the rest
BALANCE = 1.4
PENALTY = 0.3, 300.0  # where the balance may move rho to


class State(NamedTuple):
    """What a later run can start from: primal and dual in one matrix, for W / scale and the penalty rho."""

    V: np.ndarray  # (n, n)
    rho: float


class Run(NamedTuple):
    """How the ADMM ended. `X` is strictly feasible; the last iterate is 1 1'/n + factor diag(x) factor'."""

    X: np.ndarray
    objective: float  # <C, X>, unscaled
    upper_bound: float
    factor: np.ndarray  # (n, r)
    x: np.ndarray  # (r,)
    state: State
    iterations: int


def run(
    C: np.ndarray,
    k: int | None,
    scale: float,
    unit: Callable[[np.ndarray, float], float],
    tol: float,
    max_iterations: int,
    start: State,
    known: float = -np.inf,
    progress: Callable[[int, float, float, float], bool | None] | None = None,
) -> Run:
    """Iterate on C (n, n), which is (W - lambda I) / scale, until (upper bound - best objective) <= tol * unit.

    `unit(X, objective)` is what the gap is measured against, in scaled terms. `known`: objective of a feasible point
    that the caller holds (it counts in the gap, though X here may be another). `progress(iteration, gap, objective,
    bound)` ends the iteration where it returns True.
    """
    loop = _Loop(C, k, unit, tol, start, known)
    while loop.iteration < max_iterations:
        loop.step()
        last = loop.iteration == max_iterations
        if loop.iteration % CHECK == 0 or last:
            gap = loop.check(last)
            enough = progress and progress(loop.iteration, gap, max(loop.lower, known) * scale, loop.upper * scale)
            if gap <= tol or enough:
                break
    return Run(
        loop.best, loop.lower * scale, loop.upper * scale, loop.factor, loop.x, State(loop.V, loop.rho), loop.iteration
    )


class _Loop:
    """The iteration's working memory. Invariant: `lower` <= optimum <= `upper`, and `best` is feasible with `lower`."""

    def __init__(self, C, k, unit, tol, start: State, known: float):
        self.C, self.k, self.unit, self.tol, self.known = C, k, unit, tol, known
        self.n = len(C)
        self.V, self.rho = np.array(start.V), start.rho
        self.work, self.next = np.empty_like(self.V), np.empty_like(self.V)
        self.eigen = Eigen(self.n)
        self.anderson = Anderson(self.V.size) if self.n <= ACCELERATE_UP_TO else None
        self.iteration, self.lower, self.upper = 0, -np.inf, np.inf
        self.best = np.empty((0, 0))  # none before the first check
        self.factor, self.x, self.low_rank = np.empty((self.n, 0)), np.empty(0), False  # X = 1 1'/n

    def step(self) -> None:
        """One iteration: V becomes V + alpha (X - Z), or an accelerated point."""
        self.iteration += 1
        means = target(self.V, self.C, 1.0 / self.rho, self.work)
        before = self.eigen.expected
        values, vectors = self.eigen.leading(self.work, means)
        x = projected(values, self.k)
        count = int((x > 0).sum())
        self.eigen.used(count, vectors)
        self.low_rank = before <= 0.08 * self.n
        self.factor, self.x = vectors[:, :count], x[:count]
        half = self.factor * np.sqrt(self.x)
        np.matmul(half, half.T, out=self.work)
        squares, _ = reflected(self.V, self.work, 1.0 / self.n, ALPHA, self.next)
        if self.anderson is not None and not self.low_rank:
            self.anderson.offer(self.V, self.next, squares, self.iteration % ACCELERATE_EVERY == 0)
        self.V, self.next = self.next, self.V

    def check(self, last: bool) -> float:
        """Bring both bounds up to date; the gap relative to `unit`. Moves rho when one side lags behind."""
        self.work += 1.0 / self.n  # X of the last step
        value = float(np.vdot(self.C, self.work))
        point = feasible(self.work, self.k)
        lower = float(np.vdot(self.C, point))
        if lower > self.lower:
            self.lower, self.best = lower, point.copy() if point is self.work else point
        size = self.unit(point, lower)
        with_multiplier(self.V, self.C, self.rho, self.work)
        slack = 0.2 * self.tol * size
        upper = upper_bound(self.work, self.k, slack, self.factor if self.low_rank else None)
        self.upper = min(self.upper, upper)
        # the lower side lags by no more than what the caller's own point leaves open
        self._balance(min(abs(value - lower), max(upper - self.known, 0.5 * self.tol * size)), abs(upper - value))
        gap = max(0.0, self.upper - max(self.lower, self.known)) / size
        self.eigen.single &= gap > SINGLE_ABOVE
        return gap

    def _balance(self, primal: float, dual: float) -> None:
        factor = BALANCE if primal > 3 * dual else 1 / BALANCE if dual > 3 * primal else 1.0
        if factor != 1.0 and PENALTY[0] <= self.rho * factor <= PENALTY[1]:
            self.rho *= factor
            rescaled(self.V, 1 / factor)
            if self.anderson is not None:
                self.anderson.forget()


SHARED = 0.8  # of the objects must have been there before, else a cold start is as good


def warm_arrays(states: dict[int, State], ids: np.ndarray) -> dict[str, np.ndarray]:
    """`warm_ids` (m,), `warm_k` (s,) with 0 for SDP-lambda, `warm_rho` (s,), `warm_v` (s, m (m + 1) / 2) float32."""
    if not states:
        return {}
    upper = np.triu_indices(len(ids))
    return {
        "warm_ids": np.asarray(ids, np.int32),
        "warm_k": np.array(list(states), np.int64),
        "warm_rho": np.array([state.rho for state in states.values()]),
        "warm_v": np.stack([state.V[upper].astype(np.float32) for state in states.values()]),
    }


def warm_states(previous: Artifact | None, params, ids: np.ndarray) -> dict[int, State]:
    """States of the previous artifact for these objects, by k; none when it holds none or was of another similarity."""
    if previous is None or "warm_v" not in previous.arrays or previous.params.get("similarity") != params.similarity:
        return {}
    old_ids = np.asarray(previous.arrays["warm_ids"])
    place = {int(object): at for at, object in enumerate(old_ids)}
    known = np.array([place.get(int(object), -1) for object in ids])
    here = np.flatnonzero(known >= 0)
    if len(here) < SHARED * len(ids):
        return {}
    upper, by_k = np.triu_indices(len(old_ids)), {}
    for row, k in enumerate(np.asarray(previous.arrays["warm_k"]).tolist()):
        V = np.zeros((len(old_ids), len(old_ids)))
        V[upper] = previous.arrays["warm_v"][row]
        V.T[upper] = V[upper]
        grown = np.zeros((len(ids), len(ids)))
        grown[np.ix_(here, here)] = V[np.ix_(known[here], known[here])]
        by_k[k] = State(grown, float(previous.arrays["warm_rho"][row]))
    return by_k
