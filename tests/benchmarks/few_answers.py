"""Few answers about 30 objects: the default embedding and AddS-3, on new answers.

    python -m tests.benchmarks few_answers [--worlds 12] [--objects 30]

Standard normal points in one, two and three dimensions, random triplets, lapse rate .05, by the STE model; 4,000 new
answers are predicted. `one fit` is the same model without averaging over draws. Errors are standard errors over worlds;
`above` is the number of worlds in which the log loss is above that of a coin, .693.
"""

import argparse
import sys
import time

import numpy as np

from stream_engine import read
from stream_engine.evaluation.answer_probabilities import margins, probability
from stream_engine.evaluation.probability import of_embedding
from stream_engine.evaluation.similarities import by_similarity, matrix
from stream_engine.refits import embedding

ANSWERS = (20, 50, 100, 200, 300, 600, 1000)
TEST = 4000


def world(seed: int, n: int, d: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows i, j, i, k of answers to fit to and to predict; every object is named first, so that its row is known."""
    rng = np.random.default_rng([seed, n, d, m])
    points = rng.normal(size=(n, d))
    anchor, one, other = np.argsort(rng.random((m + TEST, n)), axis=1)[:, :3].T
    rows = np.stack([anchor, one, anchor, other], axis=1).astype(np.int32)
    turned = rng.random(len(rows)) > probability(margins(points, rows), 0.05)
    rows[turned] = rows[turned][:, [2, 3, 0, 1]]
    return rows[:m], rows[m:]


def scores(p: np.ndarray) -> tuple[float, float]:
    """Accuracy, ties counting half, and log loss; .5 where nothing is known."""
    p = np.where(np.isnan(p), 0.5, p)
    return float((p > 0.5).mean() + (p == 0.5).mean() / 2), float(-np.log(np.maximum(p, 1e-300)).mean())


def measured(seed: int, n: int, d: int, m: int) -> list[float]:
    """Accuracy and log loss of the default and of one fit, accuracy of AddS-3, and CPU seconds of the default."""
    rows, test = world(seed, n, d, m)
    study = read([tuple(f"o{number}" for number in row[[0, 1, 3]]) for row in rows])
    number = {name: at for at, name in enumerate(study.snapshot.objects)}
    ids = np.vectorize(lambda at: number.get(f"o{at}", -1))(test).astype(np.int32)
    begin = time.process_time()
    artifact = embedding.refit(study.snapshot, embedding.Params(), seed, evaluate=False)
    seconds = time.process_time() - begin
    arrays = {name: array for name, array in artifact.arrays.items() if not name.startswith("draw")}
    one = of_embedding(artifact._replace(arrays=arrays))(ids)
    known = (ids >= 0).all(axis=1)
    adds = np.full(len(ids), 0.5)
    adds[known] = 0.5 + 0.1 * np.sign(by_similarity(matrix(study.snapshot, "adds3")).margins(ids[known]))
    return [*scores(of_embedding(artifact)(ids)), *scores(one), scores(adds)[0], seconds]


def main(arguments: list[str] | None = None) -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="few_answers", description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", type=int, default=12)
    parser.add_argument("--objects", type=int, default=30)
    told = parser.parse_args(arguments)
    print("d | answers | log loss | one fit | accuracy | one fit | AddS-3 | above | CPU s")
    for d in (1, 2, 3):
        for m in ANSWERS:
            found = np.array([measured(seed, told.objects, d, m) for seed in range(told.worlds)])
            mean, error = found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(told.worlds)
            cells = [f"{mean[at]:.3f} ± {error[at]:.3f}" for at in (1, 3, 0, 2, 4)]
            above = f"{int((found[:, 1] > np.log(2)).sum())} of {told.worlds}"
            print(" | ".join([str(d), f"{m:,}", *cells, above, f"{mean[5]:.1f}"]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
