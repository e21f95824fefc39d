"""Held-out accuracy on human judgements: counted kernels, AddS-3, POE, RCKL, and cblearn's methods on the same splits.

    python tests/benchmarks/real_judgements.py DATASET [--splits 3] [--cblearn PYTHON] [--events 2000]

DATASET: food100 (screens "pick k of n", taste features as the auxiliary kernel) or animals37 (rankings of eight, zoo
attributes where names match). Screens (animals: trials with all their repeats) are held out whole, since the triplets
of one screen are not independent; `--events` bounds how many train. A tie counts one half. Every method chooses its
parameters on a validation fifth of the training screens. `--cblearn` is the interpreter of another environment that has
cblearn (it pins an old numpy): STE, t-STE, CKL, GNMDS and SOE run there, with 2, 5 or 10 dimensions by validation.
"""

import argparse
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from stream_engine import auxiliary, kernels
from stream_engine.columns import columns_from_triplets
from stream_engine.kernel_learning import mkpoe, rckl
from stream_engine.kernel_learning.constraints import constraints
from stream_engine.kernel_learning.operator import excess, triplet_rows
from tests.conftest import human_judgements
from tests.kernel_reference import snapshot_of

TASTES = ("salty", "savory", "sour", "bitter", "sweet", "spicy")
CBLEARN = """
import sys, json, time, warnings; warnings.simplefilter("ignore")
import numpy as np
from cblearn.embedding import STE, TSTE, CKL, GNMDS, SOE
z = np.load(sys.argv[1]); n = int(z["n"]); out = {}
def accuracy(x, t):
    d = lambda a, b: ((x[a] - x[b]) ** 2).sum(1)
    near, far = d(t[:, 0], t[:, 1]), d(t[:, 0], t[:, 2])
    return float(((near < far) + 0.5 * (near == far)).mean())
for name, make in (("STE", STE), ("t-STE", TSTE), ("CKL", CKL), ("GNMDS", GNMDS), ("SOE", SOE)):
    best, began = None, time.process_time()
    fits = [t for t in (z["train"], z["check"])]
    whole = np.concatenate(fits)
    if len(np.unique(whole)) < n or len(np.unique(z["train"])) < n:
        out["cblearn " + name] = [None, 0.0]; continue
    for d in (2, 5, 10):
        x = make(n_components=d, random_state=0).fit_transform(z["train"].astype(np.int64))
        score = accuracy(x, z["check"])
        if best is None or score > best[0]: best = score, d
    x = make(n_components=best[1], random_state=0).fit_transform(whole.astype(np.int64))
    out["cblearn " + name] = [accuracy(x, z["test"]), time.process_time() - began]
print(json.dumps(out))
"""


class Data(NamedTuple):
    names: list[str]
    triplets: np.ndarray  # (m, 3)
    screen: np.ndarray  # (m,): what is held out whole
    kernel: np.ndarray  # auxiliary


def food(folder: Path) -> Data:
    with gzip.open(folder / "food100" / "triplets.csv.gz", "rt") as file:
        rows = [(r["anchor"], r["near"], r["far"], int(r["screen"])) for r in csv.DictReader(file)]
    spec = auxiliary.KernelSpec(str(folder / "food100" / "labels.csv"), "rbf", columns=TASTES)
    return _data(rows, lambda names: auxiliary.load({"taste": spec}, names).kernels[0])


def animals(folder: Path) -> Data:
    with gzip.open(folder / "animals37_rank8" / "triplets.csv.gz", "rt") as file:
        rows = [(r["anchor"], r["near"], r["far"], int(r["trial"])) for r in csv.DictReader(file)]
    with open(folder / "zoo" / "zoo.csv") as file:
        table = {r["animal_name"]: r for r in csv.DictReader(file)}  # the zoo has two frogs: the last one counts
    columns = [c for c in next(iter(table.values())) if c not in ("animal_name", "class_type")]
    values = np.array([[float(r[c]) for c in columns] for r in table.values()])
    return _data(
        rows,
        lambda names: auxiliary.join(
            auxiliary.Table(list(table), values), auxiliary.KernelSpec("zoo.csv", "rbf"), names
        )[0],
    )


def _data(rows, make_kernel) -> Data:
    names = sorted({name for row in rows for name in row[:3]})
    number = {name: i for i, name in enumerate(names)}
    triplets = np.array([[number[name] for name in row[:3]] for row in rows], np.int32)
    return Data(names, triplets, np.array([row[3] for row in rows]), make_kernel(names))


def accuracy(gram: np.ndarray, triplets: np.ndarray) -> float:
    x = excess(np.ascontiguousarray(gram, dtype=float), triplet_rows(triplets))
    return float(((x < 0) + 0.5 * (x == 0)).mean())


def similarity_accuracy(w: np.ndarray, triplets: np.ndarray) -> float:
    a, b, c = triplets.T
    return float(((w[a, b] > w[a, c]) + 0.5 * (w[a, b] == w[a, c])).mean())


def unique(triplets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows, times = np.unique(triplets, axis=0, return_counts=True)
    return rows.astype(np.int32), times.astype(float)


def by_rckl(train, check, test, n, helpers, form, loss) -> float:
    """lambdas on the validation screens, a warm path from large to small; then a fit on both."""
    rows, times = unique(train)
    most = rckl.largest_lambdas(rckl.build(rows, times, helpers, n, form, loss, 1.0, 1.0))
    best = None
    for second in (0.3, 0.05) if form == "ak" else (1.0,):
        start = None
        for first in (0.3, 0.1, 0.03, 0.01, 0.003):
            found = rckl.fit(
                rows,
                n,
                helpers,
                form=form,
                loss=loss,
                weight=times,
                lambda1=first * most[0],
                start=start,
                lambda2=max(second * most[1], 1e-9),
                tolerance=3e-3,
                max_iterations=2000,
            )
            start = rckl.Start(found.k0, found.mu, found.dual)
            score = accuracy(found.gram, check)
            if best is None or score > best[0]:
                best = score, first, second
    scale = (len(train) + len(check)) / len(train)
    rows, times = unique(np.concatenate([train, check]))
    found = rckl.fit(
        rows,
        n,
        helpers,
        form=form,
        loss=loss,
        weight=times,
        lambda1=best[1] * most[0] * scale,
        lambda2=max(best[2] * most[1] * scale, 1e-9),
        tolerance=1e-3,
    )
    return accuracy(found.gram, test)


def by_poe(train, check, test, n, kernel) -> float:
    """KPOE (full) over the canonical order's reduction; beta on the validation screens."""
    best = None
    held = constraints(snapshot_of(train, n), "canonical-reduced")
    least = mkpoe.smallest_beta(held.rows, held.weight, [kernel])
    for multiple in (2.0, 6.0, 20.0, 80.0):
        found = mkpoe.fit(held.rows, [kernel], multiple * least, tolerance=1e-2, max_iterations=3000)
        score = accuracy(found.gram, check)
        if best is None or score > best[0]:
            best = score, multiple
    held = constraints(snapshot_of(np.concatenate([train, check]), n), "canonical-reduced")
    least = mkpoe.smallest_beta(held.rows, held.weight, [kernel])
    found = mkpoe.fit(held.rows, [kernel], best[1] * least, tolerance=1e-2)
    return accuracy(found.gram, test)


def ours(train, check, test, data: Data) -> dict[str, list]:
    n, whole, out = len(data.names), np.concatenate([train, check]), {}
    columns = columns_from_triplets(whole, n)
    w = np.zeros((n, n))
    for i, j, sign in ((0, 1, 1), (0, 2, -1)):
        np.add.at(w, (whole[:, i], whole[:, j]), sign)
    methods = {
        "k1": lambda: accuracy(kernels.k1(columns), test),
        "k2": lambda: accuracy(kernels.k2(columns), test),
        "AddS-3": lambda: similarity_accuracy(w + w.T, test),
        "auxiliary kernel alone": lambda: accuracy(data.kernel, test),
        "GNMDS (POE, K = I)": lambda: by_poe(train, check, test, n, np.eye(n)),
        "KPOE, auxiliary kernel": lambda: by_poe(train, check, test, n, data.kernel),
        "RCKL-T STE": lambda: by_rckl(train, check, test, n, [], "t", "ste"),
        "RCKL-AK STE": lambda: by_rckl(train, check, test, n, [data.kernel], "ak", "ste"),
        "RCKL-T hinge": lambda: by_rckl(train, check, test, n, [], "t", "hinge"),
        "RCKL-AK hinge": lambda: by_rckl(train, check, test, n, [data.kernel], "ak", "hinge"),
    }
    for name, method in methods.items():
        began = time.process_time()
        out[name] = [method(), time.process_time() - began]
    return out


def theirs(python: str, train, check, test, n: int) -> dict[str, list]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "split.npz"
        np.savez(path, train=train, check=check, test=test, n=n)
        done = subprocess.run(
            [python, "-c", CBLEARN, str(path)],
            capture_output=True,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
    if done.returncode:
        raise SystemExit(f"cblearn failed: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", choices=("food100", "animals37"))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--events", type=int, help="screens to train on; default: all but the held-out fifth")
    parser.add_argument("--cblearn", metavar="PYTHON")
    args = parser.parse_args()
    folder = human_judgements()
    if folder is None:
        parser.error("no human judgements: set STREAM_ENGINE_DATA")
    data = {"food100": food, "animals37": animals}[args.dataset](folder)
    results: dict[str, list] = {}
    with threadpool_limits(1):
        for seed in range(args.splits):
            screens = np.random.default_rng(seed).permutation(np.unique(data.screen))
            held, rest = np.split(screens, [len(screens) // 5])
            rest = rest[: args.events]
            parts = [data.triplets[np.isin(data.screen, s)] for s in (*np.split(rest, [len(rest) // 5]), held)]
            check, train, test = parts
            made = ours(train, check, test, data)
            made |= theirs(args.cblearn, train, check, test, len(data.names)) if args.cblearn else {}
            for name, pair in made.items():
                results.setdefault(name, []).append(pair)
            print(f"split {seed + 1} of {args.splits}: {len(train)} + {len(check)} triplets", file=sys.stderr)
    print(
        f"{args.dataset}: {len(data.names)} objects, {args.splits} splits, {args.events or 'all'} screens to train on"
    )
    for name, pairs in results.items():
        scores = np.array([p[0] for p in pairs if p[0] is not None])
        if len(scores) == 0:
            print(f"{name:<24}cannot run: an object is in no training triplet")
            continue
        error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else float("nan")
        print(
            f"{name:<24}{scores.mean():.4f} +- {error:.4f} (standard error) {np.mean([p[1] for p in pairs]):9.1f} s CPU"
        )


if __name__ == "__main__":
    main()
