"""Kleindessner & von Luxburg 2017, "Kernel functions based on triplet comparisons": their figures and runtimes again.

- shapes (Figs. 3 and 6): five sets of 400 objects, a tenth of all triplets; how k1 and k2 follow the distances.
- crowd (Figs. 4 and 9): the food data, complete linkage on k1; the 60 cars, kernel PCA on k2. No nature data here.
- clustered (Figs. 5 and 7): purity of digits by the number of landmark triplets and of objects. USPS for MNIST.
- runtime (sec. 4.2, Fig. 8): k1 and k2 at n = 10,000, the paper's 100 and 180 s; a kernel PCA map of 20,000, 900 s. The
  digits of USPS, drawn again with noise where they do not suffice.

The paper draws its purities and says no numbers but runtimes (Matlab, a laptop of 2016). Rivals by embedding are our
STE with the dimension of the paper. CPU seconds. Data: the folder STREAM_ENGINE_DATA.
"""

import csv
import gzip
import os
import time
from functools import cache
from pathlib import Path

import numpy as np
from scipy.cluster.hierarchy import fcluster
from scipy.stats import spearmanr

from stream_engine.clustering import kernel_factors, partition
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
    return partition.refine(W, partition.spectral_partition(W, k, seed))


def shapes() -> list[dict]:
    """Rank correlation of kernel and distance over all pairs, and each object's nearest neighbours kept."""
    rng, rows = np.random.default_rng(0), []
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
        rows.append(row)
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


def crowd() -> list[dict]:
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
    return rows + cars(folder)


def cars(folder: Path) -> list[dict]:
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
    return rows


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


def runtime() -> list[dict]:
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
                values, vectors = kernels.eigenpairs(kernel_factors.factor(columns, "k1"), 2, centred=True)
            else:
                KERNELS[which](columns)
            seconds = round(time.process_time() - began, 2)
            paper = PAPER_SECONDS[which, n]
            rows.append({"part": "runtime", "what": which, "n": n, "cpu": seconds, "paper_seconds": paper})
    return rows


PARTS = {"shapes": shapes, "crowd": crowd, "runtime": runtime}
