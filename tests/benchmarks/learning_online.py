"""What makes it learn online: one figure a point, from one command, on human judgements wherever there are any.

    python -m tests.benchmarks.learning_online [--out FOLDER] [--only 3 5] [--full]

1 how well each similarity predicts what comes next; 2 how soon a change is noticed, against false alarms; 3 what
forgetting wins and costs; 4 how reliable workers are; 5 whether the stated confidences are true; 6 what asking wins;
7 the classifier under river. Each is a module of this folder, run in its own process with modest sizes (minutes;
--full: those that the modules choose); FOLDER gets N-name.png and N-name.txt (what it printed). Point 4 needs human
judgements (STREAM_ENGINE_DATA), the others leave out what they have none for.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.conftest import human_judgements

REAL = human_judgements() is not None
WORLDS = (["food"] if REAL else []) + ["digits"]
POINTS = {  # point -> (module, arguments, those of the modest size, file that it draws)
    1: ("progressive", WORLDS, ["--refits", "sdp_clustering", "kernel_learning"], "progressive.png"),
    2: ("planted_drift", [], ["--kswin-seeds", "0"], "planted_drift.png"),
    3: ("forgetting", [], [], "forgetting.png"),
    4: ("worker_reliability", [], [], "worker_reliability.png"),
    5: ("confidence", [], [], "confidence.png"),
    6: ("asking", ["eggs"] if REAL else ["scale-90"], ["--seeds", "2"], "asking.png"),
    7: ("river_curves", WORLDS, [], "river_curves.png"),
}


def figure(point: int, out: Path, full: bool) -> bool:
    """Run one module; is its figure there?"""
    module, always, modest, drawn = POINTS[point]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        where = ["--figure", str(Path(folder, drawn))] if module == "asking" else ["--out", folder]
        done = subprocess.run(
            [sys.executable, "-m", f"tests.benchmarks.{module}", *always, *([] if full else modest), *where],
            stdout=subprocess.PIPE,
            text=True,
        )
        there = done.returncode == 0 and Path(folder, drawn).is_file()
        (out / f"{point}-{module}.txt").write_text(done.stdout)
        if there:
            shutil.copy(Path(folder, drawn), out / f"{point}-{module}.png")
    print(
        f"{point} {out / f'{point}-{module}.png' if there else f'{module}: no figure, exit code {done.returncode}'} "
        f"({time.monotonic() - began:.0f} s)",
        flush=True,
    )
    return there


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="learning-online")
    parser.add_argument("--only", type=int, nargs="*", choices=POINTS, default=[])
    parser.add_argument("--full", action="store_true", help="the sizes that the modules choose themselves")
    given = parser.parse_args()
    out = Path(given.out)
    out.mkdir(parents=True, exist_ok=True)
    points = given.only or [point for point, (module, *_) in POINTS.items() if REAL or module != "worker_reliability"]
    drawn = [figure(point, out, given.full) for point in points]  # all of them, also after one that failed
    return 0 if all(drawn) else 1


if __name__ == "__main__":
    sys.exit(main())
