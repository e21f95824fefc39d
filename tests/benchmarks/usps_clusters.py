"""Perrot, Esser & Ghoshdastidar 2020, sec. 5, Fig. 2, with USPS in place of MNIST: digits and cars from triplets.

    python -m tests.benchmarks.usps_clusters [--repetitions 10] [--objects 2000] [--powers 2,3,4]
        [--results usps_clusters.jsonl] [--figure usps_clusters.png]

The paper's protocol: the test digits in the plane by t-SNE, scaled into [-1, 1]; all 1s and 7s (411 of USPS, the
paper has 2163 of MNIST), and a random subset of all ten digits; n (ln n)^x triplets without error from the Gaussian
similarity (which orders as minus the distance). Methods: AddS-3 with SPUR, AddS-3 and MulK-3 with SDP-k at the true
k, t-STE (van der Maaten & Weinberger 2012) into the plane and k-means there, k-means on the t-SNE plane itself. The
60 cars: the k of SPUR, and how well the methods agree with each other and with the given classes (Fig. 2c). SDPs are
solved as in `planted_clusters`. Data: the folder STREAM_ENGINE_DATA. Runs that are in --results are not done again.
"""

import argparse
import csv
import json
import os
import time
from functools import cache
from pathlib import Path

import numpy as np
from numba import njit

from stream_engine.clustering import partition
from stream_engine.refits.sdp_clustering import solve, spur
from tests.benchmarks.papers.kept import made_now
from tests.benchmarks.planted_clusters import ITERATIONS, TOL, agreement, labels_of, mulk3, triplets_of
from tests.conftest import ROOT
from tests.support.planted_similarities import adds3

HERE = Path(__file__).with_suffix("")
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
        "t-STE": partition.k_means(t_ste(triplets, n, seed), k, seed),
        "k-means": partition.k_means(points, k, seed),
    }
    criterion = {str(tried): round(float(value), 4) for tried, value in zip(choice.tried, choice.criterion)}
    found = {"n": n, "triplets": count, "k": choice.k, "criterion": criterion}
    found |= {m: round(agreement(truth, labels[m]), 4) for m in METHODS}
    return found | {"gap MulK-3": round(kernel.gap, 4), "cpu": round(time.process_time() - began, 1)}


def t_ste(triplets: np.ndarray, n: int, seed: int, dimensions: int = 2) -> np.ndarray:
    """(n, dimensions): t-STE by stochastic gradient ascent on sum log p, p = s_ij / (s_ij + s_ik), where
    s_ij = (1 + |y_i - y_j|^2 / a)^(-(a + 1) / 2) and a = dimensions - 1 (at least 1)."""
    rng, freedom = np.random.default_rng(seed), max(dimensions - 1.0, 1.0)
    y = rng.normal(0, 0.1, (n, dimensions))
    passes = max(3, int(np.ceil(3e6 / len(triplets))))
    for done in range(passes):
        _ascend(y, triplets[rng.permutation(len(triplets))], 0.5 * (1 - done / passes), freedom)
    return y


@njit(cache=True)
def _ascend(y, triplets, step, a):
    for t in range(len(triplets)):
        i, j, k = triplets[t]
        near = far = 0.0
        for c in range(y.shape[1]):
            near += (y[i, c] - y[j, c]) ** 2
            far += (y[i, c] - y[k, c]) ** 2
        near, far = 1 / (1 + near / a), 1 / (1 + far / a)
        wrong = 1 / (1 + (near / far) ** ((a + 1) / 2))  # 1 - p
        for c in range(y.shape[1]):
            towards = step * wrong * (a + 1) / a * near * (y[j, c] - y[i, c])
            away = step * wrong * (a + 1) / a * far * (y[i, c] - y[k, c])
            y[i, c] += towards + away
            y[j, c] -= towards
            y[k, c] -= away


def cars(folder: Path) -> dict:
    """SPUR's k for the 60 cars, and the ARI between every two methods, k = 2 and 3, and the classes (without the
    outliers)."""
    with open(folder / "car60" / "triplets_T_ALL.csv") as file:
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
    found |= {f"t-STE, k={k}": partition.k_means(t_ste(triplets, n, 0), k, 0) for k in (2, 3)}
    found["classes"] = np.array([classes[name] for name in names])
    inside = np.char.lower(found["classes"]) != "outlier"
    return {
        "k": choice.k,
        "margin": choice.margin,
        "methods": list(found),
        "triplets": len(triplets),
        "ari": [[round(agreement(a[inside], b[inside]), 3) for b in found.values()] for a in found.values()],
    }


def table(results: list[dict]) -> str:
    """Mean ARI of every method and the ks of SPUR, a line for each number of triplets."""
    lines = ["digits         n  triplets         runs " + "".join(f"{name:>13}" for name in METHODS) + "  k of SPUR"]
    for which, objects, power in dict.fromkeys((r["which"], r["objects"], r["power"]) for r in results):
        runs = [r["found"] for r in results if (r["which"], r["objects"], r["power"]) == (which, objects, power)]
        lines.append(
            f"{which:11} {runs[0]['n']:4}  n (ln n)^{power:<6} {len(runs):5} "
            + "".join(f"{np.mean([r[m] for r in runs]):13.3f}" for m in METHODS)
            + "  "
            + ", ".join(map(str, sorted(r["k"] for r in runs)))
        )
    return "\n".join(lines)


def draw(results: list[dict], seen: dict, path: str) -> None:
    """Fig. 2: ARI against the number of triplets for both sets of digits, and the agreement on cars."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
    for axis, which in zip(axes, DIGITS):
        mine = [r for r in results if r["which"] == which]
        powers = sorted({r["power"] for r in mine})
        for name in METHODS:
            values = [[r["found"][name] for r in mine if r["power"] == power] for power in powers]
            axis.errorbar(
                powers,
                [np.mean(v) for v in values],
                [np.std(v) for v in values],
                label=name,
                marker="o",
                ms=3,
                capsize=2,
                ls="--" if name == "k-means" else "-",
            )
        axis.set(title=f"USPS {which}", xlabel="n (ln n)^x triplets", ylabel="ARI", ylim=(-0.05, 1.05))
        axis.legend(fontsize=8)
    axes[2].imshow(seen["ari"], vmin=0, vmax=1, cmap="Greys")
    axes[2].set_xticks(range(len(seen["methods"])), seen["methods"], rotation=90, fontsize=7)
    axes[2].set_yticks(range(len(seen["methods"])), seen["methods"], fontsize=7)
    axes[2].set_title(f"cars (ARI); SPUR finds k = {seen['k']}")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--objects", type=int, default=2000, help="of all ten digits")
    parser.add_argument("--powers", default="2,3,4", help="of ln n")
    parser.add_argument("--results", default=str(HERE.with_suffix(".jsonl")))
    parser.add_argument("--figure", default=str(HERE.with_suffix(".png")))
    given = parser.parse_args()
    folder = Path(os.environ.get("STREAM_ENGINE_DATA") or ROOT.parent / "shared" / "data")
    if not (folder / "usps" / "usps.npz").exists():
        parser.error(f"no usps/usps.npz in {folder}: set STREAM_ENGINE_DATA")
    kept = Path(given.results)
    results = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    results = [result for result in results if result["objects"] in (0, given.objects)]
    done = {(r["which"], r["objects"], r["power"], r["seed"]) for r in results}
    for seed in range(given.repetitions):
        for which in DIGITS:
            for power in map(float, given.powers.split(",")):
                objects = given.objects if which == "ten digits" else 0
                if (which, objects, power, seed) not in done:
                    found = digits(folder, which, power, objects, seed)
                    results.append({"which": which, "objects": objects, "power": power, "seed": seed, "found": found})
                    results[-1]["made"] = made_now(found["cpu"])
                    print(json.dumps(results[-1]), flush=True)
                    with open(kept, "a") as file:
                        file.write(json.dumps(results[-1]) + "\n")
    seen = cars(folder)
    print(table(results))
    print(f"cars: {seen['triplets']} triplets, SPUR finds k = {seen['k']} (margin {seen['margin']:.3f}); ARI:")
    for name, row in zip(seen["methods"], seen["ari"]):
        print(f"  {name:12}" + "".join(f"{value:7.2f}" for value in row))
    draw(results, seen, given.figure)


if __name__ == "__main__":
    main()
