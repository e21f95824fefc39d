"""Held-out accuracy on human judgements: counted kernels, AddS-3, POE, RCKL, and cblearn's methods on the same splits.

    python tests/benchmarks/real_judgements.py DATASET [--splits 5] [--cblearn FOLDER] [--events N] [--results FILE]

DATASET: food100 (screens "pick k of n", taste features as the auxiliary kernel) or animals37 (rankings of eight, zoo
attributes where names match). Screens (animals: trials with all their repeats) are held out whole, since the triplets
of one screen are not independent; `--events` bounds how many train. A tie counts one half. Every method chooses its
parameters on a validation fifth of the training screens and is then fitted to both; "one fit" is the CPU time of that
last fit. `--cblearn` is a folder for an environment that has cblearn (it pins an old numpy), made with pip from
cblearn-requirements.txt when it is not there: STE, t-STE, CKL, GNMDS and SOE run in it, with 2, 5 or 10
dimensions (`--dimensions`). Splits in the `--results` file (real_judgements.jsonl keeps some) are not made again.
"""

import argparse
import contextlib
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

from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.kernel_learning import auxiliary_kernels, mkpoe, rckl
from stream_engine.kernel_learning.constraints import constraints
from stream_engine.kernel_learning.distance_operator import excess, triplet_rows
from stream_engine.statistics import kernels
from tests.conftest import human_judgements
from tests.support.kernel_reference import snapshot_of

TASTES = ("salty", "savory", "sour", "bitter", "sweet", "spicy")
CBLEARN = """
import sys, json, time, warnings; warnings.simplefilter("ignore")
import numpy as np
from cblearn.embedding import STE, TSTE, CKL, GNMDS, SOE
z = np.load(sys.argv[1]); n = int(z["n"]); out = {}
def squared(x, t):
    d = lambda a, b: ((x[a] - x[b]) ** 2).sum(1)
    return d(t[:, 0], t[:, 1]), d(t[:, 0], t[:, 2])
def accuracy(x, t):
    near, far = squared(x, t)
    return float(((near < far) + 0.5 * (near == far)).mean())
def log_loss(name, x, t):  # by the method's own probability; None where it has none
    near, far = squared(x, t)
    alpha = max(x.shape[1] - 1, 1)
    if name == "STE": odds = far - near
    elif name == "t-STE": odds = (alpha + 1) / 2 * (np.log1p(far / alpha) - np.log1p(near / alpha))
    elif name == "CKL": odds = np.log((0.05 + far) / (0.05 + near))
    else: return None
    return float(np.logaddexp(0, -odds).mean())
for name, make in (("STE", STE), ("t-STE", TSTE), ("CKL", CKL), ("GNMDS", GNMDS), ("SOE", SOE)):
    best, began = None, time.process_time()
    whole = np.concatenate([z["train"], z["check"]])
    if name not in z["rivals"].tolist(): continue
    if len(np.unique(z["train"])) < n:
        out["cblearn " + name] = [None, 0.0, 0.0]; continue
    for d in z["dimensions"].tolist() if len(z["dimensions"]) > 1 else ():
        x = make(n_components=d, random_state=0).fit_transform(z["train"].astype(np.int64))
        score = accuracy(x, z["check"])
        if best is None or score > best[0]: best = score, d
    best, last = best or (None, int(z["dimensions"][0])), time.process_time()
    x = make(n_components=best[1], random_state=0).fit_transform(whole.astype(np.int64))
    now = time.process_time()
    out["cblearn " + name] = [accuracy(x, z["test"]), now - began, now - last, log_loss(name, x, z["test"])]
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
    spec = auxiliary_kernels.KernelSpec(str(folder / "food100" / "labels.csv"), "rbf", columns=TASTES)
    return _data(rows, lambda names: auxiliary_kernels.load({"taste": spec}, names).kernels[0])


def animals(folder: Path) -> Data:
    with gzip.open(folder / "animals37_rank8" / "triplets.csv.gz", "rt") as file:
        rows = [(r["anchor"], r["near"], r["far"], int(r["trial"])) for r in csv.DictReader(file)]
    with open(folder / "zoo" / "zoo.csv") as file:
        table = {r["animal_name"]: r for r in csv.DictReader(file)}  # the zoo has two frogs: the last one counts
    columns = [c for c in next(iter(table.values())) if c not in ("animal_name", "class_type")]
    values = np.array([[float(r[c]) for c in columns] for r in table.values()])
    return _data(
        rows,
        lambda names: auxiliary_kernels.join(
            auxiliary_kernels.Table(list(table), values), auxiliary_kernels.KernelSpec("zoo.csv", "rbf"), names
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


FIRST = tuple(0.4 * 0.7**power for power in range(11))  # of the smallest lambda1 at which K0 = 0
TOGETHER = 3  # how many of the best lambdas the averaged kernel takes


def by_rckl(train, check, test, n, helpers, loss) -> dict[str, list]:
    """lambdas on the validation screens, warm paths from large to small; then a fit of the best on both, and the mean
    of the `TOGETHER` best, each at unit trace. T without helpers, AK with them."""
    form, began = ("ak" if helpers else "t"), time.process_time()
    most = rckl.largest_lambdas(rckl.build(*unique(train), helpers, n, form, loss, 1.0, 1.0))
    tried = []
    for second in (0.3, 0.05) if helpers else (1.0,):
        start = None
        for first in FIRST if loss == "ste" else FIRST[::2]:
            lambdas = first * most[0], max(second * most[1], 1e-9)
            found = solved(train, n, helpers, form, loss, lambdas, 3e-3, start)
            start = rckl.Start(found.k0, found.mu, found.dual)
            tried.append((accuracy(found.gram, check), lambdas))
    tried.sort(key=lambda one: -one[0])
    whole, last = np.concatenate([train, check]), time.process_time()
    grams, seconds = [], 0.0
    for _, lambdas in tried[:TOGETHER]:
        more = tuple(value * len(whole) / len(train) for value in lambdas)  # E is a sum over triplets
        grams.append(solved(whole, n, helpers, form, loss, more, 1e-3, None).gram)
        seconds = seconds or time.process_time() - last
    name, searched = f"RCKL-{form.upper()} {'STE' if loss == 'ste' else 'hinge'}", last - began
    together = sum(gram / np.trace(gram) for gram in grams)
    return {
        name: [accuracy(grams[0], test), searched + seconds, seconds],
        f"{name}, mean of {TOGETHER}": [
            accuracy(together, test),
            time.process_time() - began,
            time.process_time() - last,
        ],
    }


def solved(triplets, n, helpers, form, loss, lambdas, tolerance, start) -> rckl.Learned:
    rows, times = unique(triplets)
    return rckl.fit(
        rows,
        n,
        helpers,
        form=form,
        loss=loss,
        weight=times,
        lambda1=lambdas[0],
        lambda2=lambdas[1],
        start=start,
        tolerance=tolerance,
        max_iterations=1000,
    )


def by_poe(train, check, test, n, kernel) -> list:
    """KPOE (full) over the canonical order's reduction, one vote each as in the paper; beta on validation screens."""
    best, began = None, time.process_time()
    held = constraints(snapshot_of(train, n), "canonical-reduced", weights="one")
    least = mkpoe.smallest_beta(held.rows, held.weight, [kernel])
    for multiple in (2.0, 6.0, 20.0, 80.0):
        found = mkpoe.fit(held.rows, [kernel], multiple * least, tolerance=1e-2, max_iterations=3000)
        score = accuracy(found.gram, check)
        if best is None or score > best[0]:
            best = score, multiple
    last = time.process_time()
    held = constraints(snapshot_of(np.concatenate([train, check]), n), "canonical-reduced", weights="one")
    least = mkpoe.smallest_beta(held.rows, held.weight, [kernel])
    found = mkpoe.fit(held.rows, [kernel], best[1] * least, tolerance=1e-2)
    now = time.process_time()
    return [accuracy(found.gram, test), now - began, now - last]


def ours(train, check, test, data: Data, losses: list[str]) -> dict[str, list]:
    n, whole, out = len(data.names), np.concatenate([train, check]), {}
    columns = columns_from_triplets(whole, n)
    w = np.zeros((n, n))
    for i, j, sign in ((0, 1, 1), (0, 2, -1)):
        np.add.at(w, (whole[:, i], whole[:, j]), sign)

    counted = {
        "k1": lambda: accuracy(kernels.k1(columns), test),
        "k2": lambda: accuracy(kernels.k2(columns), test),
        "AddS-3": lambda: similarity_accuracy(w + w.T, test),
        "auxiliary kernel alone": lambda: accuracy(data.kernel, test),
    }
    for name, method in counted.items():
        began = time.process_time()
        out[name] = [method(), *[time.process_time() - began] * 2]
    out["GNMDS (POE, K = I)"] = by_poe(train, check, test, n, np.eye(n))
    out["KPOE, auxiliary kernel"] = by_poe(train, check, test, n, data.kernel)
    for loss in losses:
        for helpers in ([], [data.kernel]):
            out |= by_rckl(train, check, test, n, helpers, loss)
    return out


def environment(folder: str) -> str:
    """The Python of an environment with cblearn, made if it is not there."""
    python = Path(folder) / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        wanted = Path(__file__).with_name("cblearn-requirements.txt")
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", "-r", str(wanted)], check=True)
    return str(python)


def theirs(python: str, train, check, test, n: int, dimensions: list[int], rivals: list[str]) -> dict[str, list]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "split.npz"
        np.savez(path, train=train, check=check, test=test, n=n, dimensions=dimensions, rivals=np.array(rivals))
        done = subprocess.run(
            [python, "-c", CBLEARN, str(path)],
            capture_output=True,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
    if done.returncode:
        raise SystemExit(f"cblearn failed: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def split(data: Data, seed: int, events: int | None) -> list[np.ndarray]:
    """Triplets to validate, to train and to test on: a fifth of the screens tests, a fifth of the rest validates."""
    screens = np.random.default_rng(seed).permutation(np.unique(data.screen))
    held, rest = np.split(screens, [len(screens) // 5])
    rest = rest[:events]
    return [data.triplets[np.isin(data.screen, s)] for s in (*np.split(rest, [len(rest) // 5]), held)]


def splits_in(file: str | None, dataset: str, events: int | None) -> dict[int, dict[str, list]]:
    """Splits of the same experiment that a results file holds already."""
    if file is None or not Path(file).exists():
        return {}
    lines = [json.loads(line) for line in Path(file).read_text().splitlines()]
    return {each["split"]: each["methods"] for each in lines if (each["dataset"], each["events"]) == (dataset, events)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", choices=("food100", "animals37"))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--events", type=int, help="screens to train on; default: all but the held-out fifth")
    parser.add_argument("--cblearn", metavar="FOLDER")
    parser.add_argument("--dimensions", type=int, nargs="+", default=[2, 5, 10], help="of cblearn's embeddings")
    parser.add_argument(
        "--rivals", nargs="+", default=["STE", "t-STE", "CKL", "GNMDS", "SOE"], help="of cblearn's methods"
    )
    parser.add_argument("--losses", nargs="+", default=["ste", "hinge"], help="of RCKL")
    parser.add_argument("--results", metavar="FILE", help="JSON lines, one a split")
    args = parser.parse_args()
    rival = environment(args.cblearn) if args.cblearn else None
    folder = human_judgements()
    if folder is None:
        parser.error("no human judgements: set STREAM_ENGINE_DATA")
    data = {"food100": food, "animals37": animals}[args.dataset](folder)
    done = splits_in(args.results, args.dataset, args.events)
    with threadpool_limits(1):
        for seed in range(args.splits):
            if seed in done:
                continue
            check, train, test = split(data, seed, args.events)
            made = ours(train, check, test, data, args.losses)
            made |= theirs(rival, train, check, test, len(data.names), args.dimensions, args.rivals) if rival else {}
            done[seed] = made
            line = {
                "dataset": args.dataset,
                "events": args.events,
                "split": seed,
                "train": len(train) + len(check),
                "test": len(test),
                "methods": made,
            }
            with open(args.results, "a") if args.results else contextlib.nullcontext(sys.stderr) as file:
                print(json.dumps(line), file=file)
    results: dict[str, list] = {}
    for made in (done[seed] for seed in sorted(done) if seed < args.splits):
        for name, pair in made.items():
            results.setdefault(name, []).append(pair)
    print(
        f"{args.dataset}: {len(data.names)} objects, {args.splits} splits, {args.events or 'all'} screens to train on"
    )
    for name, pairs in results.items():
        scores = np.array([p[0] for p in pairs if p[0] is not None])
        if len(scores) == 0:
            print(f"{name:<32}cannot run: an object is in no training triplet")
            continue
        error = scores.std(ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else float("nan")
        seconds = np.mean([p[1:] for p in pairs], axis=0)
        print(
            f"{name:<32}{scores.mean():.4f} +- {error:.4f} (standard error, {len(scores)} splits) "
            f"{seconds[0]:8.2f} s CPU, one fit {seconds[1]:.2f}"
        )


if __name__ == "__main__":
    main()
