"""How many side sets, alphas and predictions of a booster are those of the same rounds in decimals (eqs. 2 to 5).

    python -m tests.benchmarks.boosting_replay [iris moons digits] [--rounds 100000]

Iris (150) and Moons (500) with 10 % of the triplets, 300 of scikit-learn's digits with 5 %; all objects are trained
on. The decimals take 40 CPU seconds for 10^5 rounds of Iris, a few minutes for the others.
"""

import argparse
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import load_digits, load_iris, make_moons

from stream_engine.boosting import rounds as boosting
from stream_engine.boosting.codes import codes_from_columns
from stream_engine.boosting.labels import group, label_sets
from tests.benchmarks.boosting_worlds import sampled_columns
from tests.support.boosting_replay import replay

SHARE = {"iris": 0.1, "moons": 0.1, "digits": 0.05}


class Compared(NamedTuple):
    """Ours beside the decimals."""

    stored: int  # classifiers
    sides_wrong: int  # of 2 * stored label sets
    labels_wrong: int  # of n predictions of the training objects, eq. (5)
    alpha_gap: float  # largest difference relative to alpha
    doubtful: int  # label sums that 60 of 80 digits do not decide


def points_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Vectors and classes."""
    if name == "moons":
        return make_moons(500, noise=0.1, random_state=0)
    points, y = (load_iris if name == "iris" else load_digits)(return_X_y=True)
    return points[:300], y[:300]


def compared(name: str, rounds: int, seed: int = 0) -> Compared:
    """`rounds` rounds of a world, and the same in decimals."""
    points, y = points_of(name)
    columns = sampled_columns(cdist(points, points).astype(np.float32), SHARE[name], 0.0, seed)
    groups = group(label_sets(y, len(y)), np.arange(len(y)))
    codes = codes_from_columns(columns, groups, groups.example)
    state = boosting.start(groups, seed)
    held = boosting.advance(state, codes, rounds)
    exact = replay(codes, state.positive, held.j, held.k)
    size = state.v.shape[1]
    sets = [np.unpackbits(o, axis=1, count=size, bitorder="little").astype(bool) for o in (held.o_j, held.o_k)]
    wrong = (np.stack(sets, axis=1) != exact.sets).any(axis=2)
    said = boosting.confidences(state).argmax(axis=1)
    right = [row.index(max(row)) for row in exact.confidence]
    gap = np.abs(held.alpha / np.where(exact.alpha > 0, exact.alpha, np.nan) - 1).max(initial=0.0)
    return Compared(len(held.alpha), int(wrong.sum()), int((said != right).sum()), float(gap), exact.doubtful)


def world(name: str) -> str:
    """The name of a world, as it is given (argparse's own choices refuse a default of several)."""
    if name not in SHARE:
        raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(SHARE)}")
    return name


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("worlds", nargs="*", default=list(SHARE), type=world, metavar="|".join(SHARE))
    parser.add_argument("--rounds", type=int, default=100_000)
    given = parser.parse_args()
    for name in given.worlds:
        print(name, compared(name, given.rounds), flush=True)


if __name__ == "__main__":
    main()
