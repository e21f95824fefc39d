"""Results of experiments, one a line of JSON, read where they are there and made where they are not.

A line is {"key": settings, "found": what was found, "made": {"date", "with", "cpu"}}. Lines are appended when they are
made: a command can be stopped and resumed. The older benchmarks keep lines of their own form (`earlier`).
"""

import json
import subprocess
import time
from collections.abc import Callable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import ROOT


class Cell(NamedTuple):
    """One result: its settings, what was found, when and with what it was made, and whether at a reduced size."""

    key: dict[str, Any]
    found: Any
    made: dict[str, Any]
    reduced: bool = False


def made_now(cpu: float | None = None) -> dict[str, Any]:
    """Day, and the versions of what computes."""
    libraries = " ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    said = {"date": date.today().isoformat(), "with": f"stream-engine {commit()}, {libraries}"}
    return said if cpu is None else said | {"cpu": round(cpu, 2)}


def commit() -> str:
    """Version and commit of the checkout, a plus sign behind where files had been changed."""
    try:
        told = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+"]
        return f"{version('stream_engine')} {subprocess.run(told, capture_output=True, text=True).stdout.strip()}"
    except FileNotFoundError:
        return version("stream_engine")


class Kept:
    """The results of one paper. `make`: whether what is missing is made; `reduced`: at the smaller size, where there is
    one. What is kept at full size is always preferred."""

    def __init__(self, file: Path, make: bool = True, reduced: bool = False, tell: Callable[[str], None] = print):
        self.file, self.make, self.reduced, self.tell = file, make, reduced, tell
        lines = file.read_text().splitlines() if file.exists() else []
        self.cells = {_name(each["key"]): Cell(**each) for each in map(json.loads, lines)}
        self.seconds: dict[str, float] = {}  # of this run, by experiment

    def cell(
        self,
        key: dict[str, Any],
        make: Callable[[dict[str, Any]], Any],
        smaller: dict[str, Any] | None = None,
        left_out_when_reduced: bool = False,
    ) -> Cell | None:
        """The result of `key`; `make(key)` where it is not kept. `smaller`: settings that differ when reduced."""
        if _name(key) in self.cells:
            return self.cells[_name(key)]
        if self.reduced and left_out_when_reduced:
            return None
        less = key | (smaller or {})
        if (self.reduced or not self.make) and _name(less) in self.cells:
            return self.cells[_name(less)]._replace(reduced=less != key)
        if not self.make:
            return None
        wanted = less if self.reduced else key
        began = time.process_time()
        found = make(wanted)
        cpu = time.process_time() - began
        made = Cell(wanted, json.loads(json.dumps(found, default=float)), made_now(cpu), wanted != key)
        self.cells[_name(wanted)] = made
        self.seconds[key["experiment"]] = self.seconds.get(key["experiment"], 0.0) + cpu
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with open(self.file, "a") as file:
            file.write(json.dumps({"key": made.key, "found": made.found, "made": made.made}) + "\n")
        self.tell(f"{self.file.stem}: {json.dumps(wanted)} {cpu:.1f} CPU s")
        return made


def _name(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)


def earlier(file: Path) -> list[dict[str, Any]]:
    """Lines of a benchmark that keeps its own results beside it; each says under "made" when and with what."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def as_cells(lines: list[dict[str, Any]]) -> list[Cell]:
    """The same as cells; settings are left in what was found."""
    return [Cell({}, line.get("found", line), line.get("made", {})) for line in lines]
