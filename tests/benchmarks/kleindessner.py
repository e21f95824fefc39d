"""Kleindessner & von Luxburg 2017, "Kernel functions based on triplet comparisons": their figures and runtimes again.

    python -m tests.benchmarks.kleindessner [--parts shapes,crowd,usps,size,runtime,classes] [--repetitions 3]
        [--results kleindessner.jsonl] [--out FOLDER]

- shapes (Figs. 3 and 6): five sets of 400 objects, a tenth of all triplets; how k1 and k2 follow the distances.
- crowd (Figs. 4 and 9): the food data, complete linkage on k1; the 60 cars, kernel PCA on k2. No nature data here.
- usps (Figs. 5 and 7, rows 1 and 2): 1,000 of the digits 1, 2, 3; 15 landmarks; purity by the number of triplets.
- size (Figs. 5 and 7, row 3): purity by number of objects, 30 landmarks, 150 n triplets, 15 % wrong. USPS for MNIST.
- runtime (sec. 4.2, Fig. 8): k1 and k2 at n = 10,000, the paper's 100 and 180 s; a kernel PCA map of 20,000, 900 s. The
  digits of USPS, drawn again with noise where they do not suffice.
- classes: not in the paper: 1-NN on k1 and k2 beside TripletBoost, 1,000 digits, 1 % and 5 % of all triplets.

The paper draws its purities and says no numbers but runtimes (Matlab, a laptop of 2016). Rivals by embedding are our
STE with the dimension of the paper. CPU seconds. Data: the folder STREAM_ENGINE_DATA.
"""

import argparse
import csv
import gzip
import json
import os
import time
from functools import cache
from pathlib import Path

import numpy as np
from scipy.cluster.hierarchy import fcluster
from scipy.stats import spearmanr

from stream_engine.boosting.fit import fit, predict
from stream_engine.boosting.vector_machine import shares
from stream_engine.clustering import partition, similarity_of_snapshot
from stream_engine.clustering.similarity_matrix import checked
from stream_engine.counts import kernels
from stream_engine.counts.spectral import top_eigenpairs
from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.embedding.fit import fit_carefully
from stream_engine.embedding.questions import of_rows
from stream_engine.refits.hierarchy import tree

KERNELS = {"k1": kernels.k1, "k2": kernels.k2}
PAPER_SECONDS = {("k1", 10_000): 100.0, ("k2", 10_000): 180.0, ("kernel PCA", 20_000): 900.0}


def squared(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(n, m) squared distances."""
    return (points**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * points @ others.T


@cache
def usps() -> tuple[np.ndarray, np.ndarray]:
    """All digits, pixels and classes."""
    with np.load(Path(os.environ["STREAM_ENGINE_DATA"]) / "usps" / "usps.npz") as file:
        pixels = np.concatenate([file["X_train"], file["X_test"]]).astype(np.float64)
        return pixels, np.concatenate([file["y_train"], file["y_test"]]).astype(int)


def random_triplets(distance: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """(about count, 3) triplets at random, without ties."""
    a, b, c = rng.integers(len(distance), size=(3, count)).astype(np.int32)
    apart = (a != b) & (a != c) & (b != c) & (distance[a, b] != distance[a, c])
    rows = np.stack([a, b, c], axis=1)[apart]
    far = distance[rows[:, 0], rows[:, 1]] > distance[rows[:, 0], rows[:, 2]]
    rows[far] = rows[far][:, [0, 2, 1]]
    return rows


def landmark_triplets(points, marks, which: str, count: int, wrong: float, rng: np.random.Generator) -> np.ndarray:
    """`count` of the answers of a landmark design for k1 or k2, without replacement; `wrong` of them are wrong."""
    n, L = len(points), len(marks)
    to_marks = squared(points, points[marks])  # (n, L)
    i, j, k = (index.ravel() for index in np.meshgrid(np.arange(n), np.arange(L), np.arange(L), indexing="ij"))
    keep = j < k if which == "k1" else j != k
    keep &= (i != marks[j]) & (i != marks[k])
    at = np.flatnonzero(keep)
    at = rng.choice(at, min(count, len(at)), replace=False)
    i, j, k = i[at], j[at], k[at]
    if which == "k1":  # d(x_i, l_j) < d(x_i, l_k)?
        rows, nearer = np.stack([i, marks[j], marks[k]], axis=1), to_marks[i, j] < to_marks[i, k]
    else:  # d(l_j, x_i) < d(l_j, l_k)?
        rows, nearer = np.stack([marks[j], i, marks[k]], axis=1), to_marks[i, j] < to_marks[marks[k], j]
    turned = nearer == (rng.random(len(rows)) < wrong)
    rows[turned] = rows[turned][:, [0, 2, 1]]
    return rows.astype(np.int32)


def purity(labels: np.ndarray, truth: np.ndarray) -> float:
    """The share of objects whose class is the most frequent one of their cluster."""
    return float(sum(np.bincount(truth[labels == c]).max() for c in np.unique(labels)) / len(truth))


def kernel_k_means(K: np.ndarray, k: int, seed: int) -> np.ndarray:
    """As the refit `spectral` does it on a similarity."""
    W = checked(K)
    return partition.refined(W, partition.spectral_partition(W, k, seed))


def shapes(repetitions: int, out: Path | None) -> list[dict]:
    """Rank correlation of kernel and distance over all pairs, and each object's nearest neighbours kept."""
    rng, rows, drawn = np.random.default_rng(0), [], {}
    t = np.sort(rng.random(400)) * 2 * np.pi
    group = np.sort(rng.integers(0, 4, 400))
    points = {
        "four Gaussians": rng.normal(size=(400, 2)) + 6 * np.stack([group % 2, group // 2], axis=1),
        "uniform square": rng.random((400, 2)),
        "circle": np.stack([np.cos(t), np.sin(t)], axis=1) + 0.02 * rng.normal(size=(400, 2)),
        "two moons": np.stack([np.cos(t) + (t > np.pi), np.sin(t) + 0.3 * (t > np.pi)], axis=1),
    }
    distances = {name: squared(X, X) for name, X in points.items()}
    distances["block model"] = block_model(rng)
    for name, distance in distances.items():
        columns = columns_from_triplets(random_triplets(distance, 400 * 399 * 398 // 20, rng), 400)
        upper = np.triu_indices(400, 1)
        row = {"part": "shapes", "data": name, "triplets": int((columns.n_lo + columns.n_hi).sum())}
        for kernel, make in KERNELS.items():
            began = time.process_time()
            K = make(columns)
            row[f"{kernel} cpu"] = round(time.process_time() - began, 2)
            row[kernel] = round(float(spearmanr(-distance[upper], K[upper]).statistic), 3)
            drawn[name, kernel] = K
        rows.append(row)
    if out:
        draw_matrices(distances, drawn, out / "kleindessner_fig3_6.png")
    return rows


def block_model(rng: np.random.Generator) -> np.ndarray:
    """Shortest paths among 400 vertices in four blocks (the paper's fifth set), ties broken at random."""
    from scipy.sparse.csgraph import shortest_path

    block = np.repeat(np.arange(4), 100)
    edge = np.triu(rng.random((400, 400)) < np.where(block[:, None] == block, 0.1, 0.01), 1)
    path = shortest_path((edge | edge.T).astype(float), unweighted=True)
    path[~np.isfinite(path)] = 20
    noise = rng.random((400, 400)) * 1e-3
    return path + noise + noise.T


def draw_matrices(distances: dict, drawn: dict, path: Path) -> None:
    """The distance matrix and both kernels of each set, a row each."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3 * len(distances)))
    axes = figure.subplots(len(distances), 3, squeeze=False)
    for line, (name, distance) in zip(axes, distances.items()):
        for axis, title, matrix in zip(line, (name, "k1", "k2"), (distance, drawn[name, "k1"], drawn[name, "k2"])):
            shown = matrix - np.diag(np.diag(matrix)) if title != name else matrix
            axis.imshow(shown)
            axis.set(title=title, xticks=[], yticks=[])
    figure.savefig(path, dpi=80, bbox_inches="tight")


def crowd(repetitions: int, out: Path | None) -> list[dict]:
    """Food: do clusters of complete linkage on k1 share a taste? Cars: are the neighbours in the map of one class?"""
    folder = Path(os.environ["STREAM_ENGINE_DATA"])
    with gzip.open(folder / "food100" / "triplets_unique.csv.gz", "rt") as file:
        said = [tuple(row) for row in list(csv.reader(file))[1:]]
    names = sorted({name for row in said for name in row})
    columns = columns_from_triplets(np.vectorize({x: i for i, x in enumerate(names)}.get)(np.array(said)), len(names))
    rows = []
    for kernel, make in KERNELS.items():
        make(columns)
        began = time.process_time()
        K = make(columns)
        seconds = time.process_time() - began
        merges = tree(checked(K), "complete", of_itself=1.0).linkage
        ten = fcluster(merges, 10, "maxclust")
        with open(folder / "food100" / "labels.csv") as file:
            sweet = {row["object"]: row["sweet"] for row in csv.DictReader(file)}
        known = np.array([name in sweet and sweet[name] != "" for name in names])
        value = np.array([float(sweet[name]) if ok else 0.0 for name, ok in zip(names, known)])[known]
        between = np.array([value[ten[known] == c].mean() for c in ten[known]])
        rows.append(
            {
                "part": "crowd",
                "data": "food, complete linkage, ten clusters",
                "kernel": kernel,
                "cpu": round(seconds, 4),
                "paper_seconds": 0.1,
                "share of the variance of sweetness that the clusters explain": round(
                    float(between.var() / value.var()), 3
                ),
            }
        )
    return rows + cars(folder, out)


def cars(folder: Path, out: Path | None) -> list[dict]:
    """Kernel PCA of the cars: a car's nearest one in the map is of its class so often."""
    with open(folder / "car60" / "labels.csv") as file:
        label = {row["object"]: row["class"] for row in csv.DictReader(file)}
    with open(folder / "car60" / "triplets_T_ALL.csv") as file:
        said = [tuple(row) for row in list(csv.reader(file))[1:]]
    names = sorted({name for row in said for name in row}, key=int)
    triplets = np.vectorize({x: i for i, x in enumerate(names)}.get)(np.array(said))
    columns, truth = columns_from_triplets(triplets, len(names)), np.array([label[name] for name in names])
    rows = []
    for kernel, make in KERNELS.items():
        K = make(columns)
        smallest = np.linalg.eigvalsh(K)[0]
        values, vectors = top_eigenpairs(K, 2)
        X = vectors * np.sqrt(np.maximum(values - smallest, 0))
        apart = squared(X, X) + np.diag(np.full(len(X), np.inf))
        usual = np.unique(truth, return_counts=True)[1].max() / len(truth)
        rows.append(
            {
                "part": "crowd",
                "data": f"cars ({len(triplets)} triplets), kernel PCA",
                "kernel": kernel,
                "nearest is of the same class": round(float((truth[apart.argmin(axis=1)] == truth).mean()), 3),
                "largest class": round(float(usual), 3),
            }
        )
        if out and kernel == "k2":
            draw_map(X, truth, out / "kleindessner_fig4.png")
    return rows


def draw_map(X: np.ndarray, truth: np.ndarray, path: Path) -> None:
    """Points by class."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 6))
    axis = figure.subplots()
    for each in np.unique(truth):
        axis.scatter(*X[truth == each].T, label=str(each), s=12)
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=90, bbox_inches="tight")


def clustered(points, truth, which: str, marks: int, count: int, wrong: float, seed: int, d: int = 0) -> dict:
    """Purity and CPU seconds of kernel k-means, and of k-means on an STE embedding in d dimensions of the same and of
    random triplets."""
    rng, k = np.random.default_rng(seed), len(np.unique(truth))
    chosen = np.sort(rng.choice(len(points), marks, replace=False))
    triplets = landmark_triplets(points, chosen, which, count, wrong, rng)
    columns = columns_from_triplets(triplets, len(points))
    began = time.process_time()
    K = KERNELS[which](columns)
    row = {which: round(time.process_time() - began, 2), "triplets": len(triplets)}
    row["purity"] = round(purity(kernel_k_means(K, k, seed), truth), 3)
    row["purity, points"] = round(purity(partition.k_means(points, k, seed, 5), truth), 3)
    row["purity, random"] = round(purity(rng.integers(0, k, len(points)), truth), 3)
    if d:
        distance = squared(points, points)
        scattered = random_triplets(distance, count, rng)
        turned = rng.random(len(scattered)) < wrong
        scattered[turned] = scattered[turned][:, [0, 2, 1]]
        for name, rows in (("same", triplets), ("rand", scattered)):
            began = time.process_time()
            questions = of_rows(rows[:, [0, 1, 0, 2]].astype(np.int32), len(points))
            found = fit_carefully(questions, d, 0.3, tolerance=1e-5)[0]
            row[f"STE {name} cpu"] = round(time.process_time() - began, 2)
            row[f"purity, STE {name}"] = round(purity(partition.k_means(found.points, k, seed, 5), truth), 3)
    return row


def of_usps(repetitions: int, out: Path | None) -> list[dict]:
    """Digits 1, 2, 3."""
    pixels, digit = usps()
    few, rows = np.flatnonzero(np.isin(digit, (1, 2, 3))), []
    for which in KERNELS:
        for wrong in (0.0, 0.3):
            for count in (5_000, 10_000, 20_000, 40_000, 80_000):
                for seed in range(repetitions):
                    at = np.random.default_rng(seed).choice(few, 1000, replace=False)
                    d = 2 if which == "k1" and seed == 0 and count in (10_000, 40_000) else 0
                    row = clustered(pixels[at], digit[at], which, 15, count, wrong, seed, d)
                    rows.append({"part": "usps", "wrong": wrong, "kernel": which, "asked": count, "seed": seed, **row})
    return rows


def of_size(repetitions: int, out: Path | None) -> list[dict]:
    """All ten digits, by their number."""
    pixels, digit = usps()
    rows = []
    for which in KERNELS:
        for n in (1000, 2000, 4000, 6000, 9000):
            for seed in range(repetitions if n < 6000 else 1):
                at = np.random.default_rng(seed).choice(len(pixels), n, replace=False)
                row = clustered(pixels[at], digit[at], which, 30, 150 * n, 0.15, seed)
                rows.append({"part": "size", "n": n, "kernel": which, "seed": seed, **row})
    return rows


def runtime(repetitions: int, out: Path | None) -> list[dict]:
    """k1 and k2 at 10,000 objects, kernel PCA of 20,000."""
    pixels, digit = usps()
    rng, rows = np.random.default_rng(0), []
    for n in (10_000, 20_000):
        at = rng.integers(len(pixels), size=n)
        points = pixels[at] + 0.05 * rng.normal(size=(n, pixels.shape[1]))
        marks = np.sort(rng.choice(n, 30, replace=False))
        for which in KERNELS if n == 10_000 else ("kernel PCA",):
            kind = "k1" if which == "kernel PCA" else which
            columns = columns_from_triplets(landmark_triplets(points, marks, kind, 150 * n, 0.15, rng), n)
            began = time.process_time()
            if which == "kernel PCA":
                values, vectors = kernels.eigenpairs(similarity_of_snapshot.factor(columns, "k1"), 2, centred=True)
                if out:
                    draw_map(vectors[::10] * np.sqrt(values), digit[at][::10], out / "kleindessner_fig8.png")
            else:
                KERNELS[which](columns)
            seconds = round(time.process_time() - began, 2)
            paper = PAPER_SECONDS[which, n]
            rows.append({"part": "runtime", "what": which, "n": n, "cpu": seconds, "paper_seconds": paper})
    return rows


def classes(repetitions: int, out: Path | None) -> list[dict]:
    """1,000 digits, two thirds with labels; the share of all n (n - 1)(n - 2) / 2 triplets."""
    pixels, digit = usps()
    rows = []
    for share in (0.01, 0.05):
        rng = np.random.default_rng(0)
        at = rng.choice(len(pixels), 1000, replace=False)
        truth, known = digit[at], rng.permutation(1000) < 667
        distance = squared(pixels[at], pixels[at])
        columns = columns_from_triplets(random_triplets(distance, int(share * 1000 * 999 * 499), rng), 1000)
        row: dict = {"part": "classes", "share": share}
        for which, make in KERNELS.items():
            near = make(columns)[np.ix_(~known, known)]
            for k in (1, 5):
                votes = shares(near, truth[known], 10, k)
                row[f"{k}-NN on {which}"] = round(float((votes.argmax(axis=1) == truth[~known]).mean()), 3)
        began = time.process_time()
        booster = fit(columns, np.where(known, truth, -1), rounds=100_000 * repetitions)
        row["boosting"] = round(float((predict(booster, columns).label == truth)[~known].mean()), 3)
        row["rounds"], row["boosting cpu"] = 100_000 * repetitions, round(time.process_time() - began, 1)
        rows.append(row)
    return rows


PARTS = {"shapes": shapes, "crowd": crowd, "usps": of_usps, "size": of_size, "runtime": runtime, "classes": classes}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--results", type=Path, default=Path(__file__).with_suffix(".jsonl"))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
    for part in given.parts.split(","):
        for row in PARTS[part](given.repetitions, given.out):
            print(json.dumps(row), flush=True)
            with open(given.results, "a") as file:
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
