"""Thousands of followed files: what they cost while nothing happens, and how soon a line is counted.

    python -m tests.hardening.many_files [--files 3000] [--descriptors 4096] [--seconds 30]

A real `stream-engine run --follow --listen` over a glob; its descriptors, series and processor time are read from
outside.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support.process import ENVIRONMENT, signalled, until

EVENT = b'{"anchor":"a","near":"b","far":"c"}\n'


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("files", 3000), ("descriptors", 4096), ("seconds", 30)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        paths = [folder / f"{number:05d}.jsonl" for number in range(given.files)]
        for path in paths:
            path.write_bytes(EVENT)
        log = folder / "log"
        command = [
            sys.executable,
            "-m",
            "stream_engine",
            "run",
            folder / "*.jsonl",
            "--state",
            folder / "s",
            "--follow",
        ]
        options = ["--listen", "127.0.0.1:0", "--no-refits", "--log-format", "json"]
        limit = given.descriptors, given.descriptors
        with log.open("w") as said:
            engine = subprocess.Popen(
                [*command, *options],
                stdout=said,
                stderr=said,
                env=ENVIRONMENT,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit),
            )
        try:
            measure(engine, log, paths, given.seconds)
        finally:
            signalled(engine)
            print(f"exit status {engine.wait(60)}")


def measure(engine: subprocess.Popen, log: Path, paths: list[Path], seconds: int) -> None:
    """Print what the engine costs once it has read all files."""

    def address() -> str:
        lines = map(json.loads, log.read_text().splitlines())
        return next((line["address"] for line in lines if "address" in line), "")

    def scrape() -> str:
        with urllib.request.urlopen(f"http://{address()}/metrics", timeout=30) as answer:
            return answer.read().decode()

    def counted() -> float:
        lines = (line for line in scrape().splitlines() if line.startswith("stream_engine_comparisons_total"))
        return sum(float(line.split()[-1]) for line in lines)

    until(address, 120, "the address")
    until(lambda: counted() == len(paths), 300, "the first line of every file")
    time.sleep(10)
    before = processor_seconds(engine.pid)
    time.sleep(seconds)
    share = (processor_seconds(engine.pid) - before) / seconds
    text = scrape()
    series = sum(1 for line in text.splitlines() if line and not line.startswith("#"))
    print(f"{len(paths):,} files: {len(list(Path(f'/proc/{engine.pid}/fd').iterdir()))} descriptors, {series} series,")
    print(f"{len(text) / 1000:.1f} kB a scrape, {share:.2%} of a core idle over {seconds} s")
    waits = []
    for number in range(0, len(paths), max(1, len(paths) // 9)):
        goal, began = counted() + 1, time.monotonic()
        with paths[number].open("ab") as file:
            file.write(EVENT)
        until(lambda goal=goal: counted() >= goal, 60, "the appended line")
        waits.append(time.monotonic() - began)
    print(f"appended to counted: median {sorted(waits)[len(waits) // 2]:.1f} s, at most {max(waits):.1f} s")


if __name__ == "__main__":
    main()
