"""Every table, number and claim of the five papers beside ours, as a page.

    python -m tests.benchmarks papers --out FOLDER [--only heim mcfee perrot2019 perrot2020 kleindessner]
                                      [--kept] [--results FOLDER]

Results are kept beside this file with a digest of the code that they rest on. What is missing or stale is made and
kept, so the command can be stopped and resumed; --kept makes nothing and says which rows are not of the present code.
An empty --results makes everything again, in some 12 CPU minutes. Writes papers.md. Data: the folder
STREAM_ENGINE_DATA, else ../shared/data beside the checkout.
"""

import argparse
import os
import time
from importlib import import_module
from pathlib import Path

from threadpoolctl import threadpool_limits

from tests.benchmarks.papers import PAPERS
from tests.benchmarks.papers.kept import Kept
from tests.benchmarks.papers.page import counted, markdown
from tests.benchmarks.papers.rows import Paper
from tests.conftest import human_judgements

HERE = Path(__file__).parent


def one(name: str, results: Path, make: bool) -> tuple[Paper, dict[str, float], float]:
    """A paper, and the CPU seconds of what was made for it now: by experiment, and of all."""
    began, module = time.process_time(), import_module(PAPERS[name])
    kept = Kept(results / f"{name}.jsonl", module.RESTS_ON, make, lambda text: print(text, flush=True))
    with threadpool_limits(1):
        made = module.paper(kept)
    if make:
        kept.forget_unasked()
    for key in kept.stale:
        print(f"{name}: stale, not shown: {key}")
    return made, kept.seconds, time.process_time() - began


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks papers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--only", nargs="+", choices=tuple(PAPERS), default=list(PAPERS))
    parser.add_argument("--kept", action="store_true", help="make nothing: the page from what is kept")
    parser.add_argument("--results", type=Path, default=HERE, metavar="FOLDER", help="where results are kept")
    given = parser.parse_args(arguments)
    folder = human_judgements()
    if folder is None and not given.kept:
        parser.error("no human judgements: set STREAM_ENGINE_DATA, or write the page of what is kept with --kept")
    if folder is not None:
        os.environ["STREAM_ENGINE_DATA"] = str(folder)
    done = [one(name, given.results, not given.kept) for name in given.only]
    for name, (paper, seconds, whole) in zip(given.only, done):
        print(f"{name}: {counted(paper.rows)}; {whole:.1f} CPU s")
        for experiment, cpu in sorted(seconds.items(), key=lambda item: -item[1]):
            print(f"  {experiment}: {cpu:.1f} CPU s")
    given.out.mkdir(parents=True, exist_ok=True)
    page = given.out / "papers.md"
    page.write_text(markdown([paper for paper, _, _ in done]))
    print(page)
    return 0
