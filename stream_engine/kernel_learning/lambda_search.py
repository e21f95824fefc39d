"""Selection of lambda1 and lambda2: the lowest held-out log loss on a grid that grows if its edge is best."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from stream_engine.kernel_learning.rckl import Start

# Log loss instead of the error rate: on easy data, errors stop decreasing long before the distances match the
# confidence of the answers, and ten to thirty times too much regularisation looks equally good. Losses are compared
# response by response, so a difference has its own standard error, far smaller than that of either loss. A path starts
# at the largest lambda1, where the fit is weakest, and ends at the first that is worse by more than one such standard
# error.


class Lambdas(NamedTuple):
    """The weights of the trace of K0 and of the sum of mu."""

    lambda1: float
    lambda2: float


class Losses(NamedTuple):
    """Held-out losses by response (or comparison): sums (c,) in nats, over `answers` (c,) answers each."""

    sums: np.ndarray
    answers: np.ndarray

    @property
    def mean(self) -> float:
        """Log loss in nats an answer."""
        return float(self.sums.sum() / self.answers.sum())

    def clearly_above(self, best: "Losses") -> bool:
        """Whether the mean is above that of `best` by more than one standard error of the difference, both on the same
        answers.

        >>> one = np.ones(4)
        >>> worse, noisy = Losses(one + 0.1, one), Losses(np.array([0.0, 2.0, 0.0, 2.2]), one)
        >>> worse.clearly_above(Losses(one, one)), noisy.clearly_above(Losses(one, one))
        (True, False)
        """
        differences = self.sums - best.sums
        mean = differences.sum() / self.answers.sum()
        deviations = differences - mean * self.answers
        return bool(mean > np.sqrt(deviations @ deviations) / self.answers.sum())


class Attempt(NamedTuple):
    """One pair of lambdas, its losses, its solution as a start for the next, and its calibration slope (of margins in
    units of the kernel's scale)."""

    lambdas: Lambdas
    losses: Losses
    start: Start
    calibration_slope: float


Try = Callable[[Lambdas, Start | None], Attempt]


class Grid(NamedTuple):
    """Candidate values, largest first; beyond its edges the grid may grow up to `largest`, at which nothing is
    learned."""

    values: list[float]
    largest: float

    @property
    def is_single(self) -> bool:
        """Whether there is only one value."""
        return len(self.values) == 1

    def next_below(self, value: float) -> float:
        """The value that continues the grid's last ratio below `value`."""
        return value * self.values[-1] / self.values[-2]

    def next_above(self, value: float) -> float:
        """The value half the way, by ratio, from `value` to where nothing is learned."""
        return float(np.sqrt(value * self.largest))


def grid(fixed_value: float | None, fractions: tuple[float, ...], largest: float, is_tuned: bool = True) -> Grid:
    """`fixed_value`, or `fractions` of the smallest value at which nothing is learned; 1 if the data sets no scale.

    Only the first of them, unless `is_tuned`: the lambda has no effect.

    >>> grid(None, (0.1, 0.5), 4.0).values, grid(2.0, (0.1, 0.5), 4.0).values, grid(None, (0.1, 0.5), 0.0).values
    ([2.0, 0.4], [2.0], [1.0])
    """
    if fixed_value is not None:
        return Grid([fixed_value], max(fixed_value, largest))
    values = [largest * fraction for fraction in sorted(fractions, reverse=True)] if largest > 0 else [1.0]
    return Grid(values if is_tuned else values[:1], max(largest, values[0]))


def best_lambdas(attempt: Try, first: Grid, second: Grid) -> Attempt:
    """The first attempt with the least loss, over the grid, then beyond its edges while these win."""
    winner = _best(_grid_attempts(attempt, first, second))
    winner = _beyond_edges(attempt, winner, first, "lambda1")
    return _beyond_edges(attempt, winner, second, "lambda2")


def _best(attempts: Iterator[Attempt]) -> Attempt:
    return min(attempts, key=lambda attempt: attempt.losses.mean)


def _grid_attempts(attempt: Try, first: Grid, second: Grid) -> Iterator[Attempt]:
    """The grid, each lambda1 started from the one before, until one is clearly worse than the best of its lambda2."""
    for lambda2 in second.values:
        start, best = None, None
        for lambda1 in first.values:
            result = attempt(Lambdas(lambda1, lambda2), start)
            start = result.start
            yield result
            if best is not None and result.losses.clearly_above(best):
                break
            best = result.losses if best is None or result.losses.mean < best.mean else best


MAX_BELOW, MAX_ABOVE = 6, 2  # values below and above the grid that are tried while its edge wins


def _beyond_edges(attempt: Try, winner: Attempt, along: Grid, name: str) -> Attempt:
    """Values beyond the edges of one axis, as long as the edge is the best."""
    if along.is_single:
        return winner
    for edge, next_value, limit in (
        (along.values[-1], along.next_below, MAX_BELOW),
        (along.values[0], along.next_above, MAX_ABOVE),
    ):
        if getattr(winner.lambdas, name) != edge:
            continue
        for _ in range(limit):
            value = next_value(getattr(winner.lambdas, name))
            candidate = attempt(winner.lambdas._replace(**{name: value}), winner.start)
            if candidate.losses.mean >= winner.losses.mean:
                break
            winner = candidate
    return winner
