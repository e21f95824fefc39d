"""The embedding beside cblearn's STE, t-STE, SOE, CKL and GNMDS: held-out accuracy and CPU seconds, on people's
judgements and planted worlds.

    python -m tests.benchmarks.embeddings [--cblearn FOLDER] [--only PART ...] [--sets SET ...] [--rivals R ...]
        [--splits 5] [--results FILE]

A fifth of the judgements (food100: of the workers) tests, never torn; of planted worlds 20,000 noiseless answers do.
Ours chooses kernel and ridge on a fifth of the rest, then fits to all of it; "one fit" is the CPU time of that last
fit, "s CPU" of all. Theirs are fitted to all of the rest with the same number of dimensions. `--cblearn`: folder for an
environment of its own (`real_judgements.py`). The dimensions are given; in the part `free` ours chooses them too, and
each rival the best of 2, 5 and 10 by its accuracy on a fifth of the rest. Accuracy with its standard error over the
splits; the difference to the best rival is paired by split.
"""

import argparse
import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.embedding import choice
from stream_engine.embedding.fit import Setting, with_setting
from stream_engine.embedding.gradient import margins
from stream_engine.embedding.held_out import Answers, log_odds, probabilities
from stream_engine.embedding.questions import of_rows
from stream_engine.embedding.sureness import Sureness
from stream_engine.kernel_learning import rckl
from stream_engine.statistics.held_out import figures
from tests.benchmarks import real_judgements
from tests.benchmarks.embedding_worlds import REAL, World, guessers, planted, real
from tests.conftest import human_judgements
from tests.support.generators import planted_triplets

RIVALS = ["STE", "t-STE", "SOE", "CKL", "GNMDS"]
FREE = [2, 5, 10]  # dimensions that rivals choose among
PLANTED = {  # what -> (n, d, answers)
    "dense": [(100, d, m) for d, m in ((1, 5000), (2, 10_000), (5, 25_000), (10, 50_000))],
    "sparse": [(400, d, 8000) for d in (1, 2, 5, 10)],
}
Line = dict[str, list]  # method -> accuracy, CPU seconds, of one fit, log loss or None


def right(points: np.ndarray, rows: np.ndarray) -> float:
    """Share of (m, 4) answers that points say, ties half."""
    delta = margins(points, rows)
    return float((delta > 0).mean() + (delta == 0).mean() / 2)


def ours(train: Answers, test: Answers, d: int | None, seed: int) -> Line:
    """Kernel and ridge (and d) by a fifth of the units, then one fit."""
    began = time.process_time()
    nobody = train._replace(worker=np.full_like(train.worker, -1), n_workers=0)
    drawn = np.random.default_rng([seed, 1]).random(int(train.unit.max()) + 1)  # not what draws the test units
    held = drawn[train.unit] < 0.2
    chosen = choice.choose(nobody.of(~held).questions(), nobody.of(held), d=d)
    last = time.process_time()
    found = with_setting(nobody.questions(), chosen.setting, chosen.begin)
    now = time.process_time()
    sure = chosen.sureness or Sureness(1.0, float(found.lapse[0]))
    odds = log_odds(probabilities(found.points, test.rows, sure.lapse, found.alpha, scale=sure.scale))
    made = figures(odds, 1.0, test.times, test.unit)
    print(f"    {chosen.setting} {made}", flush=True)
    return {"ours": [made.accuracy, now - began, now - last, made.log_loss]}


def split(world: World, seed: int, splits: int) -> tuple[Answers, Answers]:
    """Training and test answers: whole judgements, of food100 whole workers in folds."""
    answers = world.answers
    if world.test is not None:
        return answers, answers._replace(
            rows=world.test,
            times=np.ones(len(world.test)),
            worker=np.full(len(world.test), -1, np.int32),
            unit=np.arange(len(world.test)),
        )
    if world.name.startswith("food100"):
        fold = np.random.default_rng(0).permutation(np.arange(answers.n_workers) % splits)
        test = fold[answers.worker] == seed
    else:
        test = np.random.default_rng(seed).random(int(answers.unit.max()) + 1)[answers.unit] < 0.2
    return answers.of(~test), answers.of(test)


class Given(NamedTuple):
    """How often, beside whom, and where the results go."""

    splits: int
    rival: str | None  # a Python with cblearn
    rivals: list[str]
    out: Path | None


def theirs(given: Given, train: Answers, test: Answers, d: int | None, seed: int) -> Line:
    """cblearn's; with d free, by a fifth of the units."""
    drawn = np.random.default_rng([seed, 1]).random(int(train.unit.max()) + 1)
    check = drawn[train.unit] < 0.2 if d is None else np.arange(len(train.rows)) == 0
    triplets = [each.rows[:, [0, 1, 3]] for each in (train.of(~check), train.of(check), test)]
    return real_judgements.theirs(given.rival, *triplets, train.n_objects, [d] if d else FREE, given.rivals)


def beside(world: Callable[[int], World], name: str, d: int | None, given: Given) -> None:
    """One row of the table: ours and cblearn's over the splits."""
    lines = []
    for seed in range(given.splits):
        train, test = split(world(seed), seed, max(given.splits, 3))
        line = ours(train, test, d, seed)
        if given.rival:
            line |= theirs(given, train, test, d, seed)
        lines.append({key: value for key, value in line.items() if value[0] is not None})
    told = [f"{name}, d = {d or 'free'}:"]
    for method in lines[0]:
        made = np.array([line[method][:3] for line in lines if method in line])
        error = made[:, 0].std(ddof=1) / np.sqrt(len(made)) if len(made) > 1 else float("nan")
        told.append(f"{method} {made[:, 0].mean():.4f} +- {error:.4f} ({made[:, 2].mean():.2f} s)")
    best = max((m for m in lines[0] if m != "ours"), key=lambda m: np.mean([e[m][0] for e in lines]), default=None)
    if best:
        less = np.array([line["ours"][0] - line[best][0] for line in lines])
        error = less.std(ddof=1) / np.sqrt(len(less)) if len(less) > 1 else float("nan")
        told.append(f"ours - {best}: {less.mean():+.4f} +- {error:.4f}")
    print("  ".join(told), flush=True)
    losses = {m: [e[m][3] for e in lines] for m in lines[0] if lines[0][m][3] is not None}
    said = "  ".join(f"{m} {np.mean(each):.4f}" for m, each in losses.items())
    print(f"  log loss, each by its own probability: {said}", flush=True)
    if given.out:
        with given.out.open("a") as file:
            print(json.dumps({"row": name, "d": d, "splits": lines}), file=file)


def few_answers(world: World, splits: int) -> None:
    """food100, 3,000 answers, d = 5, beside the whole learned kernel with lambda1 from the same held-out answers."""
    answers, got = world.answers, []
    for seed in range(splits):
        screens = np.random.default_rng(seed).permutation(int(answers.unit.max()) + 1)
        test = answers.of(np.isin(answers.unit, screens[: len(screens) // 5]))
        rest = answers.of(np.isin(answers.unit, screens[len(screens) // 5 :]))
        rows = np.sort(np.random.default_rng(seed).permutation(len(rest.rows))[:3000])
        train = rest.of(np.isin(np.arange(len(rest.rows)), rows))
        line = ours(train, test, 5, seed)
        kernel = whole_kernel(train, test, seed)
        got.append([line["ours"][0], kernel])
    mean, error = np.mean(got, axis=0), np.std(got, axis=0, ddof=1) / np.sqrt(splits)
    print(
        f"food100, 3,000 answers: d = 5 {mean[0]:.4f} +- {error[0]:.4f}, whole kernel {mean[1]:.4f} +- {error[1]:.4f}"
    )


def whole_kernel(train: Answers, test: Answers, seed: int) -> float:
    """Accuracy of RCKL-T, lambda1 by held-out log loss."""
    drawn = np.random.default_rng([seed, 1]).random(int(train.unit.max()) + 1)
    held = drawn[train.unit] < 0.2
    triplets, n = train.rows[:, [0, 1, 3]], train.n_objects

    def fitted(rows: np.ndarray, lambda1: float) -> np.ndarray:
        rows, times = real_judgements.unique(rows)
        return rckl.fit(rows, n, [], form="t", loss="ste", weight=times, lambda1=lambda1, tolerance=1e-3).gram

    def cost(gram: np.ndarray) -> float:
        i, j, k = triplets[held].T
        own = np.diag(gram)
        x = own[j] - 2 * gram[i, j] - own[k] + 2 * gram[i, k]
        return float(np.logaddexp(0, x).mean())

    tried = [(cost(fitted(triplets[~held], 0.8 * each)), each) for each in (30, 10, 5, 3, 2, 1, 0.5, 0.2)]
    return real_judgements.accuracy(fitted(triplets, min(tried)[1]), test.rows[:, [0, 1, 3]])


def whom_to_trust(splits: int) -> None:
    """What 30 % guessing workers cost, and what the lapses win back: of the accuracy with all honest, and of that with
    the others alone."""

    def accuracy(answers: Answers, test: np.ndarray, by_worker: bool = False) -> float:
        answers = answers if by_worker else answers._replace(worker=np.full_like(answers.worker, -1), n_workers=0)
        return right(with_setting(answers.questions(), Setting("ste", 2, 0.1)).points, test)

    got = []
    for seed in range(splits):
        *worlds, test = guessers(seed)
        honest, mixed, others = (accuracy(each, test) for each in worlds)
        got.append([honest, others, mixed, accuracy(worlds[1], test, by_worker=True)])
    honest, others, mixed, lapses = np.mean(got, axis=0)
    print(
        f"30 % of 100 workers guess: all honest {honest:.4f}, the other 70 alone {others:.4f}, one lapse {mixed:.4f}, "
        f"a lapse a worker {lapses:.4f}: won back {(lapses - mixed) / (honest - mixed):.0%} of all honest, "
        f"{(lapses - mixed) / (others - mixed):.0%} of the others alone"
    )


def speed(sizes: list[tuple[int, int, int]]) -> None:
    """CPU seconds of one fit, compiled before, and the process's peak memory; counting the questions is in both."""
    with_setting(of_rows(np.array([[0, 1, 0, 2]]), 3), Setting("t-ste", 1, 1.0))
    for n, m, d in sizes:
        rng = np.random.default_rng(0)
        points = rng.normal(size=(n, d))
        rows, test = (
            planted_triplets(rng, points, size, flip)[:, [0, 1, 0, 2]] for size, flip in ((m, 0.1), (20_000, 0))
        )
        for kernel in ("ste", "t-ste"):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            began, clock = time.process_time(), time.perf_counter()
            found = with_setting(of_rows(rows, n), Setting(kernel, d, 0.3))
            took, wall = time.process_time() - began, time.perf_counter() - clock
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            print(
                f"n = {n:,}, {m:,} comparisons, d = {d}, {kernel}: {took:.2f} s CPU ({wall:.2f} s), "
                f"peak {peak / 1024:,.0f} MB (answers and all before {before / 1024:,.0f}), "
                f"{found.evaluations} evaluations, right {right(found.points, test):.4f} of noiseless answers",
                flush=True,
            )


def main() -> None:
    parts = ["people", "food100", "few", "planted", "trust", "speed", "large", "free"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cblearn", metavar="FOLDER")
    parser.add_argument("--only", nargs="+", choices=parts, default=parts)
    parser.add_argument("--sets", nargs="+", choices=REAL, default=list(REAL))
    parser.add_argument("--rivals", nargs="+", choices=RIVALS, default=RIVALS)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    rival = real_judgements.environment(given.cblearn) if given.cblearn else None
    folder, more = human_judgements(), Given(given.splits, rival, given.rivals, given.results)
    with threadpool_limits(1):
        if folder is not None:
            worlds = {name: real(folder, name) for name in given.sets}
            for name, world in worlds.items() if "people" in given.only else ():
                beside(lambda seed: world, name, 2, more)  # noqa: B023  called in this turn
            if "food100" in given.only and "food100" in worlds:
                beside(lambda seed: worlds["food100"], "food100", 5, more)
            if "few" in given.only and "food100" in worlds:
                few_answers(worlds["food100"], given.splits)
            for name, world in worlds.items() if "free" in given.only else ():
                beside(lambda seed: world, name, None, more)  # noqa: B023
        for what, sizes in PLANTED.items() if "planted" in given.only else ():
            for n, d, m in sizes:
                beside(lambda seed: planted(seed, n, d, m), f"{what} n = {n}, {m} answers", d, more)  # noqa: B023
        if "trust" in given.only:
            whom_to_trust(given.splits)
        if "speed" in given.only:
            speed([(100, 200_000, 2), (100, 200_000, 5), (1500, 40_000, 2), (1500, 40_000, 5)])
        if "large" in given.only:
            speed([(100_000, 3_000_000, 5)])


if __name__ == "__main__":
    main()
