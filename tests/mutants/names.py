"""Who names whom, from the sources alone: which compiled kernels a change makes stale, and which lines lead to it.

Coverage does not see inside compiled kernels, and what is set when a module is loaded is used elsewhere. So a top-level
name (of a kernel, a constant, a class) reaches the kernels and module-level statements that name it, directly or not,
and the lines inside Python functions that name any of these.
"""

import ast
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

MAKES_KERNEL = {"njit", "intrinsic", "register_jitable"}
Name = tuple[str, str]  # file, top-level name


class Names:
    """The names of all Python files below some folders of a checkout."""

    def __init__(self, root: Path, tops: tuple[str, ...]) -> None:
        files = sorted(str(path.relative_to(root)) for top in tops for path in (root / top).rglob("*.py"))
        self.trees = {file: ast.parse((root / file).read_text()) for file in files}
        self._modules = {".".join(Path(file).with_suffix("").parts).removesuffix(".__init__"): file for file in files}

    @cached_property
    def _known(self) -> dict[str, dict[str, Name | str]]:
        """File -> what its names stand for: a name of a file, or a module's file."""
        known: dict[str, dict[str, Name | str]] = {}
        for file, tree in self.trees.items():
            here = known[file] = {name: (file, name) for each in tree.body for name in defined(each)}
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module:
                    for alias in node.names:
                        module, whole = self._modules.get(node.module), f"{node.module}.{alias.name}"
                        if whole in self._modules:
                            here[alias.asname or alias.name] = self._modules[whole]
                        elif module:
                            here[alias.asname or alias.name] = (module, alias.name)
        return known

    @cached_property
    def _mentions(self) -> dict[Name, set[tuple[str, int]]]:
        """Name -> (file, index of the top-level statement) and line of each place that names it: two in one."""
        found: dict[Name, set[tuple[str, int]]] = {}
        for file, tree in self.trees.items():
            for node in ast.walk(tree):
                meant = self._known[file].get(node.id) if isinstance(node, ast.Name) else None
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    module = self._known[file].get(node.value.id)
                    meant = (module, node.attr) if isinstance(module, str) else None
                if isinstance(meant, tuple):
                    found.setdefault(meant, set()).add((file, node.lineno))
        return found

    def at(self, file: str, line: int) -> ast.stmt | None:
        """The top-level statement of a line."""
        return next((each for each in self.trees[file].body if each.lineno <= line <= (each.end_lineno or 0)), None)

    def reached(self, file: str, line: int, when_loaded: bool = False) -> set[Name]:
        """What a change of this line changes where it is compiled or loaded: nothing for one in a Python function,
        unless that is called `when_loaded`."""
        here = self.at(file, line)
        if here is None or (runs_in_python(here, line) and not is_kernel(here) and not when_loaded):
            return set()
        todo = [(file, name) for name in defined(here)]
        found = set(todo)
        while todo:
            for other, at in self._mentions.get(todo.pop(), ()):
                if (user := self.at(other, at)) and (is_kernel(user) or not runs_in_python(user, at)):
                    new = {(other, name) for name in defined(user)} - found
                    found |= new
                    todo += new
        return found

    def leading(self, names: set[Name]) -> Iterator[tuple[str, int]]:
        """The lines inside Python functions that name any of these."""
        for name in names:
            for file, line in self._mentions.get(name, ()):
                if (here := self.at(file, line)) and not is_kernel(here) and runs_in_python(here, line):
                    yield file, line


def is_kernel(statement: ast.stmt) -> bool:
    """Whether a function, or one inside it, is compiled."""
    return any(
        isinstance(word, ast.Name) and word.id in MAKES_KERNEL
        for each in ast.walk(statement)
        if isinstance(each, ast.FunctionDef)
        for decorator in each.decorator_list
        for word in ast.walk(decorator)
    )


def runs_in_python(statement: ast.stmt, line: int) -> bool:
    """Whether a line belongs to the body of a function, rather than to what is done when the module is loaded."""
    return any(
        each.body[0].lineno <= line <= (each.end_lineno or 0)
        for each in ast.walk(statement)
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def defined(statement: ast.stmt) -> list[str]:
    """The names that a top-level statement gives a meaning."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
        return [statement.name]
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.If | ast.For | ast.With | ast.Try):
        return sorted({n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)})
    return []
