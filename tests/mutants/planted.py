"""Bugs that somebody made, or plausibly would: `planted.toml` names a function and what is put in place of what.

`old` and `new` are Python as `ast.unparse` writes it, so an entry survives another layout of the code, and moves within
its file. An entry whose function or code is gone is an error: remove it, or say it anew.
"""

import ast
import tomllib
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from tests.mutants.changes import Mutant, own_lines

PLANTED = Path(__file__).parent / "planted.toml"


class Gone(LookupError):
    """A planted bug does not apply to the code as it is."""


def planted(root: Path, entries: Path = PLANTED) -> Iterator[Mutant]:
    """Every planted bug as a change of its file. Raises `Gone`."""
    for entry in tomllib.loads(entries.read_text())["bug"] if entries.exists() else ():
        source = (root / entry["file"]).read_text() if (root / entry["file"]).is_file() else ""
        yield _change(entry, source)


def _change(entry: dict, source: str) -> Mutant:
    found = [
        (node, statement)
        for scope in _scopes(ast.parse(source), entry["function"])
        for node, statement in _nodes(scope)
        if ast.unparse(node) == entry["old"]
    ]
    nth = entry.get("nth", 1)
    if len(found) < nth or (len(found) > 1 and "nth" not in entry):
        place = f"{entry['file']}: {entry['function'] or 'module'}"
        raise Gone(f"{place}: {entry['old']!r} is there {len(found)} times; planted bug {entry['what']!r}")
    node, statement = found[nth - 1]
    raw, digest = source.encode(), blake2b(source.encode(), digest_size=8).hexdigest()
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
    new = entry["new"].replace("\n", "\n" + " " * node.col_offset)
    new = f"({new})" if isinstance(node, ast.expr) and not isinstance(node, ast.Slice | ast.Starred) else new
    text, key = source.splitlines()[node.lineno - 1].strip(), f"{entry['file']}:{digest}:{start}:{end}:{new.strip()}"
    return Mutant(entry["file"], node.lineno, own_lines(statement), start, end, new, entry["what"], text, key)


def _scopes(tree: ast.AST, name: str) -> list[ast.AST]:
    """What is called `name`, as `Class.method`; the whole file for ""."""
    found = [tree]
    for part in name.split(".") if name else ():
        kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        found = [each for scope in found for each in ast.walk(scope) if isinstance(each, kinds) and each.name == part]
    return found


def _nodes(scope: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, ast.stmt]]:
    """Every statement and expression of a scope, by place, each with the statement that it is part of."""

    def visit(node: ast.AST, statement: ast.stmt | None) -> Iterator[tuple[ast.expr | ast.stmt, ast.stmt]]:
        for child in ast.iter_child_nodes(node):
            inside = child if isinstance(child, ast.stmt) else statement
            if isinstance(child, ast.expr | ast.stmt) and inside is not None:
                yield child, inside
            yield from visit(child, inside)

    yield from visit(scope, scope if isinstance(scope, ast.stmt) else None)
