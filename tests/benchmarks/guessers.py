"""What do workers who guess cost an embedding, and how much of it do the lapses win back?

    python -m tests.benchmarks.guessers [--streams 20]

Triplets about standard normal points in two dimensions by 40 workers, one answer in 20 wrong; 30 % of the workers guess
all of theirs. Accuracy on new answers without mistakes: of a fit to those who do not guess (`honest`), of one that
takes all for alike (`none`: no lapse; `all`: one lapse for everybody), and of one with a lapse a worker. The share won
back is (worker - none) / (honest - none), of the means over the streams. STE, ridge chosen by judgements held out.
"""

import argparse

import numpy as np

from stream_engine.embedding.choice import choose
from stream_engine.embedding.fit import with_setting
from stream_engine.embedding.gradient import margins
from stream_engine.embedding.held_out import Answers
from tests.support.generators import planted_triplets

N, WORKERS, SHARE = 40, 40, 0.3


def accuracies(seed: int, each: int) -> dict[str, float]:
    """By way of fitting; `each` answers a worker."""
    rng = np.random.default_rng(seed)
    points, m = rng.normal(size=(N, 2)), WORKERS * each
    rows, who = planted_triplets(rng, points, m, 0.05)[:, [0, 1, 0, 2]], np.repeat(np.arange(WORKERS), each)
    guesses = (np.arange(WORKERS) < SHARE * WORKERS)[who]
    coin = guesses & (rng.random(m) < 0.5)
    rows[coin] = rows[coin][:, [2, 3, 0, 1]]
    test = planted_triplets(rng, points, 5000)[:, [0, 1, 0, 2]]
    named = Answers(rows, np.ones(m), who.astype(np.int32), np.arange(m), N, WORKERS)
    nobody = named._replace(worker=np.full(m, -1, np.int32), n_workers=0)
    out = rng.random(m) < 0.2
    ways = {
        "honest": (nobody, ~guesses, False),
        "none": (nobody, np.ones(m, bool), True),
        "all": (nobody, np.ones(m, bool), False),
        "worker": (named, np.ones(m, bool), False),
    }
    found = {}
    for way, (answers, of, fixed) in ways.items():
        fit, held = answers.of(of & ~out).questions(), answers.of(of & out)
        chosen = choose(fit, held, kernel="ste", d=2, fixed_lapse=fixed)
        made = with_setting(answers.of(of).questions(), chosen.setting, chosen.begin, fixed_lapse=fixed)
        found[way] = float((margins(made.points, test, made.alpha) > 0).mean())
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=20)
    given = parser.parse_args()
    print(f"{'answers a worker':18}{'honest':>8}{'none':>8}{'all':>8}{'worker':>8}{'won back':>10}")
    for each in (25, 50, 100):
        rows = [accuracies(seed, each) for seed in range(given.streams)]
        mean = {way: np.mean([row[way] for row in rows]) for way in rows[0]}
        won = (mean["worker"] - mean["none"]) / (mean["honest"] - mean["none"])
        print(f"{each:<18}" + "".join(f"{value:>8.3f}" for value in mean.values()) + f"{won:>10.2f}", flush=True)


if __name__ == "__main__":
    main()
