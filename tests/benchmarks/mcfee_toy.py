"""McFee & Lanckriet 2011, sec. 5.1 and Table 2, on handwritten digits: MKPOE against single kernels and their sum.

    python tests/benchmarks/mcfee_toy.py [--splits 5] [--figure weights.png] [--form diagonal|full] [--comparisons 5000]

ALOI is not to be had here, so ten classes of 20 scikit-learn digits take its place, under a taxonomy by shape ({0 6},
{8 3}, {9 5}, {1 7}, {4 2} and up). Comparisons span subtrees by their least common ancestor. Five kernels look at parts
of the image (upper, lower, left and right half, gradients), five are noise (linear kernels of points on the unit sphere
in R^3). 80/20 splits of the objects; beta by 3-fold cross-validation with objects held out; test: (i, j, i, k), i held
out. Then Table 2: raw, length-2 processed and fully processed constraints after a share of the comparisons was
reversed.
"""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.kernel_learning import constraints as sets
from stream_engine.kernel_learning import mkpoe
from stream_engine.kernel_learning.distance_operator import satisfied, triplet_rows
from stream_engine.state.snapshot import Snapshot
from stream_engine.statistics import hash_split
from tests.support.kernel_reference import gauc, kernel_weights
from tests.support.kernel_reference import inside as inside_of

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


def rbf(features):
    d = np.square(features[:, None] - features[None]).sum(-1)
    k = np.exp(-d / np.median(d[d > 0]))
    return k / np.trace(k)


def toy(seed: int, each: int = 20) -> Toy:
    from sklearn.datasets import load_digits

    digits, rng = load_digits(), np.random.default_rng(seed)
    chosen = np.concatenate([rng.choice(np.flatnonzero(digits.target == c), each, replace=False) for c in range(10)])
    images = digits.images[chosen] / 16.0
    parts = [
        images[:, :4],
        images[:, 4:],
        images[:, :, :4],
        images[:, :, 4:],
        np.concatenate([np.diff(images, axis=1)[:, :, :7], np.diff(images, axis=2)[:, :7]], axis=1),
    ]
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


def beta_and_fit(rows, weight, kernels, diagonal: bool, seed: int) -> mkpoe.Embedding:
    """beta by 3-fold cross-validation over objects, then a fit on all of them."""
    n = len(kernels[0])
    fold = hash_split.object_folds(hash_split.name_hashes([str(i) for i in range(n)], seed), 3)
    least = smallest(rows, weight, kernels, diagonal)
    scores = []
    for multiple in MULTIPLES:
        right = []
        for number in range(3):
            inside = fold != number
            train, test = inside_of(sets.Constraints(rows, weight), inside), rows
            test = test[~inside[test[:, 0]] & inside[test[:, 1]] & inside[test[:, 3]]]
            ids = np.cumsum(inside) - 1
            part = [k[np.ix_(inside, inside)] for k in kernels]
            found = mkpoe.fit(
                ids[train.rows],
                part,
                multiple * least,
                diagonal=diagonal,
                weight=train.weight,
                tolerance=3e-2,
                max_iterations=600,
            )
            right.append(gauc(mkpoe.embed(found, [k[inside] for k in kernels]), test))
        scores.append(np.mean(right))
    return mkpoe.fit(
        rows,
        kernels,
        MULTIPLES[int(np.argmax(scores))] * least,
        diagonal=diagonal,
        weight=weight,
        tolerance=1e-2,
        max_iterations=3000,
    )


def smallest(rows, weight, kernels, diagonal) -> float:
    found = mkpoe.smallest_beta(rows, weight, kernels, diagonal=diagonal)
    return found if found is not None else 1.0


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


def figure5(
    splits: int, size: int, form: str, tell=lambda text: None
) -> tuple[dict[str, list[tuple[float, float]]], list]:
    """`({kernel: [(native, learned) accuracy of each split]}, [MKPOE embedding of each split])`."""
    out: dict = {}
    learned = []
    for seed in range(splits):
        t = toy(seed)
        train, triplets, test = split(t, seed, size)
        rows, weight = triplet_rows(triplets), np.ones(len(triplets))
        choices = {name: [k] for name, k in zip(NAMES, t.kernels)} | {"sum": [sum(t.kernels)], "MKPOE": t.kernels}
        for name, kernels in choices.items():
            inner = [np.ascontiguousarray(k[np.ix_(train, train)]) for k in kernels]
            found = beta_and_fit(rows, weight, inner, form == "diagonal", seed)
            native = satisfied(sum(kernels), triplet_rows(test))
            out.setdefault(name, []).append((native, accuracy(found, kernels, train, test)))
            if name == "MKPOE":
                learned.append((found, inner))
            tell(f"split {seed + 1} of {splits}: {name} {out[name][-1]}")
    return out, learned


def snapshot_of(triplets: np.ndarray, n: int) -> Snapshot:
    counts = columns_from_triplets(triplets, n)._asdict()
    counts.pop("n_objects")
    return Snapshot(
        0,
        {},
        tuple(map(str, range(n))),
        {},
        {},
        {"guard": "off"},
        {f"triplet_counts/{k}": v for k, v in counts.items()},
    )


def table2(splits: int, size: int, form: str, flip: float = 0.15) -> dict[str, list[tuple[int, float]]]:
    """{constraint set: [(its size, accuracy) of each split]} on the pixel kernel, with a share of answers reversed."""
    out: dict = {}
    for seed in range(splits):
        world = noisy_split(seed, size, flip)
        for which in ("raw", "length2", "canonical-reduced"):
            out.setdefault(which, []).append(processed(world, which, form == "diagonal", seed))
    return out


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
    return Noisy(t.kernels[1], train, snapshot_of(triplets, len(train)), test)


def processed(world: Noisy, which: str, diagonal: bool, seed: int, order: int | None = None) -> tuple[int, float]:
    """`(constraints, test accuracy)` of a constraint set; `order` is the seed of Algorithm 1's random order."""
    inner = [np.ascontiguousarray(world.kernel[np.ix_(world.train, world.train)])]
    held = sets.constraints(world.said, which, weights="one", seed=seed if order is None else order)
    found = beta_and_fit(held.rows, held.weight, inner, diagonal, seed)
    return len(held.rows), accuracy(found, [world.kernel], world.train, world.test)


def weights_figure(found: mkpoe.Embedding, inner, path: str) -> None:
    """Fig. 8: the weight of every (kernel, training object) pair, W_ii K_ii."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    weights = kernel_weights(found) * np.stack([np.diag(k) for k in inner])
    fig, axes = plt.subplots(len(weights), 1, figsize=(8, 1.1 * len(weights)), sharex=True, sharey=True)
    for ax, name, w in zip(axes, NAMES, weights):
        ax.bar(np.arange(len(w)), w, width=1.0)
        ax.set_ylabel(name, rotation=0, ha="right", fontsize=8)
    axes[-1].set_xlabel("training object")
    fig.tight_layout()
    fig.savefig(path, dpi=120)
    plt.close(fig)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--comparisons", type=int, default=5000)
    parser.add_argument("--form", choices=("diagonal", "full"), default="diagonal")
    parser.add_argument("--figure")
    args = parser.parse_args()
    with threadpool_limits(1):
        results, learned = figure5(args.splits, args.comparisons, args.form, lambda text: print(text, file=sys.stderr))
        print(f"{'kernel':<10}{'native':>8}{'learned':>18}")
        for name, pairs in results.items():
            native, after = np.array(pairs).T
            print(f"{name:<10}{native.mean():8.3f}{after.mean():10.3f} +- {after.std():.3f}")
        shares = []
        for found, inner in learned:
            mass = np.array([w @ np.diag(k) if w.ndim == 1 else np.vdot(w, k) for w, k in zip(found.weights, inner)])
            shares.append(mass / mass.sum())
        print("share of each kernel in MKPOE:", dict(zip(NAMES, np.mean(shares, axis=0).round(4).tolist())))
        print(f"{'constraints':<20}{'size':>8}{'accuracy':>18}")
        for name, pairs in table2(args.splits, args.comparisons, args.form).items():
            size, after = np.array(pairs).T
            print(f"{name:<20}{size.mean():8.0f}{after.mean():10.3f} +- {after.std():.3f}")
    if args.figure:
        if args.form != "diagonal":
            parser.error("--figure draws the diagonal's weights (Fig. 8): use --form diagonal")
        weights_figure(*learned[0], args.figure)


if __name__ == "__main__":
    main()
