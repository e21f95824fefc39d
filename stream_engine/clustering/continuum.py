"""Positions without clusters that otherwise look like given points: the smooth bootstrap (Silverman 1986, sec. 6.4).

A point is drawn from those given, moved by a Gaussian step, and each principal axis is drawn together until it is as
wide as before. The step is the smallest at which no number of groups is told: of a large sample, cut into any of the
numbers that are tested, some border is at least `FILLED` as crowded as those of a line. So bends, rings and skewness
stay, and what goes are the gaps. It is Silverman's critical bandwidth (1981), with borders in the place of modes.
"""

import numpy as np

from stream_engine.clustering.borders import cuts

FILLED = 0.7  # crowding of the most crowded border; an even ring has .8, two Gaussian groups 4 deviations apart .6
STEPS = (0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8)  # in units of the points' standard deviation
SAMPLE = 1000  # points by which borders are judged


def step(rng: np.random.Generator, points: np.ndarray, ks: tuple[int, ...]) -> float:
    """The standard deviation of the step that fills the gaps of points (n, d). O(SAMPLE^2) for each of STEPS."""
    size = float(np.sqrt(points.var(axis=0).sum()))
    for share in STEPS:
        sample = draw(rng, SAMPLE, points, share * size)
        if min(cut.crowding for cut in cuts(sample, ks)) >= FILLED:
            break
    return share * size


def draw(rng: np.random.Generator, n: int, points: np.ndarray, step: float) -> np.ndarray:
    """(n, d) positions; points lie on their principal axes.

    >>> drawn = draw(np.random.default_rng(0), 100_000, np.array([[-1.0], [1.0]]), 1.0)
    >>> round(float(drawn.std()), 2), round(float((abs(drawn) < 0.2).mean()), 2)
    (1.0, 0.14)
    """
    middle = points.mean(axis=0)
    wide = points.var(axis=0)
    moved = points[rng.integers(len(points), size=n)] - middle + step * rng.normal(size=(n, points.shape[1]))
    return middle + moved * np.sqrt(wide / np.maximum(wide + step * step, 1e-300))
