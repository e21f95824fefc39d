"""From `git clone` to a map of one's own CSV, cold, as the README says it: `python -m tests.benchmarks.first_minutes`.

Clones this checkout into a folder of its own, with caches of its own (Python packages, compiled kernels), runs `make
run`, then reads a survey's CSV and writes its report. Prints what each step took; asserts nothing about time. What it
does not clear is pip's index of packages on the network: a step of downloads is as fast as the network is.
"""

import argparse
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from stream_engine.manual.worlds import answers
from tests.conftest import ROOT

KEPT = ("PATH", "PYTHON", "LANG", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def survey(path: Path) -> None:
    """A CSV as people have it: 30 things, 2,000 answers of 20 people."""
    import numpy as np

    rng = np.random.default_rng(0)
    points = np.repeat([[0, 0], [3, 0], [1, 3]], 10, axis=0) + rng.normal(0, 0.6, (30, 2))
    rows = [f"thing {a},thing {b},thing {c},w{n % 20}" for n, (a, b, c) in enumerate(answers(points, 2000))]
    path.write_text("\n".join(["anchor,near,far,worker", *rows]) + "\n")


def steps(folder: Path, demo: bool) -> list[tuple[str, str]]:
    """What the README says: (step, command)."""
    engine = folder / "clone" / ".venv" / "bin" / "stream-engine"
    first = "make run" if demo else "make .venv/runnable"
    return [
        ("clone", f"git clone -q {ROOT} {folder}/clone"),
        (first, f"cd {folder}/clone && {first}"),
        ("preview", f"{engine} preview {folder}/survey.csv"),
        ("run", f"{engine} run {folder}/survey.csv --state {folder}/state"),
        ("report", f"{engine} report --state {folder}/state --out {folder}/report.html --figures {folder}/figures"),
        ("the same run once more, everything compiled", f"{engine} run {folder}/survey.csv --state {folder}/again"),
    ]


def main() -> None:
    """Do the steps and print what each took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-demo", action="store_true", help="set up only, in place of `make run`")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        survey(folder / "survey.csv")
        kept = {key: value for key, value in os.environ.items() if key in KEPT or key.startswith(("PIP_", "UV_"))}
        kept |= {"HOME": name, "XDG_CACHE_HOME": f"{name}/cache", "TMPDIR": name}
        whole = 0.0
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        for what, command in steps(folder, not arguments.no_demo):
            begun, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(["bash", "-c", command], env=kept, capture_output=True, text=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = time.monotonic() - begun
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            whole += seconds
            print(f"{what:45} {seconds:7.1f} s wall {cpu:7.1f} CPU s", flush=True)
            if done.returncode:
                raise SystemExit(f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        print(f"{'in all':45} {whole:7.1f} s wall; the map: {(folder / 'figures' / 'map.svg').stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
