"""Change the code in small ways and see whether the tests that run the line notice.

    python -m tests.mutants --since main                      # of the lines that a branch changed
    python -m tests.mutants --modules guard state --sample 40 --seed 1 --tests tests/guard tests/state tests/laws
    python -m tests.mutants --planted --modules guard         # the bugs of planted.toml instead of mechanical changes

Tests are measured once, a test file at a time (which tests run which line; kept below .cache/mutants), and again when
their file changes. `--tests` bounds what is measured and run; without it that is every test that needs no other program
and takes as long as the suite. A mutant runs in a copy of the checkout, one process at a time, its own room's tests
first, the quickest first, until one fails, at most `--seconds` of them. Results are kept in `--out`, one line of JSON
each, and not asked again while the file is as it is; `--again` asks about those that survived.

Prints what survived, and a table by room of all that was tried by now. Exit status 1 where something survived that
equivalent.toml does not explain.
"""

import argparse
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

from tests.mutants.changes import Mutant, applied, mutants
from tests.mutants.names import Names
from tests.mutants.planted import planted
from tests.mutants.tests_by_line import TestsByLine

ROOT = Path(__file__).resolve().parent.parent.parent
TOPS = ("stream_engine", "connectors")
EQUIVALENT = Path(__file__).parent / "equivalent.toml"
ELSEWHERE = ("kafka", "prometheus", "spark", "benchmarks", "house", "manual", "fuzz", "mutants", "papers", "support")
OWN_CACHE = ("compiled.py", "kernel_cache.py", "numba_start.py")  # their mutants compile all anew
OUTCOMES = ("killed", "timed out", "equivalent", "survived", "no test")


def room_of(file: str) -> str:
    parts = file.split("/")
    return parts[0] if parts[0] == "connectors" or len(parts) < 3 else parts[1]


class Bench:
    """A copy of a checkout, with a server in it that runs tests."""

    def __init__(self, root: Path, folder: Path, kernels: Path) -> None:
        self.copy, self.folder, self.kernels = folder / "checkout", folder, kernels
        left_out = shutil.ignore_patterns(".git", ".venv", ".hypothesis", ".cache", "demo", "__pycache__", "build")
        shutil.copytree(root, self.copy, ignore=left_out)
        one = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS")}
        outer = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment = {**outer, **one, "PYTHONPATH": f"{self.copy}:{ROOT}", "NUMBA_CACHE_DIR": str(kernels)}
        command = [sys.executable, "-m", "tests.mutants.server"]
        pipe = subprocess.PIPE
        code = "from stream_engine.data.kernel_cache import key; print(f'stream-engine-{key()}')"
        asked = [sys.executable, "-c", code]
        done = subprocess.run(asked, cwd=self.copy, env=environment, capture_output=True, text=True)
        self.known = kernels / (done.stdout.strip() or "none")  # compiled code of the checkout as it is
        self.server = subprocess.Popen(command, cwd=self.copy, env=environment, stdin=pipe, stdout=pipe, text=True)

    def run(self, file: str, tests: list[str] | None, limit: float, **more) -> tuple[int | str, dict]:
        """(status, what the child noted) of some tests of a file; of all, to their end, where `tests` is None.

        `limit`: of CPU seconds. `more`: what else a job may say, see `in_child.run`.
        """
        out = self.folder / "noted.json"
        out.unlink(missing_ok=True)
        job = {"file": file, "tests": tests, "limit": limit, "out": str(out), "known": str(self.known), **more}
        assert self.server.stdin and self.server.stdout
        self.server.stdin.write(json.dumps(job) + "\n")
        self.server.stdin.flush()
        answer = json.loads(self.server.stdout.readline())
        said = Path(f"{out}.said").read_text(errors="replace").strip().splitlines()[-1:]
        noted = json.loads(out.read_text()) if out.exists() else {"seconds": {}, "failed": [f"{said}"[:120]]}
        return answer["status"], noted | {"cpu": answer["cpu"]}

    def close(self) -> None:
        self.server.communicate()


def tried(mutant: Mutant, bench: Bench, lines: TestsByLine, names: Names, first: list[str], seconds: float) -> dict:
    """Run the tests of a mutant's lines on it; the result as it is kept."""
    found = {"key": mutant.key, "file": mutant.file, "line": mutant.line, "change": mutant.change, "text": mutant.text}
    chosen = lines.of(mutant.file, *mutant.lines)
    of = sum(len(tests) for tests in chosen.values())
    chosen = within(chosen, seconds)
    path, source = bench.copy / mutant.file, (lines.root / mutant.file).read_text()
    reached = names.reached(mutant.file, mutant.line)
    stale = None if mutant.file.endswith(OWN_CACHE) else [("/".join(Path(f).parts[-2:])[:-3], n) for f, n in reached]
    room, ran, cpu = room_of(mutant.file), 0, 0.0
    path.write_text(applied(source, mutant))
    kernels = bench.folder / "kernels of a mutant"
    try:
        for file in sorted(chosen, key=lambda f: (f not in first[:2], f"/{room}/" not in f, sum(chosen[f].values()))):
            kernels.mkdir(exist_ok=True)
            tests = sorted(chosen[file], key=lambda test: chosen[file][test])
            limit = 20 + 4 * sum(chosen[file].values()) + (60 if stale else 0)
            status, noted = bench.run(file, tests, limit, stale=stale, environment={"NUMBA_CACHE_DIR": str(kernels)})
            ran, cpu = ran + len(tests), cpu + noted["cpu"]
            if status not in (0, 5):
                by = file if status == "time" else noted["failed"][-1]
                outcome = "timed out" if status == "time" else "killed"
                return found | {"outcome": outcome, "by": by, "ran": ran, "of": of, "cpu": round(cpu, 2)}
    finally:
        path.write_text(source)
        shutil.rmtree(kernels, ignore_errors=True)
    return found | {"outcome": "survived" if of else "no test", "by": "", "ran": ran, "of": of, "cpu": round(cpu, 2)}


def within(chosen: dict[str, dict[str, float]], seconds: float) -> dict[str, dict[str, float]]:
    """The quickest tests that take so long together (at least one)."""
    found: dict[str, dict[str, float]] = {}
    for took, file, test in sorted(
        (took, file, test) for file, tests in chosen.items() for test, took in tests.items()
    ):
        if found and seconds < took:
            break
        found.setdefault(file, {})[test] = took
        seconds -= took
    return found


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


def every(root: Path, modules: list[str], since: str, only_planted: bool) -> dict[str, list[Mutant]]:
    """Room -> all its mutants that are asked about, or its planted bugs."""
    changed = changed_lines(root, since) if since else {}
    files = sorted(str(path.relative_to(root)) for top in TOPS for path in (root / top).rglob("*.py"))
    wanted = [file for file in files if any(each == room_of(file) or each in file for each in modules or [""])]
    wanted = [file for file in wanted if not since or file in changed]
    if only_planted:
        found = [each for each in planted(root) if each.file in wanted]
    else:
        found = [each for file in wanted for each in mutants(file, (root / file).read_text())]
    rooms: dict[str, list[Mutant]] = {}
    for each in found:
        if not since or each.line in changed[each.file]:
            rooms.setdefault(room_of(each.file), []).append(each)
    return rooms


def drawn(root: Path, some: list[Mutant], sample: int, seed: int) -> list[Mutant]:
    """So many (0: all) at random by seed; edits elsewhere leave the others of a sample in it."""
    digest = lambda each: blake2b(f"{seed} {each.file} {each.text} {each.change}".encode()).digest()  # noqa: E731
    read = (each for each in sorted(some, key=digest) if applied((root / each.file).read_text(), each))
    return [each for each, _ in zip(read, range(sample or len(some)), strict=False)]


def explained(result: dict, equivalent: dict) -> str:
    """Why a mutant cannot be told from the code as it is, or ""."""
    for each in equivalent.get(result["file"], ()):
        if each["text"] == result["text"] and each["change"] == result["change"]:
            return each["why"]
    return ""


def table(results: list[dict], there: dict[str, int]) -> str:
    """Rooms and their outcomes, as lines of Markdown."""
    lines = ["| room | mutants | tried | " + " | ".join(OUTCOMES) + " | killed or explained |", "|---|" + "--:|" * 8]
    rooms = {room: Counter(r["outcome"] for r in results if room_of(r["file"]) == room) for room in sorted(there)}
    for room, counts in [*rooms.items(), ("all", sum(rooms.values(), Counter()))]:
        if n := counts.total():
            good = n - counts["survived"] - counts["no test"]
            figures = [there.get(room, sum(there.values())), n, *(counts[each] for each in OUTCOMES)]
            lines.append(f"| {room} | " + " | ".join(map(str, figures)) + f" | {good / n:.0%} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None, root: Path = ROOT, equivalent: Path = EQUIVALENT) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", nargs="*", default=[], help="rooms, or parts of paths")
    parser.add_argument("--since", default="", metavar="REV", help="only lines that differ from this revision")
    parser.add_argument("--planted", action="store_true", help="the bugs of planted.toml, not mechanical changes")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="so many of each room, drawn by --seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="*", default=["tests"], help="files and folders of tests that may be used")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests for one mutant")
    parser.add_argument("--out", type=Path, default=root / ".cache/mutants/results.jsonl")
    parser.add_argument("--again", action="store_true", help="try those that survived once more")
    parser.add_argument("--known", action="store_true", help="run nothing: only tell what is kept")
    given = parser.parse_args(arguments)
    cache = root / ".cache/mutants"
    cache.mkdir(parents=True, exist_ok=True)
    lines = given.out.read_text().splitlines() if given.out.exists() else []
    kept = {row["key"]: row for row in map(json.loads, lines)}
    rooms = every(root, given.modules, given.since, given.planted)
    there = {mutant.key: mutant for some in rooms.values() for mutant in some}
    asked = [] if given.known else rooms.values()
    chosen = {each.key: each for some in asked for each in drawn(root, some, given.sample, given.seed)}
    if given.again and not given.known:
        chosen |= {key: there[key] for key in kept.keys() & there.keys() if kept[key]["outcome"] in OUTCOMES[3:]}
    reasons = tomllib.loads(equivalent.read_text()) if equivalent.exists() else {}
    kept |= {m.key: {**m._asdict(), "outcome": "equivalent"} for m in there.values() if explained(m._asdict(), reasons)}
    todo = [m for m in chosen.values() if m.key not in kept or (given.again and kept[m.key]["outcome"] in OUTCOMES[3:])]
    if todo:
        with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
            bench = Bench(root, Path(folder), Path(os.environ.get("NUMBA_CACHE_DIR") or cache / "kernels"))
            try:
                try_all(todo, kept, bench, given, root, cache)
            finally:
                bench.close()
    results = [kept[key] for key in there if key in kept]
    for row in results:
        if row["outcome"] in OUTCOMES[3:]:
            ran = f"{row['ran']} of {row['of']} tests"
            print(f"{row['outcome']}  {row['file']}:{row['line']}  {row['change']}  |  {row['text']}  ({ran})")
    print(table(results, {room: len(some) for room, some in rooms.items()}))
    return 1 if any(row["outcome"] in OUTCOMES[3:] for row in results) else 0


def try_all(todo: list[Mutant], kept: dict[str, dict], bench: Bench, given, root: Path, cache: Path) -> None:
    """Measure the tests, then try each mutant; each result is kept at once."""
    named = [Path(each) for each in given.tests if (root / each).is_file()]
    found = [path.relative_to(root) for each in given.tests for path in (root / each).rglob("test_*.py")]
    files = sorted({str(path) for path in [*named, *(path for path in found if not set(path.parts) & set(ELSEWHERE))]})
    names = Names(root, (*TOPS, "tests"))
    lines = TestsByLine(root, cache, files, names)
    for each in lines.files:
        each.measure(root, bench.run, given.seconds, lines.sources)
        print(f"{each.file}: {len(each.known['seconds'])} tests, {len(each.known['failed'])} not used", flush=True)
    kills: dict[str, Counter[str]] = {}
    with given.out.open("a") as out:
        for number, mutant in enumerate(todo, 1):
            before = kills.setdefault(mutant.file, Counter())
            first = [file for file, _ in before.most_common(2)]
            row = kept[mutant.key] = tried(mutant, bench, lines, names, first, given.seconds)
            if row["by"]:
                before[row["by"].partition("::")[0]] += 1
            out.write(json.dumps(row) + "\n")
            out.flush()
            place = f"{number}/{len(todo)} {row['outcome']:9} {row['cpu']:6.1f} s  {row['file']}:{row['line']}"
            print(f"{place}  {row['change']}  {row['by']}", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the copy and the server go with this process
    sys.exit(main())
