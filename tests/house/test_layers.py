"""The plan of the house: imports point strictly down one ordered list of rooms, and no two files import each other in a circle.

Imports inside functions count like those at the top of a file. A name that a registry loads by its text ("module:attribute")
is no import: that is how a room offers a growth point without knowing what grows there.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import ROOT

# From the ground up. A file may import rooms of lower floors, and other files of its own room.
FLOORS = [
    ["connectors", "stream_engine.data"],
    ["stream_engine.formats", "stream_engine.accumulators", "stream_engine.guard"],
    ["stream_engine.state"],
    ["stream_engine.statistics"],
    ["stream_engine.clustering", "stream_engine.boosting", "stream_engine.kernel_learning"],
    ["stream_engine.refits", "stream_engine.prediction", "stream_engine.asking"],
    ["stream_engine.exports", "stream_engine.estimators"],
    ["stream_engine.service"],
    ["stream_engine.spark"],
    ["stream_engine.commands"],
    ["stream_engine"],  # its loose modules: the command line and the public names
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
NEVER = {  # room -> rooms below it that it must not import all the same, and why
    "stream_engine.refits": {
        "stream_engine.state.engine": "a refit reads a published file",
        "stream_engine.state.store": "so do its tests",
    },
    "stream_engine.exports": {
        "stream_engine.state.engine": "an export reads a published file",
        "stream_engine.state.store": "so do its tests",
    },
}
LOOSE_MODULES = 5


def modules(root: Path) -> dict[str, Path]:
    """Every module of the product by its dotted name."""
    found = {}
    for top in ("connectors", "stream_engine"):
        for path in sorted((root / top).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules of the product that a file imports anywhere, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in known else node.module
        assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}: a relative import; write the whole name"


def room_of(module: str) -> str:
    """The room of a module: a folder of stream_engine, all of connectors, or the loose modules of stream_engine."""
    parts = module.split(".")
    if parts[0] == "connectors":
        return "connectors"
    room = ".".join(parts[:2])
    return room if room in FLOOR else "stream_engine"


def wrong_arrows(graph: Mapping[str, set[str]]) -> list[str]:
    """Imports that do not point strictly down, each with the reason."""
    wrong = []
    for module, targets in graph.items():
        room = room_of(module)
        for target in sorted(targets):
            other = room_of(target)
            if other != room and FLOOR[other] >= FLOOR[room]:
                wrong.append(f"{module} imports {target}: {other} is not below {room}")
            if why := NEVER.get(room, {}).get(target):
                wrong.append(f"{module} imports {target}: {why}")
    return wrong


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one module (Tarjan 1972), sorted; and modules that import themselves."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for target in graph[module]:
            if target not in index:
                visit(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], index[target])
        if low[module] == index[module]:
            members = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(members) > 1 or module in graph[module]:
                found.append(sorted(members))

    for module in graph:
        if module not in index:
            visit(module)
    return sorted(found)


def import_graph(root: Path) -> dict[str, set[str]]:
    """Module -> modules that it imports."""
    known = modules(root)
    return {module: set(imported(path, known)) for module, path in known.items()}


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    return import_graph(ROOT)


def test_every_room_has_a_floor():
    folders = {f"stream_engine.{path.parent.name}" for path in (ROOT / "stream_engine").glob("*/*.py")}
    assert folders == {room for room in FLOOR if room.startswith("stream_engine.")}


def test_few_modules_stand_loose():
    loose = sorted(path.name for path in (ROOT / "stream_engine").glob("*.py"))
    assert len(loose) <= LOOSE_MODULES, loose


def test_imports_point_strictly_down(graph):
    assert wrong_arrows(graph) == []


def test_no_files_import_each_other_in_a_circle(graph):
    assert circles(graph) == []


def test_connectors_know_nothing_of_the_engine(graph):
    assert not {
        target
        for module, targets in graph.items()
        if module.split(".")[0] == "connectors"
        for target in targets
        if target.split(".")[0] == "stream_engine"
    }


def test_heavy_libraries_are_imported_on_use():
    code = (
        "import sys, stream_engine.__main__; print([m for m in ('cvxpy', 'sklearn', 'matplotlib', 'kafka', 'river', "
        "'uvicorn', 'pandas', 'polars') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
