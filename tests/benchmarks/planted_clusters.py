"""Perrot, Esser & Ghoshdastidar 2020, sec. 5, Fig. 1: which similarity recovers planted clusters from how little?

The planted model: 4 equal clusters, delta = 0.5, epsilon = 0.75, Gaussian similarities (sigma = 0.1), comparisons drawn
without replacement. ARI of AddS-3 and AddS-4 with SPUR, and of MulK-3 and MulK-4 with SDP-k at the k that AddS found,
against the number of comparisons, epsilon, delta and the distributions (the paper's appendix with their parameters is
not at hand: they are set so that delta stays 0.5). SDPs are solved to a gap of 1e-2 here, with at most ITERATIONS; the
gap that the MulK solves ended with is in the results.
"""

import time

import numpy as np
from scipy.stats import norm

from stream_engine.clustering import partition
from stream_engine.counts import kernels
from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.refits.sdp_clustering import solve, spur
from tests.support.planted_similarities import adds3, adds4

K, SIGMA, TOL, ITERATIONS = 4, 0.1, 1e-2, 100
POWERS = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
DISTRIBUTIONS = ("normal", "uniform-beta", "uniform-normal")
PANELS = {  # panel -> settings (power, epsilon, delta, distribution) along its axis
    "comparisons": [(power, 0.75, 0.5, "normal") for power in POWERS],
    "noise": [(4.0, epsilon, 0.5, "normal") for epsilon in (0.1, 0.25, 0.5, 0.75, 1.0)],
    "separation": [(4.0, 0.75, delta, "normal") for delta in (0.1, 0.25, 0.5, 0.75, 1.0)],
    "distributions": [(4.0, 0.75, 0.5, name) for name in DISTRIBUTIONS],
}
METHODS = ("AddS-3", "AddS-4", "MulK-3", "MulK-4")
AXIS = {"comparisons": 0, "noise": 1, "separation": 2, "distributions": 3}


def similarities(rng, n: int, delta: float, distribution: str) -> tuple[np.ndarray, np.ndarray]:
    """A symmetric (n, n) matrix and the labels, with P(w_in > w_out) = (1 + delta) / 2."""
    labels = np.arange(n) * K // n
    same = labels[:, None] == labels
    if distribution == "normal":
        gap = np.sqrt(2) * SIGMA * norm.ppf(min((1 + delta) / 2, 1 - 1e-9))
        w = rng.normal(0, SIGMA, (n, n)) + gap * same
    else:  # within uniform on [0, 1]: P(in > out) = 1 - E(out) for out within [0, 1]
        mean = (1 - delta) / 2
        beta = distribution == "uniform-beta"
        out = rng.beta(1, 1 / mean - 1, (n, n)) if beta else rng.normal(mean, mean / 4, (n, n))
        w = np.where(same, rng.random((n, n)), out)
    w = np.triu(w, 1)
    return w + w.T, labels


def without_replacement(rng, draw, count: int) -> np.ndarray:
    """`count` distinct keys in no order; `draw(m)` gives up to m keys, equally likely, repetitions allowed."""
    keys = np.unique(draw(int(1.1 * count) + 100))
    while len(keys) < count:
        keys = np.unique(np.concatenate([keys, draw(count)]))
    return rng.choice(keys, count, replace=False, shuffle=False) if len(keys) > count else keys


def triplets_of(rng, w: np.ndarray, count: int, epsilon: float) -> np.ndarray:
    """(count, 3) distinct triplets, each with the right answer with probability (1 + epsilon) / 2."""
    n = len(w)

    def draw(m):
        a, (b, c) = rng.integers(n, size=m), np.sort(rng.integers(n, size=(2, m)), axis=0)
        return ((a * n + b) * n + c)[(a != b) & (a != c) & (b != c)]

    key = without_replacement(rng, draw, min(count, n * (n - 1) * (n - 2) // 2))
    a, b, c = key // n**2, key // n % n, key % n
    wrong = (w[a, b] < w[a, c]) ^ (rng.random(len(key)) < (1 - epsilon) / 2)
    return np.stack([a, np.where(wrong, c, b), np.where(wrong, b, c)], axis=1)


def quadruplets_of(rng, w: np.ndarray, count: int, epsilon: float) -> np.ndarray:
    """(count, 4) distinct ones of four distinct objects: those that share one are triplets, 4 / n of all."""
    n = len(w)

    def draw(m):
        i, j = np.sort(rng.integers(n, size=(2, m)), axis=0)
        k, l = np.sort(rng.integers(n, size=(2, m)), axis=0)
        lower, upper = np.minimum(i * n + j, k * n + l), np.maximum(i * n + j, k * n + l)
        return (lower * n**2 + upper)[(i != j) & (k != l) & (i != k) & (i != l) & (j != k) & (j != l)]

    key = without_replacement(rng, draw, count)
    first, second = key // n**2, key % n**2
    wrong = (w[first // n, first % n] < w[second // n, second % n]) ^ (rng.random(count) < (1 - epsilon) / 2)
    near, far = np.where(wrong, second, first), np.where(wrong, first, second)
    return np.stack([near // n, near % n, far // n, far % n], axis=1)


def mulk4(q: np.ndarray, n: int) -> np.ndarray:
    flip = (q[:, 0] * n + q[:, 1]) > (q[:, 2] * n + q[:, 3])  # counts keep the smaller pair first
    rows = np.where(flip[:, None], q[:, [2, 3, 0, 1]], q)
    counts = dict(zip("ijkl", rows.T)) | {"n_lo": (~flip).astype(int), "n_hi": flip.astype(int)}
    W = kernels.mulk4(counts, n)
    np.fill_diagonal(W, 0)
    return W


def mulk3(triplets: np.ndarray, n: int) -> np.ndarray:
    W = kernels.k1(columns_from_triplets(triplets, n))
    np.fill_diagonal(W, 0)
    return W


def labels_of(solution, k: int) -> np.ndarray:
    return solution.labels if solution.labels is not None else partition.k_means(solution.rows, k, 0)


def agreement(truth, found) -> float:
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(truth, found))


def run(n: int, setting: tuple, seed: int) -> dict:
    """ARI of the four similarities and the k of SPUR for one draw of the planted model."""
    power, epsilon, delta, distribution = setting
    rng = np.random.default_rng([seed, n, int(100 * power), int(100 * epsilon), int(100 * delta)])
    w, truth = similarities(rng, n, delta, distribution)
    count, out, began = int(n * np.log(n) ** power), {}, time.process_time()
    triplets, quadruplets = triplets_of(rng, w, count, epsilon), quadruplets_of(rng, w, count, epsilon)
    for name, W, kernel, other in (
        ("AddS-3", adds3(triplets, n), "MulK-3", lambda: mulk3(triplets, n)),
        ("AddS-4", adds4(quadruplets, n), "MulK-4", lambda: mulk4(quadruplets, n)),
    ):
        choice = spur(W, count, tol=TOL, max_iterations=ITERATIONS)
        out[name] = agreement(truth, labels_of(choice.solution, choice.k))
        out[f"k {name}"] = choice.k
        made = solve(other(), k=choice.k, tol=TOL, max_iterations=ITERATIONS // 3)
        out[kernel], out[f"gap {kernel}"] = agreement(truth, labels_of(made, choice.k)), round(made.gap, 4)
    return out | {"cpu": round(time.process_time() - began, 1)}
