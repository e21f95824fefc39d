"""Selection of lambda1 and lambda2: the lowest held-out log loss on a grid that grows if its edge is best.

Log loss instead of the error rate: on easy data, errors stop decreasing long before the distances match the confidence
of the answers, and ten to thirty times too much regularisation looks equally good. Losses are compared response by
response, so a difference has its own standard error, far smaller than that of either loss. A path starts at the largest
lambda1, where the fit is weakest, and ends at the first that is worse by more than one such standard error.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from stream_engine.kernel_learning import rckl

BEYOND, ABOVE = 6, 2  # how many values below the grid, and above it, are tried while its edge wins


class Lambdas(NamedTuple):
    """The weights of the trace of K0 and of the sum of mu."""

    lambda1: float
    lambda2: float


class Losses(NamedTuple):
    """Held-out losses by judgement (or comparison): sums (c,) in nats, and over how many answers (c,)."""

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
        apart = self.sums - best.sums
        mean = apart.sum() / self.answers.sum()
        off = apart - mean * self.answers
        return bool(mean > np.sqrt(off @ off) / self.answers.sum())


class Attempt(NamedTuple):
    """One pair of lambdas, its losses, its solution as a start for the next, and the calibration slope: of margins
    in units of the kernel's scale."""

    lambdas: Lambdas
    losses: Losses
    start: rckl.Start
    sure: float


Try = Callable[[Lambdas, rckl.Start | None], Attempt]


class Grid(NamedTuple):
    """Values from the largest on, and the one at which nothing is learned any more, below which they may grow."""

    values: list[float]
    largest: float

    @property
    def fixed(self) -> bool:
        """Whether there is nothing to choose."""
        return len(self.values) == 1

    def below(self, value: float) -> float:
        """The next smaller value than the smallest, in the grid's last ratio."""
        return value * self.values[-1] / self.values[-2]

    def above(self, value: float) -> float:
        """The next larger value than the largest: half the way to where nothing is learned, by ratio."""
        return float(np.sqrt(value * self.largest))


def grid(given: float | None, fractions: tuple[float, ...], largest: float, tuned: bool = True) -> Grid:
    """The value that is given, or fractions of the smallest one at which nothing is learned; 1 where the data sets no
    scale. Not `tuned` (it weighs nothing): one of them.

    >>> grid(None, (0.1, 0.5), 4.0).values, grid(2.0, (0.1, 0.5), 4.0).values, grid(None, (0.1, 0.5), 0.0).values
    ([2.0, 0.4], [2.0], [1.0])
    """
    if given is not None:
        return Grid([given], max(given, largest))
    values = [largest * fraction for fraction in sorted(fractions, reverse=True)] if largest > 0 else [1.0]
    return Grid(values if tuned else values[:1], max(largest, values[0]))


def best(attempt: Try, first: Grid, second: Grid) -> Attempt:
    """The attempt with the least loss, of equal ones the first: over the grid, then beyond its edges while these
    win."""
    winner = _least(_over(attempt, first, second))
    winner = _grown(attempt, winner, first, "lambda1")
    return _grown(attempt, winner, second, "lambda2")


def _least(attempts: Iterator[Attempt]) -> Attempt:
    return min(attempts, key=lambda each: each.losses.mean)


def _over(attempt: Try, first: Grid, second: Grid) -> Iterator[Attempt]:
    """The grid, each lambda1 started from the one before, until one is clearly worse than another of its lambda2."""
    for lambda2 in second.values:
        start, least = None, None
        for lambda1 in first.values:
            done = attempt(Lambdas(lambda1, lambda2), start)
            start = done.start
            yield done
            if least is not None and done.losses.clearly_above(least):
                break
            least = done.losses if least is None or done.losses.mean < least.mean else least


def _grown(attempt: Try, winner: Attempt, along: Grid, name: str) -> Attempt:
    """Beyond the edge of one axis for as long as the edge is the best place."""
    if along.fixed:
        return winner
    for edge, further, most in ((along.values[-1], along.below, BEYOND), (along.values[0], along.above, ABOVE)):
        if getattr(winner.lambdas, name) != edge:
            continue
        for _ in range(most):
            value = further(getattr(winner.lambdas, name))
            beyond = attempt(winner.lambdas._replace(**{name: value}), winner.start)
            if beyond.losses.mean >= winner.losses.mean:
                break
            winner = beyond
    return winner
