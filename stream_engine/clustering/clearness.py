"""How clear the groups of points are, against continua of the same number of objects, dimension and precision.

Points are cut into every number of groups k (`borders`). Log crowding of the borders and the elbow of the share of the
variance within both fall where groups are clear, but also with k and with the precision of the positions, whether
there are groups or not. So each is standardised with its mean and deviation in continua,

    z(k) = sum_f (mean_f(n, k, d, e) - f(k)) / deviation_f(n, k, d, e),      e = 1 - precision,

regressions on powers of log k, log n, k / n, log d and log e. Over several fits the mean of z is taken, with their
held-out likelihoods to the power 1 / TEMPERATURE as weights: no number of dimensions is chosen, and none decides alone.
The groups are clearest at the largest z; that, standardised for n, d and e in the same way, is compared with its
distribution over continua. Coefficients and distribution are those of a kept program over 15 shapes and four models of
answers, `python -m tests.benchmarks cluster_calibration`; for fits, and for positions that are given.
"""

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from stream_engine.clustering import borders

TABLE = "clearness.json"
FITS, POSITIONS = "fits", "positions"  # what a table is for: the mean over fits in few dimensions, or given positions
SMALLEST = 3  # objects an average group has at least
MOST_GROUPS = 40  # as in the table
LEAST_ERROR, LARGEST_ERROR = 1e-3, 0.6  # of the positions, where the table is flat
MOST_OBJECTS, MOST_DIMENSIONS = 1000, 20  # likewise
TEMPERATURE = 10.0  # nats
POWER = 0.8  # of the detection limit


class Candidates(NamedTuple):
    """Every number of groups of the points of one fit."""

    features: np.ndarray  # (t, 2) for 2 to t + 1 groups, see `borders.features`
    labels: tuple[np.ndarray, ...]  # (t,) of (n,) int32
    d: int
    precision: float
    log_likelihood: float  # of all answers, held out, in nats

    @property
    def k(self) -> np.ndarray:
        """(t,) int64."""
        return np.arange(2, 2 + len(self.features))


class Surface(NamedTuple):
    """What continua look like, from the table."""

    mean: np.ndarray  # (2, 18) of each feature
    deviation: np.ndarray  # (2, 18), log
    largest_mean: np.ndarray  # of the largest z
    largest_deviation: np.ndarray
    levels: np.ndarray  # shares of continua that are less clear
    quantiles: np.ndarray  # the standardised largest z at these
    power: np.ndarray  # logistic regression: are groups so far apart separated?


def most_groups(n: int) -> int:
    """The largest number of groups of n objects that is examined."""
    return max(2, min(n // SMALLEST, MOST_GROUPS))


def candidates(points: np.ndarray, precise: float, log_likelihood: float = 0.0) -> Candidates:
    """Partitions of points (n, d), n >= 8, into every number of groups; `log_likelihood` of all answers, held out."""
    ks = range(2, most_groups(len(points)) + 2)
    cuts = borders.cuts(points, tuple(ks))
    labels = tuple(cut.labels for cut in cuts[:-1])
    return Candidates(borders.features(cuts), labels, points.shape[1], precise, log_likelihood)


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


def weights(compared: Sequence[Candidates]) -> np.ndarray:
    """(f,) of the fits, sum 1: their held-out likelihood to the power 1 / TEMPERATURE.

    >>> one = candidates(np.arange(9.0)[:, None], 0.9, -100.0)
    >>> weights((one, one._replace(log_likelihood=-110.0))).round(2).tolist()
    [0.73, 0.27]
    """
    likely = np.array([each.log_likelihood for each in compared]) / TEMPERATURE
    share = np.exp(likely - likely.max())
    return share / share.sum()


def gains(compared: Sequence[Candidates], continua: Surface) -> np.ndarray:
    """(t,) z of every number of groups, in the mean over the fits."""
    n = len(compared[0].labels[0])
    each = [
        standardised(one.features, terms_of_groups(one.k, n, one.d, one.precision), continua.mean, continua.deviation)
        for one in compared
    ]
    return weights(compared) @ np.array(each)


def standardised(features: np.ndarray, terms: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """(t,) z of features (t, 2) of one fit."""
    return ((terms @ mean.T - features) / np.exp(terms @ deviation.T)).sum(axis=1)


def clearer_than(largest: float, terms: np.ndarray, continua: Surface) -> float:
    """Share of continua whose groups are less clear than z = `largest`, at most the last level of the table; `terms`
    are `terms_of_study`."""
    standard = (largest - terms @ continua.largest_mean) / np.exp(terms @ continua.largest_deviation)
    return float(np.interp(standard, continua.quantiles, continua.levels, left=0.0))


def detection_limit(terms: np.ndarray, continua: Surface) -> float:
    """The distance of nearest centres, in standard deviations within groups of eight and more objects on average, with
    which groups are separated with probability `POWER`; `terms` are `terms_of_power`."""
    slope, *others = continua.power
    odds = np.log(POWER / (1 - POWER))
    return float(np.exp((odds - terms @ np.array(others)) / slope))


def terms_of_power(compared: Sequence[Candidates], answers: int) -> np.ndarray:
    """(3,) of the regression of what is detected: one, objects, and answers an object; errors of given positions
    (answers 0), since those of fits are a share of a variance that grows with the distance of groups."""
    _, size, error, _, _ = terms_of_study(compared)
    return np.array([1.0, size, np.log(answers / len(compared[0].labels[0])) if answers else error])


def terms_of_study(compared: Sequence[Candidates]) -> np.ndarray:
    """(5,) of the regressions over studies; means over the fits."""
    n, weight = len(compared[0].labels[0]), weights(compared)
    size, axes, error = weight @ np.array([_logs(n, each.d, each.precision) for each in compared])
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
