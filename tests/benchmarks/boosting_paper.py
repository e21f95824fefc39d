"""Perrot & von Luxburg 2019, sec. 4: TripletBoost on Moons, Iris, USPS; beside it 1-NN and AdaBoost, which see vectors.

Triplets: each (x, {j, k}) with references among the training examples is there with 1, 5 or 10 %, and turned round
with 0, 10 or 20 %; metrics Euclidean, cosine, city block. 70 % of the objects are trained on, the rest are asked
about (the paper does not give its split, nor the noise of Moons: 0.1 here). 1-NN uses the metric of the triplets,
AdaBoost is SAMME over 1,000 stumps. `at_scale` draws the triplets of many digits without counting them; `tastes` are
of dishes from human judgements, without vectors; `bound` is Theorem 2's along the rounds; `abstention` is Theorem 4's
formula, and n sqrt n, against what is seen.
"""

import csv
import gzip
import time
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
from tests.support.planted_similarities import adds3

METRICS = ("euclidean", "cosine", "cityblock")
TASTES = ("salty", "savory", "sour", "bitter", "sweet", "spicy")
SHARES, NOISES = (0.01, 0.05, 0.1), (0.0, 0.1, 0.2)


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
    return made


def bound(rounds: int = 1000) -> Curve:
    """Theorem 2's bound, the training and the test error along the rounds: Moons, 10 % of triplets, a tenth wrong."""
    data = dataset("moons", 0)
    columns = sampled_columns(cdist(data.points, data.points[: data.n]).astype(np.float32), 0.1, 0.1)
    return fit(columns, data.y, rounds, watch=np.arange(data.n, len(data.y)), checks=40).curve


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
    return float((seen.total_weight == 0).mean()), abstention_bound(n, p, len(pairs))
