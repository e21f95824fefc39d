"""How clear the groups of points are, compared with continua of the same number of objects, dimension and precision."""

import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from stream_engine.clustering import borders

# Points are cut into every number of groups k (`borders`). Log crowding of the borders and the elbow of the share of
# variance within groups both fall where groups are clear, but also with k and with the precision of the positions,
# whether there are groups or not. So each is standardised with its mean and deviation in continua,
#
#     z(k) = sum_f (mean_f(n, k, d, e) - f(k)) / deviation_f(n, k, d, e),      e = 1 - precision,
#
# regressions on powers of log k, log n, k / n, log d and log e. Over several fits the mean of z is taken, with their
# held-out likelihoods to the power 1 / TEMPERATURE as weights: no number of dimensions is chosen, and none decides
# alone. The groups are clearest at the largest z; that, standardised for n, d and e in the same way, is compared with
# its distribution over continua.
TABLE = "clearness.json"  # coefficients and distribution over 15 shapes and four models of answers, for fits and for
# given positions: `python -m tests.benchmarks cluster_calibration`
FITS, POSITIONS = "fits", "positions"  # the two tables: for the mean over fits in few dimensions, for given positions
MIN_GROUP_SIZE = 3  # objects of an average group
MAX_GROUPS = 40  # in the table
MIN_ERROR, MAX_ERROR = 1e-3, 0.6  # of the positions, where the table is flat
MAX_OBJECTS, MAX_DIMENSIONS = 1000, 20  # likewise
TEMPERATURE = 10.0  # nats
TARGET_POWER = 0.8  # probability with which groups at the detection limit are detected


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
    power: np.ndarray  # logistic regression of whether groups at a distance are detected


def max_groups(n: int) -> int:
    """The largest number of groups of n objects that is examined."""
    return max(2, min(n // MIN_GROUP_SIZE, MAX_GROUPS))


def candidates(points: np.ndarray, point_precision: float, log_likelihood: float = 0.0) -> Candidates:
    """Partitions of points (n, d), n >= 8, into every number of groups; `log_likelihood` of all answers, held out."""
    ks = range(2, max_groups(len(points)) + 2)
    cuts = borders.cuts(points, tuple(ks))
    labels = tuple(cut.labels for cut in cuts[:-1])
    return Candidates(borders.features(cuts), labels, points.shape[1], point_precision, log_likelihood)


def precision(points: np.ndarray, variance: np.ndarray) -> float:
    """Share of the variance of points (n, d) that is not error; `variance` (n, d, d) is that of each position.

    >>> precision(np.array([[-2.0], [2.0]]), np.ones((2, 1, 1)))
    0.75
    """
    total_variance = float(points.var(axis=0).sum())
    error_variance = float(np.trace(variance, axis1=1, axis2=2).mean())
    return 1.0 - min(error_variance / total_variance, 1.0) if total_variance > 0 else 0.0


@cache
def surface(table_name: str) -> Surface:
    """The table `table_name` FITS or POSITIONS."""
    table = json.loads(files("stream_engine.clustering").joinpath(TABLE).read_text())
    return Surface(*(np.array(table[table_name][name]) for name in Surface._fields))


def weights(fits: Sequence[Candidates]) -> np.ndarray:
    """(f,) of the fits, sum 1: their held-out likelihood to the power 1 / TEMPERATURE.

    >>> one = candidates(np.arange(9.0)[:, None], 0.9, -100.0)
    >>> weights((one, one._replace(log_likelihood=-110.0))).round(2).tolist()
    [0.73, 0.27]
    """
    log_likelihoods = np.array([candidates_of_fit.log_likelihood for candidates_of_fit in fits]) / TEMPERATURE
    likelihoods = np.exp(log_likelihoods - log_likelihoods.max())
    return likelihoods / likelihoods.sum()


def gains(fits: Sequence[Candidates], continua: Surface) -> np.ndarray:
    """(t,) z of every number of groups, averaged over the fits."""
    n = len(fits[0].labels[0])
    z_by_fit = [
        standardise(
            groups.features, terms_of_groups(groups.k, n, groups.d, groups.precision), continua.mean, continua.deviation
        )
        for groups in fits
    ]
    return weights(fits) @ np.array(z_by_fit)


def standardise(features: np.ndarray, terms: np.ndarray, mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """(t,) z of features (t, 2) of one fit."""
    return ((terms @ mean.T - features) / np.exp(terms @ deviation.T)).sum(axis=1)


def clearer_than(largest: float, terms: np.ndarray, continua: Surface) -> float:
    """Share of continua whose groups are less clear than z = `largest`, at most the last level of the table; `terms`
    are `terms_of_study`."""
    standard = (largest - terms @ continua.largest_mean) / np.exp(terms @ continua.largest_deviation)
    return float(np.interp(standard, continua.quantiles, continua.levels, left=0.0))


def detection_limit(terms: np.ndarray, continua: Surface) -> float:
    """The distance of nearest centres, in standard deviations within groups of eight and more objects on average, with
    which groups are separated with probability `TARGET_POWER`; `terms` are `terms_of_power`."""
    slope, *coefficients = continua.power
    odds = np.log(TARGET_POWER / (1 - TARGET_POWER))
    return float(np.exp((odds - terms @ np.array(coefficients)) / slope))


def terms_of_power(fits: Sequence[Candidates], answers: int) -> np.ndarray:
    """(3,) terms of the regression of detection: one, objects, and answers an object. For given positions (`answers` 0)
    the third is their error; errors of fits are a share of a variance that grows with the distance of groups."""
    _, size, error, _, _ = terms_of_study(fits)
    return np.array([1.0, size, np.log(answers / len(fits[0].labels[0])) if answers else error])


def terms_of_study(fits: Sequence[Candidates]) -> np.ndarray:
    """(5,) terms of the regressions over studies, means over the fits."""
    n, weight = len(fits[0].labels[0]), weights(fits)
    size, axes, error = weight @ np.array([_logs(n, groups.d, groups.precision) for groups in fits])
    return np.array([1.0, size, error, size * error, axes])


def terms_of_groups(k: np.ndarray, n: int, d: int, point_precision: float) -> np.ndarray:
    """(t, 18) terms of the regressions over numbers of groups."""
    size, axes, error = _logs(n, d, point_precision)
    log, share, ones = np.log(k), k / n, np.ones(len(k))
    group_terms = [ones, log, log**2, log**3, share, share**2, 1 / k]
    return np.stack(
        [
            *group_terms,
            size * ones,
            size * log,
            size * error * ones,
            *(error * term for term in group_terms[:3]),
            error**2 * ones,
            *(axes * term for term in group_terms[:3]),
            axes * error * ones,
        ],
        axis=1,
    )


def _logs(n: int, d: int, point_precision: float) -> tuple[float, float, float]:
    error = min(max(1.0 - point_precision, MIN_ERROR), MAX_ERROR)
    return float(np.log(min(n, MAX_OBJECTS))), float(np.log(min(d, MAX_DIMENSIONS))), float(np.log(error))
