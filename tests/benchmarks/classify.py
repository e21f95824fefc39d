"""The refit `classify` beside the papers' own classifiers, on labelled objects of the human judgements.

    python -m tests.benchmarks classify

- car60: 60 cars in four classes, all triplets.
- food100: 73 dishes whose sweetness is rated, sweet from 50; the screens' triplets.
- zoo: 100 animals in seven classes (both frogs are one), 2 % of all triplets by the Hamming distance, without error.

Prints a line for each model: its share of objects that are right, each predicted by fits without it. `chosen` is the
nested cross-validation of the refit with its choice of a model.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np

import stream_engine as se
from stream_engine.api.study import Study
from tests.conftest import human_judgements

SWEET = 50.0  # of 100


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def car60(folder: Path) -> Study:
    labels = {row["object"]: row["class"] for row in rows_of(folder / "car60" / "labels.csv")}
    return se.read(folder / "car60" / "triplets.csv", type="triplet", labels=labels, frames="arrow")


def food100(folder: Path) -> Study:
    rated = {row["object"]: row["sweet"] for row in rows_of(folder / "food100" / "labels.csv")}
    labels = {name: "sweet" if float(each) >= SWEET else "other" for name, each in rated.items() if each}
    return se.read(folder / "food100" / "triplets.csv.gz", type="triplet", labels=labels, frames="arrow")


def zoo(folder: Path) -> Study:
    rows = {row["animal_name"]: row for row in rows_of(folder / "zoo" / "zoo.csv")}  # of two frogs, the second
    names = np.array(list(rows))
    features = np.array([list(row.values())[1:-1] for row in rows.values()], float)
    apart, n, rng = (features[:, None] != features).sum(axis=2), len(names), np.random.default_rng(0)
    a, b, c = np.array([(a, b, c) for a in range(n) for b in range(n) for c in range(b) if a not in (b, c)]).T
    drawn = rng.permutation(len(a))[: len(a) // 50]
    a, b, c = a[drawn], b[drawn], c[drawn]
    nearer = apart[a, b] < apart[a, c]
    told = apart[a, b] != apart[a, c]
    triplets = np.stack([a, np.where(nearer, b, c), np.where(nearer, c, b)], axis=1)[told]
    labels = {name: row["class_type"] for name, row in rows.items()}
    return se.read(names[triplets].tolist(), labels=labels, frames="arrow")


DATA = {"car60": car60, "food100": food100, "zoo": zoo}


def main(arguments: list[str]) -> int:
    argparse.ArgumentParser("classify", description=__doc__).parse_args(arguments)
    folder = human_judgements()
    if folder is None:
        raise SystemExit("classify: expected the human judgements in STREAM_ENGINE_DATA; found no folder")
    print("| data | model | accuracy | standard error | log loss |\n|---|---|---|---|---|")
    for name, read in DATA.items():
        study, began = read(folder), time.process_time()
        found = study.fit("classify").details("classify")
        chosen = found["held_out"]
        models = sorted(found["models"], key=lambda each: -each["accuracy"])
        for each in ({"model": "chosen", **chosen}, *models):
            error = (each["accuracy"] * (1 - each["accuracy"]) / each["objects"]) ** 0.5
            print(f"| {name} | {each['model']} | {each['accuracy']:.2f} | {error:.2f} | {each['log_loss']:.3f} |")
        print(f"| {name} | most frequent class | {chosen['majority_class_accuracy']:.2f} | | |")
        print(f"{name}: {time.process_time() - began:.0f} CPU seconds, {chosen['objects']} objects")
    return 0
