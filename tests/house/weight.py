"""How much there is to hold in one's head: `python -m tests.house.weight` prints lines by room and what a user meets.

Lines are those of Python files, docstrings and blank lines included. A setting is a key of the configuration file, a
refit parameter a field of a refit's `Params`, a metric an instrument of `/metrics`. `make check` shows the last line.
"""

import argparse
from collections import Counter
from pathlib import Path

import msgspec

from stream_engine.commands import VERBS
from stream_engine.exports import all_exports
from stream_engine.input.settings import Settings
from stream_engine.refits import REFITS, refit_module
from stream_engine.service.metrics import Metrics
from tests.conftest import ROOT
from tests.house.floors import FLOORS, modules, room_of


def lines_of(path: Path) -> int:
    """The lines of a text file."""
    return path.read_bytes().count(b"\n")


def keys_of(struct: type) -> int:
    """How many keys a settings struct has, those of its sections included, sections themselves not."""
    total = 0
    for field in msgspec.structs.fields(struct):
        section = isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)
        total += keys_of(field.type) if section else 1
    return total


def folder_of_test(path: Path) -> str:
    """The folder of `tests` that a file lies in."""
    return path.relative_to(ROOT).parts[1] if len(path.relative_to(ROOT).parts) > 2 else "tests"


def weight() -> dict[str, int]:
    """The size of this checkout."""
    product = modules(ROOT)
    test_files = list((ROOT / "tests").rglob("*.py"))
    instruments = list(Metrics().registry.collect())
    own = [each for each in instruments if each.name.startswith("stream_engine_")]
    parameters = [len(msgspec.structs.fields(refit_module(name).Params)) for name in REFITS]
    return {
        "product lines": sum(lines_of(path) for path in product.values()),
        "product files": len(product),
        "rooms": sum(map(len, FLOORS)),
        "floors": len(FLOORS),
        "test lines": sum(map(lines_of, test_files)),
        "verbs": len(VERBS),
        "settings": keys_of(Settings),
        "refit parameters": sum(parameters),
        "metrics": len(own),
        "exports": len(all_exports()),
    }


def main() -> None:
    """Print a table of rooms, and the whole in the last line."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    lines: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for name, path in modules(ROOT).items():
        lines[room_of(name)] += lines_of(path)
        files[room_of(name)] += 1
    for path in (ROOT / "tests").rglob("*.py"):
        lines[f"tests: {folder_of_test(path)}"] += lines_of(path)
        files[f"tests: {folder_of_test(path)}"] += 1
    for room in sorted(lines, key=lambda room: (room.startswith("tests"), -lines[room])):
        print(f"{lines[room]:8,} lines in {files[room]:3} files  {room}")
    print("; ".join(f"{number:,} {what}" for what, number in weight().items()))


if __name__ == "__main__":
    main()
