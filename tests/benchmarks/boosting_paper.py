"""Perrot & von Luxburg 2019, sec. 4: TripletBoost on Moons, Iris, USPS; beside it 1-NN and AdaBoost, which see vectors.

    python -m tests.benchmarks.boosting_paper [moons iris usps food bound abstention] [--repetitions 10]
                                              [--rounds 1000000] [--figure boosting.png] [--results FILE.jsonl]

Triplets: each (x, {j, k}) with references among the training examples is there with 1, 5 or 10 %, and turned round
with 0, 10 or 20 %; metrics Euclidean, cosine, city block. 70 % of the objects are trained on, the rest are asked
about (the paper does not give its split, nor the noise of Moons: 0.1 here). 1-NN uses the metric of the triplets,
AdaBoost is SAMME over 1,000 stumps. `usps` is ten digits at scale (3,000 to train on, up to 1.6 thousand million
triplets: 4 GB), `food` the tastes of dishes from human judgements, without vectors; `bound` is Theorem 2's along the
rounds; `abstention` is Theorem 4's formula, and n sqrt n, against what is seen. Cells of Moons, Iris and USPS are
kept in --results, by default the file beside this one; those that are there are not made again, so the command can be
stopped and resumed. Data of `usps` and `food`: the folder STREAM_ENGINE_DATA, else ../shared/data beside the
checkout.
"""

import argparse
import csv
import gzip
import itertools
import json
import os
import time
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris, make_moons
from sklearn.ensemble import AdaBoostClassifier
from sklearn.neighbors import KNeighborsClassifier

from stream_engine.boosting import rounds as boosting
from stream_engine.boosting import votes
from stream_engine.boosting.codes import codes_from_columns
from stream_engine.boosting.fit import Curve
from stream_engine.boosting.labels import group, label_sets
from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.refits.triplet_boost import abstention_bound, fit, predict
from tests.benchmarks.boosting_worlds import sampled_codes, sampled_columns
from tests.benchmarks.papers.kept import made_now
from tests.conftest import ROOT
from tests.support.planted_similarities import adds3

METRICS = ("euclidean", "cosine", "cityblock")
TASTES = ("salty", "savory", "sour", "bitter", "sweet", "spicy")
EXPERIMENTS = ("moons", "iris", "usps", "food", "bound", "abstention")
SHARES, NOISES = (0.01, 0.05, 0.1), (0.0, 0.1, 0.2)
KEY = ("data", "metric", "share", "noise", "repetitions", "rounds")
CELL = (
    "{data:6} {metric:10} {share:4.0%} triplets, {noise:3.0%} wrong: {accuracy:.3f} +- {deviation:.3f}, "
    "abstains {abstained:.3f}   1-NN {1-NN:.3f}  AdaBoost {AdaBoost:.3f}"
)


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


def boosted(data: Parted, metric: str, share: float, noise: float, rounds: int, seed: int) -> dict:
    """Test accuracy of TripletBoost, and the share of test objects on which it abstained."""
    distances = cdist(data.points, data.points[: data.n], metric)
    columns = sampled_columns(distances.astype(np.float32), share, noise, seed)
    known = np.where(np.arange(len(data.y)) < data.n, data.y, -1)
    predicted = predict(fit(columns, known, rounds, seed, checks=1), columns, np.arange(data.n, len(data.y)))
    return {
        "accuracy": float(np.mean(predicted.label == data.y[data.n :])),
        "abstained": float(predicted.abstained.mean()),
    }


def neighbour(data: Parted, metric: str) -> float:
    """Test accuracy of scikit-learn's nearest neighbour."""
    one = KNeighborsClassifier(1, metric=metric).fit(data.points[: data.n], data.y[: data.n])
    return float(one.score(data.points[data.n :], data.y[data.n :]))


def stumps(data: Parted, size: int = 1000) -> float:
    """Test accuracy of scikit-learn's AdaBoost (SAMME)."""
    model = AdaBoostClassifier(n_estimators=size, random_state=0).fit(data.points[: data.n], data.y[: data.n])
    return float(model.score(data.points[data.n :], data.y[data.n :]))


def grid(name: str, worlds: list[Parted], rounds: int, kept: Path) -> list[dict]:
    """Mean and standard deviation of the test accuracy in every cell, with the two baselines of its metric."""
    repetitions = len(worlds)
    stored = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    known = {tuple(cell[part] for part in KEY): cell for cell in stored}
    baseline, made = cache(lambda metric: np.mean([neighbour(data, metric) for data in worlds])), []
    adaboost = cache(lambda: np.mean([stumps(data) for data in worlds]))
    for metric, share, noise in itertools.product(METRICS, SHARES, NOISES):
        cell = known.get((name, metric, share, noise, repetitions, rounds))
        if cell is None:
            one = at_scale if name == "usps" else boosted
            seen = [one(data, metric, share, noise, rounds, seed) for seed, data in enumerate(worlds)]
            cell = {
                "data": name,
                "metric": metric,
                "share": share,
                "noise": noise,
                "repetitions": repetitions,
                "rounds": rounds,
            } | {figure: np.mean([made[figure] for made in seen]) for figure in seen[0]}
            cell |= {
                "deviation": np.std([made["accuracy"] for made in seen]),
                "1-NN": baseline(metric),
                "AdaBoost": adaboost(),
            }
            cell["made"] = made_now()
            with open(kept, "a") as file:
                file.write(json.dumps(cell, default=float) + "\n")
        made.append(cell)
        print(CELL.format(**cell), flush=True)
    return made


def digits(folder: Path, seed: int, n: int = 3000, asked: int = 1000) -> Parted:
    """USPS: n training and `asked` test digits, drawn without replacement."""
    rng, parts = np.random.default_rng(seed), []
    with np.load(folder / "usps" / "usps.npz") as stored:
        for part, size in (("train", n), ("test", asked)):
            at = rng.choice(len(stored[f"y_{part}"]), size, replace=False)
            parts.append((stored[f"X_{part}"][at], stored[f"y_{part}"][at].astype(int)))
    points, y = (np.concatenate(both) for both in zip(*parts))
    return Parted(points, y, n)


def at_scale(data: Parted, metric: str, share: float, noise: float, rounds: int, seed: int) -> dict:
    """Test accuracy and abstention of TripletBoost where counts would not fit; training error, triplets, CPU seconds of
    drawing the triplets, of boosting and of asking."""
    groups = group(label_sets(data.y[: data.n], data.n), np.arange(data.n))
    examples, asked = data.points[groups.example], data.points[data.n :]
    clock = [time.process_time()]
    known, open_ = (
        sampled_codes(cdist(examples, anchors, metric).astype(np.float32), groups, share, noise, seed + own, own)
        for anchors, own in ((examples, True), (asked, False))
    )
    clock.append(time.process_time())
    state = boosting.start(groups, seed)
    held = boosting.advance(state, known, rounds)
    clock.append(time.process_time())
    heard = votes.add(votes.no_votes(len(asked), groups.truth.shape[1]), held, open_)
    label, _, _, abstained = votes.decide(heard, np.arange(data.n, len(data.y)), seed)
    clock.append(time.process_time())
    return {
        "accuracy": float(np.mean(label == data.y[data.n :])),
        "abstained": float(abstained.mean()),
        "train_error": boosting.errors(boosting.confidences(state), state.positive),
        "triplets": len(known.code) + len(open_.code),
        **dict(zip(("draw_seconds", "boost_seconds", "ask_seconds"), np.diff(clock).round(1).tolist())),
    }


def tastes(folder: Path, rounds: int = 100_000, names=TASTES) -> list[dict]:
    """Tastes of dishes from human judgements of their pictures alone (food100): has a dish a taste by more than half
    of its judges? Accuracy in ten folds, beside the larger class, and the class of the dish that AddS-3 says is
    nearest."""
    with gzip.open(folder / "food100" / "triplets.csv.gz", "rt") as said:
        rows = list(csv.reader(said))[1:]
    index = {name: at for at, name in enumerate(sorted({name for row in rows for name in row[:3]}))}
    triplets = np.array([[index[name] for name in row[:3]] for row in rows])
    columns, W, made = columns_from_triplets(triplets, len(index)), adds3(triplets, len(index)), []
    known = list(csv.DictReader((folder / "food100" / "labels.csv").read_text().splitlines()))
    for taste in names:
        y = np.full(len(index), -1)
        for row in known:
            if row[taste]:
                y[index[row["object"]]] = int(row[taste]) > 50
        labelled = np.random.default_rng(0).permutation(np.flatnonzero(y >= 0))
        label, nearest = y.copy(), y.copy()
        for asked in (labelled[fold::10] for fold in range(10)):
            hidden = np.where(np.isin(np.arange(len(y)), asked), -1, y)
            label[asked] = predict(fit(columns, hidden, rounds, checks=1), columns, asked).label
            nearest[asked] = y[np.where(hidden >= 0, W, -np.inf)[asked].argmax(axis=1)]
        share = float(y[labelled].mean())
        made.append(
            {
                "taste": taste,
                "dishes": len(labelled),
                "larger class": max(share, 1 - share),
                "accuracy": float((label == y)[labelled].mean()),
                "nearest": float((nearest == y)[labelled].mean()),
            }
        )
        print(
            "food: {taste:7} {dishes} dishes, {accuracy:.3f} right; the larger class {larger class:.3f}, "
            "the nearest dish {nearest:.3f}".format(**made[-1]),
            flush=True,
        )
    return made


def bound(rounds: int = 1000) -> Curve:
    """Theorem 2's bound, the training and the test error along the rounds: Moons, 10 % of triplets, a tenth wrong."""
    data = dataset("moons", 0)
    columns = sampled_columns(cdist(data.points, data.points[: data.n]).astype(np.float32), 0.1, 0.1)
    curve = fit(columns, data.y, rounds, watch=np.arange(data.n, len(data.y)), checks=40).curve
    for done, log_bound, *seen in list(zip(*curve))[::4]:
        print(
            "round {:5}: Theorem 2 {:9.3g}, training error {:.3f}, test error {:.3f}".format(
                done, np.exp(log_bound), *seen
            )
        )
    return curve


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


def draw(path: str, cells: list[dict], curve: list[tuple], fall: Curve | None, dishes: list[dict]) -> None:
    """The paper's Fig. 2; below it the abstention curve, Theorem 2's bound and the tastes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    names = sorted({cell["data"] for cell in cells})
    height = len(names) + bool(curve or fall or dishes)
    fig, axes = plt.subplots(height, 3, figsize=(13, 3.5 * height), squeeze=False)
    panels = [("share", "noise", 0.0), ("noise", "share", 0.1), ("metric", "share", 0.1)]
    for axis, (name, (x, fixed, value)) in zip(axes.flat, ((name, panel) for name in names for panel in panels)):
        rows = [
            c
            for c in cells
            if c["data"] == name
            and c[fixed] == value
            and ((x == "metric" and c["noise"] == 0) or (x != "metric" and c["metric"] == "euclidean"))
        ]
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
    if fall:
        axes[-1][1].plot(fall.rounds, np.exp(fall.log_bound), label="Theorem 2")
        axes[-1][1].plot(fall.rounds, fall.train_error, label="training error")
        axes[-1][1].plot(fall.rounds, fall.watched_error, label="test error")
        axes[-1][1].set(title="Moons, 10 % of triplets, a tenth wrong", xlabel="rounds", ylim=(0, 1.05))
    for name, dots in (("accuracy", "o"), ("larger class", "_"), ("nearest", "x")) if dishes else ():
        axes[-1][2].plot([row["taste"] for row in dishes], [row[name] for row in dishes], dots, label=name)
        axes[-1][2].set(title="food, tastes", ylim=(0.4, 1.0))
    for axis in axes.flat:
        axis.legend() if axis.has_data() else axis.remove()
    fig.tight_layout()
    fig.savefig(path, dpi=110)


def experiment(name: str) -> str:
    """The name of an experiment, as it is given (argparse's own choices refuse a default of several)."""
    if name not in EXPERIMENTS:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(EXPERIMENTS)}")
    return name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "experiments",
        nargs="*",
        default=["moons", "iris", "bound", "abstention"],
        type=experiment,
        metavar="|".join(EXPERIMENTS),
    )
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1_000_000)
    folder = Path(os.environ.get("STREAM_ENGINE_DATA") or ROOT.parent / "shared" / "data")
    parser.add_argument("--figure")
    parser.add_argument("--results", default=str(Path(__file__).with_suffix(".jsonl")))
    given = parser.parse_args()
    for name, file in (("usps", folder / "usps" / "usps.npz"), ("food", folder / "food100" / "triplets.csv.gz")):
        if name in given.experiments and not file.exists():
            parser.error(f"{name}: no {file.relative_to(folder)} in {folder}: set STREAM_ENGINE_DATA")
    cells, kept = [], Path(given.results)
    for name in ("moons", "iris", "usps"):
        if name in given.experiments:
            make = partial(digits, folder) if name == "usps" else partial(dataset, name)
            cells += grid(name, [make(seed=seed) for seed in range(given.repetitions)], given.rounds, kept)
    dishes = tastes(folder) if "food" in given.experiments else []
    fall = bound() if "bound" in given.experiments else None
    curve = abstentions() if "abstention" in given.experiments else []
    if given.figure:
        draw(given.figure, cells, curve, fall, dishes)


if __name__ == "__main__":
    main()
