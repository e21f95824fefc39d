"""How the time and the memory of whole commands grow with comparisons, objects, dimensions and participants.

    python -m tests.benchmarks growth [--rivals PYTHON] [--only PANEL ...] [--kept]
    STREAM_ENGINE_DATA=FOLDER python -m tests.benchmarks growth --rivals PYTHON --only sets [--sets car60 ...]

Each point is a process of its own on synthetic answers: CPU seconds, start-up included, and the memory of its largest
process. It is a line of `growth.jsonl`, so that an interrupted run goes on. Points that are expected to take more than
`MOST_CPU` seconds are left out. The rival of `run` is duckdb, which reads and groups the same file; that of the
embedding is cblearn's STE (PYTHON is an interpreter that has it), fitted once in the number of dimensions of the map.
Then, or with `--kept` without any measurement, the figure is drawn and its table printed.

An exponent is that of a cost of `start + factor * size ** exponent`, fitted with relative errors. The range after it
is what the fit gives when one of the sizes is left out. A cost that does not double from the smallest to the largest
size hardly grows.

`sets` is a default `run` on each file of answers of `field`, as its authors give it, beside STE in five dimensions; its
rows go to results.jsonl.
"""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from tests.benchmarks.field import SETS, loaded
from tests.benchmarks.rows import Spent, command_row, engine, spent
from tests.benchmarks.stage_whole_commands import DUCKDB, python, run, write
from tests.conftest import ROOT
from tests.support.individual_worlds import world

STE = """
import sys, warnings, numpy as np
from cblearn.embedding import STE
warnings.simplefilter("ignore")
rows, d = np.load(sys.argv[1]), int(sys.argv[2])
STE(n_components=d, random_state=0).fit(rows, n_objects=int(rows.max()) + 1)
"""
KEPT = Path(__file__).with_name("growth.jsonl")
FIGURE = ROOT / "stream_engine" / "docs" / "growth.svg"
MOST_CPU = 60.0  # of a point
MOST_WALL = 900.0  # after which a command is stopped
ANSWERS = 30  # of each object
POWERS = np.arange(0.05, 4.001, 0.05)
COSTS = {  # label, unit, limits of the axes
    "cpu": ("CPU seconds", 1.0, (0.2, 500.0)),
    "peak": ("peak memory, MB", 1e-6, (80.0, 8000.0)),
}
WIDE = 1.0  # range of an exponent without one of the sizes, above which it says nothing


class Case(NamedTuple):
    """Answers of one size."""

    folder: Path
    size: int
    path: Path  # their file
    rivals: str | None  # interpreter with cblearn

    def counted(self) -> Path:
        """A state with the answers, for refits."""
        state = self.folder / "state"
        if not state.exists():
            run(self.path, state, "--no-refits", "--guard", "off", most=MOST_WALL)
        return state


def count(guard: str, case: Case) -> Spent:
    """`run` without refits."""
    return run(case.path, case.folder / "counted", "--no-refits", "--guard", guard, most=MOST_WALL)


def grouped(case: Case) -> Spent:
    """duckdb."""
    return python(DUCKDB, case.path)


def refit(kind: str, case: Case, *settings: str) -> Spent:
    """`refit KIND` of a state with the answers, from scratch."""
    shutil.rmtree(case.counted() / "artifacts", ignore_errors=True)
    given = (part for each in settings for part in ("--set", each))
    return engine("refit", "--state", case.counted(), kind, *given, most=MOST_WALL)


def in_dimensions(case: Case) -> Spent:
    """The embedding in as many dimensions as the size says."""
    return refit("embedding", case, f"dimensions={case.size}")


def ste(rivals: str | None, folder: Path, rows: np.ndarray, d: int) -> Spent | None:
    """STE of cblearn on (m, 3) rows anchor, near, far, by an interpreter that has it."""
    if rivals is None:
        return None
    np.save(folder / "rows.npy", rows)
    return spent(rivals, "-c", STE, folder / "rows.npy", d, most=MOST_WALL)


def ste_beside(case: Case, d: int | None = None) -> Spent | None:
    """STE in d dimensions, by default as many as the embedding of the state has."""
    if case.rivals is None:
        return None
    if d is None:
        if not (case.counted() / "artifacts").exists():
            refit("embedding", case)
        d = int(re.findall(r'"d": ?(\d+)', engine("inspect", "--state", case.counted(), "--json").output)[0])
    each = [json.loads(line) for line in case.path.read_text().splitlines()]
    rows = np.array([[int(one[name].removeprefix("item-")) for name in ("anchor", "near", "far")] for one in each])
    return ste(case.rivals, case.folder, rows, d)


def ste_in_dimensions(case: Case) -> Spent | None:
    """STE in as many dimensions as the size says."""
    return ste_beside(case, case.size)


def of_people(folder: Path, people: int) -> Path:
    """A file of 100 answers of each participant about 30 objects."""
    answers, path = world(0, people=people, each=100, d=3, n=30).answers, folder / "people.jsonl"
    with path.open("w") as file:
        for (anchor, near, _, far), who in zip(answers.rows.tolist(), answers.participant.tolist(), strict=True):
            event = {"anchor": f"i{anchor}", "near": f"i{near}", "far": f"i{far}", "worker": f"p{who}"}
            file.write(json.dumps(event) + "\n")
    return path


class Panel(NamedTuple):
    """One way for one command to grow."""

    title: str
    axis: str
    sizes: tuple[int, ...]
    written: Callable[[Path, int], Path]
    lines: dict[str, Callable[[Case], Spent | None]]  # those of rivals end in an asterisk


COUNTED = {
    "guard on": partial(count, "on"),
    "guard off": partial(count, "off"),
    "duckdb*": grouped,
}
EMBEDDED = {"embedding": partial(refit, "embedding"), "cblearn STE*": ste_beside}
GROUPED = {"clusters": partial(refit, "clusters"), "sdp_clustering": partial(refit, "sdp_clustering")}
PANELS = {
    "count-comparisons": Panel(
        "counting, 1,000 objects",
        "comparisons",
        (10_000, 100_000, 300_000, 1_000_000, 5_000_000),
        lambda folder, size: write(folder, "answers", 1000, size),
        COUNTED,
    ),
    "count-objects": Panel(
        "counting, 300,000 comparisons",
        "objects",
        (100, 1_000, 10_000, 100_000),
        lambda folder, n: write(folder, "answers", n, 300_000),
        COUNTED,
    ),
    "embed-comparisons": Panel(
        "embedding, 100 objects",
        "comparisons",
        (1_000, 10_000, 100_000, 300_000, 1_000_000),
        lambda folder, size: write(folder, "answers", 100, size),
        EMBEDDED,
    ),
    "embed-objects": Panel(
        "embedding, 30 answers an object",
        "objects",
        (20, 60, 200, 600, 2_000),
        lambda folder, n: write(folder, "answers", n, ANSWERS * n),
        EMBEDDED,
    ),
    "embed-dimensions": Panel(
        "embedding, 10,000 answers, 100 objects",
        "dimensions",
        (1, 2, 4, 8, 16),
        lambda folder, d: write(folder, "answers", 100, 10_000),
        {"embedding": in_dimensions, "cblearn STE*": ste_in_dimensions},
    ),
    "embed-participants": Panel(
        "embedding, 100 answers a participant",
        "participants",
        (1, 3, 10, 30, 100, 300),
        of_people,
        {"embedding": partial(refit, "embedding")},
    ),
    "cluster-objects": Panel(
        "groups, 30 answers an object",
        "objects",
        (20, 100, 200, 500, 1_000),
        lambda folder, n: write(folder, "answers", n, ANSWERS * n),
        GROUPED,
    ),
}


class Fit(NamedTuple):
    """A cost of `start + extra * (size / largest size) ** power`."""

    start: float
    extra: float
    power: float
    first: float  # share of the largest size that the smallest is

    def at(self, share: np.ndarray) -> np.ndarray:
        """The cost at shares of the largest size."""
        return self.start + self.extra * share**self.power

    @property
    def grows(self) -> bool:
        """Whether the largest size costs at least twice as much as the smallest."""
        return bool(self.at(np.array(1.0)) >= 2 * self.at(np.array(self.first)))

    @classmethod
    def of(cls, sizes: Iterable[float], costs: Iterable[float]) -> "Fit":
        """By the smallest sum of squared relative errors.

        >>> made = Fit.of([1, 10, 100, 1000], [2.001, 2.1, 12, 1002])
        >>> [round(each, 2) for each in made[:3]], made.grows
        ([2.0, 1000.0, 2.0], True)
        """
        size, cost = np.array(list(sizes), float), np.array(list(costs), float)
        share, tried = size / size.max(), []
        for power in POWERS:
            terms = np.stack([np.ones(len(size)), share**power], axis=1) / cost[:, None]
            (start, extra), error = nnls(terms, np.ones(len(size)))
            tried.append((error, cls(float(start), float(extra), float(power), float(share.min()))))
        return min(tried, key=lambda each: each[0])[1]


class Exponent(NamedTuple):
    """The fit of a line, the range of its power without one of the sizes, and both in words."""

    fit: Fit
    low: float
    high: float

    @property
    def clear(self) -> bool:
        """Whether it may be shown."""
        return not self.fit.grows or self.high - self.low <= WIDE

    @property
    def words(self) -> str:
        """For the legend."""
        return ("hardly grows" if not self.fit.grows else f"{self.fit.power:.1f}") if self.clear else "unclear"

    @property
    def cell(self) -> str:
        """For the table."""
        return f"{self.fit.power:.2f} ({self.low:.2f} to {self.high:.2f})" if self.fit.grows else "hardly grows"

    @classmethod
    def of(cls, points: list[dict[str, Any]], cost: str) -> "Exponent | None":
        """None with fewer than four points."""
        if len(points) < 4:
            return None
        size, costs = (np.array([each[name] for each in points], float) for name in ("size", cost))
        powers = [Fit.of(np.delete(size, out), np.delete(costs, out)).power for out in range(len(size))]
        return cls(Fit.of(size, costs), min(powers), max(powers))


def kept(panel: str, line: str) -> dict[int, dict[str, Any]]:
    """The points of a line, by size."""
    rows = [json.loads(text) for text in KEPT.read_text().splitlines()] if KEPT.exists() else []
    found = {row["size"]: row for row in rows if (row["panel"], row["line"]) == (panel, line)}
    return dict(sorted(found.items()))


def expected(size: int, points: dict[int, dict[str, Any]]) -> float:
    """CPU seconds of the next size, by the slope between the last two; 0 before there are two."""
    done = [(each, point["cpu"]) for each, point in points.items() if each < size and "cpu" in point][-2:]
    if len(done) < 2:
        return 0.0
    (before, less), (last, cpu) = done
    return float(cpu * (size / last) ** (np.log(cpu / less) / np.log(last / before)))


def measure(name: str, rivals: str | None) -> None:
    """Take the points of a panel that are not kept."""
    panel, over = PANELS[name], set[str]()
    for size in panel.sizes:
        with tempfile.TemporaryDirectory(prefix="stream-engine-") as folder:
            case = None
            for line, take in panel.lines.items():
                points = kept(name, line)
                row: dict[str, Any] = {"panel": name, "line": line, "size": size}
                if size in points or line in over:
                    over |= {line} if points.get(size, {}).get("left_out") else set()
                    continue
                if (seconds := expected(size, points)) > MOST_CPU:
                    row |= {"left_out": f"expected {seconds:.0f} CPU s"}
                else:
                    case = case or Case(Path(folder), size, panel.written(Path(folder), size), rivals)
                    taken = take(case)
                    if taken is None:
                        continue
                    if taken.problem:
                        row |= {"left_out": taken.problem}
                    else:
                        row |= {"cpu": taken.cpu, "peak": taken.peak, "load": round(os.getloadavg()[0], 1)}
                over |= {line} if "left_out" in row else set()
                with KEPT.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(json.dumps(row), file=sys.stderr, flush=True)


def measured() -> Iterator[tuple[str, str, list[dict[str, Any]], list[dict[str, Any]]]]:
    """Panel, line, its points, and what was left out."""
    for name, panel in PANELS.items():
        for line in panel.lines:
            points = list(kept(name, line).values())
            yield name, line, [row for row in points if "cpu" in row], [row for row in points if "cpu" not in row]


def table() -> str:
    """Costs at the smallest and the largest size that was measured, and exponents."""
    heads = ("cost of", "against", "from, to", "CPU s", "exponent", "peak MB", "exponent", "left out")
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for name, line, points, out in measured():
        if not points:
            continue
        first, last = points[0], points[-1]

        def said(cost: str, points: list[dict[str, Any]] = points) -> str:
            exponent = Exponent.of(points, cost)
            return exponent.cell if exponent else ""

        cells = [f"{PANELS[name].title}: {line.rstrip('*')}", PANELS[name].axis]
        cells.append(f"{first['size']:,}, {last['size']:,}")
        cells += [f"{first['cpu']:.1f}, {last['cpu']:.1f}", said("cpu")]
        cells += [f"{first['peak'] / 1e6:.0f}, {last['peak'] / 1e6:.0f}", said("peak")]
        cells.append("; ".join(f"from {each['size']:,} ({each['left_out']})" for each in out))
        lines.append(f"| {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |"))
    return "\n".join(lines)


def draw(out: Path) -> None:
    """Time above memory for each panel, with the fitted curves."""
    from tests.support.figures import style

    with style():
        from matplotlib import pyplot, ticker

        pyplot.rcParams["font.sans-serif"] = ["DejaVu Sans"]  # a list of others would be repeated in each text
        columns = 4
        blocks = -(-len(PANELS) // columns)
        figure, axes = pyplot.subplots(2 * blocks, columns, figsize=(12.8, 5.6 * blocks))
        for axis in axes.flat:
            axis.set_visible(False)
        for at, (name, panel) in enumerate(PANELS.items()):
            for below, (cost, (label, unit, limits)) in enumerate(COSTS.items()):
                axis = axes[2 * (at // columns) + below, at % columns]
                axis.set_visible(True)
                for number, line in enumerate(panel.lines):
                    points = [row for row in kept(name, line).values() if "cpu" in row]
                    if not points:
                        continue
                    sizes = np.array([row["size"] for row in points], float)
                    costs = np.array([row[cost] * unit for row in points])
                    rival = line.endswith("*")
                    colour, mark = ("0.45", "s") if rival else (f"C{number}", "o")
                    text = line.rstrip("*")
                    if exponent := Exponent.of(points, cost):
                        text += f": {exponent.words}"
                        fine = np.geomspace(sizes[0], sizes[-1], 10)
                        curve = exponent.fit.at(fine / sizes[-1]) * unit
                        if exponent.clear:
                            axis.plot(fine, curve, "--" if rival else "-", color=colour, lw=1)
                    axis.plot(sizes, costs, mark, color=colour, ms=4, label=text)
                axis.set(xscale="log", yscale="log", ylim=limits)
                axis.spines[["top", "right"]].set_visible(False)
                for each in (axis.xaxis, axis.yaxis):
                    each.set_minor_locator(ticker.NullLocator())
                axis.xaxis.set_major_locator(ticker.FixedLocator(panel.sizes))
                axis.xaxis.set_major_formatter(ticker.EngFormatter(sep="") if below else ticker.NullFormatter())
                form = ticker.NullFormatter() if at % columns else ticker.FormatStrFormatter("%g")
                axis.yaxis.set_major_formatter(form)
                axis.yaxis.set_major_locator(ticker.LogLocator())
                if axis.lines:
                    axis.legend(
                        fontsize=8,
                        title="exponent",
                        title_fontsize=8,
                        loc="upper left",
                        frameon=False,
                        alignment="left",
                    )
                if below:
                    axis.set_xlabel(panel.axis)
                else:
                    axis.set_title(panel.title, fontsize=9)
                if not at % columns:
                    axis.set_ylabel(label)
        figure.tight_layout()
        figure.savefig(out)
    lines = map(str.strip, re.sub(r"(\.\d\d)\d+", r"\1", out.read_text()).splitlines())
    out.write_text("".join(f"{line}\n" for line in lines if not line.startswith("<!-- ")))


def on_sets(rivals: str | None, names: list[str], folder: Path) -> Iterator[dict]:
    """A default `run` on each file of real answers."""
    print("| set | answers | objects | participants | wall s | CPU s | cblearn's STE |\n|---|---|---|---|---|---|---|")
    for name in names:
        table = loaded(name)
        columns = table[["anchor", "near", "far"]].to_numpy(str)
        objects, places = np.unique(columns, return_inverse=True)
        rival = ste(rivals, folder, places.reshape(columns.shape), 5)
        ours = run(Path(os.environ["STREAM_ENGINE_DATA"]) / SETS[name], folder / "state", most=MOST_WALL)
        people = table.worker[table.worker != ""].nunique()
        figures = (f"{ours.wall:.0f}", f"{ours.cpu:.0f}", f"{rival.cpu:.0f}" if rival else "")
        print("| " + " | ".join((name, f"{len(table):,}", str(len(objects)), str(people), *figures)) + " |", flush=True)
        yield command_row(f"run {name}", ours, rival, "cblearn's STE in five dimensions")


def main(arguments: list[str]) -> int:
    from tests.benchmarks.__main__ import ONE_THREAD, keep, machine  # which calls this

    parser = argparse.ArgumentParser(prog="growth", description=__doc__.splitlines()[0])
    parser.add_argument("--rivals", metavar="PYTHON", help="an interpreter with cblearn")
    parser.add_argument("--only", nargs="+", choices=(*PANELS, "sets"), default=list(PANELS))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--kept", action="store_true", help="measure nothing, draw what is kept")
    parser.add_argument("--out", type=Path, default=FIGURE, help="where the figure goes")
    given = parser.parse_args(arguments)
    os.environ.update(ONE_THREAD)
    if "sets" in given.only:
        if "STREAM_ENGINE_DATA" not in os.environ:
            raise SystemExit("growth: expected the human judgements in STREAM_ENGINE_DATA; found no folder")
        where = machine()
        with tempfile.TemporaryDirectory(prefix="stream-engine-") as name:
            rows = list(on_sets(given.rivals, given.sets, Path(name)))
        keep(rows, True, where)
        failed = [row for row in rows if "ours: " in row["notes"]]
        for row in failed:
            print(f"{row['case']}: {row['notes']}", file=sys.stderr)
        return 1 if failed else 0
    if not given.kept:
        for name in given.only:
            measure(name, given.rivals)
    draw(given.out)
    print(table())
    return 0
