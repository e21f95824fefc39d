"""What the live orders of `first` and `sift` are worth beside the canonical order: `python -m
tests.benchmarks.guard_policies [WORLD ...]`.

A world is food100 or car60 (human judgements below STREAM_ENGINE_DATA, in their order), or OBJECTS:ANSWERS, with 15 %
flips. A tenth of the answers, chosen by seed 0, is held out; they agree with an order in which their near pair comes
before their far pair, where both pairs are in it. Prints a line a world and order.
"""

import argparse
import csv
import gzip
import os
from pathlib import Path
from time import process_time

import numpy as np

from stream_engine.data.triplet_columns import columns_from_triplets
from stream_engine.guard.partial_order import PartialOrder, canonical_order, weight_kept
from tests.benchmarks.stage_guard import ONE_EACH, food_like

FILES = {"food100": "food100/triplets.csv.gz", "car60": "car60/triplets_T_ALL.csv"}
WORLDS = (*FILES, "100:200000", "100:2000000", "1000:1000000", "1000:5000000")


def answers(world: str) -> tuple[np.ndarray, int]:
    """`((m, 3) int32 triplets, number of objects)`."""
    if world not in FILES:
        n, m = map(int, world.split(":"))
        return food_like(n, m, 0.15, repeats=True)[0][:, [0, 1, 3]], n
    path = Path(os.environ["STREAM_ENGINE_DATA"]) / FILES[world]
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as file:
        rows = [[row["anchor"], row["near"], row["far"]] for row in csv.DictReader(file)]
    numbers: dict[str, int] = {}
    found = [[numbers.setdefault(name, len(numbers)) for name in row] for row in rows]
    return np.array(found, np.int32), len(numbers)


def agreement(order: np.ndarray, held_out: np.ndarray) -> float:
    """The share of the held-out triplets whose near pair stands before the far pair."""
    place = {pair: at for at, pair in enumerate(map(tuple, order.tolist()))}
    at = [(place.get((min(a, b), max(a, b))), place.get((min(a, c), max(a, c)))) for a, b, c in held_out.tolist()]
    return float(np.mean([near < far for near, far in at if near is not None and far is not None]))


def measure(world: str) -> None:
    """Print the lines of a world."""
    triplets, n = answers(world)
    chosen = np.random.default_rng(0).random(len(triplets)) < 0.1
    learned, held_out = np.ascontiguousarray(triplets[~chosen]), triplets[chosen]
    rows, columns = learned[:, [0, 1, 0, 2]], columns_from_triplets(learned, n)
    for policy in ("first", "sift"):
        PartialOrder(policy)._judge_rows(rows[:3000], ONE_EACH)  # compiled
        guard, started = PartialOrder(policy), process_time()
        guard._judge_rows(rows, ONE_EACH)
        cost = 1e6 * (process_time() - started) / len(rows)
        arrays = guard._guard.votes if policy == "sift" else guard._guard.graph
        held, state = sum(a.nbytes for a in arrays) / 1e6, sum(a.nbytes for a in guard.state().values()) / 1e6
        print(
            f"{world}, {policy}: {cost:.2f} us, weight kept {weight_kept(guard.kept(), columns).fraction:.3f},"
            f" held out {agreement(guard._guard.order(), held_out):.3f},"
            f" {held:.0f} MB, state {state:.0f} MB",
            flush=True,
        )
    found = canonical_order(columns)
    weight, right = found.weight.fraction, agreement(found.order, held_out)
    print(f"{world}, canonical: weight kept {weight:.3f}, held out {right:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worlds", nargs="*", default=WORLDS, metavar="WORLD")
    for world in parser.parse_args().worlds:
        measure(world)


if __name__ == "__main__":
    main()
