"""The plan of the house: imports point strictly down one ordered list of rooms, and no files form a circle.

Imports inside functions count like those at the top of a file. A name that a registry loads by its text
("module:attribute") is no import: that is how a room offers a growth point without knowing what grows there.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.house.floors import FLOOR, modules, room_of

NEVER = {  # room -> modules below it that it must not import all the same, and why
    "connectors": {"stream_engine.data.comparisons": "a connector does not know what a comparison is"},
    "stream_engine.refits": {
        "stream_engine.state.engine": "a refit reads a published file",
        "stream_engine.state.store": "a refit reads a published file",
    },
    "stream_engine.exports": {
        "stream_engine.state.engine": "an export reads a published file",
        "stream_engine.state.store": "an export reads a published file",
    },
}
DOORS = {  # room inside a room -> its files that others may import; "" is its `__init__`
    "stream_engine.service.http": {"certificate", "listener", "refusals", "request_values", "routes", "tokens"},
    "stream_engine.input.settings": {"", "conversion", "loading", "refit_params", "secret_values"},
    "stream_engine.service.repair": {"check_state", "recount", "reshard", "seek"},
}
LOOSE_MODULES = 5
RELATIVE = "."  # stands for an import that does not say the whole name


def imported(path: Path, known: Mapping[str, Path]) -> Iterator[str]:
    """The modules of the product that a file imports anywhere, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module in known:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in known else node.module
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield RELATIVE


def wrong_arrows(graph: Mapping[str, set[str]]) -> list[str]:
    """Imports that do not point strictly down, each with the reason."""
    wrong = [f"{module}: a relative import; write the whole name" for module in graph if RELATIVE in graph[module]]
    for module, targets in graph.items():
        room = room_of(module)
        for target in sorted(targets - {RELATIVE}):
            other = room_of(target)
            if other != room and FLOOR[other] >= FLOOR[room]:
                wrong.append(f"{module} imports {target}: {other} is not below {room}")
            if why := NEVER.get(room, {}).get(target):
                wrong.append(f"{module} imports {target}: {why}")
    return wrong


def past_doors(graph: Mapping[str, set[str]]) -> list[str]:
    """Imports of files inside a room that are none of its doors."""
    return [
        f"{module} imports {target}, which is no door of {room}"
        for module, targets in graph.items()
        for room, doors in DOORS.items()
        for target in sorted(targets)
        if target.startswith(f"{room}.")
        and not module.startswith(room)
        and target.removeprefix(f"{room}.") not in doors
    ]


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one module (Tarjan 1972), and modules that import themselves."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for target in graph[module] - {RELATIVE}:
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


@pytest.fixture(scope="module")
def graph() -> Mapping[str, set[str]]:
    """Module -> modules that it imports."""
    known = modules(ROOT)
    return {module: set(imported(path, known)) for module, path in known.items()}


def unmarked(root: Path) -> list[str]:
    """Folders with Python files that no wheel would hold."""
    folders = {path.parent for path in modules(root).values()}
    return sorted(str(folder.relative_to(root)) for folder in folders if not (folder / "__init__.py").exists())


def complaints(root: Path, graph: Mapping[str, set[str]]) -> list[str]:
    """Everything about the folders below `root` and their imports that breaks the plan, one line each."""
    folders = {f"stream_engine.{path.parent.name}" for path in (root / "stream_engine").glob("*/*.py")}
    loose = sorted(path.name for path in (root / "stream_engine").glob("*.py"))
    return [
        *(f"{room} has no floor" for room in sorted(folders - FLOOR.keys())),
        *(f"{folder}: a room without __init__.py" for folder in unmarked(root)),
        *(f"{room} is no folder" for room in sorted(FLOOR.keys() - folders - {"connectors", "stream_engine"})),
        *([f"more than {LOOSE_MODULES} loose modules: {', '.join(loose)}"] if len(loose) > LOOSE_MODULES else []),
        *wrong_arrows(graph),
        *past_doors(graph),
        *(f"a circle: {', '.join(circle)}" for circle in circles(graph)),
    ]


def test_the_plan_holds(graph):
    assert complaints(ROOT, graph) == []


PLANTED = {  # (a module, what it imports): what the complaint says
    ("service.run", "service.http.built_files"): "service.http.built_files, which is no door",
    ("evaluation", "evaluation.similarities"): "a circle: stream_engine.evaluation, stream_engine.evaluation.similar",
    ("order.graph", "service.run"): "stream_engine.service is not below stream_engine.order",
    ("order.graph", "counts.radix"): "stream_engine.counts is not below stream_engine.order",
    ("refits.spectral", "state.store"): "a refit reads a published file",
}


@pytest.mark.parametrize("module, target", PLANTED)
def test_a_planted_import_is_found(module, target, graph):
    name = f"stream_engine.{module}"
    planted = {**graph, name: {*graph[name], f"stream_engine.{target}"}}
    assert any(PLANTED[module, target] in line for line in complaints(ROOT, planted))


def test_imports_inside_functions_count(tmp_path):
    path, known = tmp_path / "a.py", modules(ROOT)
    path.write_text("def f():\n    from stream_engine.counts import radix\n    from . import b\n    import numpy\n")
    assert list(imported(path, known)) == ["stream_engine.counts.radix", RELATIVE]


def test_no_file_of_tests_imports_another():
    """What several need is in tests/support: a file of tests can be read, moved and split by itself."""
    another = re.compile(r"^ *(?:from tests(?:\.\w+)*\.test_\w+ import|from tests\.\w+ import .*\btest_\w+).*", re.M)
    assert another.search("import a\n    from tests.order.test_implied import slow\n")
    texts = {str(path): path.read_text() for path in (ROOT / "tests").rglob("*.py")}
    assert {path: found for path, text in texts.items() if (found := another.findall(text))} == {}
