"""Which tests run a line, and how long each takes: measured once for each test file, and kept below .cache/mutants.

Coverage with a context for each test. What a test file's subprocesses run, or its import, counts for all its tests. A
test file is measured again when it changes. When a file of the product changes, its lines are found again by their
text: a new line has the tests of the line above it.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from difflib import SequenceMatcher
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

from coverage import CoverageData
from coverage.exceptions import DataError

from tests.mutants.names import Names

SETTINGS = """[run]
source = .
omit = tests/support/*
relative_files = true
parallel = {parallel}
core = ctrace
data_file = {data}
"""


class TestFile:
    """What is known of the tests of one file."""

    __test__ = False  # for pytest

    def __init__(self, file: str, folder: Path) -> None:
        self.file = file
        self.data, self.times = folder / f"{file.replace('/', '.')}.coverage", folder / f"{file.replace('/', '.')}.json"

    def measure(self, root: Path, run, seconds: float, sources: Path) -> None:
        """Run the file's tests once, unless it is as it was. Those that fail or take longer are not used."""
        digest = blake2b((root / self.file).read_bytes(), digest_size=8).hexdigest()
        if self.times.exists() and self.known["digest"] == digest:
            return
        self.data.unlink(missing_ok=True)
        own, more, below = (self.data.with_suffix(each) for each in (".own", ".more", ".below"))
        own.write_text(SETTINGS.format(parallel="false", data=self.data))
        more.write_text(SETTINGS.format(parallel="true", data=below))
        measured = {"coverage": str(self.data), "config": str(own), "slowest": 5 * seconds}
        status, noted = run(self.file, None, 1800.0, environment={"COVERAGE_PROCESS_START": str(more)}, **measured)
        whole = CoverageData(str(self.data))
        whole.read()
        for part in below.parent.glob(f"{below.name}.*"):
            some = CoverageData(str(part))
            with suppress(DataError):  # of a process that was killed while it wrote: what it ran is not known
                some.read()
                whole.update(some)
            part.unlink()
        own.unlink()
        more.unlink()
        files = {}
        for file in whole.measured_files():
            if not (root / file).is_file():
                continue  # of a package that a test wrote elsewhere
            text = (root / file).read_bytes()
            files[file] = blake2b(text, digest_size=8).hexdigest()
            (sources / files[file]).write_bytes(text)
        passed = {test: took for test, took in noted["seconds"].items() if test not in noted["failed"]}
        kept = {"digest": digest, "status": status, "seconds": passed, "failed": noted["failed"], "files": files}
        self.times.write_text(json.dumps(kept))
        self.__dict__.pop("known", None)

    @cached_property
    def known(self) -> dict:
        return json.loads(self.times.read_text())

    @cached_property
    def _data(self) -> CoverageData:
        data = CoverageData(str(self.data))
        data.read()
        return data

    @cached_property
    def _contexts(self) -> dict[str, dict[int, list[str]]]:
        return {}

    def tests(self, root: Path, sources: Path, file: str, lines: Iterable[int], whole: bool) -> set[str]:
        """The tests that run one of these lines of a file as it is now; `whole`: of lines that import runs, too."""
        if file not in self.known["files"]:
            return set()
        if file not in self._contexts:
            now, old = (root / file).read_text(), (sources / self.known["files"][file]).read_text()
            contexts = self._data.contexts_by_lineno(file)
            self._contexts[file] = contexts if now == old else moved(contexts, old.splitlines(), now.splitlines())
        found = {context for line in lines for context in self._contexts[file].get(line, ())}
        return set(self.known["seconds"]) if whole and "" in found else found & self.known["seconds"].keys()


def moved(contexts: dict[int, list[str]], old: list[str], new: list[str]) -> dict[int, list[str]]:
    """The same for the lines of a changed text; a new line has what the one above it has."""
    found: dict[int, list[str]] = {}
    for tag, start, end, begin, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            found |= {begin + n + 1: contexts.get(start + n + 1, []) for n in range(end - start)}
        elif begin < stop:
            ran = {each for line in range(start, end + 1) for each in contexts.get(line, ())}
            found |= {line: sorted(ran) for line in range(begin + 1, stop + 1)}
    return found


class TestsByLine:
    """The tests of all files that were measured."""

    __test__ = False

    def __init__(self, root: Path, cache: Path, files: list[str], names: Names) -> None:
        self.root, self.names, self.sources = root, names, cache / "sources"
        (cache / "tests").mkdir(parents=True, exist_ok=True)
        self.sources.mkdir(exist_ok=True)
        self.files = [TestFile(file, cache / "tests") for file in files]

    def of(self, file: str, first: int, last: int) -> dict[str, dict[str, float]]:
        """Test file -> test -> seconds, for a statement on these lines.

        A line in a compiled kernel, or one that is run when its module is loaded, has the tests of the lines that lead
        to it; where there are none, those of the function or class that it belongs to.
        """
        reached = self.names.reached(file, first)
        wanted: dict[str, set[int]] = {}
        for other, line in self.names.leading(reached):
            wanted.setdefault(other, set()).add(line)
        if not reached:
            wanted[file] = set(range(first, last + 1))
        found = self._tests(wanted, whole=True)
        return found or self._tests({file: set(self.names.bodies(file, first))}, whole=False)

    def _tests(self, wanted: dict[str, set[int]], whole: bool) -> dict[str, dict[str, float]]:
        found: dict[str, dict[str, float]] = {}
        for tests in self.files:
            ran = set()
            for file, lines in wanted.items():
                ran |= tests.tests(self.root, self.sources, file, lines, whole)
            if ran:
                found[tests.file] = {test: tests.known["seconds"][test] for test in ran}
        return found
