"""Positions without clusters that otherwise look like given points: on the way from a point to one of its neighbours.

A position is drawn at random on the segment between a point and one of its m nearest neighbours (as new examples of a
class are, Chawla et al. 2002), and each principal axis is scaled to be as wide as before. m is the smallest number with
which no groups are left: in a large sample, cut into any of the numbers that are tested, the borders are at least
`FILLED` as crowded as those of a line. So bends, rings, sheets and skewness stay, and what goes are the gaps. It is
Silverman's critical bandwidth (1981), with neighbours in the place of a kernel, which would make thin shapes thicker,
and borders in the place of modes.
"""

import numpy as np
from scipy.spatial.distance import cdist

from stream_engine.clustering.borders import cuts

FILLED = 0.7  # crowding of the borders; an even ring has .8, two Gaussian groups 4 deviations apart .6
NUMBERS = (2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200, 300)  # of neighbours; else all
SAMPLE = 1000  # points by which borders are judged


def neighbours(rng: np.random.Generator, points: np.ndarray, ks: tuple[int, ...]) -> np.ndarray:
    """(n, m) the neighbours of points (n, d) that fill the gaps. O(SAMPLE^2) for each of NUMBERS."""
    apart = cdist(points, points)
    np.fill_diagonal(apart, np.inf)
    near = np.argsort(apart, axis=1, kind="stable")[:, :-1]
    for m in NUMBERS:
        if m >= near.shape[1]:
            break
        sample = draw(rng, SAMPLE, points, near[:, :m])
        if min(cut.crowding for cut in cuts(sample, ks)) >= FILLED:
            return near[:, :m]
    return near


def draw(rng: np.random.Generator, n: int, points: np.ndarray, near: np.ndarray) -> np.ndarray:
    """(n, d) positions; points lie on their principal axes, and have the neighbours `near`.

    >>> drawn = draw(np.random.default_rng(0), 100_000, np.array([[-1.0], [1.0]]), np.array([[1], [0]]))
    >>> round(float(drawn.std()), 2), round(float((abs(drawn) < 0.2).mean()), 2)
    (1.0, 0.12)
    """
    ends = points[near]
    start = np.broadcast_to(points[:, None], ends.shape)
    middle = (start + ends).mean(axis=(0, 1)) / 2
    wide = ((start**2 + start * ends + ends**2) / 3).mean(axis=(0, 1)) - middle**2
    one = rng.integers(len(points), size=n)
    other = near[one, rng.integers(near.shape[1], size=n)]
    drawn = points[one] + rng.random((n, 1)) * (points[other] - points[one])
    return (drawn - middle) * np.sqrt(points.var(axis=0) / np.maximum(wide, 1e-300))
