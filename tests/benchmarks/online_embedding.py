"""The embedding that follows a stream beside a fit of all its answers: error on fresh answers, and what a step costs.

    python -m tests.benchmarks.online_embedding [--worlds 3] [--objects 100 300 1000]

Planted points in the plane, 50 answers an object, a tenth of them turned round; both with the same ridge, one start.
`rate` is that of answers that come when nothing is replayed any more, a million of them after a first million.
"""

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

from stream_engine.embedding.fit import fit
from stream_engine.embedding.gradient import margins
from stream_engine.embedding.online import NOISE, OnlineEmbedding
from stream_engine.embedding.questions import of_rows
from tests.support.generators import planted_triplets

ANSWERS, FLIP, FRESH = 50, 0.1, 20_000


def answers(rng: np.random.Generator, points: np.ndarray, m: int, flip: float) -> np.ndarray:
    """(m, 4) rows d(i, j) < d(i, k)."""
    return planted_triplets(rng, points, m, flip)[:, [0, 1, 0, 2]]


def beside_the_fit(n: int, kernel: str, seed: int) -> tuple[float, float, float, float]:
    """Errors online and of the fit, CPU seconds of each, compiled code apart."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2))
    rows, test = answers(rng, points, ANSWERS * n, FLIP), answers(rng, points, FRESH, 0.0)
    OnlineEmbedding(2, kernel).learn(rows[:100])
    fit(of_rows(rows[:100], n), 2, 1.0, kernel=kernel, max_iterations=2)
    began = time.process_time()
    online = OnlineEmbedding(2, kernel)
    online.learn(rows)
    between = time.process_time()
    whole = fit(of_rows(rows, n), 2, NOISE * np.sqrt(3 * ANSWERS), kernel=kernel)
    ended = time.process_time()
    wrong = [float((m <= 0).mean()) for m in (online.margins(test), margins(whole.points, test, whole.alpha))]
    return *wrong, between - began, ended - between


def rate(n: int, d: int, kernel: str) -> float:
    """Million answers a CPU second where nothing is replayed."""
    rng = np.random.default_rng(0)
    rows = answers(rng, rng.normal(size=(n, d)), 2_000_000, FLIP)
    online = OnlineEmbedding(d, kernel)
    online.learn(rows[:1_000_000])
    began = time.process_time()
    online.learn(rows[1_000_000:])
    return 1.0 / (time.process_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=3)
    parser.add_argument("--objects", type=int, nargs="+", default=[100, 300, 1000])
    given = parser.parse_args()
    with threadpool_limits(1):
        for n in given.objects:
            for kernel in ("ste", "t-ste"):
                found = np.array([beside_the_fit(n, kernel, seed) for seed in range(given.worlds)])
                more, (online, whole) = found[:, 0] - found[:, 1], found[:, 2:].mean(axis=0)
                told = f"{kernel}, {n:,} objects, {ANSWERS * n:,} answers: error of the fit {found[:, 1].mean():.3f}"
                told += f", online {more.mean():+.3f} (most {more.max():+.3f})"
                print(f"{told}; CPU s {online:.2f} online, {whole:.2f} the fit", flush=True)
        for n in given.objects:
            told = ", ".join(f"d = {d} {rate(n, d, kernel):.1f}" for kernel in ("ste", "t-ste") for d in (2, 5))
            print(f"{n:,} objects, M answers a CPU second (STE, then t-STE): {told}", flush=True)


if __name__ == "__main__":
    main()
