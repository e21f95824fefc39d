"""Prediction accuracy, log loss and calibration on held-out answers, with standard errors.

A figure is a ratio of sums over comparisons, and its standard error is that of a ratio estimator over clusters (Cochran
1977, eq. 6.4: units drawn, comparisons counted): comparisons of one response, or of one participant, are dependent.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from stream_engine.evaluation.noise_ceiling import Ceiling, credit


class Figures(NamedTuple):
    """Of held-out comparisons, counted as often as they were given; ties count one half. `log_loss` is in nats a
    comparison; `calibration_error` is the expected calibration error (Guo et al. 2017, eq. 3) over `BINS` bins."""

    accuracy: float
    standard_error: float | None  # of the accuracy, over clusters; None: fewer than `MIN_CLUSTERS` of them
    log_loss: float
    calibration_error: float
    comparisons: int
    clusters: int  # responses, or participants


class HeldOut(NamedTuple):
    """What a refit reports on answers that were used neither to fit nor to select its models (`cross_fit`)."""

    by: str  # the units that were held out: "judgements" (responses) or "comparisons" (questions)
    judgement: Figures | None  # units held out; other answers of the same participants were fitted
    worker: Figures | None  # participants held out, with all of their answers
    ceiling: Ceiling | None
    slope: float | None = None  # P(the answer) = sigmoid(slope * margin)

    def report(self) -> dict[str, Any]:
        """The fields of an artifact's report; the figures of `judgement` by their own names, and `error`."""
        fields = self.judgement._asdict() if self.judgement else dict.fromkeys(Figures._fields)
        return {
            "held_out": self.by,
            "error": None if self.judgement is None else 1.0 - self.judgement.accuracy,
            **{f"held_out_{name}" if name in ("comparisons", "clusters") else name: fields[name] for name in fields},
            "by_worker": self.worker._asdict() if self.worker else None,
            "ceiling": self.ceiling._asdict() if self.ceiling else None,
            "probability_slope": self.slope,
        }


def figures(margin: np.ndarray, slope: float, times: np.ndarray, cluster: np.ndarray) -> Figures:
    """The figures of (m,) margins, > 0 where the answer was predicted, with P = sigmoid(slope * margin).

    >>> f = figures(np.array([2.0, 1.0, -1.0, 0.0]), 1.0, np.ones(4), np.array([0, 0, 1, 1]))
    >>> f.accuracy, f.standard_error, round(f.log_loss, 3), f.comparisons, f.clusters
    (0.625, None, 0.612, 4, 2)
    >>> figures(np.array([1.0, 1.0, 1.0, -1.0, -1.0]), 1.0, np.ones(5), np.arange(5)).standard_error.__round__(3)
    0.245
    """
    right = times * credit(margin)
    total, number = times.sum(), np.unique(cluster, return_inverse=True)[1].reshape(-1)
    clusters, accuracy = int(number.max()) + 1, float(right.sum() / total)
    return Figures(
        accuracy,
        standard_error(np.bincount(number, right - accuracy * times), float(total)),
        float(times @ losses(margin, slope) / total),
        _calibration_error(expit(slope * np.abs(margin)), right, times),
        round(total),
        clusters,
    )


MIN_CLUSTERS = 5  # below which there is no standard error: of fewer, the spread says little


def standard_error(deviation: np.ndarray, total: float) -> float | None:
    """Of a ratio of sums, by the (c,) deviations of clusters from it; None for fewer than `MIN_CLUSTERS`.

    If there are no deviations, because all predictions are correct, their spread says nothing. Then it is z / (c +
    z^2), so that the 95 % interval is Wilson's for c of c."""
    clusters = len(deviation)
    if clusters < MIN_CLUSTERS:
        return None
    if not deviation.any():
        return 1.96 / (clusters + 1.96**2)
    return float(np.sqrt(clusters / (clusters - 1.0) * (deviation @ deviation)) / total)


def losses(margin: np.ndarray, slope: float) -> np.ndarray:
    """(m,) -log sigmoid(slope * margin), in nats."""
    return np.logaddexp(0.0, -slope * margin)


BINS = 10  # bins of calibration, of equal width from 1/2 to 1


def _calibration_error(confidence: np.ndarray, right: np.ndarray, times: np.ndarray) -> float:
    number = np.minimum(((confidence - 0.5) * 2 * BINS).astype(np.int64), BINS - 1)
    deviation = np.bincount(number, right - times * confidence)
    return float(np.abs(deviation).sum() / times.sum())


def slope_of(margin: np.ndarray, times: np.ndarray) -> float:
    """The slope s >= 0 with the least log loss of P = sigmoid(s * margin): Platt's fit without intercept, by Newton
    steps.

    It gives probabilities to a model whose loss is no likelihood (the hinge). Fit it to answers on which no figures are
    reported. One more answer each way at a usual margin keeps s finite if all answers were predicted.

    >>> round(slope_of(np.array([1.0, 1.0, 1.0, -1.0]), np.ones(4)), 4)  # log 2: four in six are predicted
    0.6931
    """
    size = float(np.sqrt(times @ margin**2 / times.sum())) if len(margin) else 0.0
    if size == 0.0 or times @ margin <= 0.0:
        return 0.0
    x, low, high, s = margin / size, 0.0, np.inf, 1.0
    for _ in range(100):  # convex in s: Newton steps within bounds on either side of the minimum
        p, q = expit(s * x), expit(s)
        rise = float(times @ (x * (1.0 - p))) + 1.0 - 2.0 * q
        curve = float(times @ (x * x * p * (1.0 - p))) + 2.0 * q * (1.0 - q)
        low, high = (s, high) if rise > 0 else (low, s)
        step = min(rise / max(curve, 1e-300), s)
        if abs(step) <= 1e-10 * s:
            break
        s = s + step if low < s + step < high else (low + min(high, 4.0 * s)) / 2.0
    return float(s / size)
