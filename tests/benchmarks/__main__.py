"""`make bench`: whole commands, then every stage beside its rival or floor in one run, as ratios; machine, its load and
versions on the first line. Behind the name of another command (`COMMANDS`) stand its own arguments.

Each stage runs in a fresh process, inputs come from a seed, single-threaded figures are CPU time. Rows are printed and
appended to results.jsonl. Arguments: names of stages (default all), --full for the large sizes of the targets.
"""

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
FIRST = "whole_commands"  # what users wait for stands before the parts of it
STAGES = sorted((path.stem.removeprefix("stage_") for path in HERE.glob("stage_*.py")), key=lambda s: (s != FIRST, s))
COMMANDS = {
    "papers": "tests.benchmarks.papers.command",
    **{
        name: f"tests.benchmarks.{name}" for name in ("cluster_verdicts", "dimensions_planted", "kafka", "many_objects")
    },
}
WORDS = (*STAGES, *COMMANDS)  # what may stand behind `python -m tests.benchmarks`
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
LIBRARIES = ("numpy", "scipy", "numba", "pyarrow", "msgspec", "cvxpy", "scikit-learn", "polars", "duckdb", "rustworkx")


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
    cells = [heads, *(tuple(text(row.get(head)) for head in heads) for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(heads))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells)


def keep(rows: list[dict], full: bool, where: dict[str, str]) -> None:
    """Append rows to the figures of record."""
    with open(HERE / "results.jsonl", "a") as results:
        results.writelines(json.dumps({**row, "full": full, "machine": where}, default=float) + "\n" for row in rows)


def stage_in_fresh_process(name: str, full: bool, python: str = sys.executable, checkout: Path | None = None):
    """Rows of one stage, of this checkout or another; a stage that fails is a row that says so."""
    command = [python, "-m", "tests.benchmarks", "--only", name, *(["--full"] if full else [])]
    environment = {**os.environ, **ONE_THREAD} | ({"PYTHONPATH": str(checkout)} if checkout else {})
    done = subprocess.run(command, capture_output=True, text=True, cwd=checkout, env=environment)
    if done.returncode:
        return [{"stage": name, "case": "failed", "notes": done.stderr.strip().splitlines()[-1]}]
    return json.loads(done.stdout.splitlines()[-1])


def stage(name: str) -> str:
    """The name of a stage, as it is given."""
    if name not in STAGES:
        raise argparse.ArgumentTypeError(f"there is no {name!r}: any of {', '.join(WORDS)}")
    return name


def main() -> int:
    if sys.argv[1:2] and sys.argv[1] in COMMANDS:
        return importlib.import_module(COMMANDS[sys.argv[1]]).main(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stages", nargs="*", type=stage, metavar="STAGE", help=f"any of {', '.join(STAGES)}")
    parser.add_argument("--full", action="store_true", help="the sizes of the targets (many minutes)")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        rows = importlib.import_module(f"tests.benchmarks.stage_{given.only}").rows(quick=not given.full)
        of_full_sizes = {} if given.full else {"target": ""}
        print(json.dumps([row | of_full_sizes for row in rows], default=float))
        return 0
    where = machine()
    print("  ".join(f"{key} {value}" for key, value in where.items()))
    failed = 0
    for name in given.stages or STAGES:
        rows = stage_in_fresh_process(name, given.full)
        failed += any(row["case"] == "failed" for row in rows)
        print("\n" + table(rows), flush=True)
        keep(rows, given.full, where)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
