"""A study of the size of THINGS: 1,854 objects, 4.7 million simulated odd-one-out responses (Hebart et al. 2020).

    python -m tests.benchmarks things [--responses 4700000] [--only dimensions numpy embedding] [--passes 10]

The true weights are on 49 non-negative, sparse dimensions, scaled such that the true model predicts .640 of the
responses; 100,000 new responses are predicted. `dimensions` is the refit with its defaults, selection and four fits
included; `numpy` is SPoSE written plainly in numpy, one fit with the sparsity that the refit selected; `embedding` is
the refit with its defaults, for which the pair at the smallest distance is the likeliest.
"""

import argparse
import sys
import time

import numpy as np

from stream_engine.data.comparisons import Decoded, empty_batch
from stream_engine.refits import dimensions, embedding
from stream_engine.refits.dimensions import reproduced
from stream_engine.state.engine import Engine
from tests.support.odd_one_out_worlds import odd_one_out, planted, shares

N, D, TRUTH, TEST, BLOCK = 1854, 49, 0.640, 100_000, 250_000


def world(m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True weights, responses to fit to, and new ones."""
    weights, rng = planted(0, N, D), np.random.default_rng(1)
    asked, low, high = odd_one_out(rng, weights, 40_000), 0.05, 3.0
    for _ in range(25):
        scale = np.float32(np.sqrt(low * high))
        low, high = (scale, high) if shares(weights * scale, asked).max(axis=1).mean() < TRUTH else (low, scale)
    rows = odd_one_out(rng, weights * scale, m + TEST)
    return weights * scale, rows[TEST:], rows[:TEST]


def snapshot_of(rows: np.ndarray):
    """A snapshot that counted both triplets of each response."""
    engine, none = Engine(("triplet_counts",), guard=False), empty_batch(0)
    names = [f"o{number:04d}" for number in range(N)]
    for begin in range(0, len(rows), BLOCK):
        some = rows[begin : begin + BLOCK]
        both = np.concatenate([some, some[:, [1, 0, 2]]]).astype(np.int32)
        engine.learn(Decoded(names, both, none.quadruplets, none.quadruplet_at, [], {"triplet": len(both)}, []))
    return engine.snapshot()


def right(weights: np.ndarray, test: np.ndarray) -> float:
    """Share of the responses that are the likeliest."""
    return float((shares(weights, test).argmax(axis=1) == 0).mean())


def plain(rows: np.ndarray, d: int, sparsity: float, passes: int) -> np.ndarray:
    """SPoSE in numpy: Adam over batches of 8,192, weights kept at 0 or above."""
    rng, batch, rate = np.random.default_rng(0), 8192, 0.02
    x = (rng.random((N, d)) * 0.1).astype(np.float32)
    mean, square, step = np.zeros_like(x), np.zeros_like(x), 0
    for number in range(passes):
        order = rng.permutation(len(rows))
        for begin in range(0, len(rows), batch):
            some = rows[order[begin : begin + batch]]
            a, b, c = (x[column] for column in some.T)
            p = shares(x, some)
            p[:, 0] -= 1.0
            ab, ac, bc = (p[:, [at]] / len(some) for at in range(3))
            slope = np.full_like(x, sparsity / len(rows) * min(1.0, (number + 1) / (0.4 * passes)))
            for column, part in zip(some.T, (ab * b + ac * c, ab * a + bc * c, ac * a + bc * b)):
                np.add.at(slope, column, part)
            step += 1
            mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
            moved = mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
            x = np.maximum(x - rate * (1 + np.cos(np.pi * number / passes)) / 2 * moved, 0.0).astype(np.float32)
    return x


def distances(points: np.ndarray, test: np.ndarray) -> float:
    """Share of the responses whose pair is at the smallest distance."""
    a, b, c = (points[column] for column in test.T)
    squared = np.stack([((one - other) ** 2).sum(axis=1) for one, other in ((a, b), (a, c), (b, c))])
    return float((squared.argmin(axis=0) == 0).mean())


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each."""
    parser = argparse.ArgumentParser(prog="things", description=__doc__.splitlines()[0])
    parser.add_argument("--responses", type=int, default=4_700_000)
    parser.add_argument("--only", nargs="+", default=["dimensions", "numpy", "embedding"])
    parser.add_argument("--passes", type=int, default=10, help="of the one in numpy")
    given = parser.parse_args(arguments)
    true, rows, test = world(given.responses)
    snapshot, sparsity = snapshot_of(rows), dimensions.USUAL
    print(f"truth: three-way accuracy {right(true, test):.4f} of {len(rows):,} responses", flush=True)

    def told(what: str, began: tuple[float, float], figures: str) -> None:
        cpu, wall = time.process_time() - began[0], time.monotonic() - began[1]
        print(f"{what}: {figures}; {cpu:.0f} CPU s, {wall:.0f} s of the clock", flush=True)

    for what in given.only:
        began = time.process_time(), time.monotonic()
        if what == "dimensions":
            artifact = dimensions.refit(snapshot, dimensions.Params(), 0)
            x, r, sparsity = artifact.arrays["X"], artifact.arrays["reproducibility"], artifact.report["sparsity"]
            again = r >= dimensions.REPRODUCIBLE
            least = r[again].min(initial=1.0)
            figures = f"{right(x, test):.4f} (reported {artifact.report['odd_one_out_accuracy']:.4f}), {x.shape[1]} "
            figures += f"dimensions, sparsity {sparsity:g}, {again.sum()} reproducible (r {least:.3f} or more)"
            figures += f", {(reproduced(true, x) > 0.9).sum()} of {D} true ones at r > .9"
        elif what == "numpy":
            x = plain(rows, dimensions.Params().dimensions, sparsity, given.passes)
            figures = f"{right(x, test):.4f}, {(x.max(axis=0) > 0.02).sum()} dimensions"
        else:
            artifact = embedding.refit(snapshot, embedding.Params(), 0, evaluate=False)
            tried = sorted({each["d"] for each in artifact.report["tried"]})
            figures = f"{distances(artifact.arrays['X'], test):.4f}, {artifact.report['kernel']}, "
            figures += f"{artifact.report['d']} dimensions, tried {tried}"
        told(what, began, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
