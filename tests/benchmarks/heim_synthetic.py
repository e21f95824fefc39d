"""Heim et al. 2014, sec. 6.1: their synthetic data, and RCKL with lambdas by validation.

100 points in seven independent planes; ground truth K* = K0/2 + K1/4 + K2/6 + K3/12 of the linear kernels; auxiliary
are the kernels 1 to 6 of the points with Gaussian noise (the paper does not say how much; sigma = 0.1 here), of unit
trace: three that matter, three that do not. K0 is known to nobody. Triplets come in rounds of 100, each object once as
the anchor; two rounds train for each that validates; lambdas from a grid on validation error.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.kernel_learning import rckl
from stream_engine.kernel_learning.gram_comparisons import excess, satisfied, triplet_rows

TRUTH = (1 / 2, 1 / 4, 1 / 6, 1 / 12)
GRID = (0.4, 0.15, 0.05, 0.015)


class World(NamedTuple):
    truth: np.ndarray
    kernels: list[np.ndarray]  # 1 to 3 informative, 4 to 6 noise
    rounds: np.ndarray  # (r, n, 3)
    test: np.ndarray  # (m, 3)


class Outcome(NamedTuple):
    error: float
    mu: np.ndarray
    rank: int


def world(seed: int, n: int = 100, sigma: float = 0.1, rounds: int = 30, test: int = 100_000) -> World:
    """One trial's data."""
    rng = np.random.default_rng(seed)
    planes = rng.random((7, n, 2))
    truth = sum(w * p @ p.T for w, p in zip(TRUTH, planes))
    seen = planes + rng.normal(0, sigma, planes.shape)
    kernels = [p @ p.T / np.trace(p @ p.T) for p in seen[1:]]

    def answered(anchors):
        near = (anchors + rng.integers(1, n, anchors.shape)) % n
        far = (anchors + rng.integers(1, n, anchors.shape)) % n
        again = near == far
        while again.any():
            far[again] = (anchors[again] + rng.integers(1, n, again.sum())) % n
            again = near == far
        t = np.stack([anchors, near, far], axis=-1)
        wrong = excess(truth, triplet_rows(t.reshape(-1, 3))).reshape(anchors.shape) > 0
        t[wrong] = t[wrong][:, [0, 2, 1]]
        return t.astype(np.int32)

    return World(truth, kernels, answered(np.tile(np.arange(n), (rounds, 1))), answered(rng.integers(n, size=test)))


def validated(train: np.ndarray, check: np.ndarray, w: World, form: str, loss: str, grid=GRID) -> Outcome:
    """Fit with the lambdas that do best on `check`, then measure on the test triplets."""
    n = len(w.truth)
    kernels = [] if form == "t" else w.kernels
    most = rckl.largest_lambdas(rckl.build(train, None, kernels, n, form, loss, 1.0, 1.0))
    best = None
    for second in grid if form != "t" else (1.0,):
        start = None
        for first in grid if form != "mkl" else (1.0,):
            found = rckl.fit(
                train,
                n,
                kernels,
                form=form,
                loss=loss,
                lambda1=max(first * most[0], 1e-9),
                lambda2=max(second * most[1], 1e-9),
                start=start,
                tolerance=1e-3,
            )
            start = rckl.Start(found.k0, found.mu, found.dual)
            error = 1.0 - satisfied(found.gram, triplet_rows(check))
            if best is None or error < best[0]:
                best = error, found
    found = best[1]
    return Outcome(1.0 - satisfied(found.gram, triplet_rows(w.test)), found.mu, found.rank)
