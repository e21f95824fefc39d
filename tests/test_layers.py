"""Imports point only down one ordered list of rooms; `connectors` knows nothing of us; heavy libraries come on use."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

# From the bottom up: a file may import rooms above its own line in this list, and its own room.
ROOMS = [
    ["comparisons", "columns", "container", "names", "triggers", "logs", "progress", "space", "memory"],
    ["snapshot", "artifact", "accumulators", "objects", "labels", "formats", "deltas", "order", "gram", "feature_space"],
    ["partial_order", "kernels", "boosting", "sdp", "kernel_learning", "auxiliary", "embedding", "certainty", "chosen", "trust",
     "weighing"],
    ["engine", "store", "refits"],
    ["exports", "metrics", "progressive", "merging", "online"],
    ["settings", "http", "intake"],
    ["reading", "workers", "opening", "watching", "stalls", "spark"],
    ["refitting", "run", "asking"],
    ["demo", "warm", "estimators"],
    ["__main__"],
]
FORBIDDEN = {  # room -> rooms it must never import although they lie below it
    "refits": {"engine", "store"},
    "exports": {"engine", "store"},
    "accumulators": {"partial_order", "labels", "objects"},
}
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}


def rooms_imported(path: Path) -> set[str]:
    """Rooms of stream_engine that a file imports anywhere, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[0] == "stream_engine":
                found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("stream_engine.")}
    return found & (LEVEL.keys() | {"connectors"})


def room_of(path: Path) -> str:
    return path.relative_to(ROOT / "stream_engine").parts[0].removesuffix(".py")


SOURCES = sorted((ROOT / "stream_engine").rglob("*.py"))


def test_every_room_is_listed():
    assert {room_of(path) for path in SOURCES} - {"__init__"} == LEVEL.keys()


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path):
    room = room_of(path)
    if room == "__init__":
        return
    for other in rooms_imported(path) - {room}:
        assert LEVEL[other] <= LEVEL[room], f"{room} must not import {other}: it lies above"
        assert other not in FORBIDDEN.get(room, ()), f"{room} must never import {other}"


def test_connectors_know_nothing_of_the_engine():
    for path in (ROOT / "connectors").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else [getattr(node, "module", "") or ""]
            assert not any(name.split(".")[0] == "stream_engine" for name in names), path


def test_heavy_libraries_are_imported_on_use():
    code = "import sys, stream_engine.__main__; print([m for m in ('cvxpy', 'sklearn', 'matplotlib', 'kafka', 'river', " \
           "'uvicorn', 'pandas', 'polars') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
