"""How well each similarity predicts the next comparison while it learns: live accuracies on two streams.

    python -m tests.benchmarks.progressive [food digits] [--out DIR] [--refits sdp_clustering kernel_learning ...]

`food`: all answers of food100 in their order (STREAM_ENGINE_DATA). `digits`: a made stream of a million comparisons
of 250 handwritten digits, one in ten wrong. Blocks of 2,000 are predicted and then learned; a snapshot comes every
20,000 (food) or 100,000, AddS, k1, k2 and the repeats of it predict at once, refits are made of it then and there.
Everything is predicted, not a sample, so that the detectors, too, see many times what they see in a run. Writes
progressive.md and progressive.png.
"""

import argparse
from pathlib import Path

import numpy as np

from stream_engine.commands import demo
from stream_engine.data.comparisons import Decoded
from stream_engine.prediction import PREDICTORS, predictor
from stream_engine.prediction import observer as observing
from stream_engine.refits import CannotRefit, SolverFailed, refit_module
from stream_engine.service.prediction_monitor import COOLDOWN
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from tests.benchmarks.forgetting import food
from tests.conftest import human_judgements
from tests.support.generators import as_batch

BLOCK = 2000
QUICK = {"sdp_clustering": {"stability": 0}, "kernel_learning": {"lambda1": 10.0, "tolerance": 1e-2}}


def digits() -> np.ndarray:
    """(m, 3) triplets of the demonstration's digits."""
    pixels, _ = demo.digits(0)
    return demo.judged(pixels, 1_000_000, 0.1, np.random.default_rng(0)).astype(np.int32)


def curves(triplets: np.ndarray, every: int, refits: list[str]) -> tuple[dict[str, list[tuple[int, float]]], dict]:
    """predictor -> (comparisons, recent accuracy) after each block, and the figures at the end."""
    observing.ALL, observing.WAIT = 1 << 60, BLOCK  # all of each block
    n = int(triplets.max()) + 1
    engine, watch = Engine(("adds3", "triplet_counts"), False), observing.Observer(cooldown=COOLDOWN)
    names, artifacts, found = [f"{i}" for i in range(n)], {}, {}
    for start in range(0, len(triplets), BLOCK):
        block = triplets[start : start + BLOCK]
        watch.observe(as_batch(block, n), {})
        for name, scores in watch.scores.items():
            rolling = scores.rolling.sum(axis=(0, 1))
            found.setdefault(name, []).append((start + len(block), rolling[1] / rolling[0]))
        engine.learn(Decoded(names, block, np.empty((0, 4), np.int32), np.empty(0, np.int64), [], {}, []))
        if (start + len(block)) % every == 0:
            snapshot = engine.snapshot()
            for kind in refits:
                module = refit_module(kind)
                try:
                    artifacts[kind] = module.refit(
                        snapshot, module.Params(**QUICK.get(kind, {})), 0, artifacts.get(kind)
                    )
                except (CannotRefit, SolverFailed) as error:
                    print(f"{kind} at {start + len(block):,}: {error}", flush=True)
            held = Published(snapshot, artifacts)
            watch.serve(snapshot)
            watch.use({name: predictor(name, held) for name in PREDICTORS if name not in ("adds3", "adds4", "repeats")})
    watch.test()
    return found, watch.figures()


def lines(title: str, figures: dict) -> list[str]:
    """The figures at the end as a table."""
    out = [
        f"## {title}",
        "",
        "| predictor | predicted | accuracy | recent 10,000 | log loss, recent | calibration error, recent |",
        "|---|---|---|---|---|---|",
    ]
    for name, kinds in figures["predictors"].items():
        total, recent = kinds["all"]["total"], kinds["all"]["rolling"]
        out.append(
            f"| {name} | {total['tested']:,} | {total['accuracy']:.3f} | {recent['accuracy']:.3f} "
            f"| {recent['log_loss']:.3f} | {recent['calibration_error']:.3f} |"
        )
    return [*out, "", f"Alarms of change: {figures['drift']}", ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streams", nargs="*", default=["food", "digits"])
    parser.add_argument("--refits", nargs="*", default=["sdp_clustering"])
    parser.add_argument("--out", default="progressive")
    given = parser.parse_args()
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    out, text = Path(given.out), []
    out.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(
        len(given.streams), 2, figsize=(14, 5 * len(given.streams)), layout="constrained", squeeze=False
    )
    for row, name in zip(axes, given.streams):
        triplets = {"food": lambda: food(human_judgements())[0], "digits": digits}[name]()
        found, figures = curves(triplets, 20_000 if name == "food" else 100_000, given.refits)
        for predicting, points in found.items():
            row[0].plot(*zip(*points), "--" if predicting == "repeats" else "-", label=predicting)
            bins = figures["predictors"][predicting]["all"]["rolling"]["reliability"]
            row[1].plot([b["confidence"] for b in bins], [b["right"] for b in bins], "o-", label=predicting)
        row[0].set(title=f"{name}: accuracy before learning, last 10,000", xlabel="comparisons", ylabel="accuracy")
        row[1].plot([0.5, 1], [0.5, 1], ":", color="grey")
        row[1].set(title="reliability, last 10,000", xlabel="predicted probability", ylabel="came as expected")
        row[0].legend(fontsize=8, loc="lower right", ncol=2)
        table = lines(f"{name}: {len(triplets):,} comparisons", figures)
        text += table
        print("\n".join(table), flush=True)
    figure.savefig(out / "progressive.png", dpi=110)
    (out / "progressive.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
