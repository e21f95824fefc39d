"""Perrot & von Luxburg 2019, sec. 4: TripletBoost on Moons and Iris beside 1-NN and AdaBoost, which see the vectors.

    python -m tests.benchmarks.boosting_paper [moons iris usps abstention] [--repetitions 10] [--rounds 1000000]
                                              [--figure boosting.png] [--usps FILE.npz] [--results FILE.jsonl]

Triplets: each (x, {j, k}) with references among the training examples is there with 1, 5 or 10 %, and turned round with
0, 10 or 20 %; metrics Euclidean, cosine, city block. 70 % of the objects are trained on, the rest are asked about (the
paper does not give its split, nor the noise of Moons: 0.1 here). 1-NN uses the metric of the triplets, AdaBoost is
SAMME over 1,000 stumps. `usps` is ten digits at scale; `abstention` is Theorem 4's formula, and n sqrt n, against what
is seen. Cells of Moons and Iris are kept in --results, by default the file beside this one; those that are there are
not made again, so the command can be stopped and resumed.
"""

import argparse
import itertools
import json
import os
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris, make_moons
from sklearn.ensemble import AdaBoostClassifier
from sklearn.neighbors import KNeighborsClassifier

from stream_engine.boosting import rounds as boosting, votes
from stream_engine.boosting.codes import codes_from_columns
from stream_engine.boosting.labels import group, label_sets
from stream_engine.refits.triplet_boost import abstention_bound, fit, predict
from tests.benchmarks.boosting_worlds import sampled_columns
from tests.conftest import ROOT

METRICS = ("euclidean", "cosine", "cityblock")
SHARES, NOISES = (0.01, 0.05, 0.1), (0.0, 0.1, 0.2)
KEY = ("data", "metric", "share", "noise", "repetitions", "rounds")
CELL = ("{data:6} {metric:10} {share:4.0%} triplets, {noise:3.0%} wrong: {accuracy:.3f} +- {deviation:.3f}, "
        "abstains {abstained:.3f}   1-NN {1-NN:.3f}  AdaBoost {AdaBoost:.3f}")


class Parted(NamedTuple):
    """Vectors and classes; the first `n` are trained on."""

    points: np.ndarray
    y: np.ndarray
    n: int


def dataset(name: str, seed: int) -> Parted:
    """Moons (500) or Iris (150), shuffled, 70 % to train on."""
    points, y = make_moons(500, noise=0.1, random_state=seed) if name == "moons" else load_iris(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return Parted(points[order], y[order], int(0.7 * len(y)))


def boosted(data: Parted, metric: str, share: float, noise: float, rounds: int, seed: int) -> tuple[float, float]:
    """Test accuracy of TripletBoost, and the share of test objects on which it abstained."""
    distances = cdist(data.points, data.points[: data.n], metric)
    columns = sampled_columns(distances.astype(np.float32), share, noise, seed)
    known = np.where(np.arange(len(data.y)) < data.n, data.y, -1)
    predicted = predict(fit(columns, known, rounds, seed, checks=1), columns, np.arange(data.n, len(data.y)))
    return float(np.mean(predicted.label == data.y[data.n :])), float(predicted.abstained.mean())


def neighbour(data: Parted, metric: str) -> float:
    """Test accuracy of scikit-learn's nearest neighbour."""
    one = KNeighborsClassifier(1, metric=metric).fit(data.points[: data.n], data.y[: data.n])
    return float(one.score(data.points[data.n :], data.y[data.n :]))


def stumps(data: Parted, size: int = 1000) -> float:
    """Test accuracy of scikit-learn's AdaBoost (SAMME)."""
    model = AdaBoostClassifier(n_estimators=size, random_state=0).fit(data.points[: data.n], data.y[: data.n])
    return float(model.score(data.points[data.n :], data.y[data.n :]))


def grid(name: str, repetitions: int, rounds: int, kept: Path) -> list[dict]:
    """Mean and standard deviation of the test accuracy in every cell, with the two baselines of its metric."""
    worlds = [dataset(name, seed) for seed in range(repetitions)]
    stored = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    known = {tuple(cell[part] for part in KEY): cell for cell in stored}
    baseline, made = cache(lambda metric: np.mean([neighbour(data, metric) for data in worlds])), []
    adaboost = cache(lambda: np.mean([stumps(data) for data in worlds]))
    for metric, share, noise in itertools.product(METRICS, SHARES, NOISES):
        cell = known.get((name, metric, share, noise, repetitions, rounds))
        if cell is None:
            seen = [boosted(data, metric, share, noise, rounds, seed) for seed, data in enumerate(worlds)]
            accuracy, abstained = np.array(seen).T
            cell = {"data": name, "metric": metric, "share": share, "noise": noise, "repetitions": repetitions,
                    "rounds": rounds, "accuracy": accuracy.mean(), "deviation": accuracy.std(),
                    "abstained": abstained.mean(), "1-NN": baseline(metric), "AdaBoost": adaboost()}
            with open(kept, "a") as file:
                file.write(json.dumps(cell, default=float) + "\n")
        made.append(cell)
        print(CELL.format(**cell), flush=True)
    return made


def digits(path: str, rounds: int, n: int, share: float, asked: int = 1000) -> dict:
    """USPS: ten classes, n training examples, that share of all triplets; CPU seconds of each step."""
    with np.load(path) as stored:
        points = np.concatenate([stored["X_train"][:n], stored["X_test"][:asked]])
        data = Parted(points, np.concatenate([stored["y_train"][:n], stored["y_test"][:asked]]).astype(int), n)
    columns = sampled_columns(cdist(data.points, data.points[:n]).astype(np.float32), share)
    known = np.where(np.arange(n + asked) < n, data.y, -1)
    began = time.process_time()
    booster = fit(columns, known, rounds, 0, checks=10)
    fitted = time.process_time()
    predicted = predict(booster, columns, np.arange(n, n + asked))
    made = {"n": n, "share": share, "triplets": len(columns.anchor), "fit_seconds": fitted - began,
            "ask_seconds": time.process_time() - fitted, "accuracy": np.mean(predicted.label == data.y[n:]),
            "train_error": booster.curve.train_error[-1], "1-NN": neighbour(data, "euclidean"),
            "AdaBoost": stumps(data, 100)}
    print("usps: n={n}, {share:.0%}, {triplets:,} triplets laid out and boosted in {fit_seconds:.1f} s, asked in "
          "{ask_seconds:.1f} s; accuracy {accuracy:.3f}, training error {train_error:.3f}   1-NN {1-NN:.3f}  "
          "AdaBoost (100 stumps) {AdaBoost:.3f}".format(**made), flush=True)
    return made


def abstention(n: int, k: float, seed: int = 0, asked: int = 1000) -> tuple[float, float]:
    """Theorem 4 with n training examples and p = 2 n^k / n^3, C = all pairs of different classes: seen, and formula."""
    rng = np.random.default_rng(seed)
    points, y = rng.normal(size=(n + asked, 2)), rng.integers(2, size=n + asked)
    p = min(1.0, 2 * float(n) ** (k - 3))
    columns = sampled_columns(cdist(points, points[:n]).astype(np.float32), p, 0.0, seed)
    groups = group(label_sets(np.where(np.arange(n + asked) < n, y, -1), n + asked), np.arange(n))
    codes = codes_from_columns(columns, groups, groups.example)
    first, second = (np.arange(a, b) for a, b in zip(groups.start, groups.start[1:]))
    pairs = rng.permutation(np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2))
    held = boosting.advance(boosting.start(groups, seed), codes, 0, pairs)
    seen = votes.add(votes.no_votes(asked, 2), held, codes_from_columns(columns, groups, np.arange(n, n + asked)))
    return float((seen.applied == 0).mean()), abstention_bound(n, p, len(pairs))


def abstentions() -> list[tuple]:
    """The curve of abstention over the number of triplets n^k: it falls at k = 3/2, the sharper the larger n."""
    made = [(n, k, *abstention(n, k)) for n in (50, 200, 800) for k in np.arange(1.0, 2.21, 0.1)]
    for n, k, seen, formula in made:
        print(f"n={n:4} n^{k:.1f} triplets: abstains {seen:.3f}, Theorem 4 {formula:.3f}")
    return made


def draw(path: str, cells: list[dict], curve: list[tuple]) -> None:
    """The paper's Fig. 2 and the abstention curve."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = sorted({cell["data"] for cell in cells})
    height = len(names) + bool(curve)
    fig, axes = plt.subplots(height, 3, figsize=(13, 3.5 * height), squeeze=False)
    panels = [("share", "noise", 0.0), ("noise", "share", 0.1), ("metric", "share", 0.1)]
    for axis, (name, (x, fixed, value)) in zip(axes.flat, ((name, panel) for name in names for panel in panels)):
        rows = [c for c in cells if c["data"] == name and c[fixed] == value
                and (x == "metric" and c["noise"] == 0 or x != "metric" and c["metric"] == "euclidean")]
        where, deviation = [str(row[x]) for row in rows], [row["deviation"] for row in rows]
        axis.errorbar(where, [row["accuracy"] for row in rows], deviation, marker="o", label="TripletBoost")
        for rival in ("1-NN", "AdaBoost"):
            axis.plot(where, [r[rival] for r in rows], "--", label=rival)
        axis.set(title=f"{name}, {fixed} {value}", xlabel=x, ylabel="test accuracy")
    for n in sorted({n for n, *_ in curve}):
        points = np.array([row for row in curve if row[0] == n])
        (line,) = axes[-1][0].plot(points[:, 1], points[:, 2], "o", label=f"n = {n}")
        axes[-1][0].plot(points[:, 1], points[:, 3], color=line.get_color())
    if curve:
        axes[-1][0].set(title="abstention: seen (dots), Theorem 4", xlabel="k, for n^k triplets")
    for axis in axes.flat:
        axis.legend() if axis.has_data() else axis.remove()
    fig.tight_layout()
    fig.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiments", nargs="*", default=["moons", "iris", "abstention"])
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    folder = Path(os.environ.get("STREAM_ENGINE_DATA") or ROOT.parent / "shared" / "data")
    parser.add_argument("--usps", default=str(folder / "usps" / "usps.npz"))
    parser.add_argument("--figure")
    parser.add_argument("--results", default=str(Path(__file__).with_suffix(".jsonl")))
    given = parser.parse_args()
    cells, kept = [], Path(given.results)
    for name in ("moons", "iris"):
        cells += grid(name, given.repetitions, given.rounds, kept) if name in given.experiments else []
    for n, share in ((3000, 0.01), (2000, 0.05), (1000, 0.1)) if "usps" in given.experiments else ():
        digits(given.usps, given.rounds, n, share)
    curve = abstentions() if "abstention" in given.experiments else []
    if given.figure and (cells or curve):
        draw(given.figure, cells, curve)


if __name__ == "__main__":
    main()
