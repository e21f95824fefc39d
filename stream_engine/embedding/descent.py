"""L-BFGS, compiled: the minimum of a smooth function of many variables (Liu & Nocedal 1989; Nocedal & Wright 2006,
alg. 7.4 and 7.5; line search with both strong Wolfe conditions by cubic interpolation, ch. 3.5).

The caller evaluates the function and hands value and slope to `advance`, which says where to evaluate next. So one
optimiser serves functions that are compiled, without Python between two evaluations (`embedding.fit`), and those that
are not (`minimise`). scipy's L-BFGS-B takes as many evaluations; its Python around each costs 0.1 ms, several times
what the likelihood of a survey of 2,000 answers costs.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from stream_engine.data.compiled import njit

MEMORY = 12  # steps that the inverse Hessian is approximated by
DECREASE, FLATTER = 1e-3, 0.9  # Wolfe's conditions: the least decrease, and the largest slope that is left
TRIALS = 20  # evaluations of one line search
NARROW = 0.1  # a line search ends where its interval is this part of its upper end

RUNNING, CONVERGED, STUCK, CUT = range(4)  # `State.counts[STATUS]`
STORED, NEXT, ITERATIONS, EVALUATIONS, SEARCHED, STATUS = range(6)  # in `State.counts`
VALUE, SLOPE, LENGTH, LOW, LOW_VALUE, LOW_SLOPE, HIGH, HIGH_VALUE, HIGH_SLOPE = range(9)  # in `State.search`


class State(NamedTuple):
    """A descent between two evaluations."""

    trial: np.ndarray  # (N,): where to evaluate
    base: np.ndarray  # (3, N): the last accepted point, its slope, the direction of the search
    steps: np.ndarray  # (MEMORY, N): between accepted points
    changes: np.ndarray  # (MEMORY, N): of the slope, along with each step
    products: np.ndarray  # (MEMORY,): steps' changes
    search: np.ndarray  # (9,): of the line search
    counts: np.ndarray  # (6,) int64


class Minimum(NamedTuple):
    """The best point of a descent."""

    x: np.ndarray
    value: float
    slope: np.ndarray
    iterations: int
    evaluations: int
    converged: bool


def begin(x: np.ndarray) -> State:
    """A descent that begins at x (N,)."""
    size = len(x)
    history = np.zeros((MEMORY, size)), np.zeros((MEMORY, size)), np.zeros(MEMORY)
    return State(np.array(x, np.float64), np.zeros((3, size)), *history, np.zeros(9), np.zeros(6, np.int64))


def minimum(state: State) -> Minimum:
    """Where a descent is."""
    counts = state.counts
    best = state.base[0], float(state.search[VALUE]), state.base[1]
    return Minimum(*best, int(counts[ITERATIONS]), int(counts[EVALUATIONS]), bool(counts[STATUS] != CUT))


def minimise(
    function: Callable[[np.ndarray], tuple[float, np.ndarray]],
    x: np.ndarray,
    *,
    tolerance: float,
    max_iterations: int,
    progress: Callable[[int], object] = lambda iterations: None,
) -> Minimum:
    """The minimum of a function that gives its value and slope (N,), from x (N,). Ends when an iteration gains less
    than `tolerance` of the value (of 1, where that is smaller), or finds nothing better. O(MEMORY N) an iteration
    beside the evaluations; deterministic."""
    state, before = begin(x), 0
    while state.counts[STATUS] == RUNNING:
        advance(*state, *function(state.trial), tolerance, max_iterations)
        if state.counts[ITERATIONS] > before:
            before = int(state.counts[ITERATIONS])
            progress(before)
    return minimum(state)


@njit(cache=True, nogil=True)
def advance(trial, base, steps, changes, products, search, counts, value, slope, tolerance, max_iterations):
    """Take the value and the slope (N,) at `trial` in; `trial` is where to evaluate next, unless the status says that
    the descent has ended."""
    counts[EVALUATIONS] += 1
    if counts[EVALUATIONS] == 1:
        _accept(base, search, trial, slope, value)
        if max_iterations < 1 or not np.isfinite(value):
            counts[STATUS] = CUT
        elif _dot(slope, slope) == 0.0:
            counts[STATUS] = CONVERGED
        else:
            _turn(trial, base, steps, changes, products, search, counts)
        return
    counts[SEARCHED] += 1
    along = _dot(slope, base[2])
    if not _ends(value, along, search, counts[SEARCHED]):
        if counts[SEARCHED] < TRIALS:
            _place(trial, base, search[LENGTH])
        elif counts[STORED] > 0:  # what is remembered no longer helps
            counts[STORED] = counts[NEXT] = 0
            _turn(trial, base, steps, changes, products, search, counts)
        else:
            counts[STATUS] = STUCK
        return
    at = counts[NEXT]
    for t in range(len(trial)):
        steps[at, t] = trial[t] - base[0, t]
        changes[at, t] = slope[t] - base[1, t]
    products[at] = _dot(steps[at], changes[at])
    if products[at] > 1e-14 * _dot(changes[at], changes[at]):
        counts[NEXT] = (at + 1) % MEMORY
        counts[STORED] = min(counts[STORED] + 1, MEMORY)
    else:  # not remembered; the oldest had its place
        counts[STORED] = min(counts[STORED], MEMORY - 1)
    gain, size = search[VALUE] - value, max(abs(search[VALUE]), abs(value), 1.0)
    _accept(base, search, trial, slope, value)
    counts[ITERATIONS] += 1
    if gain <= tolerance * size or _dot(slope, slope) == 0.0:
        counts[STATUS] = CONVERGED
    elif counts[ITERATIONS] >= max_iterations:
        counts[STATUS] = CUT
    else:
        _turn(trial, base, steps, changes, products, search, counts)


@njit(cache=True, nogil=True)
def _turn(trial, base, steps, changes, products, search, counts):
    """The next direction, - H slope by the two loops over what is remembered, and its first trial."""
    direction, weights, stored = base[2], np.zeros(MEMORY), counts[STORED]
    _downhill(base)
    for age in range(stored):
        at = (counts[NEXT] - 1 - age) % MEMORY
        weights[at] = _dot(steps[at], direction) / products[at]
        _add(direction, -weights[at], changes[at])
    if stored > 0:
        at = (counts[NEXT] - 1) % MEMORY
        _add(direction, products[at] / _dot(changes[at], changes[at]) - 1.0, direction)
    for age in range(stored - 1, -1, -1):
        at = (counts[NEXT] - 1 - age) % MEMORY
        _add(direction, weights[at] - _dot(changes[at], direction) / products[at], steps[at])
    along = _dot(direction, base[1])
    if not along < 0.0:
        stored = counts[STORED] = counts[NEXT] = 0
        _downhill(base)
        along = _dot(direction, base[1])
    search[SLOPE] = search[LOW_SLOPE] = along
    search[LOW_VALUE] = search[VALUE]
    search[LOW], search[HIGH] = 0.0, np.inf
    search[LENGTH] = 1.0 if stored > 0 else min(1.0, 1.0 / np.sqrt(-along))
    counts[SEARCHED] = 0
    _place(trial, base, search[LENGTH])


@njit(cache=True, nogil=True)
def _accept(base, search, trial, slope, value):
    search[VALUE] = value
    for t in range(len(trial)):
        base[0, t], base[1, t] = trial[t], slope[t]


@njit(cache=True, nogil=True)
def _downhill(base):
    for t in range(base.shape[1]):
        base[2, t] = -base[1, t]


@njit(cache=True, nogil=True)
def _place(trial, base, length):
    for t in range(len(trial)):
        trial[t] = base[0, t] + length * base[2, t]


@njit(cache=True, nogil=True)
def _ends(value, along, search, searched):
    """Whether the line search ends with this value and slope at its length; otherwise, `search` has the next one."""
    length = search[LENGTH]
    enough = value <= search[VALUE] + DECREASE * length * search[SLOPE]
    if enough and abs(along) <= -FLATTER * search[SLOPE]:
        return True
    if not enough or along > 0.0 or value > search[LOW_VALUE]:
        search[HIGH], search[HIGH_VALUE], search[HIGH_SLOPE] = length, value, along
        if enough and search[HIGH] - search[LOW] <= NARROW * search[HIGH]:
            return True
    else:
        if searched >= TRIALS or search[HIGH] - length <= NARROW * search[HIGH] < np.inf:
            return True
        low = search[LOW], search[LOW_VALUE], search[LOW_SLOPE]
        search[LOW], search[LOW_VALUE], search[LOW_SLOPE] = length, value, along
        if search[HIGH] == np.inf:
            farther = _cubic(*low, length, value, along)
            step = length - low[0]
            search[LENGTH] = min(max(farther, length + 0.1 * step), length + 3.0 * step)
            return False
    low, width = search[LOW], search[HIGH] - search[LOW]
    inside = _cubic(low, search[LOW_VALUE], search[LOW_SLOPE], search[HIGH], search[HIGH_VALUE], search[HIGH_SLOPE])
    search[LENGTH] = min(max(inside, low + 0.1 * width), low + 0.9 * width) if np.isfinite(inside) else low + width / 2
    return False


@njit(cache=True, nogil=True)
def _cubic(a, value_a, slope_a, b, value_b, slope_b):
    """The minimum of the cubic with these values and slopes at a <= b; infinite where it has none."""
    if a == b:
        return np.inf
    middle = slope_a + slope_b - 3.0 * (value_a - value_b) / (a - b)
    root = middle * middle - slope_a * slope_b
    if not root >= 0.0:
        return np.inf
    root = np.sqrt(root)
    below = slope_b - slope_a + 2.0 * root
    if below == 0.0:
        return np.inf
    return b - (b - a) * (slope_b + root - middle) / below


@njit(cache=True, nogil=True, fastmath=True)
def _dot(one, other):
    total = 0.0
    for t in range(len(one)):
        total += one[t] * other[t]
    return total


@njit(cache=True, nogil=True, fastmath=True)
def _add(to, factor, vector):
    for t in range(len(to)):
        to[t] += factor * vector[t]
