"""How often is the number of dimensions right that answers show at least, and how often is it too high? With --choice:
how often is the number right that is chosen by default (the smallest within one standard error of the best), and how
well does it predict fresh answers, compared with the number of the smallest held-out loss?

    python -m tests.benchmarks.dimensions_planted [--streams 100] [--choice --streams 24]

Streams of triplets about standard normal points in 1, 2, 3 and 5 dimensions, each answer wrong with probability .05;
`embedding.dimensions` with its defaults, folds by answer. `too low` is no error of a lower bound: there were too few
answers to show more.
"""

import argparse
import sys
import time

import numpy as np

from stream_engine.embedding import choice
from stream_engine.embedding.choice import Setting
from stream_engine.embedding.dimensions import FOLDS, dimensions_at_least, folds_of
from stream_engine.embedding.fit import with_setting
from stream_engine.embedding.held_out import Answers
from stream_engine.evaluation.answer_probabilities import margins
from tests.support.generators import planted_triplets

WORLDS = ((1, 12, 600), (2, 12, 1200), (3, 12, 2000), (5, 30, 6000))  # dimensions, objects, answers
CHOICES = ((1, 12, 600), (1, 20, 1500), (2, 20, 2500), (3, 25, 4000))
FRESH = 5000  # answers without mistakes to compare predictions by


def stream(seed: int, d: int, n: int, m: int, flip: float = 0.05) -> Answers:
    rng = np.random.default_rng([seed, d])
    rows = planted_triplets(rng, rng.normal(size=(n, d)), m, flip)[:, [0, 1, 0, 2]]
    return Answers(rows, np.ones(m), np.full(m, -1, np.int32), np.arange(m), n)


def of_default(seed: int, d: int, n: int, m: int) -> tuple[int, float, float]:
    """The chosen number of dimensions, and the share of fresh answers that a fit in it predicts, and one in the number
    with the smallest held-out loss."""
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
    return settings[0].d, *right


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--choice", action="store_true", help="the number that is chosen by default")
    given = parser.parse_args(arguments)
    print("planted  objects  answers   right  too high  too low  predicts  by least loss   CPU s")
    for d, n, m in CHOICES if given.choice else WORLDS:
        began, share = time.process_time(), (float("nan"), float("nan"))
        if given.choice:
            made = np.array([of_default(seed, d, n, m) for seed in range(given.streams)])
            found, share = made[:, 0], made[:, 1:].mean(axis=0)
        else:
            every = (stream(seed, d, n, m) for seed in range(given.streams))
            found = np.array([dimensions_at_least(each, folds_of(each.unit, FOLDS)).at_least for each in every])
        took = (time.process_time() - began) / given.streams
        right, high, low = np.mean(found == d), np.mean(found > d), np.mean(found < d)
        told = f"{d:>7}{n:>9}{m:>9}{right:>8.2f}{high:>10.2f}{low:>9.2f}"
        print(f"{told}{share[0]:>10.4f}{share[1]:>15.4f}{took:>8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
