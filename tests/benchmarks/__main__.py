"""`make bench`: whole commands, then every stage beside its rival or floor in one run, as ratios; machine, its load and
versions on the first line. `papers` is another command: the five papers beside ours, see `papers/command.py`.

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
from pathlib import Path

HERE = Path(__file__).parent
FIRST = "whole_commands"  # what users wait for stands before the parts of it
STAGES = sorted((path.stem.removeprefix("stage_") for path in HERE.glob("stage_*.py")), key=lambda s: (s != FIRST, s))
WORDS = (*STAGES, "papers")  # what may stand behind `python -m tests.benchmarks`
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    from importlib.metadata import version

    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    libraries = (
        "numpy",
        "scipy",
        "numba",
        "pyarrow",
        "msgspec",
        "cvxpy",
        "scikit-learn",
        "polars",
        "duckdb",
        "rustworkx",
    )
    return {
        "cpu": model,
        "cores": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        **{name: version(name) for name in libraries},
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


def stage_in_fresh_process(name: str, full: bool) -> list[dict]:
    """Rows of one stage; a stage that fails is a row that says so."""
    command = [sys.executable, "-m", "tests.benchmarks", "--only", name, *(["--full"] if full else [])]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **_ONE_THREAD})
    if done.returncode:
        return [{"stage": name, "case": "failed", "notes": done.stderr.strip().splitlines()[-1]}]
    return json.loads(done.stdout.splitlines()[-1])


def stage(name: str) -> str:
    """The name of a stage, as it is given."""
    if name not in STAGES:
        raise argparse.ArgumentTypeError(f"there is no {name!r}: any of {', '.join(STAGES)}")
    return name


def main() -> int:
    if sys.argv[1:2] == ["papers"]:
        from tests.benchmarks.papers import command

        return command.main(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stages", nargs="*", type=stage, metavar="STAGE", help=f"any of {', '.join(STAGES)}")
    parser.add_argument("--full", action="store_true", help="the sizes of the targets (many minutes)")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        rows = importlib.import_module(f"tests.benchmarks.stage_{given.only}").rows(quick=not given.full)
        print(json.dumps(rows, default=float))
        return 0
    where = machine()
    print("  ".join(f"{key} {value}" for key, value in where.items()))
    failed = 0
    with open(HERE / "results.jsonl", "a") as results:
        for name in given.stages or STAGES:
            rows = stage_in_fresh_process(name, given.full)
            failed += any(row["case"] == "failed" for row in rows)
            print("\n" + table(rows), flush=True)
            for row in rows:
                results.write(json.dumps({**row, "full": given.full, "machine": where}, default=float) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
