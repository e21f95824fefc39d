"""Every small change of one Python file that this tool knows, and the planted bugs of `planted.toml`.

Mutants: comparisons (boundary and negation), signs and operators, `and`/`or`, `not`, conditions turned round, small
integers plus one, 0 and 1 as floats, bounds of slices, `range` and its last element, neighbouring arguments exchanged,
min for max, any for all, left for right, and statements left out; and what makes a figure another one: a median for a
mean, neighbouring values of a dictionary exchanged, an entry left out, a denominator that is one more, the other end of
a sequence. Left alone: annotations, decorators, assertions, f-strings, docstrings, floats that are tolerances, integers
over 255, which are sizes and times, and what only asks for memory ahead (`prefetch`): it changes how long a kernel
takes, and nothing else.

A planted bug names a function and what is put in place of what. `old` and `new` are Python as `ast.unparse` writes it,
so an entry survives another layout of the code, and moves within its file. An entry whose function or code is gone is
an error: remove it, or say it anew.
"""

import ast
import copy
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

PLANTED = Path(__file__).parent / "planted.toml"
OPERATORS = (
    "<: <=, >=; <=: <, >; >: >=, <=; >=: >, <; ==: !=; !=: ==; in: not in; not in: in; is: is not; is not: is; "
    "+: -; -: +; *: +; /: *; //: *; %: +; **: *; <<: >>; >>: <<; &: |; |: &; ^: &; @: +"
)
CHANGED = {old: new.split(", ") for old, new in (each.split(": ") for each in OPERATORS.split("; "))}
PAIRS = [("min", "max"), ("any", "all"), ("minimum", "maximum"), ("argmin", "argmax"), ("floor", "ceil")]
PAIRS += [("zeros", "ones"), ("cumsum", "cumprod"), ("left", "right"), ("mean", "median")]
SWAPPED = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
SYMMETRIC = {"isinstance", "min", "max", "minimum", "maximum", "array_equal", "gcd", "hypot", "print"}
LARGEST = 255


class Mutant(NamedTuple):
    """One change: `new` in place of the bytes from `start` to `end` of `file`."""

    file: str
    line: int  # the first line of the change, from 1
    lines: tuple[int, int]  # of the statement, or of its head, whose tests are to notice
    start: int
    end: int
    new: str
    change: str  # what is done, for people and for equivalent.toml
    text: str  # the line as it is
    key: str  # the file's content and the change: results are kept under it

    def applied(self, source: str) -> str:
        """The file with the change in it."""
        raw = source.encode()
        return (raw[: self.start] + self.new.encode() + raw[self.end :]).decode()


class Gone(LookupError):
    """A planted bug does not apply to the code as it is."""


@cache
def parsed(source: str) -> ast.Module:
    """The tree of a source, for everybody who reads it."""
    return ast.parse(source)


class _File:
    """One source, where a new text is put in place of a node."""

    def __init__(self, file: str, source: str) -> None:
        self.file, self.tree, self.lines, self.raw = file, parsed(source), source.splitlines(), source.encode()
        self.digest = blake2b(self.raw, digest_size=8).hexdigest()
        self.starts = [0]
        for line in self.raw.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def text(self, node: ast.AST) -> str:
        start, end = self.span(node)
        return " ".join(self.raw[start:end].decode().split())

    def span(self, node: ast.AST) -> tuple[int, int]:
        first, last = node.lineno - 1, node.end_lineno - 1  # type: ignore[attr-defined]
        return self.starts[first] + node.col_offset, self.starts[last] + node.end_col_offset  # type: ignore[attr-defined]

    def mutant(self, node: ast.AST, statement: ast.stmt, new: str, change: str) -> Mutant:
        """A change that keeps the number of lines (unless `new` has more): compiled code is found by line."""
        start, end = self.span(node)
        missing = "\n" * (self.raw[start:end].count(b"\n") - new.count("\n"))
        if isinstance(node, ast.expr) and new and not isinstance(node, ast.Slice | ast.Starred):
            new = f"({new}{missing})"
        else:
            new = new.replace("\n", "\n" + " " * node.col_offset) + missing  # type: ignore[attr-defined]
        inside = [each.lineno for each in ast.walk(statement) if isinstance(each, ast.stmt) and each is not statement]
        last = max(statement.lineno, min([statement.end_lineno or 0, *(line - 1 for line in inside)]))
        line, key = node.lineno, f"{self.file}:{self.digest}:{start}:{end}:{new.strip()}"  # type: ignore[attr-defined]
        text = self.lines[line - 1].strip()
        return Mutant(self.file, line, (statement.lineno, last), start, end, new, change, text, key)


def mutants(file: str, source: str) -> list[Mutant]:
    """All changes of a file, in the order of their places."""
    whole, found, said = _File(file, source), [], Counter[tuple[int, str]]()
    for node, statement in _nodes(whole.tree, None, _left_alone):
        for target, old, new, put in _changes(node, whole.text):
            change = f"{old} -> {new}"
            said[target.lineno, change] += 1  # type: ignore[attr-defined]
            nth = said[target.lineno, change]  # type: ignore[attr-defined]
            put = put if isinstance(put, str) else ast.unparse(put)
            found.append(whole.mutant(target, statement, put, change + (f" #{nth}" if nth > 1 else "")))
    return sorted(found, key=lambda each: (each.start, each.end, each.new))


def planted(root: Path, entries: Path = PLANTED) -> Iterator[Mutant]:
    """Every planted bug as a change of its file. Raises `Gone`."""
    files: dict[str, _File] = {}
    for entry in tomllib.loads(entries.read_text())["bug"] if entries.exists() else ():
        if (name := entry["file"]) not in files:
            files[name] = _File(name, (root / name).read_text() if (root / name).is_file() else "")
        whole = files[name]
        scopes: list[ast.AST] = [whole.tree]
        for part in entry["function"].split(".") if entry["function"] else ():
            kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
            inside = [each for scope in scopes for each in ast.walk(scope)]
            scopes = [each for each in inside if isinstance(each, kinds) and each.name == part]
        every = [pair for scope in scopes for pair in _nodes(scope, scope if isinstance(scope, ast.stmt) else None)]
        found = [pair for pair in every if ast.unparse(pair[0]) == entry["old"]]
        nth = entry.get("nth", 1)
        if len(found) < nth or (len(found) > 1 and "nth" not in entry):
            place = f"{entry['file']}: {entry['function'] or 'module'}"
            raise Gone(f"{place}: {entry['old']!r} is there {len(found)} times; planted bug {entry['what']!r}")
        yield whole.mutant(*found[nth - 1], entry["new"], entry["what"])


def _nodes(node: ast.AST, statement: ast.stmt | None, left_out=lambda node, field: False) -> Iterator:
    """Every statement and expression inside a node, by place, each with the statement that it is part of."""
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not left_out(child, field):
                inside = child if isinstance(child, ast.stmt) else statement
                if isinstance(child, ast.expr | ast.stmt | ast.comprehension) and inside is not None:
                    yield child, inside
                yield from _nodes(child, inside, left_out)


def _left_alone(node: ast.AST, field: str) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant) or ast.unparse(node).startswith("prefetch(")
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    beside = field in ("annotation", "returns", "decorator_list", "type_params")
    return beside or isinstance(node, ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom)


def _with(node: ast.AST, **fields) -> ast.AST:
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _sign(operator: ast.operator | ast.cmpop) -> str:
    a, b = ast.Name("a"), ast.Name("b")
    binary = isinstance(operator, ast.operator)
    return ast.unparse(ast.BinOp(a, operator, b) if binary else ast.Compare(a, [operator], [b]))[2:-2]


def _operator(sign: str) -> ast.operator | ast.cmpop:
    made = ast.parse(f"a {sign} b", mode="eval").body
    return made.op if isinstance(made, ast.BinOp) else made.ops[0]  # type: ignore[attr-defined]


def _changes(node: ast.AST, text) -> Iterator[tuple[ast.AST, str, str, ast.AST | str]]:
    """(the node that gives way, what it is called, what takes its place: in words and as code) of one node itself."""
    match node:
        case ast.Compare(ops=ops):
            for i, old in enumerate(map(_sign, ops)):
                for new in CHANGED[old]:
                    yield node, old, new, _with(node, ops=[*ops[:i], _operator(new), *ops[i + 1 :]])
        case ast.BinOp(op=op) | ast.AugAssign(op=op):
            (new,) = CHANGED[_sign(op)]
            yield node, _sign(op), new, _with(node, op=_operator(new))
        case ast.BoolOp(op=ast.And(), values=values):
            for i in range(1, len(values)):
                parts = [ast.BoolOp(ast.And(), part) if part[1:] else part[0] for part in (values[:i], values[i:])]
                yield node, "and", "or", ast.BoolOp(ast.Or(), parts)
        case ast.BoolOp(values=values):
            for i in range(1, len(values)):
                both = ast.BoolOp(ast.And(), values[i - 1 : i + 1])
                rest = [*values[: i - 1], both, *values[i + 1 :]]
                yield node, "or", "and", ast.BoolOp(ast.Or(), rest) if rest[1:] else both
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node, "not" if isinstance(node.op, ast.Not) else "-", "nothing", node.operand
        case ast.Constant(value=bool()):
            yield node, str(node.value), str(not node.value), str(not node.value)
        case ast.Constant(value=int() | float()) if node.value in (0.0, 0.5, 1.0) or (
            isinstance(node.value, int) and node.value <= LARGEST
        ):
            yield node, text(node), str(node.value + 1), str(node.value + 1)
        case ast.Constant(value="left" | "right"):
            yield node, f'"{node.value}"', f'"{SWAPPED[node.value]}"', repr(SWAPPED[node.value])
        case ast.Subscript(slice=ast.Constant(value=0) as at):
            yield at, "[0]", "[-1]", "-1"
        case ast.Subscript(slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)) as at):
            yield at, "[-1]", "[0]", "0"
        case ast.Dict():
            yield from _of_dictionary(node, text)
        case ast.Slice():
            yield from ((each, text(each), "nothing", "") for each in (node.lower, node.upper) if each is not None)
        case ast.Call():
            yield from _of_call(node, text)
        case ast.comprehension():
            yield from (turned for test in node.ifs for turned in _turned(test, text))
        case ast.If() | ast.IfExp() | ast.While():
            yield from _turned(node.test, text)
            if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return) and not node.orelse:
                yield node.test, text(node.test), "False", "False"
    match node:
        case (
            ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]) | ast.Expr(value=ast.Call() | ast.Await())
        ) | (ast.Return(value=None) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break() | ast.Delete()):
            yield node, text(node), "pass", "pass"
        case ast.BinOp(op=ast.Div(), right=right):
            new = ast.BinOp(right, ast.Add(), ast.Constant(1))
            yield right, text(right), f"({text(right)}) + 1", new


def _turned(test: ast.expr, text) -> Iterator[tuple[ast.AST, str, str, ast.AST]]:
    if not isinstance(test, ast.Compare | ast.Constant | ast.UnaryOp):
        yield test, text(test), f"(not ({text(test)}))", ast.UnaryOp(ast.Not(), test)


def _of_dictionary(node: ast.Dict, text) -> Iterator[tuple[ast.AST, str, str, ast.AST]]:
    """Each entry left out, and the values of two neighbours exchanged."""
    for at, key in enumerate(node.keys):
        if key is None or len(node.keys) < 2:
            continue
        rest = {"keys": node.keys[:at] + node.keys[at + 1 :], "values": node.values[:at] + node.values[at + 1 :]}
        yield node, f"{text(key)}: ...", "nothing", _with(node, **rest)
        if at and node.keys[at - 1] is not None and text(node.values[at - 1]) != text(node.values[at]):
            values = [*node.values[: at - 1], node.values[at], node.values[at - 1], *node.values[at + 1 :]]
            before = text(node.keys[at - 1])
            yield node, f"{before}, {text(key)}", f"{text(key)}, {before}", _with(node, values=values)


def _of_call(node: ast.Call, text) -> Iterator[tuple[ast.AST, str, str, ast.AST]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in SWAPPED:
        field = "attr" if isinstance(node.func, ast.Attribute) else "id"
        yield node.func, name, SWAPPED[name], _with(node.func, **{field: SWAPPED[name]})
    if name in ("sorted", "argsort"):
        yield node, name, f"{name}[::-1]", f"{ast.unparse(node)}[::-1]"
    if name == "range" and node.args:
        last = node.args[min(len(node.args), 2) - 1]
        yield last, text(last), f"({text(last)}) - 1", ast.BinOp(last, ast.Sub(), ast.Constant(1))
    if name in SYMMETRIC:
        return
    for at, (one, other) in enumerate(pairwise(node.args)):
        if text(one) != text(other) and not any(isinstance(each, ast.Starred) for each in (one, other)):
            changed = _with(node, args=[*node.args[:at], other, one, *node.args[at + 2 :]])
            yield node, f"{text(one)}, {text(other)}", f"{text(other)}, {text(one)}", changed
    for at, (one, other) in enumerate(pairwise(node.keywords)):
        if one.arg and other.arg and text(one.value) != text(other.value):
            exchanged = [_with(one, value=other.value), _with(other, value=one.value)]
            changed = _with(node, keywords=[*node.keywords[:at], *exchanged, *node.keywords[at + 2 :]])
            yield node, f"{one.arg}, {other.arg}", f"{other.arg}, {one.arg}", changed
