"""One map for everybody, slopes, or weights of participants on the axes: held-out accuracy and log loss.

    STREAM_ENGINE_DATA=FOLDER python -m tests.benchmarks people [--null]

Every set of judgements that names participants, by its own answers: a fifth of the responses is the test set, in three
random splits (and the authors' split, where there is one). The embedding is fitted to the others with the defaults,
which select the model, and with one map; both predict each test response as its participant, by their own lapse rate.
Errors are standard errors of the paired difference over responses. `--null` gives the answers of each set to other
participants at random, so that nobody differs, and takes fewer and fewer answers.
"""

import argparse
import gzip
import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from stream_engine import read
from stream_engine.evaluation.probability import of_participant
from stream_engine.refits import embedding

SETS = {
    "portraits36": "portraits36/triplets_individual.csv.gz",
    "alien_eggs300": "alien_eggs300/triplets.csv.gz",
    "color-tm": "perceptual_kernels/color-tm.triplets.csv",
    "shape-tm": "perceptual_kernels/shape-tm.triplets.csv",
}
SPLITS = 3


def answers(path: Path) -> pd.DataFrame:
    """Columns anchor, near, far, worker, unit and, where the authors split, test; catch trials are left out."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as file:
        table = pd.read_csv(file)
    if "sampleAlg" in table:
        table = table[table.sampleAlg != "check"].rename(columns={"worker_id": "worker"})
        far = table.Left.where(table.Left != table.Answer, table.Right)
        table = table.assign(anchor=table.Center, near=table.Answer, far=far, test=table.sampleSet == "test")
    if "is_catch" in table:
        table = table[table.is_catch == 0]
    table = table[(table.near != table.far) & (table.near != table.anchor) & (table.far != table.anchor)]
    table = table.reset_index(drop=True).astype({"worker": str})
    names = ["anchor", "near", "far", "worker", *(["test"] if "test" in table else [])]
    return table[names].assign(unit=table.groupby(["worker", "order"]).ngroup() if "order" in table else table.index)


def fitted(table: pd.DataFrame, participants: str):
    """The artifact with the defaults, the snapshot's objects, and the CPU seconds."""
    study = read(table[["anchor", "near", "far", "worker"]])
    begin = time.process_time()
    params = embedding.Params(participants=participants)
    artifact = embedding.refit(study.snapshot, params, 0, evaluate=False)
    return artifact, study.snapshot.objects, time.process_time() - begin


def predicted(artifact, objects, test: pd.DataFrame) -> np.ndarray:
    """(m,) probability of the answer that was given, by whoever gave it."""
    number, p = {name: at for at, name in enumerate(objects)}, np.full(len(test), 0.5)
    rows = np.stack([test[name].map(number).fillna(-1) for name in ("anchor", "near", "anchor", "far")], axis=1)
    for worker, at in test.groupby("worker").indices.items():
        p[at] = of_participant(artifact, worker)[0](rows[at].astype(np.int32))
    return np.where(np.isnan(p), 0.5, p)


def compared(name: str, table: pd.DataFrame, test: np.ndarray) -> str:
    """A row: what the default and one map predict of the test answers, and their paired difference."""
    made = {how: fitted(table[~test], how) for how in ("alike", "test")}
    p = {how: predicted(artifact, objects, table[test]) for how, (artifact, objects, _) in made.items()}
    right = {how: (each > 0.5) + (each == 0.5) / 2 for how, each in p.items()}
    unit = table.unit[test].to_numpy()
    cells = [_pair(right["alike"], right["test"], unit), _pair(-np.log(p["alike"]), -np.log(p["test"]), unit)]
    told, cpu = made["test"][0].report, " ".join(f"{made[how][2]:.1f}" for how in ("alike", "test"))
    used = told["individual_differences"]
    kind = "one map" if used["shrinkage"] is None else "slopes" if used["slopes"] else f"weights {used['shrinkage']:g}"
    size = f"{len(table):7,} {table.worker.nunique():4}"
    return "  ".join([f"{name:26}", size, f"{told['kernel']} {told['d']}", f"{kind:11}", *cells, cpu])


def _pair(one: np.ndarray, other: np.ndarray, unit: np.ndarray) -> str:
    """Two means, and their difference with its standard error over units."""
    more = other - one
    sums = np.bincount(np.unique(unit, return_inverse=True)[1], more - more.mean())
    return f"{one.mean():.4f} {other.mean():.4f} {more.mean():+.4f} ± {np.sqrt((sums**2).sum()) / len(one):.4f}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--null", action="store_true", help="answers of nobody in particular")
    given, folder = parser.parse_args(arguments), Path(os.environ["STREAM_ENGINE_DATA"])
    print("set, answers, participants, model; accuracy: one map, default, difference; log loss likewise; CPU s of both")
    for name, file in SETS.items():
        table = answers(folder / file)
        rng = np.random.default_rng(0)
        for split in range(SPLITS):
            if given.null:
                table = table.assign(worker=rng.permutation(table.worker))
                kept = table[rng.random(len(table)) < 0.2**split].reset_index(drop=True)
                print(compared(f"{name}, permuted", kept, rng.random(len(kept)) < 0.2), flush=True)
                continue
            chosen = rng.random(int(table.unit.max()) + 1) < 0.2
            print(compared(f"{name}, split {split + 1}", table, chosen[table.unit.to_numpy()]), flush=True)
        if not given.null and "test" in table:
            print(compared(f"{name}, authors' split", table, table.test.to_numpy()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
