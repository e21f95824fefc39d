"""Heim et al. 2014, sec. 6.1: test error of RCKL-T, -MKL and -AK on their synthetic data, STE and hinge.

    python tests/benchmarks/heim_synthetic.py [--trials 10] [--sizes 200,400,...] [--figure heim.png] [--sigma 0.1]

100 points in seven independent planes; ground truth K* = K0/2 + K1/4 + K2/6 + K3/12 of the linear kernels; auxiliary
are the kernels 1 to 6 of the points with Gaussian noise (the paper does not say how much; sigma = 0.1 here), of unit
trace: three that matter, three that do not. K0 is known to nobody. Triplets come in rounds of 100, each object once as
the anchor; two rounds train for each that validates; lambdas from a grid on validation error. Prints a table, can draw
Fig. 1.
"""

import argparse
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from stream_engine.kernel_learning import rckl
from stream_engine.kernel_learning.distance_operator import excess, satisfied, triplet_rows

TRUTH = (1 / 2, 1 / 4, 1 / 6, 1 / 12)
GRID = (0.4, 0.15, 0.05, 0.015)


class World(NamedTuple):
    truth: np.ndarray
    kernels: list[np.ndarray]  # 1 to 3 informative, 4 to 6 noise
    rounds: np.ndarray  # (r, n, 3)
    test: np.ndarray  # (m, 3)


class Outcome(NamedTuple):
    error: float
    mu: np.ndarray
    rank: int


def world(seed: int, n: int = 100, sigma: float = 0.1, rounds: int = 30, test: int = 100_000) -> World:
    """One trial's data."""
    rng = np.random.default_rng(seed)
    planes = rng.random((7, n, 2))
    truth = sum(w * p @ p.T for w, p in zip(TRUTH, planes))
    seen = planes + rng.normal(0, sigma, planes.shape)
    kernels = [p @ p.T / np.trace(p @ p.T) for p in seen[1:]]

    def answered(anchors):
        near = (anchors + rng.integers(1, n, anchors.shape)) % n
        far = (anchors + rng.integers(1, n, anchors.shape)) % n
        again = near == far
        while again.any():
            far[again] = (anchors[again] + rng.integers(1, n, again.sum())) % n
            again = near == far
        t = np.stack([anchors, near, far], axis=-1)
        wrong = excess(truth, triplet_rows(t.reshape(-1, 3))).reshape(anchors.shape) > 0
        t[wrong] = t[wrong][:, [0, 2, 1]]
        return t.astype(np.int32)

    return World(truth, kernels, answered(np.tile(np.arange(n), (rounds, 1))), answered(rng.integers(n, size=test)))


def validated(train: np.ndarray, check: np.ndarray, w: World, form: str, loss: str, grid=GRID) -> Outcome:
    """Fit with the lambdas that do best on `check`, then measure on the test triplets."""
    n = len(w.truth)
    kernels = [] if form == "t" else w.kernels
    most = rckl.largest_lambdas(rckl.build(train, None, kernels, n, form, loss, 1.0, 1.0))
    best = None
    for second in grid if form != "t" else (1.0,):
        start = None
        for first in grid if form != "mkl" else (1.0,):
            found = rckl.fit(
                train,
                n,
                kernels,
                form=form,
                loss=loss,
                lambda1=max(first * most[0], 1e-9),
                lambda2=max(second * most[1], 1e-9),
                start=start,
                tolerance=1e-3,
            )
            start = rckl.Start(found.k0, found.mu, found.dual)
            error = 1.0 - satisfied(found.gram, triplet_rows(check))
            if best is None or error < best[0]:
                best = error, found
    found = best[1]
    return Outcome(1.0 - satisfied(found.gram, triplet_rows(w.test)), found.mu, found.rank)


def experiment(
    trials: int, sizes: list[int], sigma: float = 0.1, n: int = 100, grid=GRID, tell=lambda text: None
) -> dict:
    """{(loss, form, size): [Outcome of each trial]}."""
    out: dict = {}
    for trial in range(trials):
        w = world(trial, n, sigma)
        for size in sizes:
            rounds = size // n
            train, check = w.rounds[:rounds].reshape(-1, 3), w.rounds[20 : 20 + max(1, rounds // 2)].reshape(-1, 3)
            for loss in ("ste", "hinge"):
                for form in ("t", "mkl", "ak"):
                    out.setdefault((loss, form, size), []).append(validated(train, check, w, form, loss, grid))
            tell(f"trial {trial + 1} of {trials}, {size} triplets")
    return out


def table(results: dict, sizes: list[int]) -> str:
    """Mean test error and half a 95 % interval, a row a method; then the mean mu of AK, and the rank of K0."""
    lines = ["method      " + "".join(f"{s:>14}" for s in sizes)]
    for loss in ("ste", "hinge"):
        for form in ("t", "mkl", "ak"):
            cells = []
            for size in sizes:
                e = np.array([o.error for o in results[loss, form, size]])
                cells.append(f"{e.mean():8.3f}+-{1.96 * e.std(ddof=min(1, len(e) - 1)) / np.sqrt(len(e)):.3f}")
            lines.append(f"{loss + '-' + form:<12}" + "".join(cells))
    for loss in ("ste", "hinge"):
        for size in sizes:
            found = results[loss, "ak", size]
            mu = np.mean([o.mu for o in found], axis=0)
            lines.append(
                f"{loss}-ak {size}: mu {np.round(mu, 2).tolist()}, rank of K0 {np.mean([o.rank for o in found]):.1f}"
            )
    return "\n".join(lines)


def figure(results: dict, sizes: list[int], path: str) -> None:
    """Fig. 1: test error against the number of training triplets."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    fig, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True)
    for ax, loss in zip(axes, ("ste", "hinge")):
        for form in ("t", "mkl", "ak"):
            e = np.array([[o.error for o in results[loss, form, s]] for s in sizes])
            ax.errorbar(
                sizes,
                e.mean(axis=1),
                1.96 * e.std(axis=1) / np.sqrt(e.shape[1]),
                label=f"RCKL-{form.upper()}",
                capsize=2,
            )
        ax.set(title=loss, xlabel="training triplets", ylabel="test error" if loss == "ste" else "")
        ax.legend()
    fig.tight_layout()
    fig.savefig(path, dpi=120)
    plt.close(fig)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--sizes", default="200,400,600,800,1000,1200,1400,1600,1800,2000")
    parser.add_argument("--sigma", type=float, default=0.1)
    parser.add_argument("--figure")
    args = parser.parse_args()
    sizes = [int(s) for s in args.sizes.split(",")]
    with threadpool_limits(1):
        results = experiment(args.trials, sizes, args.sigma, tell=lambda text: print(text, file=sys.stderr))
    print(table(results, sizes))
    if args.figure:
        figure(results, sizes, args.figure)


if __name__ == "__main__":
    main()
