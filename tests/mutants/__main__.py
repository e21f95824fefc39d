"""Change the code in small ways and see whether the tests that run the line notice.

    python -m tests.mutants --modules order --sample 150      # of one room: minutes
    python -m tests.mutants --since main                      # of the lines that a branch changed
    python -m tests.mutants --sample 200 --seed 1             # of the whole product
    python -m tests.mutants --planted --modules order         # the bugs of planted.toml instead of mechanical changes

First, the tests are measured: which of them run which line. That takes as long as the suite with coverage, once; later,
only for test files that changed. `--tests` bounds what is measured and run, beside the doctests of the mutants' files.
Then each mutant is tried in copies of the checkout, one for each of `--jobs` processes: of the tests that run its line,
the quickest, at most `--seconds` of them, until one fails. That test must pass on the code as it is. Results are kept
in `--out`, one line of JSON each, and not asked again while the file is as it is; `--again` asks about those that
survived.

Prints what survived, and a table by room. Exit status 1 where something survived that equivalent.toml does not explain.
"""

import argparse
import compileall
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from hashlib import blake2b
from pathlib import Path

from tests.mutants.changes import Mutant, mutants, planted
from tests.mutants.names import Names
from tests.mutants.reach import Reach

ROOT = Path(__file__).resolve().parent.parent.parent
TOPS = ("stream_engine", "connectors")
EQUIVALENT = Path(__file__).parent / "equivalent.toml"
ELSEWHERE = ("kafka", "prometheus", "spark", "benchmarks", "house", "manual", "fuzz", "mutants", "papers", "support")
# room -> tests that start servers and are asked about its code all the same
SERVERS = {"connectors": {"kafka"}, "service": {"kafka", "prometheus"}, "spark": {"spark"}}
OUTCOMES = ("killed", "timed out", "equivalent", "survived", "no test")
UNNOTICED = OUTCOMES[3:]


def room_of(file: str) -> str:
    parts = file.split("/")
    return parts[0] if parts[0] == "connectors" or len(parts) < 3 else parts[1]


def changed_lines(root: Path, since: str) -> dict[str, set[int]]:
    """File -> lines that differ from those of a revision."""
    command = ["git", "diff", "-U0", "--no-color", since, "--", *TOPS]
    found: dict[str, set[int]] = {}
    for line in subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.splitlines():
        if line.startswith("+++ "):
            lines = found.setdefault(line.removeprefix("+++ b/"), set())
        elif line.startswith("@@"):
            begin, _, count = line.split("+")[1].split(" ")[0].partition(",")
            lines |= set(range(int(begin), int(begin) + int(count or 1)))
    return found


def every(root: Path, modules: list[str], since: str, only_planted: bool) -> list[Mutant]:
    """All mutants that are asked about, or planted bugs."""
    changed = changed_lines(root, since) if since else {}
    files = sorted(str(path.relative_to(root)) for top in TOPS for path in (root / top).rglob("*.py"))
    wanted = [file for file in files if any(each == room_of(file) or each in file for each in modules or [""])]
    wanted = [file for file in wanted if not since or file in changed]
    if only_planted:
        found = [each for each in planted(root) if each.file in wanted]
    else:
        found = [each for file in wanted for each in mutants(file, (root / file).read_text())]
    return [each for each in found if not since or each.line in changed[each.file]]


def drawn(some: list[Mutant], sample: int, seed: int) -> list[Mutant]:
    """So many (0: all) at random by seed; edits elsewhere leave the others of a sample in it."""
    digest = lambda each: blake2b(f"{seed} {each.file} {each.text} {each.change}".encode()).digest()  # noqa: E731
    return sorted(some, key=digest)[: sample or len(some)]


def explained(mutant: Mutant, equivalent: dict) -> bool:
    """Whether equivalent.toml says why a mutant cannot be told from the code as it is."""
    here = equivalent.get(mutant.file, ())
    return any(each["text"] == mutant.text and each["change"] == mutant.change for each in here)


def chosen(tests: dict[str, float], room: str, seconds: float) -> dict[str, float]:
    """The quickest tests that take so long together (at least one), of many cases of a test few; those of a file
    together, the room's own first."""
    case: Counter[str] = Counter()
    costs = []
    for test, took in sorted(tests.items(), key=lambda each: each[1]):
        case[test.partition("[")[0]] += 1
        costs.append(((took + 0.003) * case[test.partition("[")[0]], test))
    found: dict[str, float] = {}
    for _, test in sorted(costs):
        seconds -= tests[test]
        if found and seconds < 0:
            break
        found[test] = tests[test]
    files: Counter[str] = Counter()
    for test, took in found.items():
        files[test.partition("::")[0]] += took
    place = lambda test: (f"/{room}/" not in test, files[test.partition("::")[0]], test.partition("::")[0])  # noqa: E731
    return {test: found[test] for test in sorted(found, key=lambda test: (place(test), found[test]))}


def asked(mutant: Mutant, names: Names, reach: Reach, files: set[str], seconds: float) -> dict:
    """The job of one mutant: its tests, their limit of CPU seconds, and the kernels to compile anew.

    A line in a compiled kernel, or one that is run when its module is loaded, has the tests of the lines that lead to
    it.
    """
    reached, cold = names.reached(mutant.file, mutant.line), False
    wanted = (
        [(file, line, line) for file, line in names.leading(reached)] if reached else [(mutant.file, *mutant.lines)]
    )
    tests = reach.tests(wanted, files)
    if not tests and not reached:
        reached, cold = names.reached(mutant.file, mutant.line, when_loaded=True), True
        tests = reach.tests([(file, line, line) for file, line in names.leading(reached)], files)
    some = chosen(tests, room_of(mutant.file), seconds)
    stale = sorted(("/".join(Path(file).parts[-2:])[:-3], name) for file, name in reached)
    limit = 20 + 4 * sum(some.values()) + (60 if stale else 0)
    return {"mutant": mutant, "tests": list(some), "of": len(tests), "limit": limit, "stale": stale, "cold": cold}


def table(results: list[dict], there: list[Mutant]) -> str:
    """Rooms and their outcomes, as lines of Markdown."""
    lines = ["| room | mutants | tried | " + " | ".join(OUTCOMES) + " | noticed |", "|---|" + "--:|" * 8]
    possible = Counter(room_of(each.file) for each in there)
    rooms = {room: Counter(row["outcome"] for row in results if room_of(row["file"]) == room) for room in possible}
    for room, counts in [*sorted(rooms.items()), ("all", sum(rooms.values(), Counter()))]:
        if n := counts.total() - counts["equivalent"]:
            figures = [possible.get(room, possible.total()), counts.total(), *(counts[each] for each in OUTCOMES)]
            noticed = counts["killed"] + counts["timed out"]
            lines.append(f"| {room} | " + " | ".join(map(str, figures)) + f" | {noticed / n:.0%} |")
    return "\n".join(lines)


def run(root: Path, cache: Path, jobs: list[dict]) -> None:
    """Run each job in a process and a copy of the checkout of its own."""
    kernels = os.environ.get("NUMBA_CACHE_DIR") or str(cache / "kernels")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        processes = []
        for number, job in enumerate(jobs):
            copy, temporary = Path(folder) / f"{number}/checkout", Path(folder) / f"{number}/temporary"
            left_out = shutil.ignore_patterns(
                ".git", ".venv", ".hypothesis", ".cache", "demo", "stream-engine-*", "build"
            )
            shutil.copytree(root, copy, ignore=left_out)
            temporary.mkdir()
            compileall.compile_dir(copy, quiet=1)  # what is not compiled yet; mutants write no bytecode
            path = temporary / "job.json"
            path.write_text(json.dumps({**job, "temporary": str(temporary)}))
            here = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
            here |= {"PYTHONPATH": f"{copy}:{ROOT}", "PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": kernels}
            here |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
            here |= {"HYPOTHESIS_STORAGE_DIRECTORY": str(temporary / "hypothesis")}
            here.setdefault("STREAM_ENGINE_DATA", str(root.parent / "shared/data"))
            command = [sys.executable, "-m", "tests.mutants.warm", str(path)]
            processes.append(subprocess.Popen(command, cwd=copy, env=here))
        for process in processes:
            process.wait()
        if any(process.returncode for process in processes):
            sys.exit("a process of tests.mutants failed")


def main(arguments: list[str] | None = None, root: Path = ROOT, equivalent: Path = EQUIVALENT) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", nargs="*", default=[], help="rooms, or parts of paths")
    parser.add_argument("--since", default="", metavar="REV", help="only lines that differ from this revision")
    parser.add_argument("--planted", action="store_true", help="the bugs of planted.toml, not mechanical changes")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="so many, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="*", default=["tests"], help="files and folders of tests that may be used")
    parser.add_argument("--seconds", type=float, default=12.0, help="of tests for one mutant")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--out", type=Path, default=root / ".cache/mutants/results.jsonl")
    parser.add_argument("--again", action="store_true", help="try those that survived once more")
    parser.add_argument("--known", action="store_true", help="run nothing: only tell what is kept")
    given = parser.parse_args(arguments)
    cache = root / ".cache/mutants"
    cache.mkdir(parents=True, exist_ok=True)
    there = every(root, given.modules, given.since, given.planted)
    sample = drawn(there, given.sample, given.seed)
    reasons = tomllib.loads(equivalent.read_text()) if equivalent.exists() else {}
    alike = {m.key: {**m._asdict(), "outcome": "equivalent"} for m in sample if explained(m, reasons)}

    def kept() -> dict[str, dict]:
        lines = given.out.read_text().splitlines() if given.out.exists() else []
        return {row["key"]: row for row in map(json.loads, lines)} | alike

    known = kept()
    todo = [m for m in sample if m.key not in known or (given.again and known[m.key]["outcome"] in UNNOTICED)]
    if todo and not given.known:
        found = [path.relative_to(root) for each in given.tests for path in (root / each).rglob("test_*.py")]
        servers = set().union(*(SERVERS.get(room_of(each.file), set()) for each in todo))
        files = {str(path) for path in found if not set(path.parts) & (set(ELSEWHERE) - servers)}
        files |= {each for each in given.tests if (root / each).is_file()}
        files |= {each.file for each in todo if ">>> " in (root / each.file).read_text()}  # their doctests
        reach, names = Reach(root, cache / "tests"), Names(root, (*TOPS, "tests"))
        if unknown := reach.unknown(sorted(files)):
            parts = [unknown[number :: given.jobs] for number in range(given.jobs)]
            run(root, cache, [{"measure": part, "reach": str(reach.folder)} for part in parts if part])
        jobs = [asked(mutant, names, reach, files, given.seconds) for mutant in todo]
        parts = [jobs[number :: given.jobs] for number in range(given.jobs)]
        run(root, cache, [{"mutants": part, "out": str(given.out)} for part in parts if part])
        known = kept()
    results = [known[mutant.key] for mutant in sample if mutant.key in known]
    for row in results:
        if row["outcome"] in UNNOTICED:
            ran = f"{row['ran']} of {row['of']} tests"
            print(f"{row['outcome']}  {row['file']}:{row['line']}  {row['change']}  |  {row['text']}  ({ran})")
    print(table(results, there))
    return 1 if any(row["outcome"] in UNNOTICED for row in results) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the copies go with this process
    sys.exit(main())
