"""How often does `sdp_clustering` see clusters where there is a continuum, and miss those that are there?

    python -m tests.benchmarks.cluster_verdicts [--worlds 50] [--kinds disc,line,...] [--results FILE]

Worlds of 30 to 60 objects and 2,000 to 5,000 triplets, answered with P(near) = lapse / 2 + (1 - lapse) sigma(Delta),
lapse .05, positions scaled to a mean square of 4 (nine of ten answers are right). Continua: a disc, a line, a ring, a
Gaussian in 2 dimensions, and, harder, an exponential scale. Clusters: three Gaussian groups in the plane, their centres
6 (`three`) or 5 (`close`) standard deviations apart. `coins`: answers by chance about 60 objects, 20,000 of them. The
refit with its defaults, without bootstrap and stability. `--worlds` of each kind; every world is a line of --results,
and one that is there is not made again, so the command can be stopped and resumed.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from stream_engine import Engine, Triplet
from stream_engine.embedding.gradient import margins, probability
from stream_engine.refits.sdp_clustering import Params, refit

CONTINUA = ("disc", "line", "ring", "gaussian", "exponential")
CLUSTERS = {"three": 6.0, "close": 5.0}
KINDS = (*CONTINUA, *CLUSTERS, "coins")
LAPSE, SCALE = 0.05, 2.0


def positions(rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
    """(n, d) points about 0 with a mean square of 1."""
    turn = 2 * np.pi * rng.random(n)
    if kind == "line":
        points = rng.random((n, 1))
    elif kind == "exponential":
        points = rng.exponential(size=(n, 1))
    elif kind in ("ring", "disc"):
        radius = np.ones(n) if kind == "ring" else np.sqrt(rng.random(n))
        points = np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1)
    else:
        points = rng.normal(size=(n, 2))
        if kind in CLUSTERS:
            corners = CLUSTERS[kind] * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
            points += corners[np.arange(n) % 3]
    points -= points.mean(axis=0)
    return points / np.sqrt((points**2).sum(axis=1).mean())


def triplets(rng: np.random.Generator, points: np.ndarray, count: int, lapse: float) -> np.ndarray:
    """(about `count`, 3) answers: anchor, near, far."""
    n = len(points)
    anchor = rng.integers(n, size=count)
    one, other = ((anchor + rng.integers(1, n, size=count)) % n for _ in range(2))
    anchor, one, other = (column[one != other] for column in (anchor, one, other))
    p = probability(margins(points, np.stack([anchor, one, anchor, other], axis=1)), lapse)
    yes = rng.random(len(p)) < p
    return np.stack([anchor, np.where(yes, one, other), np.where(yes, other, one)], axis=1)


def run(kind: str, seed: int) -> dict:
    """The verdict about one world."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n, count = (60, 20_000) if kind == "coins" else (int(rng.integers(30, 61)), int(rng.integers(2_000, 5_001)))
    points = SCALE * positions(rng, kind, n)
    said = triplets(rng, points, count, 1.0 if kind == "coins" else LAPSE)
    engine = Engine(["adds3", "triplet_counts"])
    engine.learn_many([Triplet(*(f"o{i}" for i in row)) for row in said.tolist()])
    began = time.process_time()
    made = refit(engine.snapshot(), Params(bootstrap=0, stability=0, levels_up_to=0), seed).report
    return {
        "kind": kind,
        "seed": seed,
        "n": n,
        "answers": len(said),
        "k": made["k"],
        "verdict": made["verdict"],
        **{name: made["verdict_test"].get(name) for name in ("p_coins", "p_continuum", "clearest", "crowding")},
        "cpu": round(time.process_time() - began, 2),
    }


def table(results: list[dict]) -> str:
    """How often each verdict was given, by kind."""
    heads = ("worlds", "clusters", "right k", "continuum", "cannot tell", "CPU s")
    lines = [f"{'kind':12}" + "".join(f"{head:>13}" for head in heads)]
    for kind in KINDS:
        found = [each for each in results if each["kind"] == kind]
        if found:
            clusters = [each for each in found if each["verdict"].endswith(" clusters")]
            right = sum(each["verdict"] == "3 clusters" for each in clusters) if kind in CLUSTERS else 0
            continuum = sum(each["verdict"].startswith("no clusters") for each in found)
            unsure, seconds = len(found) - len(clusters) - continuum, np.mean([each["cpu"] for each in found])
            cells = (len(found), len(clusters), right, continuum, unsure, f"{seconds:.2f}")
            lines.append(f"{kind:12}" + "".join(f"{cell:>13}" for cell in cells))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=50)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--results", default=str(Path(__file__).with_suffix(".jsonl")))
    given = parser.parse_args()
    kept = Path(given.results)
    results = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    done = {(each["kind"], each["seed"]) for each in results}
    for seed in range(given.worlds):
        for kind in given.kinds.split(","):
            if (kind, seed) not in done:
                results.append(run(kind, seed))
                print(json.dumps(results[-1]), flush=True)
                with open(kept, "a") as file:
                    file.write(json.dumps(results[-1]) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
