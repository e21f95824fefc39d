"""Which model answers people best, and do its probabilities hold for people whom it never heard?

    python -m tests.benchmarks.calibration [--sets NAME ...] [--folds 3] [--models NAME ...]

Every data set of people's judgements in STREAM_ENGINE_DATA. Folds by worker (by judgement where nobody is named): a
fold goes to no model. All models learn from the same snapshot of the rest, choose and calibrate within it, and answer
the fold as `stream-engine predict` does. Accuracy (ties half), log loss in nats, expected calibration error over ten
bins of confidence, of all folds together; `least` the error of coins that fall with just these probabilities (few
answers cannot show less); `said` the log loss that the model itself reported; CPU seconds of a fold.
"""

import argparse
import csv
import gzip
import json
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.prediction import NoModel
from stream_engine.prediction.probability import MODELS as ALL
from stream_engine.prediction.probability import model
from stream_engine.refits import CannotRefit, embedding, kernel_learning, partial_order_embedding
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from stream_engine.state.snapshot import Snapshot
from stream_engine.statistics.held_out import figures
from stream_engine.statistics.judgements import judgements_of
from tests.conftest import human_judgements

REFITS = {
    "embedding": (embedding, embedding.Params()),
    "kernel_learning": (kernel_learning, kernel_learning.Params(tolerance=1e-3)),
    "partial_order_embedding": (partial_order_embedding, partial_order_embedding.Params()),
}
MODELS = tuple(name for name in ALL if name != "feature_metric")  # nobody has features here
GOAL = 0.02  # of the calibration error


def lines(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as file:
        rows = list(csv.DictReader(file))
    return [row for row in rows if row.get("phase", "test") == "test" and row.get("is_catch", "0") == "0"]


def triplets(path: Path, worker: str | None) -> list[dict]:
    return [
        {**{key: row[key] for key in ("anchor", "near", "far")}, **({"worker": row[worker]} if worker else {})}
        for row in lines(path)
    ]


def food(folder: Path) -> list[dict]:
    with gzip.open(folder / "food100" / "screens.jsonl.gz", "rt") as file:
        rows = [json.loads(line) for line in file]
    keys = {"anchor": "probe", "shown": "images", "chosen": "near"}
    return [
        {"type": "pick", "worker": str(row["worker"]), **{key: row[there] for key, there in keys.items()}}
        for row in rows
        if not row["is_catchtrial"]
    ]


def cars(folder: Path) -> list[dict]:
    return [
        {
            "type": "most_central",
            "objects": [row[key] for key in ("left", "middle", "right")],
            "central": row["central"],
        }
        for row in lines(folder / "car60" / "central.csv")
    ]


def animals(folder: Path) -> list[dict]:
    return [
        {"type": "ranking", "anchor": row["reference"], "ranked": row["ranked_most_similar_first"].split("|")}
        for row in lines(folder / "animals37_rank8" / "rankings.csv")
    ]


def odd(folder: Path, name: str) -> list[dict]:
    return [
        {"type": "odd_one_out", "objects": [row["a"], row["b"], row["odd"]], "odd": row["odd"], "worker": row["worker"]}
        for row in lines(folder / "perceptual_kernels" / f"{name}-td.odd_one_out.csv")
    ]


SETS = {
    "food100": food,
    "car60": cars,
    "animals37": animals,
    "alien_eggs300": lambda folder: triplets(folder / "alien_eggs300" / "triplets.csv.gz", "worker"),
    "color": lambda folder: triplets(folder / "perceptual_kernels" / "color-tm.triplets.csv", "worker"),
    "shape": lambda folder: triplets(folder / "perceptual_kernels" / "shape-tm.triplets.csv", "worker"),
    "color odd": lambda folder: odd(folder, "color"),
    "shape odd": lambda folder: odd(folder, "shape"),
}


def snapshot_of(events: list[dict]) -> Snapshot:
    engine = Engine()
    engine.learn(decoder("json", EventOptions(provenance=True))(b"\n".join(json.dumps(e).encode() for e in events)))
    return engine.snapshot()


class Answered(NamedTuple):
    """What a model said of a fold: logits of the answers that came, how often they did, their judgements."""

    logits: np.ndarray
    times: np.ndarray
    judgement: np.ndarray
    said: float  # its own held-out log loss
    seconds: float  # of CPU


def answer(name: str, train: Snapshot, test: Snapshot) -> Answered:
    """Fit a model to one snapshot and ask it about the answers of the other; unknown objects are a coin."""
    began = time.process_time()
    module, params = REFITS.get(name, (None, None))
    artifacts = {name: module.refit(train, params, 0)} if module else {}
    made = model(Published(train, artifacts), name)
    seconds = time.process_time() - began
    held = judgements_of(test)
    number = {each: i for i, each in enumerate(train.objects)}
    rows = np.array([number.get(each, -1) for each in test.objects], np.int32)[held.rows]
    p, times = made.probability(rows), held.times[held.judgement].astype(float)
    p = np.where(np.isnan(p), 0.5, p)
    said = np.nan if made.log_loss is None else made.log_loss
    return Answered(np.log(p) - np.log1p(-p), times, held.judgement, said, seconds)


def row(found: list[Answered]) -> str:
    """The figures over all folds together, and the calibration error that coins with just these probabilities have."""
    logits, times = (np.concatenate([each[column] for each in found]) for column in (0, 1))
    judgement = np.concatenate([1_000_000 * n + each.judgement for n, each in enumerate(found)])
    made = figures(logits, 1.0, times, judgement)
    rng, sure = np.random.default_rng(0), np.abs(logits)
    coins = [np.where(rng.random(len(sure)) < 1 / (1 + np.exp(-sure)), sure, -sure) for _ in range(20)]
    least = np.mean([figures(coin, 1.0, times, judgement).calibration_error for coin in coins])
    said, seconds = np.mean([(each.said, each.seconds) for each in found], axis=0)
    return (
        f"{made.accuracy:9.3f}{made.log_loss:9.3f}{made.calibration_error:9.3f}{least:7.3f}{said:7.3f}{seconds:8.1f}"
        f"{'' if made.calibration_error <= GOAL else ' *'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--folds", type=int, default=3)
    given = parser.parse_args()
    print(f"{'set':14}{'model':26}{'accuracy':>9}{'log loss':>9}{'calibr.':>9}{'least':>7}{'said':>7}{'CPU s':>8}")
    for name in given.sets:
        events = SETS[name](human_judgements())
        by = "worker" if "worker" in events[0] else "judgement"
        units = [event.get("worker", str(n)) for n, event in enumerate(events)]
        distinct = sorted(set(units))
        fold = dict(zip(np.random.default_rng(0).permutation(distinct).tolist(), range(len(distinct))))
        for which in given.models:
            found = []
            for k in range(given.folds):
                inside = [fold[unit] % given.folds != k for unit in units]
                train = snapshot_of([event for event, into in zip(events, inside) if into])
                test = snapshot_of([event for event, into in zip(events, inside) if not into])
                try:
                    with threadpool_limits(1):
                        found.append(answer(which, train, test))
                except (CannotRefit, NoModel, RuntimeError) as error:
                    print(f"{name:14}{which:26}{str(error)[:80]}", flush=True)
                    break
            if len(found) == given.folds:
                print(f"{name:14}{which:26}{row(found)}{'  by ' + by if which == given.models[0] else ''}", flush=True)


if __name__ == "__main__":
    main()
