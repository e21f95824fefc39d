"""Every table, figure and number of the five papers beside ours, as a page.

    python -m tests.benchmarks papers --out FOLDER [--only heim mcfee perrot2019 perrot2020 kleindessner]
                                      [--reduced | --kept] [--results FOLDER] [--jobs 2]

What is kept beside the benchmarks is used; what is missing is made and kept, so the command can be stopped and resumed.
--reduced makes it at a smaller size, --kept not at all. An empty --results makes everything again, but for the runs
that `boosting_paper`, `planted_clusters` and `usps_clusters` keep, which those commands make. Writes papers.md and
papers.html. Data: the folder STREAM_ENGINE_DATA, else ../shared/data beside the checkout.
"""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

from threadpoolctl import threadpool_limits

from tests.benchmarks.papers import PAPERS
from tests.benchmarks.papers.kept import Kept
from tests.benchmarks.papers.page import counted, write
from tests.benchmarks.papers.rows import Paper
from tests.conftest import human_judgements

HERE = Path(__file__).parent


def one(name: str, results: Path, make: bool, reduced: bool) -> tuple[Paper, dict[str, float], float]:
    """A paper, and the CPU seconds of what was made for it now: by experiment, and of all."""
    began = time.process_time()
    kept = Kept(results / f"{name}.jsonl", make, reduced, lambda text: print(text, flush=True))
    with threadpool_limits(1):
        made = import_module(PAPERS[name]).paper(kept)
    return made, kept.seconds, time.process_time() - began


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", choices=tuple(PAPERS), default=list(PAPERS))
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--reduced", action="store_true", help="what is missing at a smaller size: under five minutes")
    size.add_argument("--kept", action="store_true", help="make nothing: the page from what is kept")
    parser.add_argument("--results", type=Path, default=HERE, metavar="FOLDER", help="where results are kept")
    parser.add_argument("--jobs", type=int, default=1, help="papers at once (default 1)")
    given = parser.parse_args(arguments)
    folder = human_judgements()
    if folder is None and not given.kept:
        parser.error("no human judgements: set STREAM_ENGINE_DATA, or draw the page of what is kept with --kept")
    if folder is not None:
        os.environ["STREAM_ENGINE_DATA"] = str(folder)
    tasks = [(name, given.results, not given.kept, given.reduced) for name in given.only]
    if given.jobs > 1:
        with ProcessPoolExecutor(given.jobs) as pool:
            done = list(pool.map(one, *zip(*tasks)))
    else:
        done = [one(*task) for task in tasks]
    for name, (paper, seconds, whole) in zip(given.only, done):
        print(f"{name}: {counted(paper.rows)}; {whole:.1f} CPU s")
        for experiment, cpu in sorted(seconds.items(), key=lambda item: -item[1]):
            print(f"  {experiment}: {cpu:.1f} CPU s")
    for path in write([paper for paper, _, _ in done], given.out):
        print(path)
    return 0
