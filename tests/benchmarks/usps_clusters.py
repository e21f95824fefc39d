"""Perrot, Esser & Ghoshdastidar 2020, sec. 5, Fig. 2, with USPS in place of MNIST: digits and cars from triplets.

The paper's protocol: the test digits in the plane by t-SNE, scaled into [-1, 1]; all 1s and 7s (411 of USPS, the
paper has 2163 of MNIST), and a random subset of all ten digits; n (ln n)^x triplets without error from the Gaussian
similarity (which orders as minus the distance). Methods: AddS-3 with SPUR, AddS-3 and MulK-3 with SDP-k at the true
k, t-STE (van der Maaten & Weinberger 2012) into the plane and k-means there, k-means on the t-SNE plane itself. The
60 cars, with the paper's 12,112 triplets (`triplets_T_ALL_REDUCED`): the k of SPUR, and how well the methods agree with
each other and with the given classes (Fig. 2c). SDPs are solved as in `planted_clusters`.
"""

import csv
import time
from functools import cache
from pathlib import Path

import numpy as np

from stream_engine.clustering import partition
from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.embedding import fit as embedding
from stream_engine.embedding.questions import of_columns
from stream_engine.refits.sdp_clustering import solve, spur
from tests.benchmarks.planted_clusters import ITERATIONS, TOL, agreement, labels_of, mulk3, triplets_of
from tests.support.planted_similarities import adds3

METHODS = ("AddS-3 SPUR", "AddS-3", "MulK-3", "t-STE", "k-means")
DIGITS = {"1 vs 7": (1, 7), "ten digits": tuple(range(10))}


@cache
def plane(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """t-SNE of all test digits, scaled into [-1, 1], and the digits."""
    from sklearn.manifold import TSNE

    with np.load(folder / "usps" / "usps.npz") as file:
        points, digits = TSNE(2, random_state=0).fit_transform(file["X_test"]), file["y_test"].astype(int)
    low, high = points.min(axis=0), points.max(axis=0)
    return 2 * (points - low) / (high - low) - 1, digits


def digits(folder: Path, which: str, power: float, objects: int, seed: int) -> dict:
    """ARI of every method for one draw, and the k of SPUR with its criterion at each k that was tried."""
    points, truth = plane(folder)
    at = np.flatnonzero(np.isin(truth, DIGITS[which]))
    rng = np.random.default_rng([seed, int(100 * power), objects])
    at = rng.choice(at, objects, replace=False) if which == "ten digits" and objects < len(at) else at
    points, truth = points[at], truth[at]
    n, k = len(at), len(DIGITS[which])
    began, count = time.process_time(), int(n * np.log(n) ** power)
    triplets = triplets_of(rng, -((points[:, None] - points[None]) ** 2).sum(axis=2), count, 1.0)
    W = adds3(triplets, n)
    choice = spur(W, count, tol=TOL, max_iterations=ITERATIONS)
    known = choice.solution if choice.k == k else solve(W, k=k, tol=TOL, max_iterations=ITERATIONS)
    kernel = solve(mulk3(triplets, n), k=k, tol=TOL, max_iterations=ITERATIONS // 3)
    labels = {
        "AddS-3 SPUR": labels_of(choice.solution, choice.k),
        "AddS-3": labels_of(known, k),
        "MulK-3": labels_of(kernel, k),
        "t-STE": partition.k_means(t_ste(triplets, n), k, seed),
        "k-means": partition.k_means(points, k, seed),
    }
    criterion = {str(tried): round(float(value), 4) for tried, value in zip(choice.tried, choice.criterion)}
    found = {"n": n, "triplets": count, "k": choice.k, "criterion": criterion}
    found |= {m: round(agreement(truth, labels[m]), 4) for m in METHODS}
    return found | {"gap MulK-3": round(kernel.gap, 4), "cpu": round(time.process_time() - began, 1)}


def t_ste(triplets: np.ndarray, n: int) -> np.ndarray:
    """(n, 2): the engine's own t-STE."""
    return embedding.fit(of_columns(columns_from_triplets(triplets, n)), 2, 0.1, kernel="t-ste").points


def cars(folder: Path, which: str = "T_ALL_REDUCED") -> dict:
    """SPUR's k for the 60 cars, and the ARI between every two methods, k = 2 and 3, and the classes (without the
    outliers)."""
    with open(folder / "car60" / f"triplets_{which}.csv") as file:
        rows = [(row["anchor"], row["near"], row["far"]) for row in csv.DictReader(file)]
    with open(folder / "car60" / "labels.csv") as file:
        classes = {row["object"]: row["class"] for row in csv.DictReader(file)}
    names = {name: at for at, name in enumerate(dict.fromkeys(x for row in rows for x in row))}
    triplets, n = np.array([[names[x] for x in row] for row in rows]), len(names)
    W, K = adds3(triplets, n), mulk3(triplets, n)
    choice = spur(W, len(triplets), tol=1e-3)
    found = {
        f"{name}, k={k}": labels_of(solve(M, k=k, tol=1e-3), k)
        for name, M in (("AddS-3", W), ("MulK-3", K))
        for k in (2, 3)
    }
    found |= {f"t-STE, k={k}": partition.k_means(t_ste(triplets, n), k, 0) for k in (2, 3)}
    found["classes"] = np.array([classes[name] for name in names])
    inside = np.char.lower(found["classes"]) != "outlier"
    return {
        "k": choice.k,
        "margin": choice.margin,
        "methods": list(found),
        "triplets": len(triplets),
        "ari": [[round(agreement(a[inside], b[inside]), 3) for b in found.values()] for a in found.values()],
    }
