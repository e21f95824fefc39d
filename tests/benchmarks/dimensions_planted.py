"""How often is the number of dimensions right that answers show at least, and how often is it too high? With --choice:
how often is the number right that is chosen by default (the smallest within one standard error of the best), and how
well does it predict fresh answers, compared with the number of the smallest held-out loss?

    python -m tests.benchmarks.dimensions_planted [--streams 100] [--choice --streams 24]

Streams of triplets about standard normal points in 1, 2, 3 and 5 dimensions, each answer wrong with probability .05;
`embedding.dimensions` with its defaults, folds by answer. `too low` is no error of a lower bound: there were too few
answers to show more. `coins`: answers that are all chance, about points in 2 dimensions; the bound is 1 then.
"""

import argparse
import sys
import time

import numpy as np

from stream_engine.embedding import choice
from stream_engine.embedding.choice import Setting
from stream_engine.embedding.dimensions import FOLDS, dimensions_at_least, folds_of
from stream_engine.embedding.fit import with_setting
from stream_engine.embedding.gradient import margins
from stream_engine.embedding.held_out import Answers
from tests.support.generators import planted_triplets

WORLDS = {1: (12, 600), 2: (12, 1200), 3: (12, 2000), 5: (30, 6000)}  # dimensions: objects, answers


def stream(seed: int, d: int, n: int, m: int, flip: float = 0.05) -> Answers:
    rng = np.random.default_rng([seed, d])
    rows = planted_triplets(rng, rng.normal(size=(n, d)), m, flip)[:, [0, 1, 0, 2]]
    return Answers(rows, np.ones(m), np.full(m, -1, np.int32), np.arange(m), n)


CHOICES = ((1, 12, 600), (1, 20, 1500), (2, 20, 2500), (3, 25, 4000))  # dimensions, objects, answers
FRESH = 5000  # answers without mistakes to compare predictions by


def of_default(seed: int, d: int, n: int, m: int) -> tuple[int, int, float, float]:
    """The chosen number of dimensions, that with the smallest held-out loss, and the share of fresh answers that a fit
    in either number predicts."""
    answers = stream(seed, d, n, m)
    out = np.random.default_rng(seed).random(m) < 0.2
    chosen = choice.choose(answers.of(~out).questions(), answers.of(out))
    points = np.random.default_rng([seed, d]).normal(size=(n, d))
    fresh = planted_triplets(np.random.default_rng([seed, d, 1]), points, FRESH, 0.0)[:, [0, 1, 0, 2]]
    best = min(chosen.tried, key=lambda each: float(each["log_loss"]))
    settings = chosen.setting, Setting(str(best["kernel"]), int(best["d"]), float(best["ridge"]))
    right = [
        float((margins(found.points, fresh, found.alpha) > 0).mean())
        for found in (with_setting(answers.questions(), setting) for setting in settings)
    ]
    return settings[0].d, settings[1].d, *right


def choices(streams: int) -> None:
    print(" planted  objects  answers  streams   right  too high  predicts   best d  predicts   CPU s")
    for d, n, m in CHOICES:
        begin = time.process_time()
        made = np.array([of_default(seed, d, n, m) for seed in range(streams)])
        took = (time.process_time() - begin) / streams
        share = np.mean(made[:, 0] == d), np.mean(made[:, 0] > d)
        mean = made[:, 1:].mean(axis=0)
        print(
            f"{d:>8}{n:>9}{m:>9}{streams:>9}{share[0]:>8.2f}{share[1]:>10.2f}{mean[1]:>10.4f}{mean[0]:>9.1f}"
            f"{mean[2]:>10.4f}{took:>8.2f}",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--only", type=int, nargs="*", default=[*WORLDS, 0], help="dimensions; 0: coins")
    parser.add_argument("--choice", action="store_true", help="the number that is chosen by default")
    given = parser.parse_args(arguments)
    if given.choice:
        choices(given.streams)
        return
    print(" planted  objects  answers  streams   right  too high  too low   CPU s")
    for d in given.only:
        n, m = WORLDS[d or 1]
        begin, found = time.process_time(), []
        for seed in range(given.streams):
            answers = stream(seed, d or 2, n, m, 0.05 if d else 0.5)
            found.append(dimensions_at_least(answers, folds_of(answers.unit, FOLDS)).at_least)
        truth = d or 1
        low, right, high = (
            np.mean(how) for how in (np.less(found, truth), np.equal(found, truth), np.greater(found, truth))
        )
        took = (time.process_time() - begin) / given.streams
        print(
            f"{d or 'coins':>8}{n:>9}{m:>9}{len(found):>9}{right:>8.2f}{high:>10.2f}{low:>9.2f}{took:>8.2f}", flush=True
        )


if __name__ == "__main__":
    sys.exit(main())
