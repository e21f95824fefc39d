"""Held-out accuracy per number of answers for each strategy of `ask`, against asking at random.

    python -m tests.benchmarks.asking [digits eggs] [--seeds 5] [--figure asking.png]

The loop is the engine's own: publish a snapshot, `ask`, answer every question as an event, decode, learn, again. Judges
are made up: digits (scikit-learn, 250 images, Euclidean distance of pixels, one answer in ten turned round) and alien
eggs (300 stimuli on a known scale; a psychometric function fitted to the human answers that were collected at random).
Held out: for digits 4,000 random questions with the true answer; for eggs the 2,557 answers that people gave to its
test questions, so that even the truth gets only 86 % right. Every strategy's answers are judged by the same two
learners: the embedding that `ask` fits (its dimensions chosen from those answers) and k1. A tie counts one half. The
first batch comes from the strategy itself, with no answer known. Differences to random are paired by seed.
"""

import argparse
import csv
import gzip
import json
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from stream_engine import asking
from stream_engine.asking import model
from stream_engine.asking.known import known_from, nothing_known, unanswered, with_objects
from stream_engine.commands import ask, demo
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.state.engine import Engine
from stream_engine.state.store import Store
from stream_engine.statistics import kernels
from tests.conftest import human_judgements

LEARNERS = ("embedding", "k1")


class World(NamedTuple):
    """`left_wins(rows, rng)`: a judge's answers to (anchor, b, c); `test`: held-out (anchor, near, far)."""

    names: list[str]
    left_wins: object
    test: np.ndarray
    batch: int
    rounds: int


def digits(seed: int) -> World:
    pixels, _ = demo.digits(seed)
    square = (pixels**2).sum(axis=1)
    distance = square[:, None] + square - 2 * pixels @ pixels.T
    names = [f"digit-{i}" for i in range(len(pixels))]
    test = unanswered(with_objects(nothing_known(), names), 4000, np.random.default_rng([seed, 1]))
    return World(
        names,
        lambda rows, rng: nearer(distance, rows) ^ (rng.random(len(rows)) < 0.1),
        in_order(test, nearer(distance, test)),
        1000,
        12,
    )


def eggs(seed: int) -> World:
    folder = human_judgements()
    if folder is None:
        raise SystemExit("eggs: no human judgements: set STREAM_ENGINE_DATA")
    with open(folder / "alien_eggs300" / "labels.csv") as file:
        value = {row["object"]: float(row["true_value"]) for row in csv.DictReader(file)}
    names = list(value)
    scale = np.array(list(value.values())) / max(value.values())
    number = {name: i for i, name in enumerate(names)}
    with gzip.open(folder / "alien_eggs300" / "triplets.csv.gz", "rt") as file:
        answers = [
            (row["sampling"], [number[row[k]] for k in ("anchor", "near", "far")]) for row in csv.DictReader(file)
        ]
    given = np.array([row for sampling, row in answers if sampling == "Random"])
    steep, lapse = psychometric(difference(scale, given))

    def left_wins(rows, rng):
        return rng.random(len(rows)) < lapse / 2 + (1 - lapse) / (1 + np.exp(-steep * difference(scale, rows)))

    return World(names, left_wins, np.array([row for sampling, row in answers if sampling == "Test"]), 500, 10)


def difference(scale: np.ndarray, rows: np.ndarray) -> np.ndarray:
    a, b, c = scale[rows].T
    return np.abs(a - c) - np.abs(a - b)


def psychometric(x: np.ndarray) -> tuple[float, float]:
    """Steepness and lapse rate under which answers whose right side led by x are likeliest."""

    def loss(at):
        lapse = 1 / (1 + np.exp(-at[1]))
        return -np.log(lapse / 2 + (1 - lapse) / (1 + np.exp(-np.exp(at[0]) * x))).sum()

    at = minimize(loss, [2.0, -2.0], method="Nelder-Mead").x
    return float(np.exp(at[0])), float(1 / (1 + np.exp(-at[1])))


def nearer(distance: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return distance[rows[:, 0], rows[:, 1]] < distance[rows[:, 0], rows[:, 2]]


def in_order(rows: np.ndarray, left: np.ndarray) -> np.ndarray:
    return np.where(left[:, None], rows, rows[:, [0, 2, 1]])


def study(world: World, strategy: str, seed: int, folder: Path) -> tuple[np.ndarray, float]:
    """(rounds, learners) accuracies of one strategy, and the seconds of its median `ask`."""
    (folder / "names.txt").write_text("\n".join(world.names) + "\n")
    store, engine = Store(folder / "state"), Engine(("adds3", "triplet_counts"), None)
    decode, rng = decoder("json", EventOptions()), np.random.default_rng([seed, 2])
    number = {name: i for i, name in enumerate(world.names)}
    found, seconds = [], []
    for _ in range(world.rounds):
        began = time.perf_counter()
        asked = ask.ask(str(store.directory), world.batch, strategy, "pick", seed, str(folder / "names.txt"), "latest")
        seconds.append(time.perf_counter() - began)
        questions = [json.loads(line) for line in asked.lines]
        rows = np.array([[number[name] for name in (q["anchor"], *q["shown"])] for q in questions])
        left = world.left_wins(rows, rng)
        answers = [json.dumps(q | {"chosen": [q["shown"][0 if wins else 1]]}) for q, wins in zip(questions, left)]
        engine.learn(decode("\n".join(answers).encode()))
        snapshot, _ = store.publish(engine.snapshot())
        store.prune(1)
        found.append(accuracies(snapshot, world))
    return np.array(found), float(np.median(seconds))


def accuracies(snapshot, world: World) -> tuple[float, float]:
    """Of the embedding and of k1 on the held-out questions; objects without an answer lie in the middle."""
    known = with_objects(known_from(snapshot), world.names)
    at = {name: i for i, name in enumerate(known.names)}
    test = np.array([at[name] for name in world.names])[world.test]
    x = model.differences(model.posterior(known, np.random.default_rng(0)).points, test)
    k = kernels.k1(known.columns)
    own, (a, b, c) = np.diag(k), test.T
    y = 2 * (k[a, b] - k[a, c]) - (own[b] - own[c])
    return tuple(float((z > 0).mean() + (z == 0).mean() / 2) for z in (x, y))


def report(name: str, world: World, results: dict[str, np.ndarray], seconds: dict[str, float]) -> None:
    """Accuracy, mean and standard error over seeds; then what each strategy gains over random."""
    seeds = len(results["random"])
    answers = world.batch * np.arange(1, world.rounds + 1)
    print(
        f"\n{name}: {len(world.names)} objects, batches of {world.batch}, {seeds} seeds; held-out accuracy in % +- s.e."
    )
    shown = [r for r in range(world.rounds) if (r + 1) % 2 == 0]
    for index, learner in enumerate(LEARNERS):
        print(f"{learner:<20}" + "".join(f"{answers[r]:>14,}" for r in shown))
        for strategy, found in results.items():
            cells = found[:, shown, index] * 100
            print(f"  {strategy:<18}" + "".join(f"{m:8.1f} +- {e:.1f}" for m, e in zip(cells.mean(0), error(cells))))
        print("  minus random, paired")
        for strategy, found in results.items():
            if strategy != "random":
                cells = (found - results["random"])[:, shown, index] * 100
                print(
                    f"  {strategy:<18}" + "".join(f"{m:+8.1f} +- {e:.1f}" for m, e in zip(cells.mean(0), error(cells)))
                )
    goal = max(results["random"][:, -1].mean(0))
    print(f"answers to reach random's last accuracy by its better learner, {goal:.3f}; median seconds of `ask`:")
    for strategy, found in results.items():
        best = found.mean(0).max(axis=1)
        reached = np.interp(goal, np.maximum.accumulate(best), answers) if best.max() >= goal else np.nan
        words = "never" if np.isnan(reached) else f"{reached:,.0f} ({answers[-1] / reached:.2f} x fewer)"
        print(f"  {strategy:<18}{words:<26}{seconds[strategy]:.2f} s")


def error(cells: np.ndarray) -> np.ndarray:
    return cells.std(axis=0, ddof=1) / np.sqrt(len(cells)) if len(cells) > 1 else np.full(cells.shape[1], np.nan)


def draw(path: str, worlds: dict[str, World], results: dict[str, dict[str, np.ndarray]]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(worlds), figsize=(6 * len(worlds), 4.5), layout="constrained", squeeze=False)
    for ax, (name, world) in zip(axes[0], worlds.items()):
        answers = world.batch * np.arange(1, world.rounds + 1)
        for colour, (strategy, found) in enumerate(results[name].items()):
            for index, style in enumerate(("-", ":")):
                mean, spread = found[:, :, index].mean(0), error(found[:, :, index])
                ax.plot(answers, mean, style, color=f"C{colour}", label=strategy if index == 0 else None)
                ax.fill_between(answers, mean - spread, mean + spread, color=f"C{colour}", alpha=0.15, lw=0)
        ax.set(title=name, xlabel="answers", ylabel="held-out accuracy")
    axes[0][0].legend(title="line: embedding, dots: k1")
    figure.savefig(path, dpi=120)
    print(f"\nfigure: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worlds", nargs="*", metavar="digits|eggs")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--figure", default="asking.png")
    given = parser.parse_args()
    worlds, results = {}, {}
    with threadpool_limits(1):
        for name in given.worlds or ("digits", "eggs"):
            make = {"digits": digits, "eggs": eggs}[name]
            worlds[name], results[name], seconds = make(0), {}, {}
            for strategy in asking.STRATEGIES:
                runs = []
                for seed in range(given.seeds):
                    with tempfile.TemporaryDirectory() as folder:
                        runs.append(study(make(seed), strategy, seed, Path(folder)))
                results[name][strategy] = np.array([accuracy for accuracy, _ in runs])
                seconds[strategy] = float(np.median([took for _, took in runs]))
            report(name, worlds[name], results[name], seconds)
    draw(given.figure, worlds, results)


if __name__ == "__main__":
    main()
