"""A digest of the code that a kept result rests on, so that a changed solver makes its results stale.

Docstrings, comments and imports are left out: prose and moved files change nothing, a changed constant or statement
does.
"""

import ast
import hashlib
import inspect
import textwrap
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

Part = ModuleType | FunctionType


def digest(parts: Iterable[Part]) -> str:
    """Sixteen hex digits of the code of modules and functions, whatever their order."""
    return hashlib.sha256("\n".join(sorted(_dump(part) for part in set(parts))).encode()).hexdigest()[:16]


@cache
def _dump(part: Part) -> str:
    if isinstance(part, ModuleType):
        return dump(Path(str(part.__file__)).read_text())
    return dump(textwrap.dedent(inspect.getsource(inspect.unwrap(part))))


def dump(source: str) -> str:
    """The syntax tree of a source without docstrings, imports and `__all__`.

    >>> dump("import a\\nx = 1  # one") == dump('"Another text."\\nfrom b import c\\nx = 1')
    True
    >>> dump("x = 1") == dump("x = 2")
    False
    """
    return _told(_Bare().visit(ast.parse(source)))


def _told(node: Any) -> str:
    """A tree as text, the same from every version of Python: `ast.dump` gives empty fields in some."""
    if isinstance(node, list):
        return f"[{', '.join(map(_told, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [f"{name}={_told(value)}" for name, value in ast.iter_fields(node) if value is not None and value != []]
    return f"{type(node).__name__}({', '.join(fields)})"


class _Bare(ast.NodeTransformer):
    """Takes out what does not compute."""

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if text else self.generic_visit(node)
