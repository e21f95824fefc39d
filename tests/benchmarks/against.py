"""Is this checkout slower than another one? The same stages in both, in turns, in one run: `make bench` for a change.

    python -m tests.benchmarks.against ../before [STAGE ...] [--rounds 3] [--python ../before/.venv/bin/python]

The other checkout's stages run with its own code. A figure is the best of its rounds (noise only ever slows down), a
ratio over 1 means that this checkout is better. Rows whose figures are no speeds (shares, errors) are left out.
"""

import argparse
import sys
from pathlib import Path

from tests.benchmarks.__main__ import STAGES, stage_in_fresh_process
from tests.benchmarks.rows import larger_is_better
from tests.conftest import ROOT

TIMES = ("s", "CPU-s", "ms", "us", "µs", "ns")


def speeds(checkout: Path, python: str, stage: str) -> dict[tuple[str, str], float]:
    """(case, unit) -> our figure, from one fresh process in that checkout; nothing where the stage fails there."""
    found = {}
    for row in stage_in_fresh_process(stage, False, python, checkout):
        unit = row.get("unit") or ""
        if row["case"] == "failed":
            print(f"{checkout}: stage {stage} failed: {row['notes']}", file=sys.stderr)
        elif isinstance(row["ours"], float) and (
            "/s" in unit or "/CPU-s" in unit or unit.split(" ")[0].split("/")[0] in TIMES
        ):
            found[row["case"], unit] = row["ours"]
    return found


def main() -> int:
    """Print a row a figure, the worst ratio first in each stage."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="the checkout to compare with")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"any of {', '.join(STAGES)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--python", default=sys.executable, help="that checkout's interpreter")
    given = parser.parse_args()
    checkouts = ((given.other.resolve(), given.python), (ROOT, sys.executable))
    print(f"{'stage':16}{'case':52}{'unit':18}{'there':>10}{'here':>10}{'ratio':>8}")
    for stage in given.stages or STAGES:
        turns = [[speeds(*checkout, stage) for checkout in checkouts] for _ in range(given.rounds)]
        there, here = zip(*turns, strict=True)
        lines = []
        for case, unit in here[0].keys() & there[0].keys():
            best = max if larger_is_better(unit) else min
            old, new = (best(each[case, unit] for each in side if (case, unit) in each) for side in (there, here))
            lines.append((new / old if larger_is_better(unit) else old / new, case, unit, old, new))
        for ratio, case, unit, old, new in sorted(lines):
            print(f"{stage:16}{case[:51]:52}{unit[:17]:18}{old:10.3g}{new:10.3g}{ratio:8.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
