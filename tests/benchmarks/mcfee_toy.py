"""McFee & Lanckriet 2011, sec. 5.1 and Table 2, on handwritten digits: the data, and MKPOE with beta by validation.

ALOI is not to be had here, so ten classes of 20 scikit-learn digits take its place, under a taxonomy by shape ({0 6},
{8 3}, {9 5}, {1 7}, {4 2} and up). Comparisons span subtrees by their least common ancestor. Five kernels look at parts
of the image (upper, lower, left and right half, gradients), five are noise (linear kernels of points on the unit sphere
in R^3). 80/20 splits of the objects; beta by 3-fold cross-validation with objects held out; test: (i, j, i, k), i held
out. For Table 2 a share of the comparisons is reversed.
"""

from typing import NamedTuple

import numpy as np

from stream_engine.evaluation import hash_split
from stream_engine.kernel_learning import constraints as sets
from stream_engine.kernel_learning import mkpoe
from stream_engine.kernel_learning.gram_comparisons import triplet_rows
from stream_engine.state.snapshot import Snapshot
from tests.support import kernel_reference as reference
from tests.support.kernel_reference import gauc, rbf

TAXONOMY = (((0, 6), ((8, 3), (9, 5))), ((1, 7), (4, 2)))
NAMES = ("upper", "lower", "left", "right", "edges", "noise 1", "noise 2", "noise 3", "noise 4", "noise 5")
MULTIPLES = (3.0, 20.0, 150.0, 1000.0)


class Toy(NamedTuple):
    labels: np.ndarray  # (n,)
    kernels: list[np.ndarray]
    depth: np.ndarray  # (10, 10): depth of the least common ancestor, more is nearer


def ancestors(tree, depth=0):
    """`(classes below, {(a, b): depth of their least common ancestor})`."""
    if isinstance(tree, int):
        return [tree], {(tree, tree): depth}
    left, right = (ancestors(part, depth + 1) for part in tree)
    below = left[0] + right[0]
    return below, left[1] | right[1] | {pair: depth for a in left[0] for b in right[0] for pair in ((a, b), (b, a))}


def toy(seed: int, each: int = 20) -> Toy:
    from sklearn.datasets import load_digits

    digits, rng = load_digits(), np.random.default_rng(seed)
    chosen = np.concatenate([rng.choice(np.flatnonzero(digits.target == c), each, replace=False) for c in range(10)])
    images = digits.images[chosen] / 16.0
    edges = np.concatenate([np.diff(images, axis=1)[:, :, :7], np.diff(images, axis=2)[:, :7]], axis=1)
    parts = (images[:, :4], images[:, 4:], images[:, :, :4], images[:, :, 4:], edges)
    kernels = [rbf(part.reshape(len(images), -1)) for part in parts]
    for _ in range(5):
        sphere = rng.normal(size=(len(images), 3))
        sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
        kernels.append(sphere @ sphere.T / len(images))
    depth = np.zeros((10, 10))
    for (a, b), value in ancestors(TAXONOMY)[1].items():
        depth[a, b] = value
    return Toy(digits.target[chosen], kernels, depth)


def comparisons(t: Toy, rng, size: int, anchors: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(size, 3) triplets that the taxonomy decides: near and far hang at neighbouring depths, so that few are
    redundant."""
    found = []
    while sum(map(len, found)) < size:
        a, b, c = rng.choice(anchors, 4 * size), rng.choice(others, 4 * size), rng.choice(others, 4 * size)
        first, second = t.depth[t.labels[a], t.labels[b]], t.depth[t.labels[a], t.labels[c]]
        keep = (a != b) & (a != c) & (first > second)
        found.append(np.stack([a, b, c], axis=1)[keep])
    return np.concatenate(found)[:size].astype(np.int32)


def beta_and_fit(
    rows, weight, kernels, diagonal: bool, seed: int, multiples=MULTIPLES
) -> tuple[mkpoe.Embedding, float]:
    """`(fit on all comparisons, multiple of the smallest beta)`, that by 3-fold cross-validation over objects."""
    n = len(kernels[0])
    fold = hash_split.object_folds(hash_split.name_hashes([str(i) for i in range(n)], seed), 3)
    least = mkpoe.smallest_beta(rows, weight, kernels, diagonal=diagonal) or 1.0
    scores = []
    for multiple in multiples if len(multiples) > 1 else ():
        right = []
        for number in range(3):
            inside = fold != number
            train, test = reference.inside(sets.Constraints(rows, weight), inside), rows
            test = test[~inside[test[:, 0]] & inside[test[:, 1]] & inside[test[:, 3]]]
            ids = np.cumsum(inside) - 1
            part = [k[np.ix_(inside, inside)] for k in kernels]
            options = {"weight": train.weight, "tolerance": 3e-2, "max_iterations": 600}
            found = mkpoe.fit(ids[train.rows], part, multiple * least, diagonal=diagonal, **options)
            right.append(gauc(mkpoe.embed(found, [k[inside] for k in kernels]), test))
        scores.append(np.mean(right))
    chosen = multiples[int(np.argmax(scores))] if scores else multiples[0]
    options = {"weight": weight, "tolerance": 1e-2, "max_iterations": 3000}
    return mkpoe.fit(rows, kernels, chosen * least, diagonal=diagonal, **options), chosen


def accuracy(found: mkpoe.Embedding, kernels, train: np.ndarray, test: np.ndarray) -> float:
    return gauc(mkpoe.embed(found, [k[train] for k in kernels]), triplet_rows(test))


def split(t: Toy, seed: int, size: int):
    """`(train ids, training triplets in ids of train, test triplets in all ids)`."""
    rng = np.random.default_rng(1000 + seed)
    order = rng.permutation(len(t.labels))
    train, test = np.sort(order[len(order) // 5 :]), np.sort(order[: len(order) // 5])
    ids = np.full(len(order), -1)
    ids[train] = np.arange(len(train))
    return train, ids[comparisons(t, rng, size, train, train)], comparisons(t, rng, 5000, test, train)


class Noisy(NamedTuple):
    """The pixel kernel, training objects, what was said of them with mistakes, and test triplets."""

    kernel: np.ndarray
    train: np.ndarray
    said: Snapshot
    test: np.ndarray


def noisy_split(seed: int, size: int, flip: float = 0.15, each: int = 20) -> Noisy:
    """A split of which some questions are asked twice and a share of the answers is reversed; `each` objects a class
    (few objects and many comparisons make cycles)."""
    t = toy(seed, each)
    train, triplets, test = split(t, seed, size)
    rng = np.random.default_rng(seed)
    again = triplets[rng.integers(len(triplets), size=len(triplets) // 3)]
    triplets = np.concatenate([triplets, again])
    wrong = rng.random(len(triplets)) < flip
    triplets[wrong] = triplets[wrong][:, [0, 2, 1]]
    return Noisy(t.kernels[1], train, reference.snapshot_of(triplets, len(train)), test)


def processed(world: Noisy, which: str, diagonal: bool, seed: int, order: int | None, multiples) -> dict[str, float]:
    """Number of constraints, test accuracy and the chosen multiple of a constraint set; `order` is the seed of
    Algorithm 1's random order."""
    inner = [np.ascontiguousarray(world.kernel[np.ix_(world.train, world.train)])]
    held = sets.constraints(world.said, which, weights="one", seed=seed if order is None else order)
    found, chosen = beta_and_fit(held.rows, held.weight, inner, diagonal, seed, multiples)
    right = accuracy(found, [world.kernel], world.train, world.test)
    return {"size": len(held.rows), "accuracy": right, "multiple": chosen}
