"""What is used of kafka-python beyond its public face: in one file, under a ceiling. That it works, the tests on a real
broker show."""

import ast

from tests.conftest import ROOT

PUBLIC = {"kafka", "kafka.admin", "kafka.errors"}


def imported(text: str) -> set[str]:
    """Modules of kafka-python that a file imports from."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
    return {module for module in modules if module.split(".")[0] == "kafka"}


def test_only_one_file_looks_below_the_public_face():
    below = {
        path.name
        for path in (ROOT / "connectors").rglob("*.py")
        if imported(path.read_text()) - PUBLIC or "DEFAULT_CONFIG" in path.read_text()
    }
    assert below == {"kafka_python_internals.py"}
