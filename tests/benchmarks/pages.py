"""The report and the live page: size, requests, time to open in a real Chromium, and what viewers cost a run.

    python -m tests.benchmarks.pages [--objects 100 1000 5000] [--viewers 100]

Reports are of made answers in two dimensions, 40 an object. *Opens* is the browser's own domContentLoaded of a page on
disk, the median of five. *Viewers* stay connected to the live page of an idle run for 20 seconds; the CPU is that of
the engine's process, beside what it takes without viewers.
"""

import argparse
import statistics
import tempfile
import threading
import time
from pathlib import Path

import httpx
import numpy as np

from tests.report.conftest import ChromiumMissing, chromium
from tests.support.process import engine, jsonl
from tests.support.running_engine import Engine

ANSWERS = 40  # an object
SECONDS = 20.0


def answers(n: int) -> list[dict]:
    """Answers about n objects in the plane."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(n, 2))
    rows = rng.integers(n, size=(ANSWERS * n, 3))
    rows = rows[(rows[:, 0] != rows[:, 1]) & (rows[:, 0] != rows[:, 2]) & (rows[:, 1] != rows[:, 2])]
    near, far = (((points[rows[:, 0]] - points[rows[:, side]]) ** 2).sum(axis=1) for side in (1, 2))
    rows[near > far] = rows[near > far][:, [0, 2, 1]]
    return [{"anchor": f"object {a}", "near": f"object {b}", "far": f"object {c}"} for a, b, c in rows.tolist()]


def report(folder: Path, n: int) -> tuple[Path, float]:
    """A report on n objects, and the CPU seconds that writing it took."""
    engine("run", jsonl(folder / f"{n}.jsonl", answers(n)), "--state", folder / f"s{n}", "--refit", "embedding")
    began = time.process_time()
    engine("report", "--state", folder / f"s{n}", "--out", folder / f"{n}.html")
    return folder / f"{n}.html", time.process_time() - began


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


def viewing(folder: Path, viewers: int) -> tuple[float, float]:
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
        time.sleep(SECONDS)
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


def main(objects: list[int], viewers: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = [report(folder, n) for n in objects]
        try:
            opened = opening([path for path, _ in made])
        except ChromiumMissing as missing:
            print(f"not opened: {missing}")
            opened = [(float("nan"), -1)] * len(made)
        print("| objects | kB | requests | opens, s | CPU seconds to write |\n|---|---|---|---|---|")
        for n, (path, cpu), (seconds, asked) in zip(objects, made, opened, strict=True):
            print(f"| {n:,} | {path.stat().st_size / 1000:,.0f} | {asked} | {seconds:.2f} | {cpu:.1f} |")
        alone, looked_at = viewing(folder, viewers)
        print(f"\n{viewers} viewers: {looked_at:.1%} of a core, {alone:.1%} without any")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objects", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--viewers", type=int, default=100)
    given = parser.parse_args()
    main(given.objects, given.viewers)
