"""Perrot, Esser & Ghoshdastidar 2020, sec. 5, Fig. 1 and 2: which similarity recovers planted clusters from how little?

    python tests/benchmarks/planted_clusters.py [--n 1000] [--repetitions 10] [--panels comparisons,noise,...]
        [--results planted.jsonl] [--figure planted.png] [--usps usps.npz] [--car triplets_T_ALL.csv]

The planted model: 4 equal clusters, delta = 0.5, epsilon = 0.75, Gaussian similarities (sigma = 0.1), comparisons drawn
without replacement. ARI of AddS-3 and AddS-4 with SPUR, and of MulK-3 and MulK-4 with SDP-k at the k that AddS found,
against the number of comparisons, epsilon, delta and the distributions (the paper's appendix with their parameters is
not at hand: they are set so that delta stays 0.5). With USPS, as in Fig. 2: digits 1 and 7, and all ten, in the plane
(t-SNE), AddS-3 with SPUR and with k known, MulK-3 with k known, k-means with access to the points.

Every run is a line of --results; runs that are there are not done again, so the command can be stopped and resumed.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from stream_engine import kernels
from stream_engine.columns import columns_from_triplets
from stream_engine.refits.sdp_clustering import solve, spur
from stream_engine.sdp import partition
from tests.planted import adds3, adds4

K, SIGMA, TOL = 4, 0.1, 1e-3
POWERS = (1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
DISTRIBUTIONS = ("normal", "uniform-beta", "uniform-normal")
PANELS = {  # panel -> settings (power, epsilon, delta, distribution) along its axis
    "comparisons": [(power, 0.75, 0.5, "normal") for power in POWERS],
    "noise": [(4.0, epsilon, 0.5, "normal") for epsilon in (0.1, 0.25, 0.5, 0.75, 1.0)],
    "separation": [(4.0, 0.75, delta, "normal") for delta in (0.1, 0.25, 0.5, 0.75, 1.0)],
    "distributions": [(4.0, 0.75, 0.5, name) for name in DISTRIBUTIONS],
}
AXIS = {"comparisons": 0, "noise": 1, "separation": 2, "distributions": 3}


def similarities(rng, n: int, delta: float, distribution: str) -> tuple[np.ndarray, np.ndarray]:
    """A symmetric (n, n) matrix and the labels, with P(w_in > w_out) = (1 + delta) / 2."""
    labels = np.arange(n) * K // n
    same = labels[:, None] == labels
    if distribution == "normal":
        gap = np.sqrt(2) * SIGMA * norm.ppf(min((1 + delta) / 2, 1 - 1e-9))
        w = rng.normal(0, SIGMA, (n, n)) + gap * same
    else:  # within uniform on [0, 1]: P(in > out) = 1 - E(out) for out within [0, 1]
        mean = (1 - delta) / 2
        beta = distribution == "uniform-beta"
        out = rng.beta(1, 1 / mean - 1, (n, n)) if beta else rng.normal(mean, mean / 4, (n, n))
        w = np.where(same, rng.random((n, n)), out)
    w = np.triu(w, 1)
    return w + w.T, labels


def without_replacement(rng, draw, count: int) -> np.ndarray:
    """`count` distinct rows: `draw(m)` gives about m rows and the integer that tells each from all others."""
    rows, keys = draw(int(1.1 * count) + 100)
    while len(first := np.unique(keys, return_index=True)[1]) < count:
        more = draw(count)
        rows, keys = np.concatenate([rows, more[0]]), np.concatenate([keys, more[1]])
    return rows[rng.permutation(first)[:count]]


def triplets_of(rng, w: np.ndarray, count: int, epsilon: float) -> np.ndarray:
    n = len(w)

    def draw(m):
        a, b, c = rng.integers(n, size=(3, m))
        keep = (a != b) & (a != c) & (b < c)
        rows = np.stack([a, b, c], axis=1)[keep]
        return rows, (rows[:, 0] * n + rows[:, 1]) * n + rows[:, 2]

    t = without_replacement(rng, draw, min(count, n * (n - 1) * (n - 2) // 2))
    wrong = (w[t[:, 0], t[:, 1]] < w[t[:, 0], t[:, 2]]) ^ (rng.random(len(t)) < (1 - epsilon) / 2)
    t[wrong] = t[wrong][:, [0, 2, 1]]
    return t


def quadruplets_of(rng, w: np.ndarray, count: int, epsilon: float) -> np.ndarray:
    """Of four distinct objects: those that share one are triplets, 4 / n of all."""
    n = len(w)

    def draw(m):
        q = rng.integers(n, size=(m, 4))
        i, j, k, l = q.T
        q = q[(i < j) & (k < l) & (i < k) & (j != k) & (j != l)]
        return q, ((q[:, 0] * n + q[:, 1]) * n + q[:, 2]) * n + q[:, 3]

    q = without_replacement(rng, draw, count)
    wrong = (w[q[:, 0], q[:, 1]] < w[q[:, 2], q[:, 3]]) ^ (rng.random(len(q)) < (1 - epsilon) / 2)
    q[wrong] = q[wrong][:, [2, 3, 0, 1]]
    return q


def mulk4(q: np.ndarray, n: int) -> np.ndarray:
    flip = (q[:, 0] * n + q[:, 1]) > (q[:, 2] * n + q[:, 3])  # counts keep the smaller pair first
    rows = np.where(flip[:, None], q[:, [2, 3, 0, 1]], q)
    counts = dict(zip("ijkl", rows.T)) | {"n_lo": (~flip).astype(int), "n_hi": flip.astype(int)}
    W = kernels.mulk4(counts, n)
    np.fill_diagonal(W, 0)
    return W


def mulk3(triplets: np.ndarray, n: int) -> np.ndarray:
    W = kernels.k1(columns_from_triplets(triplets, n))
    np.fill_diagonal(W, 0)
    return W


def labels_of(solution, k: int) -> np.ndarray:
    return solution.labels if solution.labels is not None else partition.k_means(solution.rows, k, 0)


def agreement(truth, found) -> float:
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(truth, found))


def run(n: int, setting: tuple, seed: int) -> dict:
    """ARI of the four similarities and the k of SPUR for one draw of the planted model."""
    power, epsilon, delta, distribution = setting
    rng = np.random.default_rng([seed, n, int(100 * power), int(100 * epsilon), int(100 * delta)])
    w, truth = similarities(rng, n, delta, distribution)
    count, out, began = int(n * np.log(n) ** power), {}, time.process_time()
    triplets, quadruplets = triplets_of(rng, w, count, epsilon), quadruplets_of(rng, w, count, epsilon)
    for name, W, kernel, other in (("AddS-3", adds3(triplets, n), "MulK-3", lambda: mulk3(triplets, n)),
                                   ("AddS-4", adds4(quadruplets, n), "MulK-4", lambda: mulk4(quadruplets, n))):
        choice = spur(W, count, tol=TOL, max_iterations=300)
        out[name] = agreement(truth, labels_of(choice.solution, choice.k))
        out[f"k {name}"] = choice.k
        made = solve(other(), k=choice.k, tol=10 * TOL, max_iterations=60)
        out[kernel] = agreement(truth, labels_of(made, choice.k))
    return out | {"cpu": time.process_time() - began}


def usps(path: str, which: str, power: float, seed: int) -> dict:
    """Fig. 2: digits in the plane, triplets from their Gaussian similarity (which orders like minus the distance)."""
    from sklearn.manifold import TSNE

    with np.load(path) as file:
        points, digits = file["X_test"], file["y_test"]
    keep = np.isin(digits, (1, 7)) if which == "1 vs 7" else np.ones(len(digits), bool)
    plane, truth = TSNE(2, random_state=0).fit_transform(points[keep]), digits[keep]
    n, k = len(truth), len(np.unique(truth))
    w = -((plane[:, None] - plane[None]) ** 2).sum(axis=2)
    count, rng = int(n * np.log(n) ** power), np.random.default_rng(seed)
    triplets = triplets_of(rng, w, count, 1.0)
    W = adds3(triplets, n)
    choice = spur(W, count, tol=10 * TOL, max_iterations=100)
    known = solve(W, k=k, tol=10 * TOL, max_iterations=60)
    kernel = solve(mulk3(triplets, n), k=k, tol=10 * TOL, max_iterations=60)
    return {"AddS-3 SPUR": agreement(truth, labels_of(choice.solution, choice.k)), "k": choice.k,
            "AddS-3": agreement(truth, labels_of(known, k)), "MulK-3": agreement(truth, labels_of(kernel, k)),
            "k-means": agreement(truth, partition.k_means(plane, k, 0))}


def car(path: str) -> dict:
    import csv

    with open(path) as file:
        rows = [(row["anchor"], row["near"], row["far"]) for row in csv.DictReader(file)]
    names = {name: at for at, name in enumerate(dict.fromkeys(x for row in rows for x in row))}
    choice = spur(adds3(np.array([[names[x] for x in row] for row in rows]), len(names)), len(rows), tol=TOL)
    return {"k": choice.k, "criterion": dict(zip(choice.tried.tolist(), choice.criterion.round(4).tolist()))}


def tasks(given) -> list[tuple[str, list, object]]:
    """`(panel, key, call)` of every run asked for."""
    todo = [(panel, [given.n, *setting, seed], lambda s=setting, r=seed: run(given.n, s, r))
            for panel in given.panels.split(",") if panel for setting in PANELS[panel]
            for seed in range(given.repetitions)]
    if given.usps:
        todo += [(f"USPS {which}", [power, seed], lambda w=which, p=power, r=seed: usps(given.usps, w, p, r))
                 for which in ("1 vs 7", "all digits") for power in (2.0, 3.0, 4.0)
                 for seed in range(given.repetitions)]
    return todo + ([("car", [0], lambda: car(given.car))] if given.car else [])


def draw(results: list[dict], path: str) -> None:
    """One panel a sweep: mean and standard deviation of the ARI over repetitions."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [panel for panel in dict.fromkeys(r["panel"] for r in results) if panel != "car"]
    figure, axes = plt.subplots(1, max(len(panels), 1), figsize=(4.2 * max(len(panels), 1), 3.6), layout="constrained",
                                squeeze=False)
    for axis, panel in zip(axes[0], panels):
        mine = [r for r in results if r["panel"] == panel]
        at = AXIS.get(panel, -1) + 1
        places = list(dict.fromkeys(r["key"][at] for r in mine))
        for name in (n for n in mine[0]["found"] if n != "cpu" and not n.startswith("k ") and n != "k"):
            values = [[r["found"][name] for r in mine if r["key"][at] == place] for place in places]
            x = range(len(places)) if isinstance(places[0], str) else places
            axis.errorbar(x, np.mean(values, axis=1), np.std(values, axis=1), label=name, capsize=2, marker="o", ms=3)
        if isinstance(places[0], str):
            axis.set_xticks(range(len(places)), places)
        label = {"noise": "epsilon", "separation": "delta", "distributions": ""}
        axis.set(title=panel, ylim=(-0.05, 1.05), xlabel=label.get(panel, "n (ln n)^x comparisons"), ylabel="ARI")
        axis.legend(fontsize=7)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--panels", default=",".join(PANELS))
    parser.add_argument("--results", default="planted.jsonl")
    parser.add_argument("--figure", default="planted.png")
    parser.add_argument("--usps", help="usps.npz: also Fig. 2")
    parser.add_argument("--car", help="triplets_T_ALL.csv of the 60 cars: also their k")
    given = parser.parse_args()
    kept = Path(given.results)
    results = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {json.dumps([r["panel"], r["key"]]) for r in results}
    for panel, key, call in tasks(given):
        if json.dumps([panel, key]) not in done:
            results.append({"panel": panel, "key": key, "found": call()})
            print(json.dumps(results[-1]), flush=True)
            with open(kept, "a") as file:
                file.write(json.dumps(results[-1]) + "\n")
    draw(results, given.figure)


if __name__ == "__main__":
    main()
