"""What asking by the delivered embedding gains over asking at random: on people's own answers, and in simulation.

    python -m tests.benchmarks.asking [WORLD ...] [--strategies information-gain] [--seeds 4] [--results FILE]

Two arms, equal but for the strategy: questions, their answers as events, a snapshot, the refit `embedding` (the one
that a run delivers), again. Judged on questions that neither arm may ask, by that embedding alone; a tie counts half.

Replay (`eggs`, `food100`, `animals37`): only questions may be asked that people were asked, and one of their answers,
drawn at random, stands in. Frozen tests: eggs: the 2,557 questions that its authors set aside; food100: all answers of
a fifth of the workers; animals37: a fifth of the trials. Minutes are people's own response times, at most one minute
each; only eggs tells them by question.

Simulation (`scale-90`, `scale-150`, `scale-300`): stimuli evenly on a line, answers by the psychometric function (slope
and lapse) fitted to people's answers about the eggs; any question may be asked; the test has the true answers.

While the model may choose nothing both arms ask the same questions and get the same answers: the arms part where the
model first chooses. Differences are paired by seed, with 95 % intervals by t. `--results`: lines are appended, and what
is there is not made again. No dimensions are tested (`dimensions_at_least` only reports).
"""

import argparse
import csv
import gzip
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np
from scipy.optimize import minimize
from scipy.stats import t as student
from threadpoolctl import threadpool_limits

from stream_engine import asking
from stream_engine.asking import information_gain, uncertainty
from stream_engine.asking.known import (
    Known,
    answered,
    codes,
    contained,
    known_from,
    nothing_known,
    unanswered,
    with_objects,
)
from stream_engine.asking.model import delivered
from stream_engine.asking.sharing import mixed
from stream_engine.embedding import dimensions
from stream_engine.embedding.gradient import margins
from stream_engine.formats import decoder
from stream_engine.formats.options import EventOptions
from stream_engine.refits.embedding import Params, refit
from stream_engine.state.artifact import Artifact
from stream_engine.state.engine import Engine
from tests.conftest import human_judgements

REPLAYS = {  # file, column of the test's groups, sizes of the rounds
    "eggs": ("alien_eggs300/triplets.csv.gz", "sampling", (300, 600, 1000, 1500, 2000, 3000, 4000, 5000, 7000)),
    "food100": ("food100/triplets.csv.gz", "worker", (250, 500, 1000, 1500, 2000, 3000, 4000, 6000)),
    "animals37": ("animals37_rank8/triplets.csv.gz", "trial", (100, 200, 400, 700, 1000, 1500, 2000, 3000)),
}
SIMULATED = ("scale-90", "scale-150", "scale-300")
PER_OBJECT = (2, 4, 6, 8, 10, 13, 16, 20, 25, 30)  # answers an object after each round of a simulation
JUDGE = (13.39, 0.035)  # steepness and lapse fitted to the eggs' random answers, for where these are not at hand
POOL = 40_000
BY_MODEL = "information-gain"
LONGEST = 60.0  # seconds of an answer


class World(NamedTuple):
    """`ask(known, n, strategy, rng)` gives questions, `answer(rows, rng)` which are turned round and seconds."""

    names: list[str]
    ask: Callable[[Known, int, str, np.random.Generator], asking.Questions]
    answer: Callable[[np.ndarray, np.random.Generator], tuple[np.ndarray, np.ndarray]]
    test: np.ndarray  # (t, 3): anchor, near, far, by position in `names`
    rounds: tuple[int, ...]
    replays: bool  # then both arms begin with the same random round


def table(path: str) -> list[dict[str, str]]:
    folder = human_judgements()
    if folder is None:
        raise SystemExit("no human judgements: set STREAM_ENGINE_DATA")
    with gzip.open(folder / path, "rt") as file:
        return list(csv.DictReader(file))


def replayed(name: str, seed: int) -> World:
    """People's answers, one a question; a frozen test."""
    path, column, rounds = REPLAYS[name]
    lines, rng = table(path), np.random.default_rng([seed, 0])
    names = sorted({line[key] for line in lines for key in ("anchor", "near", "far")})
    number = {each: i for i, each in enumerate(names)}
    rows = np.array([[number[line[key]] for key in ("anchor", "near", "far")] for line in lines], np.int32)
    seconds = np.array([min(float(line["rt_ms"]) / 1000, LONGEST) if "rt_ms" in line else np.nan for line in lines])
    group = np.array([line[column] for line in lines])
    out = ["Test"] if column == "sampling" else rng.choice(np.unique(group), len(np.unique(group)) // 5, replace=False)
    test = np.isin(group, out)
    drawn = rng.permutation(np.flatnonzero(~test))
    code, first = np.unique(codes(rows[drawn], len(names)), return_index=True)
    pool, took = rows[drawn[first]], seconds[drawn[first]]

    def ask(known: Known, n: int, strategy: str, rng: np.random.Generator) -> asking.Questions:
        at = {each: i for i, each in enumerate(known.names)}
        ids = np.array([at[each] for each in names], np.int32)

        def left(known: Known, rng: np.random.Generator, most: int) -> np.ndarray:
            free = ids[pool]
            free = free[~contained(codes(free, len(names)), answered(known))]
            return rng.permutation(free)[:most]

        def best(known: Known, n: int, rng: np.random.Generator) -> np.ndarray:
            free, by = left(known, rng, POOL), information_gain if strategy == "information-gain" else uncertainty
            return free[by.best(known.model, free, n, rng)] if known.model else free[:0]

        def least_asked(known: Known, n: int, rng: np.random.Generator) -> np.ndarray:
            return by_coverage(known, left(known, rng, len(pool)), n, rng)

        ways = {strategy: best, "random": lambda known, n, rng: left(known, rng, n), "coverage": least_asked}
        if strategy == "random" and known.model is not None:  # as the other arm, while its model may choose nothing
            return mixed(known, n, BY_MODEL, ways | {BY_MODEL: best}, 1.0, rng)
        return mixed(known, n, strategy, ways, asking.RANDOM_SHARE, rng)

    def answer(asked: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        place = np.searchsorted(code, codes(asked, len(names)))
        return (pool[place, 1] != asked[:, 1]), took[place]

    return World(names, ask, answer, rows[test], rounds, True)


def by_coverage(known: Known, free: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """As the strategy `coverage`, of the questions that people were asked: (at most n, 3)."""
    objects, done = len(known.names), answered(known)
    asked = np.bincount(done // objects**2, minlength=objects)
    shown = np.bincount(np.concatenate([done // objects % objects, done % objects]), minlength=objects)
    left = {a: free[free[:, 0] == a] for a in np.unique(free[:, 0]).tolist()}
    rows = []
    while left and len(rows) < n:
        a = min(left, key=lambda each: (asked[each], rng.random()))
        at = int(shown[left[a][:, 1:]].sum(axis=1).argmin())
        rows.append(left[a][at])
        asked[a] += 1
        shown[rows[-1][1:]] += 1
        left[a] = np.delete(left[a], at, axis=0)
        if not len(left[a]):
            del left[a]
    return np.array(rows, np.int32).reshape(-1, 3)


def simulated(name: str, seed: int) -> World:
    """Stimuli on a line, and a judge like the eggs'."""
    n = int(name.removeprefix("scale-"))
    scale, (steep, lapse) = np.linspace(0, 1, n), judge()
    names = [f"o{i}" for i in range(n)]
    test = unanswered(with_objects(nothing_known(), names), 4000, np.random.default_rng([seed, 1]))
    test = np.where((difference(scale, test) > 0)[:, None], test, test[:, [0, 2, 1]])

    def answer(asked: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        p = lapse / 2 + (1 - lapse) / (1 + np.exp(-steep * difference(scale, asked)))
        return rng.random(len(asked)) >= p, np.full(len(asked), np.nan)

    def ask(known: Known, n: int, strategy: str, rng: np.random.Generator) -> asking.Questions:
        seed, at_random = int(rng.integers(1 << 31)), strategy == "random"
        share = 1.0 if at_random else asking.RANDOM_SHARE
        return asking.questions(known, n, BY_MODEL if at_random else strategy, seed, share)

    return World(names, ask, answer, test, tuple(n * each for each in PER_OBJECT), False)


def difference(scale: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """How much nearer b is to a than c, on a scale."""
    a, b, c = scale[rows].T
    return np.abs(a - c) - np.abs(a - b)


def judge() -> tuple[float, float]:
    """Steepness and lapse rate under which people's random answers about the eggs are likeliest."""
    folder = human_judgements()
    if folder is None:
        return JUDGE
    with open(folder / "alien_eggs300" / "labels.csv") as file:
        value = {line["object"]: float(line["true_value"]) for line in csv.DictReader(file)}
    scale = np.array(list(value.values())) / max(value.values())
    number = {each: i for i, each in enumerate(value)}
    lines = [line for line in table("alien_eggs300/triplets.csv.gz") if line["sampling"] == "Random"]
    x = difference(scale, np.array([[number[line[key]] for key in ("anchor", "near", "far")] for line in lines]))

    def loss(at):
        lapse = 1 / (1 + np.exp(-at[1]))
        return -np.log(lapse / 2 + (1 - lapse) / (1 + np.exp(-np.exp(at[0]) * x))).sum()

    at = minimize(loss, [2.0, -2.0], method="Nelder-Mead").x
    return float(np.exp(at[0])), float(1 / (1 + np.exp(-at[1])))


def study(world: World, strategy: str, seed: int) -> dict[str, list[float]]:
    """Accuracy and minutes after each round, and CPU seconds of each choice of questions."""
    engine, decode, rng = Engine(), decoder("json", EventOptions(provenance=True)), np.random.default_rng([seed, 2])
    known, learned, done = with_objects(nothing_known(), world.names), None, 0
    found: dict[str, list[float]] = {"accuracy": [], "minutes": [], "by_model": [], "cpu": []}
    spent = 0.0
    for size in world.rounds:
        began = time.process_time()
        if learned is not None:
            known = known._replace(model=delivered(learned, known.columns))
        asked = world.ask(known, size - done, strategy if learned or not world.replays else "random", rng)
        found["cpu"].append(time.process_time() - began)
        found["by_model"].append(float((asked.sampler != "random").mean()))
        position = {each: i for i, each in enumerate(world.names)}
        rows = np.array([position[each] for each in known.names])[asked.rows]
        turned, seconds = world.answer(rows, rng)
        rows = np.where(turned[:, None], rows[:, [0, 2, 1]], rows)
        events = [
            json.dumps(dict(zip(("anchor", "near", "far"), (world.names[i] for i in row))) | {"sampler": sampler})
            for row, sampler in zip(rows.tolist(), asked.sampler.tolist(), strict=True)
        ]
        engine.learn(decode("\n".join(events).encode()))
        snapshot = engine.snapshot()
        learned, done = refit(snapshot, Params(reported=0.1), seed, learned), size
        known = with_objects(known_from(snapshot, learned), world.names)
        spent += float(seconds.sum()) / 60
        found["minutes"].append(spent)
        found["accuracy"].append(accuracy(learned, known, world))
    return found


def accuracy(learned: Artifact, known: Known, world: World) -> float:
    """Of the delivered points on the test; objects without an answer lie in the middle, ties count half."""
    points, at = learned.arrays["X"], {each: i for i, each in enumerate(known.names)}
    points = np.concatenate([points, np.zeros((len(known.names) - len(points), points.shape[1]))])
    a, b, c = np.array([at[each] for each in world.names], np.int32)[world.test].T
    delta = margins(points, np.stack([a, b, a, c], axis=1), learned.report["alpha"])
    return float((delta > 1e-12).mean() + (np.abs(delta) <= 1e-12).mean() / 2)


def interval(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean over the first axis and the half width of its 95 % interval."""
    n = len(values)
    half = student.ppf(0.975, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.nan * values[0]
    return values.mean(axis=0), half


def needed(curve: np.ndarray, spent: np.ndarray, goal: float) -> float:
    """What was spent when the running best of a curve reached the goal, interpolated; NaN: never."""
    best = np.maximum.accumulate(curve)
    if best[-1] < goal:
        return np.nan
    at = int(np.argmax(best >= goal))
    if at == 0:
        return float(spent[0])
    share = (goal - best[at - 1]) / max(best[at] - best[at - 1], 1e-12)
    return float(spent[at - 1] + share * (spent[at] - spent[at - 1]))


def report(name: str, rounds: tuple[int, ...], results: dict[str, list[dict]]) -> None:
    """Accuracy of each arm, what it gains over random, and how many times fewer answers and minutes it needs."""
    kind = "simulated answers, true test" if name in SIMULATED else "people's answers"
    at_random = np.array([run["accuracy"] for run in results["random"]])
    print(f"\n{name}: {kind}, {len(at_random)} seeds; accuracy in %, 95 % intervals over seeds")
    print(f"{'answers':<26}" + "".join(f"{each:>12,}" for each in rounds))
    for strategy, runs in results.items():
        found = np.array([run["accuracy"] for run in runs])
        print(f"{strategy:<26}" + "".join(f"{100 * mean:12.1f}" for mean in found.mean(axis=0)))
        if strategy == "random":
            continue
        if all("by_model" in run for run in runs):
            share = 100 * np.mean([run["by_model"] for run in runs], axis=0)
            print(f"{'  chosen by the model':<26}" + "".join(f"{each:11.0f}%" for each in share))
        mean, half = interval(100 * (found - at_random))
        print(f"{'  minus random':<26}" + "".join(f"{m:+6.1f} ±{h:4.1f}" for m, h in zip(mean, half)))
        print(fewer("answers", results["random"], runs, rounds))
        if not np.isnan(runs[0]["minutes"][0]):
            print(fewer("minutes", results["random"], runs, rounds))
        print(f"  CPU seconds to choose the last round: {np.median([run['cpu'][-1] for run in runs]):.2f}")


def fewer(what: str, at_random: list[dict], runs: list[dict], rounds: tuple[int, ...]) -> str:
    """How many times fewer answers, or minutes, reach random's last accuracy: geometric mean over seeds."""
    ratios = []
    for one, other in zip(at_random, runs, strict=True):
        goal, spent = one["accuracy"][-1], [rounds if what == "answers" else run["minutes"] for run in (one, other)]
        theirs, ours = (needed(np.array(r["accuracy"]), np.array(s), goal) for r, s in zip((one, other), spent))
        ratios.append(np.log(theirs / ours))
    reached = np.array(ratios)[~np.isnan(ratios)]
    if not len(reached):
        return f"  to random's last accuracy: never, by {what}"
    mean, half = interval(reached)
    said = f"{np.exp(mean):.2f} times fewer {what} ({np.exp(mean - half):.2f} to {np.exp(mean + half):.2f})"
    return f"  to random's last accuracy: {said}, reached in {len(reached)} of {len(ratios)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help="|".join((*REPLAYS, *SIMULATED)))
    parser.add_argument("--strategies", nargs="+", default=["information-gain"])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--figure")
    given = parser.parse_args()
    dimensions.LARGEST = 0
    kept = (
        [json.loads(line) for line in given.results.read_text().splitlines()]
        if given.results and given.results.exists()
        else []
    )
    every: dict[str, dict[str, list[dict]]] = {}
    with threadpool_limits(1):
        for name in given.worlds or (*REPLAYS, *SIMULATED):
            make = simulated if name in SIMULATED else replayed
            results: dict[str, list[dict]] = {}
            for strategy in ("random", *given.strategies):
                results[strategy] = []
                for seed in range(given.seeds):
                    where = {"world": name, "strategy": strategy, "seed": seed}
                    run = next((each for each in kept if where.items() <= each.items()), None)
                    if run is None:
                        run = where | study(make(name, seed), strategy, seed)
                        if given.results:
                            with given.results.open("a") as file:
                                file.write(json.dumps(run) + "\n")
                    results[strategy].append(run)
            every[name] = results
            report(name, make(name, 0).rounds, results)
    if given.figure:
        draw(given.figure, every)


def draw(path: str, every: dict[str, dict[str, list[dict]]]) -> None:
    """Accuracy by answers, with the intervals of the mean."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(every), figsize=(6 * len(every), 4.5), layout="constrained", squeeze=False)
    for ax, (name, results) in zip(axes[0], every.items()):
        rounds = (simulated if name in SIMULATED else replayed)(name, 0).rounds
        for strategy, runs in results.items():
            mean, half = interval(np.array([run["accuracy"] for run in runs]))
            (line,) = ax.plot(rounds, mean, label=strategy)
            ax.fill_between(rounds, mean - half, mean + half, color=line.get_color(), alpha=0.15, lw=0)
        ax.set(title=f"{name}, {'simulated' if name in SIMULATED else 'people'}", xlabel="answers", ylabel="accuracy")
    axes[0][0].legend()
    figure.savefig(path, dpi=120)
    print(f"\nfigure: {path}")


if __name__ == "__main__":
    main()
