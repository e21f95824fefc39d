"""Points and lapses that make the answers likely: L-BFGS over X and the logits of the lapses, together.

    min  L(X, lapse) + ridge |X|^2 - log prior(lapse, guessers)

Ridge on X is the trace norm of the kernel XX' (Srebro, Rennie & Jaakkola 2004, sec. 3), so with d large enough this is
Heim et al.'s RCKL-T with lambda1 = ridge, not convex in X but without poor minima in practice, at O(q d) an iteration
instead of O(n^3). The prior of the lapses has two populations, who know and who guess (`lapse_prior`).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stream_engine.data.compiled import njit
from stream_engine.embedding import descent, minibatch, starts
from stream_engine.embedding.descent import ITERATIONS, RUNNING, STATUS, Minimum, advance, minimise
from stream_engine.embedding.fit_tables import FitTables
from stream_engine.embedding.gradient import add_answers
from stream_engine.embedding.lapse_prior import FIRST, LEAST, MOST
from stream_engine.embedding.lapse_prior import cost as prior_cost
from stream_engine.embedding.principal_axes import on_principal_axes
from stream_engine.embedding.questions import Questions
from stream_engine.evaluation.answer_probabilities import STE

LARGE = 2e6  # questions times dimensions above which stochastic passes come first, and L-BFGS ends earlier
ROUGH = 1e-4  # the tolerance there
SPREAD = 3.0  # of random points that passes begin at, in units of `starts.at_random`
OFTEN = 2e6  # questions times dimensions times iterations after which progress is told
KERNELS = ("ste", "t-ste")


class Setting(NamedTuple):
    """What is not fitted but given or chosen."""

    kernel: str  # one of KERNELS
    d: int
    ridge: float


class Embedding(NamedTuple):
    """What was found."""

    points: np.ndarray  # (n, d) on principal axes
    lapse: np.ndarray  # (n_workers,)
    ridge: float
    alpha: float  # 0: STE; else t-STE's
    objective: float
    log_likelihood: float  # of all answers, in nats
    iterations: int
    evaluations: int
    converged: bool
    slope: float  # the largest entry of the objective's gradient, by the number of answers
    guessers: float = 0.0  # the share of the named workers who guess


def alpha_of(kernel: str, d: int) -> float:
    """t-STE's degrees of freedom d - 1, at least 1 (van der Maaten & Weinberger 2012, sec. 4); 0 for STE."""
    if kernel not in KERNELS:
        raise ValueError(f"embedding: got kernel {kernel!r}, expected one of {', '.join(KERNELS)}")
    return STE if kernel == "ste" else float(max(d - 1, 1))


class _Descent(NamedTuple):
    """Where a descent ended."""

    minimum: Minimum
    points: np.ndarray
    lapse: np.ndarray
    guessers: float

    def embedding(self, tables: FitTables, ridge: float, alpha: float) -> Embedding:
        """On principal axes. O(q d)."""
        minimum, questions = self.minimum, tables.questions
        points = on_principal_axes(self.points, questions)
        return Embedding(
            points,
            self.lapse,
            ridge,
            alpha,
            minimum.value,
            -tables.loss(alpha)(points, self.lapse)[0],
            minimum.iterations,
            minimum.evaluations,
            minimum.converged,
            float(np.abs(minimum.slope).max(initial=0.0)) / max(questions.answers, 1.0),
            self.guessers,
        )


def fit(
    questions: Questions,
    d: int,
    ridge: float,
    *,
    kernel: str = "ste",
    start: np.ndarray | None = None,
    lapse: np.ndarray | None = None,
    fixed_lapse: bool = False,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
    tables: FitTables | None = None,
) -> Embedding:
    """Points in d dimensions. `start` (n, any number of columns): where to begin, by default `starts.directions`, or
    for many questions `minibatch.descend`; `lapse` (n_workers,): likewise; with `fixed_lapse` it stays there, by
    default at 0. Ends when an iteration gains less than `tolerance` of the objective (for many questions `ROUGH`).
    `tables`: of the questions, where several fits share them. O(q d) an iteration; deterministic.
    """
    tables, alpha = tables or FitTables(questions), alpha_of(kernel, d)
    found = _minimise(tables, d, ridge, alpha, start, lapse, fixed_lapse, tolerance, max_iterations, progress)
    return found.embedding(tables, ridge, alpha)


def _minimise(
    tables: FitTables,
    d: int,
    ridge: float,
    alpha: float,
    start: np.ndarray | None,
    lapse: np.ndarray | None = None,
    fixed_lapse: bool = False,
    tolerance: float = 1e-6,
    max_iterations: int = 1000,
    progress: Callable[..., bool | None] = lambda done, total, **figures: None,
) -> _Descent:
    """See `fit`."""
    questions, n = tables.questions, tables.questions.n_objects
    if lapse is None:
        lapse = np.full(questions.n_workers, 0.0 if fixed_lapse else FIRST)
    held = np.clip(lapse, 0.0 if fixed_lapse else LEAST, MOST)
    if len(questions.rows) == 0:
        return _Descent(Minimum(np.zeros(0), 0.0, np.zeros(0), 0, 0, True), np.zeros((n, d)), held, 0.0)
    loss, large = tables.loss(alpha), len(questions.rows) * d > LARGE
    if large:
        tolerance = max(tolerance, ROUGH)
    if start is None and large:
        start = minibatch.descend(questions, starts.at_random(n, d, 0) * SPREAD, held, ridge, alpha)
    elif start is None:
        start = tables.start(d, alpha, held, ridge)
    start = starts.grown(start, d, questions, loss, held, ridge, alpha)
    points = starts.widened(start, d, seed=0)
    objective, pack, unpack = _objective(loss, ridge, held, fixed_lapse, points.shape)
    x = pack(points, held, 0.0 if fixed_lapse or questions.n_workers == 1 else FIRST)

    def tell(iterations: int) -> None:
        progress(min(iterations, max_iterations), max_iterations)

    if len(loss.halves) > 1:
        best = minimise(objective, x, tolerance=tolerance, max_iterations=max_iterations, progress=tell)
    else:
        state, often = descent.begin(x), 1 + int(OFTEN / (len(questions.rows) * d))
        while state.counts[descent.STATUS] == descent.RUNNING:
            until = int(state.counts[descent.ITERATIONS]) + often
            _descend(*state, *loss.halves[0], alpha, ridge, held, fixed_lapse, n, tolerance, max_iterations, until)
            tell(int(state.counts[descent.ITERATIONS]))
        best = descent.minimum(state)
    return _Descent(best, *unpack(best.x))


def _objective(
    loss: Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray, np.ndarray]],
    ridge: float,
    held: np.ndarray,
    fixed: bool,
    shape: tuple[int, ...],
):
    """The objective of one vector with its gradient, and to and from the vector: points, then logits of the lapses and,
    where workers are named, of the share who guess."""
    size, workers = int(np.prod(shape)), len(held) - 1

    def pack(points: np.ndarray, lapse: np.ndarray, guessers: float) -> np.ndarray:
        rates = np.append(lapse, guessers) if workers else lapse
        return np.concatenate([points.ravel(), [] if fixed else np.log(rates / (1 - rates))])

    def unpack(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        return x[:size].reshape(shape), *_rates(x[size:], held, fixed)

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        points, lapse, guessers = unpack(x)
        total, slope, lapse_slope = loss(points, lapse)
        whole = np.empty(len(x))
        whole[:size] = slope.ravel()
        return total + _finish(x, whole, size, lapse, guessers, lapse_slope, ridge, fixed), whole

    return value, pack, unpack


@njit(cache=True, nogil=True)
def _rates(logits, held, fixed):
    """The lapses, and the share who guess, of their logits."""
    if fixed:
        return held, 0.0
    rates = np.empty(len(logits))
    for t in range(len(logits)):
        rates[t] = min(max(1.0 / (1.0 + np.exp(-min(max(logits[t], -50.0), 50.0))), LEAST), MOST)
    return rates[: len(held)], rates[-1] if len(held) > 1 else 0.0


@njit(cache=True, nogil=True)
def _finish(x, slope, size, lapse, guessers, lapse_slope, ridge, fixed):
    """Add what the ridge and the prior add to the slope, which has that of the points; gives what they add to L."""
    total = 0.0
    for t in range(size):
        total += x[t] * x[t]
        slope[t] += 2.0 * ridge * x[t]
    total *= ridge
    if not fixed:
        prior, prior_slope, share_slope = prior_cost(lapse, guessers)
        total += prior
        for w in range(len(lapse)):
            slope[size + w] = lapse_slope[w] * lapse[w] * (1.0 - lapse[w]) + prior_slope[w]
        if len(lapse) > 1:
            slope[-1] = share_slope
    return total


@njit(cache=True, nogil=True)
def _descend(
    trial, base, steps, changes, products, search, counts,
    pairs, near_pair, far_pair, near, far, worker, alpha, ridge, held, fixed, n, tolerance, max_iterations, until,
):  # fmt: skip
    """Advance a descent until so many iterations are done, or its end."""
    workers = len(held)
    size = len(trial) if fixed else len(trial) - workers - (workers > 1)
    d, slope, lapse_slope = size // n, np.empty(len(trial)), np.empty(workers)
    while counts[STATUS] == RUNNING and counts[ITERATIONS] < until:
        lapse, guessers = _rates(trial[size:], held, fixed)
        slope[:], lapse_slope[:] = 0.0, 0.0
        points, of_points = trial[:size].reshape((n, d)), slope[:size].reshape((n, d))
        value = add_answers(points, pairs, near_pair, far_pair, near, far, worker, lapse, alpha, of_points, lapse_slope)
        value += _finish(trial, slope, size, lapse, guessers, lapse_slope, ridge, fixed)
        advance(trial, base, steps, changes, products, search, counts, value, slope, tolerance, max_iterations)


WIDER = 3  # dimensions more that are fitted first, where a truncation begins
CAREFUL = 1.5e5  # questions times dimensions up to which a fit is begun at several places
LOOSE = 1e-5  # tolerance of fits that predict only in an evaluation
COARSE = 1e-3  # of the wider fit, which is only begun from: held-out losses are the same as at 1e-5 (color-td, car60)


def fit_carefully(
    questions: Questions,
    d: int,
    ridge: float,
    *,
    kernel: str = "ste",
    start: np.ndarray | None = None,
    wide: np.ndarray | None = None,
    tables: FitTables | None = None,
    **more: Any,
) -> tuple[Embedding, np.ndarray]:
    """`fit` from two places, the one with the smaller objective kept: from `start`, and from the first d principal axes
    of a fit in d + 3 dimensions, which has fewer poor minima (itself begun at `wide`). Gives that one's points too,
    (n, d + 3). Some four times the cost of one fit.
    """
    tables, alpha = tables or FitTables(questions), alpha_of(kernel, d)
    wider = min(d + WIDER, max(questions.n_objects - 1, 1))
    if wider <= d:
        found = fit(questions, d, ridge, kernel=kernel, start=start, tables=tables, **more)
        return found, found.points
    coarse = {**more, "tolerance": COARSE}
    broad = fit(questions, wider, ridge, kernel=kernel, start=wide, tables=tables, **coarse).points
    both = [_minimise(tables, d, ridge, alpha, each, **more) for each in (broad, start)]
    return min(both, key=lambda each: each.minimum.value).embedding(tables, ridge, alpha), broad


def with_setting(questions: Questions, setting: Setting, begin: Sequence[np.ndarray] = (), **more: Any) -> Embedding:
    """The best of `fit_carefully` and of a fit from each (n, any) of `begin`, by the objective; where that costs too
    much, one fit, from the first of `begin` if there is one."""
    kernel, d, ridge = setting
    if len(questions.rows) * d > CAREFUL:
        return fit(questions, d, ridge, kernel=kernel, start=begin[0] if begin else None, **more)
    options = {"kernel": kernel, "tables": FitTables(questions), **more}
    found = [fit_carefully(questions, d, ridge, **options)[0]]
    found += [fit(questions, d, ridge, start=each, **options) for each in begin]
    return min(found, key=lambda each: each.objective)
