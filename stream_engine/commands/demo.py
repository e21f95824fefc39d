"""`stream-engine demo`: the main job on real data that ships with scikit-learn, end to end, with a page for people.

Judges who err one time in ten compare handwritten digits: "digit a looks more like b than like c". The answers, the
names of some digits and a few broken lines go into a file; the engine reads it as it would read anyone's. The rate on
the page is that of reading: from opening the file to the snapshot that holds all of it. What is compiled is compiled
before, and the refits come after; the page says how long these took.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import click
import numpy as np

from stream_engine.commands import warm_up
from stream_engine.commands.export import export
from stream_engine.exports.summary import summary_of
from stream_engine.service import logs
from stream_engine.service.settings import loading as configuration
from stream_engine.state.artifact import Artifact
from stream_engine.state.published import Published
from stream_engine.state.store import Store

PER_DIGIT = 20
COMPARISONS = 600_000
FLIPPED = 0.1
Result = TypeVar("Result")
TOLD = 0.7  # of the digits are told what they are; the classifier is tested on the others
BROKEN = [
    '{"anchor": "digit-0", "near": "digit-1"}',
    "not json at all",
    '{"anchor": "a", "near": "a", "far": "b"}',
    '{"type": "rating", "object": "digit-3", "stars": 5}',
]


@click.command("demo")
@click.option("--state", default="demo", show_default=True, metavar="DIR", help="State directory.")
@click.option("--seed", default=0, show_default=True, help="Random seed of the simulated events and the refits.")
def command(state: str, seed: int) -> None:
    """Run the engine end to end on built-in data: handwritten digits with simulated noisy answers."""
    click.echo(demo(Path(state), seed))


def digits(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(n, 64) pixels and (n,) digits: a seeded choice of PER_DIGIT handwritten examples of each, from scikit-learn."""
    from sklearn.datasets import load_digits

    data = load_digits()
    rng = np.random.default_rng(seed)
    chosen = np.concatenate([rng.permutation(np.flatnonzero(data.target == d))[:PER_DIGIT] for d in range(10)])
    chosen = rng.permutation(chosen)
    return data.data[chosen], data.target[chosen]


def simulated_answers(pixels: np.ndarray, size: int, flipped: float, rng: np.random.Generator) -> np.ndarray:
    """(m, 3) anchor, near, far: questions about Euclidean distance, answered wrongly with probability `flipped`."""
    n = len(pixels)
    anchor, b, c = rng.integers(n, size=(3, size))
    keep = (anchor != b) & (anchor != c) & (b != c)
    anchor, b, c = anchor[keep], b[keep], c[keep]
    square = (pixels**2).sum(axis=1)
    distance = square[:, None] + square - 2 * pixels @ pixels.T
    swap = (distance[anchor, b] > distance[anchor, c]) ^ (rng.random(len(anchor)) < flipped)
    return np.stack([anchor, np.where(swap, c, b), np.where(swap, b, c)], axis=1)


def write_events(path: Path, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Write the stream as JSON lines; returns (n,) digits by object number and (n,) bool: told in the stream."""
    pixels, target = digits(seed)
    rng = np.random.default_rng(seed + 1)
    told = rng.random(len(target)) < TOLD
    lines = [
        f'{{"anchor": "digit-{a}", "near": "digit-{b}", "far": "digit-{c}"}}'
        for a, b, c in simulated_answers(pixels, COMPARISONS, FLIPPED, rng).tolist()
    ]
    extra = [
        json.dumps({"type": "label", "object": f"digit-{i}", "label": str(target[i])}) for i in np.flatnonzero(told)
    ]
    for text in extra + BROKEN:
        lines[int(rng.integers(len(lines)))] += "\n" + text
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return target, told


def demo(state: Path, seed: int) -> str:
    """Make the stream, run the engine on it, export, draw; returns the page."""
    from stream_engine.service import run

    logs.configure()
    events, took = state / "events.jsonl", {}

    def timed(what: str, call: Callable[..., Result], *arguments: object) -> Result:
        began = time.perf_counter()
        result = call(*arguments)
        took[what] = time.perf_counter() - began
        return result

    with compiling():
        target, told = timed("simulating the events", write_events, events, seed)
        began = time.perf_counter()
    warm_up.PARTS["a run"]()
    took["loading and compiling"] = time.perf_counter() - began
    settings = configuration.load(
        None, {"source": [str(events)], "state": str(state), "refits.seed": seed, "snapshot.every": 200_000}
    )
    said: list[str] = []
    with logs.Bars() as bars:
        took["reading"] = 0.0
        # it ends with the refits of the last snapshot
        took["reading"] = timed("refits", partial(run.run, say=said.append), settings, bars)
    took["refits"] -= took["reading"]
    timed("export", export, str(state), str(state / "export"), "latest", "npz", ())
    published = Store(state).published()
    shown = timed("report", write_report, published, state, seed)
    return page(published, target, told, took, state, shown, said)


@contextmanager
def compiling() -> Iterator[None]:
    """What the demo needs is compiled beside the block, on all cores, where nothing is yet; it is at the end."""
    from stream_engine.data import kernel_cache

    if not kernel_cache.is_empty():
        yield
        return
    with ThreadPoolExecutor(1) as beside:
        done = beside.submit(lambda: list(warm_up.in_processes(warm_up.OF_A_RUN)))
        yield
        done.result()


def write_report(published: Published, state: Path, seed: int) -> Path:
    """The page that shows it all, with a picture of each digit."""
    from stream_engine.report.findings.facts import Commands
    from stream_engine.report.writing import write

    objects = pictures(seed, state / "pictures")
    noted = Store(state).noted("progressive")
    return write(published, state / "report.html", noted, objects=objects, commands=Commands(str(state))).page


def numbers(published: Published) -> np.ndarray:
    """(n,) the number in each object's name, by id."""
    return np.array([int(name.removeprefix("digit-")) for name in published.snapshot.objects])


def pictures(seed: int, folder: Path) -> Path:
    """The handwritten digits as pictures named after the objects, for the report."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    for number, pixels in enumerate(digits(seed)[0]):
        ink = Image.fromarray((255 - 15 * pixels.reshape(8, 8)).astype(np.uint8))
        ink.resize((64, 64), Image.Resampling.BICUBIC).save(folder / f"digit-{number}.png")
    return folder


def page(
    published: Published,
    target: np.ndarray,
    told: np.ndarray,
    took: dict[str, float],
    state: Path,
    shown: Path,
    said: Sequence[str],
) -> str:
    """The summary that a person can read; `took`: what was done, and its seconds; `said`: what the run said,
    last how it ended."""
    summary = summary_of(published.snapshot)
    number, guard = numbers(published), summary["guard"]
    refused = ", ".join(f"{n} {reason}" for reason, n in summary["rejected"].items())
    waited = ", ".join(f"{what} {seconds:.1f}" for what, seconds in took.items())
    rate = summary["events"] / took["reading"]
    lines = [
        ("run", said[-1]),
        *(("", each) for each in said[:-1]),
        ("objects", f"{summary['objects']} handwritten digits; one in ten simulated answers is wrong"),
        (
            "events",
            f"{summary['events']:,} read in {took['reading']:.1f} s: {rate:,.0f} events/s, including all counts and "
            "the partial order, without models",
        ),
        ("waited", f"{sum(took.values()):.0f} s: {waited}"),
        ("rejected", f"{refused}: planted on purpose; kept in {state / 'dead_letters'}"),
        ("contradictions", f"{summary['contradicting_pairs']:,} questions have conflicting answers"),
        ("guard", "a partial order of comparisons: " + ", ".join(f"{n:,} {verdict}" for verdict, n in guard.items())),
        ("clusters", _clusters(published.artifacts["clusters"], target[number])),
        ("classifier", _classifier(published, target[number].astype(str), ~told[number])),
        ("snapshot", str(Store(state).snapshot_path(published.snapshot.sequence))),
        ("export", f"{state / 'export'}: files for NumPy (--format csv writes tables)"),
        ("report", f"{shown}: open it in a browser"),
    ]
    return "\n" + "\n".join(f"{name:16}{text}" for name, text in lines)


def _clusters(made: Artifact, truth: np.ndarray) -> str:
    """The answer, then what the groups have to do with the ten digits."""
    from sklearn.metrics import adjusted_rand_score

    agreement = adjusted_rand_score(truth, made.arrays["labels"])
    return (
        f"{made.report['note']} The adjusted Rand index of the partition with the ten digits is {agreement:.2f} "
        "(1: identical, 0: chance)"
    )


def _classifier(published: Published, truth: np.ndarray, tested: np.ndarray) -> str:
    """How many digits that it was never told (`tested`) the best classifier names, beside the booster and a guess."""

    def right(kind: str) -> float:
        made = published.artifacts[kind]
        named = np.array([*made.report["classes"], ""])[made.arrays["predicted"][tested]]
        return float((named == truth[tested]).mean())

    usual = np.unique(truth[tested], return_counts=True)[1].max() / tested.sum()
    best = published.artifacts["classify"].report["model"]
    return (
        f"{right('classify'):.1%} of {tested.sum()} test digits are classified correctly by the best classifier, "
        f'"{best}" (triplet_boost {right("triplet_boost"):.1%}, majority class {usual:.1%})'
    )
