"""How the cost of whole commands grows, and what a default `run` costs on real answers; beside a rival.

    python -m tests.benchmarks growth --rivals PYTHON --out growth.svg [--only comparisons objects ...]
    STREAM_ENGINE_DATA=FOLDER python -m tests.benchmarks growth --rivals PYTHON --only sets [--sets car60 ...]

Along each of four axes, synthetic answers of growing size: CPU seconds and peak memory of a process of its own,
start-up included, with logarithmic axes. The exponent is the slope between the two largest sizes, where start-up weighs
least. Of `run` the rival is duckdb, which reads and groups the same file; of the embedding it is STE of cblearn in the
same number of dimensions (PYTHON is an interpreter that has it), fitted once, without a choice or an evaluation. `sets`
is a default `run` on each file of answers of `field`, as its authors give it, beside STE in five dimensions. Prints
Markdown tables; rows go to results.jsonl.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.benchmarks.field import SETS, loaded
from tests.benchmarks.rows import Spent, command_row, engine, spent
from tests.benchmarks.stage_whole_commands import DUCKDB, python, run, write
from tests.support.individual_worlds import world

STE = """
import sys, warnings, numpy as np
from cblearn.embedding import STE
warnings.simplefilter("ignore")
rows, d = np.load(sys.argv[1]), int(sys.argv[2])
STE(n_components=d, random_state=0).fit(rows, n_objects=int(rows.max()) + 1)
"""
FIXED = ("kernel=ste", "ridge=0.3")
MOST = 900.0  # seconds of wall, after which a command is stopped


class Point(NamedTuple):
    """One size: what it took here, and the rival where there is one."""

    size: int
    ours: Spent
    rival: Spent | None


def ste(rivals: str | None, folder: Path, rows: np.ndarray, d: int) -> Spent | None:
    """STE of cblearn on (m, 3) rows anchor, near, far, by an interpreter that has it."""
    if rivals is None:
        return None
    np.save(folder / "rows.npy", rows)
    return spent(rivals, "-c", STE, folder / "rows.npy", d, most=MOST)


def counted(folder: Path, n: int, size: int) -> tuple[Spent, Spent]:
    """`run` without refits, and duckdb."""
    path = write(folder, "counted", n, size)
    return run(path, folder / "state", "--no-refits"), python(DUCKDB, path)


def of_dimensions(rivals: str | None, folder: Path, d: int) -> tuple[Spent, Spent | None]:
    """The embedding of 20,000 answers about 100 objects in d dimensions."""
    path = write(folder, "embedded", 100, 20_000)
    run(path, folder / "state", "--no-refits")
    settings = (part for each in (f"dimensions={d}", *FIXED) for part in ("--set", each))
    ours = engine("refit", "--state", folder / "state", "embedding", *settings, most=MOST)
    each = [json.loads(line) for line in path.read_text().splitlines()]
    rows = np.array([[int(one[name].removeprefix("item-")) for name in ("anchor", "near", "far")] for one in each])
    return ours, ste(rivals, folder, rows, d)


def of_participants(folder: Path, people: int) -> tuple[Spent, None]:
    """The default embedding of 6,000 answers about 30 objects by so many participants; the rival knows of none."""
    made, path = world(0, people=people, each=6000 // people, d=3, n=30).answers, folder / "people.jsonl"
    with path.open("w") as file:
        for (anchor, near, _, far), who in zip(made.rows.tolist(), made.participant.tolist(), strict=True):
            event = {"anchor": f"i{anchor}", "near": f"i{near}", "far": f"i{far}", "worker": f"p{who}"}
            file.write(json.dumps(event) + "\n")
    run(path, folder / "state", "--no-refits")
    return engine("refit", "--state", folder / "state", "embedding", most=MOST), None


def axes(rivals: str | None, folder: Path) -> dict[str, tuple[str, tuple[int, ...], Callable]]:
    """Axis -> what is run, sizes, and what takes the costs at one size."""
    return {
        "comparisons": (
            "run, 1,000 objects",
            (100_000, 300_000, 1_000_000, 3_000_000),
            partial(counted, folder, 1000),
        ),
        "objects": (
            "run, 300,000 comparisons",
            (100, 1_000, 10_000, 100_000),
            lambda n: counted(folder, n, 300_000),
        ),
        "dimensions": (
            "embedding, 20,000 answers, 100 objects",
            (2, 4, 8, 16),
            partial(of_dimensions, rivals, folder),
        ),
        "participants": ("embedding, 6,000 answers", (5, 20, 80, 240), partial(of_participants, folder)),
    }


def exponent(points: list[Point], cost: Callable[[Spent], float]) -> float:
    """The slope between the two largest sizes on logarithmic axes.

    >>> a, b = (Point(m, Spent(2.0 * m, 0, 0, ""), None) for m in (10, 100))
    >>> exponent([a, b], lambda spent: spent.cpu)
    1.0
    """
    before, last = points[-2:]
    return float(np.log(cost(last.ours) / cost(before.ours)) / np.log(last.size / before.size))


def draw(measured: dict[str, tuple[str, list[Point]]], out: Path) -> None:
    """Time above memory, a column an axis."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    options = {"svg.hashsalt": "growth", "svg.fonttype": "none", "font.size": 8.0, "savefig.bbox": "tight"}
    with pyplot.rc_context(options):
        figure, panels = pyplot.subplots(2, len(measured), figsize=(2.4 * len(measured), 4.2), squeeze=False)
        costs = (("CPU seconds", lambda each: each.cpu), ("peak memory, MB", lambda each: each.peak / 1e6))
        for column, (axis, (case, points)) in enumerate(measured.items()):
            for panel, (_, cost) in zip(panels[:, column], costs, strict=True):
                sizes = [point.size for point in points]
                power = f"here, power {exponent(points, cost):.2f}"
                panel.loglog(sizes, [cost(point.ours) for point in points], "o-", label=power)
                theirs = [(point.size, cost(point.rival)) for point in points if point.rival]
                if theirs:
                    panel.loglog(*zip(*theirs, strict=True), "s--", color="0.5", label="rival")
                panel.set_xlabel(axis)
                panel.legend(fontsize=7)
            panels[0, column].set_title(case, fontsize=7)
        for panel, (label, _) in zip(panels[:, 0], costs, strict=True):
            panel.set_ylabel(label)
        figure.tight_layout()
        figure.savefig(out, metadata={"Date": None})
        pyplot.close(figure)


def grown(rivals: str | None, only: list[str], out: Path, folder: Path) -> Iterator[dict]:
    """The rows of the axes, and the figure."""
    measured: dict[str, tuple[str, list[Point]]] = {}
    print("| axis | size | CPU s | rival | peak MB | rival |\n|---|---|---|---|---|---|")
    for axis, (case, sizes, take) in axes(rivals, folder).items():
        if axis not in only:
            continue
        points = [Point(size, *take(size)) for size in sizes]
        measured[axis] = case, points
        for size, ours, rival in points:
            theirs = (f"{rival.cpu:.2f}", f"{rival.peak / 1e6:.0f}") if rival else ("", "")
            print(f"| {axis} | {size:,} | {ours.cpu:.2f} | {theirs[0]} | {ours.peak / 1e6:.0f} | {theirs[1]} |")
            yield command_row(f"{case}; {size:,} {axis}", ours, rival, "duckdb or cblearn's STE")
        powers = [exponent(points, cost) for cost in (lambda each: each.cpu, lambda each: each.peak)]
        print(f"| {axis} | power | {powers[0]:.2f} | | {powers[1]:.2f} | |", flush=True)
    if measured:
        draw(measured, out)


def on_sets(rivals: str | None, names: list[str], folder: Path) -> Iterator[dict]:
    """A default `run` on each file of real answers."""
    print("| set | answers | objects | participants | wall s | CPU s | cblearn's STE |\n|---|---|---|---|---|---|---|")
    for name in names:
        table = loaded(name)
        columns = table[["anchor", "near", "far"]].to_numpy(str)
        objects, places = np.unique(columns, return_inverse=True)
        rival = ste(rivals, folder, places.reshape(columns.shape), 5)
        ours = run(Path(os.environ["STREAM_ENGINE_DATA"]) / SETS[name], folder / "state", most=MOST)
        people = table.worker[table.worker != ""].nunique()
        figures = (f"{ours.wall:.0f}", f"{ours.cpu:.0f}", f"{rival.cpu:.0f}" if rival else "")
        print("| " + " | ".join((name, f"{len(table):,}", str(len(objects)), str(people), *figures)) + " |", flush=True)
        yield command_row(f"run {name}", ours, rival, "cblearn's STE in five dimensions")


def main(arguments: list[str]) -> int:
    from tests.benchmarks.__main__ import keep, machine  # which calls this

    parser = argparse.ArgumentParser(prog="growth", description=__doc__)
    choices = ("comparisons", "objects", "dimensions", "participants", "sets")
    parser.add_argument("--only", nargs="+", choices=choices, default=list(choices[:-1]))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--rivals", metavar="PYTHON", help="an interpreter with cblearn")
    parser.add_argument("--out", type=Path, default=Path("growth.svg"), help="where the figure goes")
    given = parser.parse_args(arguments)
    if "sets" in given.only and "STREAM_ENGINE_DATA" not in os.environ:
        raise SystemExit("growth: expected the human judgements in STREAM_ENGINE_DATA; found no folder")
    where = machine()
    rows = []
    with tempfile.TemporaryDirectory(prefix="stream-engine-") as name:
        rows += grown(given.rivals, given.only, given.out, Path(name))
        if "sets" in given.only:
            rows += on_sets(given.rivals, given.sets, Path(name))
    keep(rows, True, where)
    failed = [row for row in rows if "ours: " in row["notes"]]
    for row in failed:
        print(f"{row['case']}: {row['notes']}", file=sys.stderr)
    return 1 if failed else 0
