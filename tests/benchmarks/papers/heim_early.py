"""Algorithm 1 of Heim et al. 2014 as it stands, stopped early: projected gradient descent for STE-AK and STE-T.

The paper does not say when its solver stopped. The ranks of K0 that it reports (86 to 96 of 100) are no optimum's, but
those of a few dozen steps from its start, K0 = I. Slow and plain on purpose: it stands in for the paper's solver.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stream_engine.kernel_learning.gram_comparisons import adjoint, excess, satisfied, triplet_rows
from tests.benchmarks.heim_synthetic import World

ETAS, LAMBDAS = (0.001, 0.01, 0.1, 1.0), (0.0, 0.1)
STOPS = (5, 20, 50)


class Stopped(NamedTuple):
    """K'' after so many steps, and the rank of its K0."""

    steps: int
    gram: np.ndarray  # (n, n)
    mu: np.ndarray
    rank: int


def descend(
    triplets: np.ndarray, n: int, kernels: list[np.ndarray], eta: float, lambda1: float, lambda2: float, stops: Sequence
) -> list[Stopped]:
    """Alg. 1: K0 <- PSD(K0 - eta (grad + lambda1 I)), mu <- (mu - eta (grad + lambda2))+, from K0 = I, mu = 1 / A. What
    there is after each of `stops` steps. O(n^3) a step."""
    rows, out = triplet_rows(triplets), []
    k0, mu = np.eye(n), np.full(len(kernels), 1 / max(len(kernels), 1))
    for step in range(1, max(stops) + 1):
        slope = adjoint(1 / (1 + np.exp(-excess(mixed(k0, mu, kernels), rows))), rows, n)
        k0 = k0 - eta * (slope + lambda1 * np.eye(n))
        mu = np.maximum(mu - eta * (np.array([np.vdot(slope, k) for k in kernels]) + lambda2), 0)
        values, vectors = np.linalg.eigh((k0 + k0.T) / 2)
        k0 = (vectors * np.maximum(values, 0)) @ vectors.T
        if step in stops:
            rank = int((values > 1e-9 * max(values[-1], 1e-300)).sum())
            out.append(Stopped(step, mixed(k0, mu, kernels), mu, rank))
    return out


def mixed(k0: np.ndarray, mu: np.ndarray, kernels: list[np.ndarray]) -> np.ndarray:
    """K'' = K0 + sum mu_a K_a."""
    return k0 + sum((m * k for m, k in zip(mu, kernels)), np.zeros_like(k0))


def validated(train: np.ndarray, check: np.ndarray, world: World, form: str) -> dict:
    """Step size, lambdas and the number of steps by validation error; test error, rank and mu of that one."""
    kernels = world.kernels if form == "ak" else []
    best: tuple[float, dict] | None = None
    for eta in ETAS:
        for first in LAMBDAS:
            for second in LAMBDAS if kernels else (0.0,):
                for stopped in descend(train, len(world.truth), kernels, eta, first, second, STOPS):
                    wrong = 1 - satisfied(stopped.gram, triplet_rows(check))
                    if best is None or wrong < best[0]:
                        error = 1 - satisfied(stopped.gram, triplet_rows(world.test))
                        told = {"error": error, "rank": stopped.rank, "mu": stopped.mu.tolist()}
                        best = wrong, told | {"eta": eta, "steps": stopped.steps}
    assert best is not None
    return best[1]
