"""The report and the live page: size, requests, time to open in a real Chromium, CPU and memory of writing, and what
viewers cost a run.

    python -m tests.benchmarks.pages [--objects 3 60 100 1000 5000 100000] [--viewers 100] [--seconds 60]

Reports are of made answers in two dimensions, 40 an object, in a process of their own. Up to 5,000 objects have a map;
more are read without refits, 10 answers an object, and 5,000 of them are shown. *Opens* is the browser's own
domContentLoaded of a page on disk, the median of five. *Viewers* stay connected to the live page of an idle run; the
CPU is that of the engine's process, beside what it takes without viewers, over `--seconds` each.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import httpx
import numpy as np

from tests.report.conftest import chromium
from tests.support.fetched_programs import Missing
from tests.support.process import ENVIRONMENT, engine, jsonl
from tests.support.running_engine import Engine

ANSWERS, OF_MANY = 40, 10  # an object
MANY = 5000  # objects, above which nothing is fitted


def answers(n: int) -> list[dict]:
    """Answers about n objects in the plane."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n, 2))
    rows = rng.integers(n, size=((ANSWERS if n <= MANY else OF_MANY) * n, 3))
    rows = rows[(rows[:, 0] != rows[:, 1]) & (rows[:, 0] != rows[:, 2]) & (rows[:, 1] != rows[:, 2])]
    near, far = (((points[rows[:, 0]] - points[rows[:, side]]) ** 2).sum(axis=1) for side in (1, 2))
    rows[near > far] = rows[near > far][:, [0, 2, 1]]
    return [{"anchor": f"object {a}", "near": f"object {b}", "far": f"object {c}"} for a, b, c in rows.tolist()]


class Written(NamedTuple):
    """A page, and what writing it took."""

    page: Path
    cpu: float  # seconds
    resident: int  # bytes, at most


def report(folder: Path, n: int) -> Written:
    """A report on n objects."""
    refits = ["--refit", "embedding"] if n <= MANY else ["--no-refits"]
    engine("run", jsonl(folder / f"{n}.jsonl", answers(n)), "--state", folder / f"s{n}", *refits)
    page = folder / f"{n}.html"
    made = subprocess.Popen(
        [sys.executable, "-m", "stream_engine", "report", "--state", folder / f"s{n}", "--out", page],
        stdout=subprocess.DEVNULL,
        env=ENVIRONMENT,
    )
    _, status, used = os.wait4(made.pid, 0)
    assert status == 0, f"the report on {n} objects ended with {status}"
    return Written(page, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def opening(pages: list[Path]) -> list[tuple[float, int]]:
    """Seconds to open each page, and the requests that it made."""
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for path in pages:
            took, asked = [], 0
            for _ in range(5):
                page = browser.new_page()
                seen: list[str] = []
                page.on("request", lambda request, seen=seen: seen.append(request.url))
                page.goto(path.as_uri())
                event = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
                took.append(page.evaluate(event) / 1000)
                asked = max(asked, len([url for url in seen if not url.startswith(("file:", "data:"))]))
                page.close()
            found.append((statistics.median(took), asked))
        browser.close()
    return found


def viewing(folder: Path, viewers: int, seconds: float) -> tuple[float, float]:
    """Shares of a core that an idle run takes without, and with, so many viewers."""
    path = jsonl(folder / "idle.jsonl", answers(50))
    run = Engine(folder, str(path), "--follow")
    stop = threading.Event()

    def look() -> None:
        with httpx.Client(timeout=60) as client, client.stream("GET", f"http://{run.address}/live") as answer:
            for _ in answer.iter_lines():
                if stop.is_set():
                    return

    def share() -> float:
        before, began = run.cpu(), time.monotonic()
        time.sleep(seconds)
        return (run.cpu() - before) / (time.monotonic() - began)

    try:
        time.sleep(5)
        alone = share()
        threads = [threading.Thread(target=look, daemon=True) for _ in range(viewers)]
        for thread in threads:
            thread.start()
        time.sleep(5)
        looked_at = share()
        stop.set()
        for thread in threads:
            thread.join(10)
        return alone, looked_at
    finally:
        run.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, nargs="*", default=[3, 60, 100, 1000, 5000, 100_000])
    parser.add_argument("--viewers", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    measured(given.objects, given.viewers, given.seconds)


def measured(objects: list[int], viewers: int, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = [report(folder, n) for n in objects]
        try:
            opened = opening([each.page for each in made])
        except Missing as missing:
            print(f"not opened: {missing}")
            opened = [(float("nan"), -1)] * len(made)
        print("| objects | kB | requests | opens, s | CPU seconds to write | MB to write |\n|---|---|---|---|---|---|")
        for n, each, (took, asked) in zip(objects, made, opened, strict=True):
            size = each.page.stat().st_size / 1000
            print(f"| {n:,} | {size:,.0f} | {asked} | {took:.2f} | {each.cpu:.1f} | {each.resident / 1e6:,.0f} |")
        if viewers:
            alone, looked_at = viewing(folder, viewers, seconds)
            print(f"\n{viewers} viewers, {seconds:.0f} s: {looked_at:.2%} of a core, {alone:.2%} without any")


if __name__ == "__main__":
    main()
