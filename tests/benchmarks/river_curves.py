"""`ComparisonClassifier` under river's own `progressive_val_score`: accuracy by comparisons, beside a rival.

    python -m tests.benchmarks.river_curves [food digits] [--size 30000] [--out DIR]

`food`: one answer of each screen of food100 (those of one screen give each other away), screens in random order
(STREAM_ENGINE_DATA); `digits`: made answers about 250 handwritten digits, one in ten wrong. The rival is what a user
of river would build: logistic regression on the two pairs of a question, one weight a pair (without the object they
share, so it, too, learns a similarity). Writes river_curves.md and river_curves.png.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from river import compose, evaluate, linear_model, metrics

from stream_engine.commands import demo
from stream_engine.estimators import ComparisonClassifier, as_stream
from tests.benchmarks.forgetting import food
from tests.conftest import human_judgements


def pairs(x: dict) -> dict:
    """+1 for the pair of anchor and left, -1 for that of anchor and right: turning a question round turns the signs."""
    return {tuple(sorted((x["anchor"], x["left"]))): 1.0, tuple(sorted((x["anchor"], x["right"]))): -1.0}


def models() -> dict[str, Callable]:
    """name -> a fresh one."""
    return {
        "adds3": lambda: ComparisonClassifier("adds3", refresh=100),
        "k1": lambda: ComparisonClassifier("k1", refresh=1000),
        "online": lambda: ComparisonClassifier(),
        "river: logistic regression on pairs": lambda: (
            compose.FuncTransformer(pairs) | linear_model.LogisticRegression(intercept_lr=0.0)
        ),
    }


def triplets_of(name: str, size: int) -> list[tuple[str, str, str]]:
    """(anchor, near, far) by name."""
    rng = np.random.default_rng(0)
    if name == "food":
        rows, screen = food(human_judgements())
        mixed = rng.permutation(len(rows))
        rows = rows[mixed[np.unique(screen[mixed], return_index=True)[1]]]  # of each screen the first in a random order
        rows = rng.permutation(rows)[:size]
    else:
        rows = demo.judged(demo.digits(0)[0], size, 0.1, rng)
    return [tuple(f"{i}" for i in row) for row in rows.tolist()]


def curve(model, stream, size: int) -> tuple[list[int], list[float], list[float], float]:
    """Comparisons, accuracy in total, accuracy of each thirtieth, and seconds of CPU."""
    began, every = time.process_time(), -(-size // 30)
    at, total, recent, before = [], [], [], 0.0
    metric = metrics.Accuracy()
    for said in evaluate.iter_progressive_val_score(as_stream(stream), model, metric, step=every):
        seen, right = said["Step"], metric.get() * said["Step"]
        if at and seen == at[-1]:
            continue
        recent.append((right - before) / (seen - (at[-1] if at else 0)))
        at.append(seen)
        total.append(metric.get())
        before = right
    return at, total, recent, time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streams", nargs="*", default=["food", "digits"])
    parser.add_argument("--size", type=int, default=30_000)
    parser.add_argument("--out", default="river-curves")
    given = parser.parse_args()
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = [name for name in given.streams if name != "food" or human_judgements()]
    if names != given.streams:
        print("no human judgements: set STREAM_ENGINE_DATA to the folder that holds them", file=sys.stderr)
    text = []
    figure, axes = plt.subplots(1, len(names), figsize=(6.5 * len(names), 4.5), layout="constrained", squeeze=False)
    for axis, name in zip(axes[0], names):
        stream = triplets_of(name, given.size)
        text += [
            f"## {name}: {len(stream):,} comparisons",
            "",
            "| model | accuracy in total | in the last thirtieth | us of CPU a comparison |",
            "|---|---|---|---|",
        ]
        for model, make in models().items():
            at, total, recent, seconds = curve(make(), stream, len(stream))
            axis.plot(at, recent, "--" if model.startswith("river") else "-", label=model)
            text.append(f"| {model} | {total[-1]:.3f} | {recent[-1]:.3f} | {1e6 * seconds / len(stream):.0f} |")
        text.append("")
        print("\n".join(text[-len(models()) - 5 :]), flush=True)
        axis.set(
            title=f"{name}: river's progressive_val_score",
            xlabel="comparisons",
            ylabel="accuracy before learning, each thirtieth",
        )
        axis.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
        axis.legend(fontsize=8)
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "river_curves.md").write_text("\n".join(text))
    figure.savefig(out / "river_curves.png", dpi=110)


if __name__ == "__main__":
    main()
