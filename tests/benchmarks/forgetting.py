"""What forgetting wins after the world has changed, and what it costs while it stays as it is.

    python -m tests.benchmarks.forgetting [--out DIR] [--seeds 2]

AddS-3 of everything, of the last so many triplets (`window`) and decayed with several half-lives (`adds3_decayed`),
learned by the engine and read through `export`; three sizes of each. Four streams:
`a tenth moves`, `a third moves`: 100 made objects in five dimensions, 15 % of the answers wrong; in the middle of the
stream so many objects are elsewhere. Held out: questions with the true answer of the present world.
`food100, names change`: answers of people, screens in random order; in the middle ten foods exchange their names.
Held out: a tenth of the screens, whole, under the names of the moment.
`food100, as it is`: all answers in the order of the file (they have no times), each 5,000 predicted before they are
learned; no change is planted: what forgetting costs, or wins, where none is known.
By count throughout. Ties count one half. Writes forgetting.md and forgetting.png.
"""

import argparse
import csv
import gzip
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from stream_engine import exports
from stream_engine.accumulators import Forgetting
from stream_engine.data.comparisons import Decoded
from stream_engine.state.engine import Engine
from stream_engine.state.published import Published
from tests.conftest import human_judgements
from tests.support.generators import planted_triplets

OBJECTS, NOISE, SIZE, BLOCK, TESTS = 100, 0.15, 400_000, 5_000, 10_000
FOOD_CHANGE = 110_000  # about the middle of what is learned
MEMORIES = (10_000, 30_000, 100_000)  # triplets: half-lives and windows


class Step(NamedTuple):
    """A block is learned after its test (anchor, near, far) was put to what is known; `moved` (n,): objects that will
    move."""

    learn: np.ndarray
    test: np.ndarray
    moved: np.ndarray


class Stream(NamedTuple):
    """`steps(seed)`: the blocks of one seed; `change`: before which comparison the world changes, or None."""

    steps: object
    change: int | None
    seeds: int


def made(share: float, seed: int) -> Iterator[Step]:
    """The made world in which a share of the objects moves in the middle."""
    rng = np.random.default_rng([seed, 3])
    points = rng.normal(size=(OBJECTS, 5))
    moved = np.zeros(OBJECTS, bool)
    moved[rng.choice(OBJECTS, round(share * OBJECTS), replace=False)] = True
    for at in range(0, SIZE, BLOCK):
        if at == SIZE // 2:
            points = np.where(moved[:, None], rng.normal(size=points.shape), points)
        yield Step(planted_triplets(rng, points, BLOCK, NOISE), planted_triplets(rng, points, TESTS), moved)


def food(data: Path) -> tuple[np.ndarray, np.ndarray]:
    """(m, 3) triplets of food100 in the order of the file, and (m,) the screen of each."""
    ids: dict[str, int] = {}
    with gzip.open(data / "food100" / "triplets.csv.gz", "rt", newline="") as lines:
        rows = list(csv.DictReader(lines))
    triplets = [[ids.setdefault(row[key], len(ids)) for key in ("anchor", "near", "far")] for row in rows]
    return np.array(triplets, np.int32), np.array([int(row["screen"]) for row in rows])


def renamed_food(triplets: np.ndarray, screen: np.ndarray, seed: int) -> Iterator[Step]:
    """Ten foods exchange their names in the middle."""
    rng = np.random.default_rng([seed, 5])
    n = int(triplets.max()) + 1
    rank = rng.permutation(screen.max() + 1)[screen]
    triplets, rank = triplets[np.argsort(rank, kind="stable")], np.sort(rank)
    out = rank < np.quantile(rank, 0.1)
    test, learn = triplets[out], triplets[~out]
    ten = rng.choice(n, n // 10, replace=False)
    moved, name = np.zeros(n, bool), np.arange(n, dtype=np.int32)
    moved[ten] = True
    for at in range(0, len(learn) // BLOCK * BLOCK, BLOCK):
        if at == FOOD_CHANGE:
            name[ten] = np.roll(ten, 1)
        yield Step(name[learn[at : at + BLOCK]], name[test], moved)


def food_as_it_is(triplets: np.ndarray, seed: int) -> Iterator[Step]:
    """Each block is its own test before it is learned."""
    none = np.zeros(int(triplets.max()) + 1, bool)
    for at in range(0, len(triplets), BLOCK):
        yield Step(triplets[at : at + BLOCK], triplets[at : at + BLOCK], none)


def methods() -> list[tuple[str, str, int]]:
    """(name, export, memory)."""
    return [
        ("all", "adds3", 0),
        *((f"half-life {m:,}", "adds3_decayed", m) for m in MEMORIES),
        *((f"window {m:,}", "adds3_window", m) for m in MEMORIES),
    ]


def right(w: np.ndarray, test: np.ndarray, moved: np.ndarray) -> tuple[float, float]:
    """Share of the tests that W gets right: of all, and of those about moved objects."""
    a, b, c = test.T
    margin = w[a, b] - w[a, c]
    score = (margin > 0) + 0.5 * (margin == 0)
    about = moved[test].any(axis=1)
    return float(score.mean()), float(score[about].mean()) if about.any() else np.nan


def curves(steps: Iterator[Step]) -> tuple[np.ndarray, np.ndarray]:
    """Comparisons learned before each test (t,), and (methods, t, 2) accuracies."""
    engines = {0: Engine(("adds3",), False)}
    engines |= {m: Engine(("adds3_decayed", "window"), None, Forgetting("count", m, m)) for m in MEMORIES}
    seen, at, found = 0, [], []
    for step in steps:
        n = len(step.moved)
        if seen:
            held = {m: Published(engine.snapshot(), {}) for m, engine in engines.items()}
            w = [exports.contents(what, held[m])[what].arrays["W"] for _, what, m in methods()]
            at.append(seen)
            found.append([right(each, step.test, step.moved) for each in w])
        decoded = Decoded(
            [f"{i}" for i in range(n)], step.learn, np.empty((0, 4), np.int32), np.empty(0, np.int64), [], {}, []
        )
        for engine in engines.values():
            engine.learn(decoded)
        seen += len(step.learn)
    return np.array(at), np.array(found).transpose(1, 0, 2)


def table(title: str, at: np.ndarray, mean: np.ndarray, change: int | None) -> list[str]:
    """Accuracies before the change and some time after it; or over the whole stream."""
    if change is None:
        lines = [f"## {title}", "", "| AddS-3 of | all but the first 50,000 |", "|---|---|"]
        return [
            *lines,
            *(f"| {name} | {mean[i, at >= 50_000, 0].mean():.4f} |" for i, (name, _, _) in enumerate(methods())),
            "",
        ]
    after = (20_000, 50_000, 100_000, int(at[-1]) - change)
    lines = [
        f"## {title}",
        "",
        "| AddS-3 of | before | "
        + " | ".join(f"{x:,} after" for x in after)
        + " | about the moved: before | 20,000 after | at the end | back within 0.01 of all before |",
        "|---|" + "---|" * (len(after) + 5),
    ]

    def place(x):
        return int(np.flatnonzero(at == change + x)[0])

    goal = mean[0, place(-BLOCK), 0] - 0.01
    for i, (name, _, _) in enumerate(methods()):
        back = np.flatnonzero((at > change) & (mean[i, :, 0] >= goal))
        cells = [f"{mean[i, place(x), 0]:.3f}" for x in (-BLOCK, *after)]
        cells += [f"{mean[i, place(x), 1]:.3f}" for x in (-BLOCK, 20_000, after[-1])]
        cells.append(f"after {at[back[0]] - change:,}" if len(back) else "not in this stream")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def draw(found: dict[str, tuple[np.ndarray, np.ndarray]], streams: dict[str, Stream], path: Path) -> None:
    """A panel a stream; the last one as the difference to everything, smoothed."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(14, 9), layout="constrained")
    shade = {m: 0.4 + 0.3 * i for i, m in enumerate(MEMORIES)}
    for axis, (name, (at, mean)) in zip(axes.flat, found.items()):
        change = streams[name].change
        for i, (method, what, memory) in enumerate(methods()):
            shades = plt.cm.Blues if what == "adds3_decayed" else plt.cm.Oranges
            style = {
                "color": shades(shade[memory]) if memory else "black",
                "ls": "--" if what == "adds3_window" else "-",
                "lw": 1.5 if memory else 2,
                "label": method,
            }
            if change is None:
                five = np.convolve(mean[i, :, 0] - mean[0, :, 0], np.ones(5) / 5, "valid")
                axis.plot(at[4:], five, **style)
            else:
                axis.plot(at, mean[i, :, 0], **style)
        if change is None:
            axis.set(
                title=f"{name}: the next answers, before they are learned",
                ylim=(-0.1, 0.03),
                ylabel="accuracy less that of all, last 25,000",
            )
        else:
            settled = mean[:, at > 50_000, 0]
            axis.set(
                title=name,
                ylabel="held-out accuracy, the present world",
                ylim=(settled.min() - 0.02, settled.max() + 0.015),
            )
            axis.axvline(change, color="grey", lw=1, ls=":")
        axis.set_xlabel("comparisons learned")
        axis.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes[0, 0].legend(fontsize=8, ncol=2, loc="lower left")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="forgetting")
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    streams = {
        "a tenth moves": Stream(lambda seed: made(0.1, seed), SIZE // 2, given.seeds),
        "a third moves": Stream(lambda seed: made(1 / 3, seed), SIZE // 2, given.seeds),
    }
    data = human_judgements()
    if data is None:
        print(
            "no human judgements, made streams alone: set STREAM_ENGINE_DATA to the folder that holds them",
            file=sys.stderr,
        )
    else:
        triplets, screen = food(data)
        streams["food100, names change"] = Stream(
            lambda seed: renamed_food(triplets, screen, seed), FOOD_CHANGE, given.seeds
        )
        streams["food100, as it is"] = Stream(lambda seed: food_as_it_is(triplets, seed), None, 1)
    found, text = {}, []
    for name, stream in streams.items():
        runs = [curves(stream.steps(seed)) for seed in range(stream.seeds)]
        shortest = min(len(at) for at, _ in runs)
        found[name] = runs[0][0][:shortest], np.mean([each[:, :shortest] for _, each in runs], axis=0)
        lines = table(f"{name}, {stream.seeds} seed(s)", *found[name], stream.change)
        text += lines
        print("\n".join(lines), flush=True)
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    (out / "forgetting.md").write_text("\n".join(text))
    draw(found, streams, out / "forgetting.png")


if __name__ == "__main__":
    main()
