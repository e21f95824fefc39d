"""How often do the 95 % ellipses of an embedding hold the places that were planted?

    python -m tests.benchmarks.ellipse_coverage [--streams 100]

Answers by the model itself about standard normal points, a tenth of them coins; the planted points are aligned to the
found ones by Procrustes (moved, turned, scaled). The ridge is chosen by answers held out, as in the refit. `copies`:
each answer is given five times in one judgement; `taken for many`: the same without knowing that they are of one.
Means over streams with their standard errors; 92 to 98 % is wanted.
"""

import argparse
import time

import numpy as np

from stream_engine.embedding.choice import choose
from stream_engine.embedding.ellipses import covariances, radius
from stream_engine.embedding.fit import with_setting
from tests.support.embedding_worlds import by_the_model, covered

WORLDS = [  # name, objects, dimensions, answers, copies of each
    ("scale", 20, 1, 1500, 1),
    ("few answers", 20, 2, 800, 1),
    ("plane", 20, 2, 2000, 1),
    ("many answers", 20, 2, 6000, 1),
    ("space", 30, 3, 4000, 1),
    ("copies", 20, 2, 2000, 5),
    ("taken for many", 20, 2, 2000, -5),
]


def coverage(seed: int, n: int, d: int, m: int, copies: int) -> float:
    points, answers = by_the_model(seed, n, d, m, copies=abs(copies))
    if copies < 0:
        answers = answers._replace(unit=np.arange(len(answers.rows)))
    out = np.random.default_rng(seed).random(int(answers.unit.max()) + 1)[answers.unit] < 0.2
    chosen = choose(answers.of(~out).questions(), answers.of(out), kernel="ste", d=d)
    found = with_setting(answers.questions(), chosen.setting, chosen.begin)
    covariance = covariances(found, answers)
    assert covariance is not None
    return float(covered(points, found.points, covariance, radius(d)).mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=100)
    given = parser.parse_args()
    print(f"{'':16}{'n':>5}{'d':>4}{'answers':>9}{'streams':>9}{'covered':>9}{'+-':>7}{'CPU s':>8}")
    for name, n, d, m, copies in WORLDS:
        begin = time.process_time()
        found = [coverage(seed, n, d, m, copies) for seed in range(given.streams)]
        took, error = (time.process_time() - begin) / len(found), np.std(found) / np.sqrt(len(found))
        print(f"{name:16}{n:>5}{d:>4}{m:>9}{len(found):>9}{np.mean(found):>9.3f}{error:>7.3f}{took:>8.2f}", flush=True)


if __name__ == "__main__":
    main()
