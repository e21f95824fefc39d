"""Similarities of the SDP tests: the planted model counted into AddS, and kernels of it."""

import numpy as np

from stream_engine import Engine, Quadruplet, Triplet
from stream_engine.counts import ACCUMULATORS, kernels
from stream_engine.data.triplet_columns import columns_from_triplets
from tests.support.generators import planted_similarities, similarity_triplets


def adds3(triplets: np.ndarray, n: int) -> np.ndarray:
    """AddS-3 straight from its increments."""
    W = np.zeros((n, n))
    for pair, step in (((0, 1), 1.0), ((0, 2), -1.0)):
        np.add.at(W, (triplets[:, pair[0]], triplets[:, pair[1]]), step)
    return W + W.T


def adds4(quadruplets: np.ndarray, n: int) -> np.ndarray:
    """AddS-4 straight from its increments."""
    W = np.zeros((n, n))
    np.add.at(W, (quadruplets[:, 0], quadruplets[:, 1]), 1.0)
    np.add.at(W, (quadruplets[:, 2], quadruplets[:, 3]), -1.0)
    return W + W.T


def planted(n: int, k: int, power: float, seed: int = 0, flip: float = 0.125, delta: float = 0.5):
    """(triplets, labels) of the paper's planted model with n (ln n)^power triplets."""
    rng = np.random.default_rng([seed, n, k])
    w, labels = planted_similarities(n, k, delta, 0.1, rng)
    return similarity_triplets(rng, w, int(n * np.log(n) ** power), flip), labels


def planted_adds3(n: int, k: int, power: float, seed: int = 0, flip: float = 0.125):
    """(W, labels, number of comparisons)."""
    triplets, labels = planted(n, k, power, seed, flip)
    return adds3(triplets, n), labels, len(triplets)


def planted_adds4(n: int, k: int, power: float, seed: int = 0, flip: float = 0.125):
    """(W, labels, number of comparisons), from quadruplets of four distinct objects."""
    rng = np.random.default_rng([seed, n, k, 4])
    w, labels = planted_similarities(n, k, 0.5, 0.1, rng)
    q = np.stack([rng.choice(n, 4, replace=False) for _ in range(int(n * np.log(n) ** power))])
    wrong = (w[q[:, 0], q[:, 1]] < w[q[:, 2], q[:, 3]]) ^ (rng.random(len(q)) < flip)
    q[wrong] = q[wrong][:, [2, 3, 0, 1]]
    return adds4(q, n), labels, len(q)


def planted_mulk3(n: int, k: int, power: float, seed: int = 0):
    """(W, labels, number of comparisons) of MulK-3."""
    triplets, labels = planted(n, k, power, seed)
    W = kernels.k1(columns_from_triplets(triplets, n))
    np.fill_diagonal(W, 0)
    return W, labels, len(triplets)


def snapshot_of(triplets, names=None, quadruplets=()):
    engine = Engine([name for name in ACCUMULATORS if name != "quadruplet_counts"])
    names = names or [f"o{i}" for i in range(1 + int(np.max(triplets, initial=-1)))]
    engine.learn_many(
        [Triplet(*(names[x] for x in row)) for row in triplets]
        + [Quadruplet((names[i], names[j]), (names[k], names[l])) for i, j, k, l in quadruplets]
    )
    return engine.snapshot()
