"""How often is the number of dimensions right that answers show at least, and how often is it too high?

    python -m tests.benchmarks.dimensions_planted [--streams 100]

Streams of triplets about standard normal points in 1, 2, 3 and 5 dimensions, each answer wrong with probability .05;
`embedding.dimensions` with its defaults, folds by answer. `too low` is no error of a lower bound: there were too few
answers to show more. `coins`: answers that are all chance, about points in 2 dimensions; the bound is 1 then.
"""

import argparse
import time

import numpy as np

from stream_engine.embedding.dimensions import FOLDS, dimensions_at_least, folds_of
from stream_engine.embedding.held_out import Answers
from tests.support.generators import planted_triplets

WORLDS = {1: (12, 600), 2: (12, 1200), 3: (12, 2000), 5: (30, 6000)}  # dimensions: objects, answers


def stream(seed: int, d: int, n: int, m: int, flip: float = 0.05) -> Answers:
    rng = np.random.default_rng([seed, d])
    rows = planted_triplets(rng, rng.normal(size=(n, d)), m, flip)[:, [0, 1, 0, 2]]
    return Answers(rows, np.ones(m), np.full(m, -1, np.int32), np.arange(m), n)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--only", type=int, nargs="*", default=[*WORLDS, 0], help="dimensions; 0: coins")
    given = parser.parse_args()
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
    main()
