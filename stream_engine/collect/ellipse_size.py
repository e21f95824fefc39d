"""Size of the 95 % regions in a map: the stop rule that ends a study when the map is certain enough."""

import numpy as np
from scipy.special import gammaincinv

from stream_engine.state.artifact import Artifact

LEVEL = 0.95


def ellipse_size(learned: Artifact | None) -> float | None:
    """The median over objects of the longest half-axis of the region that holds an object with 95 %, as a share of the
    root mean square distance of objects from their centre; None where nothing is known.

        median_i sqrt(chi2_d(0.95) lambda_max(covariance_i)) / sqrt(mean_i |x_i - mean x|^2)

    O(n d^3).
    """
    if learned is None or "covariance" not in learned.arrays:
        return None
    points = np.asarray(learned.arrays["X"], np.float64)
    covariance = np.asarray(learned.arrays["covariance"], np.float64)
    if points.ndim != 2 or not points.size or covariance.shape != (*points.shape, points.shape[1]):
        return None
    spread = np.sqrt(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean())
    if not spread > 0:
        return None
    quantile = 2 * gammaincinv(points.shape[1] / 2, LEVEL)
    longest = np.linalg.eigvalsh(covariance)[:, -1]
    return float(np.median(np.sqrt(np.maximum(quantile * longest, 0.0))) / spread)
