"""Which tests run a line, and how long each takes: measured once for each test file, and kept below .cache/mutants.

A line is known by the function that it is in and by its text, so what was measured stays true while code moves. A line
that is new has the tests of its function.
"""

import ast
import json
import re
from collections.abc import Callable, Iterable
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

PHASE = re.compile(r" \((setup|call|teardown)\)$")


def digest(path: Path) -> str:
    return blake2b(path.read_bytes(), digest_size=8).hexdigest()


def places(source: str) -> list[str]:
    """For each line: the function or class that it is in, and its text."""
    owners = [""] * source.count("\n") + [""] * 2

    def visit(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            inside = name
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inside = f"{name}.{child.name}".lstrip(".")
                for line in range(child.body[0].lineno, (child.end_lineno or 0) + 1):
                    owners[line] = inside
            visit(child, inside)

    visit(ast.parse(source), "")
    return [""] + [f"{owner}\t{line.strip()}" for owner, line in zip(owners[1:], source.splitlines(), strict=False)]


class Reach:
    """What is known of the tests of all files, in a folder."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.root, self.folder = root, folder
        self._places: dict[str, list[str]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def _path(self, file: str) -> Path:
        return self.folder / f"{file.replace('/', '.')}.json"

    def unknown(self, files: Iterable[str]) -> list[str]:
        """The test files that were never measured, or are not as they were."""
        known = {file: self._path(file) for file in files}
        was = {file: json.loads(path.read_text())["digest"] for file, path in known.items() if path.exists()}
        return [file for file in known if was.get(file) != digest(self.root / file)]

    def keep(self, file: str, seconds: dict[str, float], contexts: Callable, files: Iterable[str]) -> None:
        """Note the tests of a file; `contexts`: file -> line -> the tests that ran it, "" for all of them."""
        numbers = {test: number for number, test in enumerate(seconds)}
        lines: dict[str, dict[str, int]] = {}
        sets: dict[tuple[int, ...], int] = {}
        for other in files:
            known = places((self.root / other).read_text()) if (self.root / other).is_file() else []
            ran: dict[str, set[int]] = {}
            for line, tests in contexts(other).items():
                if line < len(known):
                    every = any(not test or test.endswith(" (setup)") for test in tests)
                    names = numbers if every else {PHASE.sub("", test) for test in tests} & numbers.keys()
                    ran.setdefault(known[line], set()).update(numbers[test] for test in names)
            some = {place: tuple(sorted(tests)) for place, tests in ran.items() if tests}
            lines[other] = {place: sets.setdefault(tests, len(sets)) for place, tests in some.items()}
        found = {"digest": digest(self.root / file), "seconds": seconds, "sets": list(sets), "lines": lines}
        self._path(file).write_text(json.dumps(found))
        self.__dict__.pop("_known", None)

    @cached_property
    def _known(self) -> list[tuple[str, dict]]:
        return [(path.name, json.loads(path.read_text())) for path in sorted(self.folder.glob("*.json"))]

    def tests(self, wanted: Iterable[tuple[str, int, int]], files: set[str]) -> dict[str, float]:
        """The tests of these files, and their seconds, that run one of the lines, each (file, first, last)."""
        keys: dict[str, set[str]] = {}
        for file, first, last in wanted:
            if file not in self._places:
                self._places[file] = places((self.root / file).read_text())
            keys.setdefault(file, set()).update(self._places[file][first : last + 1])
        names = {self._path(file).name for file in files}
        known = [each for name, each in self._known if name in names]
        owners = {file: {key.split("\t")[0] for key in some} - {""} for file, some in keys.items()}
        return _run(known, lambda file, place: place in keys[file], keys) or _run(
            known, lambda file, place: place.split("\t")[0] in owners[file], keys
        )


def _run(known: list[dict], is_wanted: Callable[[str, str], bool], files: Iterable[str]) -> dict[str, float]:
    found = {}
    for each in known:
        tests = list(each["seconds"].items())
        for file in files:
            for place, ran in each["lines"].get(file, {}).items():
                if is_wanted(file, place):
                    found.update(tests[number] for number in each["sets"][ran])
    return found
