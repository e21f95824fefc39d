"""Results of experiments, one a line of JSON, read where they are there and made where they are not.

A line is {"key": settings, "found": what was found, "made": {"date", "with", "cpu", "code"}}. "code" is the digest of
the code that the result rests on (`digests`): where that has changed since, the result is stale, is never shown as if
it were of today's program, and is made again. Lines are written when they are made: a command can be stopped and
resumed.
"""

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from tests.benchmarks.papers.digests import Part, digest
from tests.conftest import ROOT


class Cell(NamedTuple):
    """One result: its settings, what was found, and when and with what it was made."""

    key: dict[str, Any]
    found: Any
    made: dict[str, Any]


def made_now(cpu: float | None = None) -> dict[str, Any]:
    """Day, and the versions of what computes."""
    libraries = " ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    said = {"date": date.today().isoformat(), "with": f"stream-engine {commit()}, {libraries}"}
    return said if cpu is None else said | {"cpu": round(cpu, 2)}


def commit() -> str:
    """Version and commit of the checkout, a plus sign behind where files had been changed."""
    try:
        told = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=+"]
        return (
            f"{version('triplet-stream-engine')} {subprocess.run(told, capture_output=True, text=True).stdout.strip()}"
        )
    except FileNotFoundError:
        return version("triplet-stream-engine")


class Kept:
    """The results of one paper. `make`: whether what is missing or stale is made; `rests_on`: the modules behind each
    experiment, besides the function that makes it."""

    def __init__(
        self,
        file: Path,
        rests_on: dict[str, Sequence[Part]],
        make: bool = True,
        tell: Callable[[str], None] = print,
    ):
        self.file, self.rests_on, self.make, self.tell = file, rests_on, make, tell
        lines = file.read_text().splitlines() if file.exists() else []
        self.cells = {_name(each["key"]): Cell(**each) for each in map(json.loads, lines)}
        self.asked: set[str] = set()
        self.stale: list[dict[str, Any]] = []  # keys that are kept from other code, and were not made again
        self.missing: list[dict[str, Any]] = []
        self.seconds: dict[str, float] = {}  # of this run, by experiment

    def cell(self, key: dict[str, Any], make: Callable[[dict[str, Any]], Any]) -> Cell | None:
        """The result of `key`; `make(key)` where it is not kept or stale. None where nothing may be made."""
        self.asked.add(_name(key))
        code, kept = digest([*self.rests_on[key["experiment"]], make]), self.cells.get(_name(key))
        if kept is not None and kept.made.get("code") == code:
            return kept
        if not self.make:
            (self.missing if kept is None else self.stale).append(key)
            return None
        began = time.process_time()
        found = make(key)
        cpu = time.process_time() - began
        made = Cell(key, json.loads(json.dumps(found, default=float)), made_now(cpu) | {"code": code})
        self.cells[_name(key)] = made
        self.seconds[key["experiment"]] = self.seconds.get(key["experiment"], 0.0) + cpu
        self._write()
        self.tell(f"{self.file.stem}: {json.dumps(key)} {cpu:.1f} CPU s")
        return made

    def forget_unasked(self) -> None:
        """Drop results of experiments that are no more."""
        self.cells = {name: cell for name, cell in self.cells.items() if name in self.asked}
        self._write()

    def _write(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_text("".join(json.dumps(cell._asdict()) + "\n" for cell in self.cells.values()))


def _name(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)
