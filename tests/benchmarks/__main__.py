"""`make bench`: whole commands beside their rivals, then the parts of which they are made; machine, its load and
versions on the first line. Behind the name of another command (`COMMANDS`) stand its own arguments. With `--against
../before` the same stages run there in turns: what did a change cost?

Each stage runs in a fresh process, inputs come from a seed, single-threaded figures are CPU time. Rows are printed and
appended to results.jsonl. Arguments: names of stages (default all), --full for the large sizes of the targets.
"""

import argparse
import importlib
import json
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from tests.benchmarks.rows import larger_is_better, row
from tests.conftest import ROOT

HERE = Path(__file__).parent
FIRST = "whole_commands"  # what users wait for stands before the parts of it
STAGES = sorted((path.stem.removeprefix("stage_") for path in HERE.glob("stage_*.py")), key=lambda s: (s != FIRST, s))
COMMANDS = {
    "papers": "tests.benchmarks.papers.command",
    **{
        name: f"tests.benchmarks.{name}"
        for name in ("classify", "clusters", "cluster_calibration", "field", "growth", "kafka", "participants")
    },
}
WORDS = (*STAGES, *COMMANDS)  # what may stand behind `python -m tests.benchmarks`
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
LIBRARIES = ("numpy", "scipy", "numba", "pyarrow", "msgspec", "scikit-learn", "polars", "duckdb")


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    told = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "cpu": told[0].split(":")[1].strip() if told else platform.machine(),
        "cores": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
    }


def text(value) -> str:
    """A figure for the table."""
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


def table(rows: list[dict]) -> str:
    """Rows as aligned columns."""
    heads = ("stage", "case", "ours", "rival", "unit", "ratio", "target", "rival_name", "notes")
    cells = [heads, *(tuple(text(each.get(head)) for head in heads) for each in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells)


def keep(rows: list[dict], full: bool, where: dict[str, str]) -> None:
    """Append rows to the figures of record."""
    with open(HERE / "results.jsonl", "a") as results:
        results.writelines(json.dumps({**each, "full": full, "machine": where}, default=float) + "\n" for each in rows)


def stage_in_fresh_process(name: str, full: bool, checkout: Path = ROOT, python: str = sys.executable) -> list[dict]:
    """Rows of one stage of a checkout; a stage that fails is a row that says so."""
    command = [python, "-m", "tests.benchmarks", "--only", name, *(["--full"] if full else [])]
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(checkout)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=checkout, env=environment)
    if done.returncode:
        return [{"stage": name, "case": "failed", "notes": done.stderr.strip().splitlines()[-1]}]
    return json.loads(done.stdout.splitlines()[-1])


def stage(name: str) -> str:
    """The name of a stage, as it is given."""
    if name not in STAGES:
        raise argparse.ArgumentTypeError(f"there is no {name!r}: any of {', '.join(WORDS)}")
    return name


def speeds(rows: list[dict]) -> dict[tuple[str, str], float]:
    """(case, unit) -> our figure, of rows that say a rate or a time."""
    times = {"s", "CPU-s", "ms", "us", "ns"}
    told = {(row["case"], row["unit"]): row["ours"] for row in rows if isinstance(row.get("ours"), float)}
    return {at: each for at, each in told.items() if larger_is_better(at[1]) or re.split("[ /]", at[1])[0] in times}


def against(other: Path, python: str, name: str, rounds: int) -> list[dict]:
    """The speeds of a stage here and in another checkout, in turns; the best of the rounds, as noise only slows."""
    both = ((ROOT, sys.executable), (other.resolve(), python))
    turns = [[speeds(stage_in_fresh_process(name, False, *each)) for each in both] for _ in range(rounds)]
    made = []
    for case, unit in turns[0][0].keys() & turns[0][1].keys():
        best = max if larger_is_better(unit) else min
        here, there = (best(each[case, unit] for each in side if (case, unit) in each) for side in zip(*turns))
        made.append(row(name, case, here, unit, there, str(other)))
    return sorted(made, key=lambda each: each["ratio"])


def main() -> int:
    if sys.argv[1:2] and sys.argv[1] in COMMANDS:
        return importlib.import_module(COMMANDS[sys.argv[1]]).main(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stages", nargs="*", type=stage, metavar="STAGE", help=f"any of {', '.join(STAGES)}")
    parser.add_argument("--full", action="store_true", help="the sizes of the targets (many minutes)")
    parser.add_argument(
        "--against", type=Path, metavar="CHECKOUT", help="compare with its code, in turns; keeps nothing"
    )
    parser.add_argument("--python", default=sys.executable, help="the interpreter of that checkout")
    parser.add_argument("--rounds", type=int, default=3, help="turns with that checkout")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        rows = importlib.import_module(f"tests.benchmarks.stage_{given.only}").rows(quick=not given.full)
        of_full_sizes = {} if given.full else {"target": ""}
        print(json.dumps([each | of_full_sizes for each in rows], default=float))
        return 0
    where = machine()
    print("  ".join(f"{key} {value}" for key, value in where.items()))
    failed = 0
    for name in given.stages or STAGES:
        if given.against:
            print("\n" + table(against(given.against, given.python, name, given.rounds)), flush=True)
            continue
        rows = stage_in_fresh_process(name, given.full)
        failed += any(each["case"] == "failed" for each in rows)
        print("\n" + table(rows), flush=True)
        keep(rows, given.full, where)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
