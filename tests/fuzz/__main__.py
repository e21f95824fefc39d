"""The command of the package: campaigns in a child process each, so that an input that kills it is found and told.

    python -m tests.fuzz --inputs N [--target NAME ...] [--seed S] [--minutes M] [--keep FOLDER]

Inputs are shared out over the targets (`targets.TARGETS`), after the cases of the corpus. One line a target says how
many inputs, how many a second, what became of them, and how many failed; failures go to FOLDER (default: a folder
below the system's temporary one) with the command that repeats each. Exit status 1 when one failed.
"""

import argparse
import json
import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.campaign import Failure, campaign, input_of, kept
from tests.fuzz.mutations import kept_cases
from tests.fuzz.targets import TARGETS

PROGRAM = (sys.executable, "-m", "tests.fuzz")
AT_MOST = 25  # failures of a target after which it stops
ADDRESS_SPACE = 12 << 30  # bytes: an input that takes more than that is a failure, not the end of the machine


def main() -> int:
    given = _arguments()
    names = given.target or list(TARGETS)
    folder = Path(given.keep or tempfile.mkdtemp(prefix="fuzz-failures-"))
    if given.child:
        return _child(names[0], given, folder)
    if given.only is not None:
        return _only(names[0], given.seed, given.only)
    parts = sum(TARGETS[name].part for name in names)
    failed = total = 0
    until = time.monotonic() + 60 * given.minutes if given.minutes else None
    for name in names:
        inputs = max(1, given.inputs * TARGETS[name].part // parts)
        rest = None if until is None else max(1.0, until - time.monotonic())
        became, seconds, failures = _campaign(name, inputs, given.seed, rest, folder)
        n = sum(became.values())
        words = ", ".join(f"{word} {count:,}" for word, count in became.most_common())
        print(f"{name}: {n:,} inputs, {n / max(seconds, 1e-9):,.0f}/s, {failures} failed ({words})", flush=True)
        failed, total = failed + failures, total + n
    print(f"{total:,} inputs, seed {given.seed}, {failed} failed" + (f"; see {folder}" if failed else ""))
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.split("\n")[0])
    parser.add_argument("--inputs", type=int, default=10_000, help="How many inputs, over all targets.")
    parser.add_argument("--target", action="append", choices=list(TARGETS), help="Only this one; repeatable.")
    parser.add_argument("--seed", type=int, default=0, help="Of all inputs.")
    parser.add_argument("--minutes", type=float, help="Stop after so long, whatever is left.")
    parser.add_argument("--keep", metavar="FOLDER", help="Where failing inputs are kept.")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="Run one input again, in this process.")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


def _only(name: str, seed: int, number: int) -> int:
    data = input_of(name, seed, number)
    print(f"{len(data):,} bytes: {data[:2000]!r}")
    for _, became, failure in campaign(name, seed, iter([number])):
        print(became if failure is None else f"{failure.error}\nsmaller: {failure.smaller[:2000]!r}")
        return 1 if failure else 0
    return 0


def _campaign(
    name: str, inputs: int, seed: int, seconds: float | None, folder: Path
) -> tuple[Counter[str], float, int]:
    """All inputs of a target, in children; one that dies is told, and the next goes on after the input it died of."""
    became: Counter[str] = Counter()
    failures, first, begun = 0, -len(kept_cases(name)), time.monotonic()
    with tempfile.NamedTemporaryFile(prefix="fuzz-at-") as at:
        at.write(bytes(8))
        at.flush()
        while first < inputs and failures < AT_MOST:
            left = [] if seconds is None else ["--minutes", str((seconds - (time.monotonic() - begun)) / 60)]
            arguments = ["--target", name, "--inputs", str(inputs), "--seed", str(seed), "--keep", str(folder), *left]
            command = [*PROGRAM, *arguments, "--child", at.name, "--first", str(first)]
            done, before = subprocess.run(command, stdout=subprocess.PIPE, check=False), sum(became.values())
            for line in done.stdout.splitlines():
                told = json.loads(line)
                became.update(told["became"])
                failures += told["became"].get("FAILED", 0)
            if done.returncode == 0:
                break
            number = int.from_bytes(Path(at.name).read_bytes()[:8], "little", signed=True)
            data = input_of(name, seed, number)
            died = Failure(name, seed, number, data, data, f"the process ended with {done.returncode}")
            print(f"  {kept(died, folder)}: {died.error}; {died.repeats()}", flush=True)
            became["not told"] += number - first - (sum(became.values()) - before)  # by the child, before it died
            became["FAILED"] += 1
            failures, first = failures + 1, number + 1
    return became, time.monotonic() - begun, failures


def _child(name: str, given: argparse.Namespace, folder: Path) -> int:
    """Inputs from a number on; says which it has begun in a mapped file, and what became of them line by line."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    out, sys.stdout = os.fdopen(os.dup(1), "w"), sys.stderr  # what a command prints is not for the parent
    until = time.monotonic() + 60 * given.minutes if given.minutes else None
    became, failures = Counter[str](), 0
    with open(given.child, "r+b") as file, mmap.mmap(file.fileno(), 8) as at:

        def begun(number: int) -> None:
            at[:] = number.to_bytes(8, "little", signed=True)

        for number, word, failure in campaign(name, given.seed, iter(range(given.first, given.inputs)), until, begun):
            became[word] += 1
            if failure is not None:
                failures += 1
                path = kept(failure, folder)
                print(f"  {path}: {failure.error.splitlines()[-1][:300]}; {failure.repeats()}", file=sys.stderr)
            if number % 256 == 0 or failure is not None:
                print(json.dumps({"became": became}), file=out, flush=True)
                became.clear()
            if failures >= AT_MOST:
                break
    print(json.dumps({"became": became}), file=out, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
