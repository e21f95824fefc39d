"""`stream-engine demo`: the two main jobs on handwritten digits that ship with scikit-learn.

A survey: 24 simulated participants say which of three digits is the odd one out; two guess, one sent the file twice. A
stream: 200,000 answers in JSON lines are counted, checked for contradictions and published as a snapshot.
"""

import csv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np

from stream_engine.commands import warm_up
from stream_engine.data import logs
from stream_engine.data.compiled import nothing_is_compiled
from stream_engine.data.progress_bars import Bars
from stream_engine.input.settings import loading as configuration
from stream_engine.state.published import Published
from stream_engine.state.store import Store

DIGITS = {0: "zero", 1: "one", 4: "four", 6: "six"}
PER_DIGIT = 10
PARTICIPANTS, TRIALS, PRACTICE = 24, 85, 3
GUESSERS, SENT_TWICE = (3, 17), 19
STREAM = 200_000
STREAM_OBJECTS = 200
FLIPPED = 0.1  # of the stream's answers


@click.command("demo")
@click.option("--state", default="demo", show_default=True, metavar="DIR", help="Folder for the data and the results.")
@click.option("--seed", default=0, show_default=True, help="Random seed of the simulated answers.")
def command(state: str, seed: int) -> None:
    """Analyse a small survey and a stream of simulated answers about handwritten digits."""
    folder = Path(state)
    folder.mkdir(parents=True, exist_ok=True)
    logs.configure(level="error")
    with compiling():
        pictures = draw_pictures(folder / "pictures", seed)
        write_survey(folder / "survey.csv", seed)
        write_stream(folder / "stream.jsonl", seed)
    for line in survey(folder, pictures):
        click.echo(line)
    click.echo(stream(folder))


# ---- the survey


def example_digits(seed: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """(n, 64) pixels, (n,) digits and n names: `PER_DIGIT` handwritten examples of each of `DIGITS`."""
    from sklearn.datasets import load_digits

    data = load_digits()
    rng = np.random.default_rng(seed)
    chosen = np.concatenate([rng.permutation(np.flatnonzero(data.target == d))[:PER_DIGIT] for d in DIGITS])
    target = data.target[chosen]
    names = [f"{DIGITS[digit]}_{i % PER_DIGIT + 1:02}" for i, digit in enumerate(target.tolist())]
    return data.data[chosen], target, names


def perceived_positions(pixels: np.ndarray, digits: np.ndarray) -> np.ndarray:
    """(n, d) coordinates in which simulated participants see the digits: which digit it is, and how it is written.

    The centres of two digits are 4 apart; the written form adds 0.7 standard deviations in each of three directions.
    """
    values = np.unique(digits)
    centres = 4 / np.sqrt(2) * (digits[:, None] == values)
    cluster_centres = (
        pixels - np.array([pixels[digits == digit].mean(axis=0) for digit in values])[np.searchsorted(values, digits)]
    )
    directions = np.linalg.svd(cluster_centres, full_matrices=False)[2][:3]
    form = cluster_centres @ directions.T
    return np.hstack([centres, 0.7 * form / form.std(axis=0)])


def write_survey(path: Path, seed: int) -> None:
    """Write the answers as a table with a row for each trial, as survey tools export it."""
    rng = np.random.default_rng(seed + 1)
    pixels, digits, names = example_digits(seed)
    points = perceived_positions(pixels, digits)
    rows = []
    for number in range(1, PARTICIPANTS + 1):
        trials = []
        for trial in range(1, PRACTICE + TRIALS + 1):
            triplet = rng.choice(len(names), 3, replace=False)
            odd = int(rng.integers(3)) if number in GUESSERS else odd_one_out(points[triplet], rng)
            images = [f"{names[i]}.png" for i in triplet]
            seconds = round(float(rng.lognormal(0.6, 0.4)), 3)
            phase = "practice" if trial <= PRACTICE else "main"
            trials.append([f"P{number:02}", phase, trial, *images, images[odd], seconds])
        rows += trials * (1 + (number == SENT_TWICE))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["participant", "phase", "trial", "image_1", "image_2", "image_3", "odd_one_out", "rt"])
        writer.writerows(rows)


def odd_one_out(points: np.ndarray, rng: np.random.Generator) -> int:
    """The odd one of three points: the pair of the others is chosen with odds that fall with its squared distance;
    one answer in twenty is a lapse."""
    if rng.random() < 0.05:
        return int(rng.integers(3))
    squared = np.array([((points[i] - points[j]) ** 2).sum() for i, j in ((1, 2), (0, 2), (0, 1))])
    odds = np.exp(-(squared - squared.min()) / 2)
    return int(rng.choice(3, p=odds / odds.sum()))


def draw_pictures(folder: Path, seed: int) -> Path:
    """The handwritten digits as pictures named after the objects, for the report."""
    from PIL import Image

    folder.mkdir(parents=True, exist_ok=True)
    pixels, _, names = example_digits(seed)
    for name, values in zip(names, pixels):
        ink = Image.fromarray((255 - 15 * values.reshape(8, 8)).astype(np.uint8))
        ink.resize((64, 64), Image.Resampling.BICUBIC).save(folder / f"{name}.png")
    return folder


def survey(folder: Path, pictures: Path) -> Iterator[str]:
    """Read the survey, fit the default models and write the page; yields what was found, in lines for people."""
    from stream_engine.report.findings import findings
    from stream_engine.report.findings.facts import Commands, Facts
    from stream_engine.report.writing import write
    from stream_engine.service import run

    state, file = folder / "survey", folder / "survey.csv"
    overrides = {"source": [str(file)], "state": str(state), "input.drop_duplicates": True}
    outcome: list[str] = []
    with Bars() as bars:
        run.run(configuration.load(None, overrides), bars, start_over=True, say=outcome.append)
    published, commands = Store(state).published(), Commands(str(state))
    progressive = Store(state).noted("progressive")
    facts = Facts(published, commands, progressive)
    statements = findings(facts)
    page = write(published, folder / "report.html", progressive, objects=pictures, commands=commands)
    counters = published.snapshot.counters
    yield _line(
        "survey",
        f"{counters['events']:,} answers about {len(published.snapshot.objects)} objects read from {file}; "
        f"{counters['filtered']:,} practice trials excluded",
    )
    yield from (_line("copies", line.removeprefix("warning: ")) for line in outcome if "sent twice" in line)
    yield _line("answers", statements["accuracy"][0].text)
    if facts.participants:
        flagged = [name for name, why in zip(facts.participants.names, facts.participants.reasons) if why]
        yield _line("people", f"{statements['participants'][0].text.partition('.')[0]}: {', '.join(flagged)}.")
    yield _line("groups", f"{statements['clusters'][0].text} {_members(published)}")
    yield _line("page", f"{page.page}: open it in a browser")


def _line(label: str, text: str) -> str:
    return f"{label:9}{text}"


def _members(published: Published) -> str:
    """The digits in each group."""
    written = np.array([name.partition("_")[0] for name in published.snapshot.objects])
    labels = published.artifacts["clusters"].arrays["labels"]
    groups = [np.unique(written[labels == label], return_counts=True) for label in np.unique(labels[labels >= 0])]
    return "Digits: " + "; ".join(", ".join(f"{digit} ({n})" for digit, n in zip(*group)) for group in groups) + "."


# ---- the stream


def write_stream(path: Path, seed: int) -> None:
    """Write JSON lines: questions about the Euclidean distances of digits' pixels, one answer in ten wrong."""
    from sklearn.datasets import load_digits

    rng = np.random.default_rng(seed + 2)
    pixels = load_digits().data[:STREAM_OBJECTS]
    a, b, c = rng.integers(STREAM_OBJECTS, size=(3, STREAM))
    b = np.where(b == a, (b + 1) % STREAM_OBJECTS, b)
    while (degenerate := (c == a) | (c == b)).any():
        c = np.where(degenerate, (c + 1) % STREAM_OBJECTS, c)
    is_nearer = ((pixels[a] - pixels[b]) ** 2).sum(axis=1) < ((pixels[a] - pixels[c]) ** 2).sum(axis=1)
    is_nearer ^= rng.random(len(a)) < FLIPPED
    near, far = np.where(is_nearer, b, c), np.where(is_nearer, c, b)
    lines = [
        f'{{"anchor": "digit-{i}", "near": "digit-{j}", "far": "digit-{k}"}}\n'
        for i, j, k in zip(a.tolist(), near.tolist(), far.tolist())
    ]
    path.write_text("".join(lines))


def stream(folder: Path) -> str:
    """Count the stream into a state of its own; says how fast, and what the counts say."""
    from stream_engine.service import run

    state, file = folder / "stream", folder / "stream.jsonl"
    settings = configuration.load(None, {"source": [str(file)], "state": str(state), "refits.kinds": []})
    with Bars() as bars:
        seconds = run.run(settings, bars, start_over=True)
    return _line("stream", stream_sentence(Store(state).published(), seconds))


def stream_sentence(published: Published, seconds: float) -> str:
    """What was counted, and how fast."""
    from stream_engine.exports.summary import summary_of

    summary = summary_of(published.snapshot)
    return (
        f"{summary['events']:,} answers counted in {seconds:.1f} s ({summary['events'] / seconds:,.0f} per second), "
        f"{summary['contradicting_pairs']:,} questions with conflicting answers, snapshot "
        f"{published.snapshot.sequence} published"
    )


# ---- compiling


@contextmanager
def compiling() -> Iterator[None]:
    """What the demo needs is compiled beside the block, on all cores, where nothing is yet; it is at the end."""
    if not nothing_is_compiled():
        yield
        return
    click.echo("compiling once after the installation, 15 to 60 s", err=True)
    with ThreadPoolExecutor(1) as executor:
        compilation = executor.submit(lambda: list(warm_up.in_processes(warm_up.OF_A_RUN)))
        yield
        compilation.result()
