"""Is this checkout slower than another one? The same stages in both, in turns, in one run: `make bench` for a change.

    python -m tests.benchmarks.against ../before [STAGE ...] [--rounds 3] [--python ../before/.venv/bin/python]

The other checkout's stages run with its own code. A figure is the best of its rounds (noise only ever slows down), a
ratio over 1 means that this checkout is better. Rows whose figures are no speeds (shares, errors) are left out.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.benchmarks.__main__ import _ONE_THREAD, STAGES
from tests.conftest import ROOT

TIMES = ("s", "CPU-s", "ms", "us", "µs", "ns")


def rows_of(checkout: Path, python: str, stage: str) -> dict[tuple[str, str], float]:
    """(case, unit) -> our figure, from one fresh process in that checkout; nothing where the stage fails there."""
    environment = {**os.environ, **_ONE_THREAD, "PYTHONPATH": str(checkout)}
    command = [python, "-m", "tests.benchmarks", "--only", stage]
    done = subprocess.run(command, capture_output=True, text=True, cwd=checkout, env=environment)
    if done.returncode:
        print(f"{checkout}: stage {stage} failed: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return {}
    rows = json.loads(done.stdout.splitlines()[-1])
    return {(row["case"], row.get("unit") or ""): row["ours"] for row in rows if isinstance(row.get("ours"), float)}


def smaller_is_better(unit: str) -> bool | None:
    """Whether a figure of this unit is a time; None where it is no speed at all."""
    if "/s" in unit or "/CPU-s" in unit:
        return False
    return True if unit.split(" ")[0].split("/")[0] in TIMES else None


def main() -> int:
    """Print a row a figure, the worst ratio first in each stage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the checkout to compare with")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"any of {', '.join(STAGES)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=sys.executable, help="that checkout's interpreter")
    given = parser.parse_args()
    other = given.other.resolve()
    print(f"{'stage':16}{'case':52}{'unit':18}{'there':>10}{'here':>10}{'ratio':>8}")
    for stage in given.stages or STAGES:
        there: list[dict] = []
        here: list[dict] = []
        for _ in range(given.rounds):
            there.append(rows_of(other, given.python, stage))
            here.append(rows_of(ROOT, sys.executable, stage))
        lines = []
        for case, unit in here[0]:
            less = smaller_is_better(unit)
            before = [figures[case, unit] for figures in there if (case, unit) in figures]
            after = [figures[case, unit] for figures in here if (case, unit) in figures]
            if less is None or not before:
                continue
            old, new = (min(before), min(after)) if less else (max(before), max(after))
            lines.append((old / new if less else new / old, case, unit, old, new))
        for ratio, case, unit, old, new in sorted(lines):
            print(f"{stage:16}{case[:51]:52}{unit[:17]:18}{old:10.3g}{new:10.3g}{ratio:8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
