"""Partial order embedding on people's answers that it never had: constraint sets beside each other, whole refits.

    python -m tests.benchmarks.poe_judgements food100 car60 [--splits 5] [--constraints NAME ...] [--test 0.2]

A fifth of the judgements (screens, most central of three) tests and is never seen: not by the fit, nor by what chooses
beta. The refit runs with its defaults but for the constraint set, with weights "one" where that follows a colon
("canonical-reduced:one" was the default before votes counted). "car60 T_ALL" are the statements that the authors of the
set use, "car60" all of them. A tie counts one half. Mean over splits, standard deviation over splits behind.
"""

import argparse
import csv
import time
from pathlib import Path

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.refits import partial_order_embedding
from stream_engine.statistics.judgements import judgements_of
from tests.benchmarks.calibration import SETS, snapshot_of
from tests.benchmarks.held_out_honesty import errors
from tests.conftest import human_judgements


def trusted_cars(folder: Path) -> list[dict]:
    """The authors' collection T_ALL, two triplets in a row a statement, as statements."""
    with open(folder / "car60" / "triplets_T_ALL.csv") as file:
        rows = list(csv.DictReader(file))
    return [
        {"type": "most_central", "objects": [row["near"], row["anchor"], row["far"]], "central": row["near"]}
        for row in rows[::2]
    ]


SOURCES = {**SETS, "car60 T_ALL": trusted_cars}


def outcome(events: list[dict], params: partial_order_embedding.Params, seed: int, share: float) -> dict[str, float]:
    """One split: accuracy on what was never seen and as reported, constraints, beta over the smallest, CPU seconds."""
    order = np.random.default_rng(seed).permutation(len(events))
    cut = round(share * len(events))
    test, train = (snapshot_of([events[i] for i in part]) for part in (order[:cut], order[cut:]))
    began = time.process_time()
    made = partial_order_embedding.refit(train, params, seed)
    seconds = time.process_time() - began
    kept = judgements_of(test)
    assert kept is not None
    error, _ = errors(made.arrays["K"], tuple(train.objects), kept, tuple(test.objects))
    report = made.report
    return {
        "accuracy": 1.0 - error,
        "reported": report["accuracy"],
        "size": report["size"],
        "beta / smallest": report["beta"] / report["smallest_beta"],
        "CPU s": seconds,
    }


def asked(which: str) -> partial_order_embedding.Params:
    """The defaults with this constraint set, "default" or "NAME" or "NAME:one"."""
    name, _, weights = which.partition(":")
    changed = {} if name == "default" else {"constraints": name}
    return msgspec.convert({**changed, "weights": weights or "votes"}, partial_order_embedding.Params)


def told(name: str, which: str, outcomes: list[dict[str, float]]) -> str:
    """One line: means over splits, standard deviations of the accuracies behind."""
    columns = {key: np.array([each[key] for each in outcomes], float) for key in outcomes[0]}
    spread = {key: values.std(ddof=1) if len(values) > 1 else float("nan") for key, values in columns.items()}
    line = f"{name:<14}{which:<24}"
    for key in ("accuracy", "reported"):
        line += f"{columns[key].mean():.4f} ({spread[key]:.4f})  "
    return line + "  ".join(f"{columns[key].mean():>9.1f}" for key in ("size", "beta / smallest", "CPU s"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="+", choices=tuple(SOURCES))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--constraints", nargs="+", default=["default", "canonical-reduced:one"], metavar="NAME[:one]")
    parser.add_argument("--test", type=float, default=0.2, metavar="SHARE")
    args = parser.parse_args()
    folder = human_judgements()
    if folder is None:
        parser.error("no human judgements: set STREAM_ENGINE_DATA")
    print(f"{'set':<14}{'constraints':<24}{'accuracy':<17}{'reported':<17}     size  over smallest  CPU s")
    with threadpool_limits(1):
        for name in args.datasets:
            events = SOURCES[name](folder)
            for which in args.constraints:
                params = asked(which)
                outcomes = [outcome(events, params, seed, args.test) for seed in range(args.splits)]
                print(told(name, which, outcomes), flush=True)


if __name__ == "__main__":
    main()
