"""How clear the groups of points are, against continua of the same number of objects, dimension and precision.

The statistic for k groups is the looseness of `borders` (log crowding of the borders + 3 times the elbow of the share
of the variance within), the mean over the given fits. It falls with k and n and rises with the errors of the positions,
whether there are groups or not. So it is standardised with the mean and the standard deviation in continua,

    z(k) = (mean(n, k, d, e) - looseness(k)) / deviation(n, k, d, e),      e = 1 - precision,

two regressions on powers of log k, log n, k / n, log d and log e. The groups are clearest at the largest z; that,
standardised for n, d and e in the same way, is compared with its distribution over continua. The coefficients and the
distribution are those of a kept program over 15 shapes and four models of answers,
`python -m tests.benchmarks cluster_calibration`; for fits to few answers, and for positions that are given.
"""

import json
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from stream_engine.clustering import borders

TABLE = "clearness.json"
FITS, POSITIONS = "fits", "positions"  # what a table is for: the mean over fits in few dimensions, or given positions
SMALLEST = 3  # objects an average group has at least
MOST_GROUPS = 100
LEAST_ERROR, LARGEST_ERROR = 1e-3, 0.6  # of the positions, where the table is flat
MOST_OBJECTS, MOST_DIMENSIONS = 2000, 20  # likewise
POWER = 0.8  # of the detection limit


class Candidates(NamedTuple):
    """Every number of groups, with the partition of each fit."""

    k: np.ndarray  # (t,) int64
    looseness: np.ndarray  # (t,) mean over the fits
    labels: list[np.ndarray]  # (t,) of (n,) int32: the partition of the first fit


class Surface(NamedTuple):
    """What continua look like, from the table."""

    mean: np.ndarray
    deviation: np.ndarray
    largest_mean: np.ndarray  # of the largest z
    largest_deviation: np.ndarray
    levels: np.ndarray  # shares of continua that are less clear
    quantiles: np.ndarray  # the standardised largest z at these
    power: np.ndarray  # logistic regression: are groups so far apart separated?


def most_groups(n: int) -> int:
    """The largest number of groups of n objects that is examined."""
    return max(2, min(n // SMALLEST, MOST_GROUPS))


def candidates(fits: list[np.ndarray]) -> Candidates:
    """Partitions of the points (n, d) of each fit, n >= 8, into every number of groups."""
    ks = tuple(range(2, most_groups(len(fits[0])) + 1))
    made = [borders.cuts(points, (*ks, ks[-1] + 1)) for points in fits]
    looseness = np.mean([borders.looseness(cuts) for cuts in made], axis=0)
    return Candidates(np.array(ks), looseness, [cut.labels for cut in made[0][:-1]])


def precision(points: np.ndarray, variance: np.ndarray) -> float:
    """Share of the variance of points (n, d) that is not error; `variance` (n, d, d) is that of each position.

    >>> precision(np.array([[-2.0], [2.0]]), np.ones((2, 1, 1)))
    0.75
    """
    spread = float(points.var(axis=0).sum())
    error = float(np.trace(variance, axis1=1, axis2=2).mean())
    return 1.0 - min(error / spread, 1.0) if spread > 0 else 0.0


@cache
def surface(of: str) -> Surface:
    """The table `of` FITS or POSITIONS."""
    table = json.loads(files("stream_engine.clustering").joinpath(TABLE).read_text())
    return Surface(*(np.array(table[of][name]) for name in Surface._fields))


def gains(found: Candidates, n: int, d: int, precise: float, continua: Surface) -> np.ndarray:
    """(t,) z of every number of groups."""
    terms = terms_of_groups(found.k, n, d, precise)
    return (terms @ continua.mean - found.looseness) / np.exp(terms @ continua.deviation)


def clearer_than(largest: float, n: int, d: int, precise: float, continua: Surface) -> float:
    """Share of continua whose groups are less clear than z = `largest`, at most the last level of the table."""
    terms = terms_of_study(n, d, precise)
    standard = (largest - terms @ continua.largest_mean) / np.exp(terms @ continua.largest_deviation)
    return float(np.interp(standard, continua.quantiles, continua.levels, left=0.0))


def detection_limit(n: int, d: int, precise: float, continua: Surface) -> float:
    """The distance of nearest centres, in standard deviations within groups, with which groups are separated with
    probability `POWER`."""
    slope, *others = continua.power
    odds = np.log(POWER / (1 - POWER))
    return float(np.exp((odds - terms_of_study(n, d, precise) @ np.array(others)) / slope))


def terms_of_study(n: int, d: int, precise: float) -> np.ndarray:
    """(5,) of the regressions over studies."""
    size, axes, error = _logs(n, d, precise)
    return np.array([1.0, size, error, size * error, axes])


def terms_of_groups(k: np.ndarray, n: int, d: int, precise: float) -> np.ndarray:
    """(t, 18) of the regressions over numbers of groups."""
    size, axes, error = _logs(n, d, precise)
    log, share, one = np.log(k), k / n, np.ones(len(k))
    own = [one, log, log**2, log**3, share, share**2, 1 / k]
    return np.stack(
        [
            *own,
            size * one,
            size * log,
            size * error * one,
            *(error * each for each in own[:3]),
            error**2 * one,
            *(axes * each for each in own[:3]),
            axes * error * one,
        ],
        axis=1,
    )


def _logs(n: int, d: int, precise: float) -> tuple[float, float, float]:
    error = min(max(1.0 - precise, LEAST_ERROR), LARGEST_ERROR)
    return float(np.log(min(n, MOST_OBJECTS))), float(np.log(min(d, MOST_DIMENSIONS))), float(np.log(error))
