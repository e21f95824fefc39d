"""What does it cost to learn a kernel over a subset and extend it to the others, instead of learning all together?

    python -m tests.benchmarks.out_of_sample [--seeds 3]

food100 (STREAM_ENGINE_DATA; a fifth of the screens held out whole) and 300 handwritten digits that ship with
scikit-learn (40,000 made triplets, 10 % wrong; a fifth held out). The subset is a random share of the objects. Errors
on held-out triplets within the subset, on those of other anchors about pairs of the subset (what out-of-sample
extension looks at), and on all. `extended`: the refit of the subset, extended; `together`: the refit of all objects
with all answers; `same answers`: of all objects, with those answers only that the first looks at.
"""

import argparse
import time

import numpy as np

from stream_engine.prediction import predictor
from stream_engine.refits import kernel_learning
from stream_engine.state.published import Published
from tests.benchmarks.confidence import held_out, published
from tests.benchmarks.forgetting import food
from tests.conftest import human_judgements
from tests.support.generators import planted_triplets

SHARES = (0.3, 0.6)


def digits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`(triplets, which are held out)`."""
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(seed)
    triplets = planted_triplets(rng, load_digits().data[:300] / 16, 40_000, 0.1)
    return triplets, rng.random(len(triplets)) < 0.2


def errors(snapshot, made, tests: dict[str, np.ndarray]) -> list[float]:
    """Shares of wrong answers, ties and objects nothing is known about as half."""
    margins = predictor("kernel_learning", Published(snapshot, {"kernel_learning": made})).margins
    found = (np.nan_to_num(margins(np.ascontiguousarray(rows[:, [0, 1, 0, 2]]))) for rows in tests.values())
    return [float((margin < 0).mean() + (margin == 0).mean() / 2) for margin in found]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    worlds = {"digits300": digits}
    if data := human_judgements():
        said, screen = food(data)
        worlds["food100"] = lambda seed: (said, held_out(screen, seed))
    print(f"{'':12}{'subset':>8}  {'':14}{'within subset':>14}{'others, subset':>16}{'all':>8}{'CPU s':>8}")
    for name, world in worlds.items():
        for share in SHARES:
            rows: dict[str, list] = {}
            for seed in range(given.seeds):
                triplets, out = world(seed)
                n = int(triplets.max()) + 1
                inside = np.zeros(n, bool)
                inside[np.random.default_rng(100 + seed).permutation(n)[: int(share * n)]] = True
                about = inside[triplets[:, 1]] & inside[triplets[:, 2]]
                test = {
                    "subset": triplets[out & about & inside[triplets[:, 0]]],
                    "others": triplets[out & about & ~inside[triplets[:, 0]]],
                    "all": triplets[out],
                }
                whole, some = (published(triplets[which], n).snapshot for which in (~out, ~out & about))
                ids = tuple(str(i) for i in np.flatnonzero(inside))
                runs = {
                    "extended": (whole, {"objects": ids, "rest": "placed"}),
                    "together": (whole, {}),
                    "same answers": (some, {}),
                }
                for how, (snapshot, more) in runs.items():
                    begin = time.process_time()
                    made = kernel_learning.refit(
                        snapshot, kernel_learning.Params(form="t", tolerance=1e-3, **more), seed
                    )
                    took = time.process_time() - begin
                    rows.setdefault(how, []).append([*errors(snapshot, made, test), took])
            for how, found in rows.items():
                mean = np.mean(found, axis=0)
                print(
                    f"{name:12}{int(share * n):>8}  {how:14}"
                    f"{mean[0]:>14.3f}{mean[1]:>16.3f}{mean[2]:>8.3f}{mean[3]:>8.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
