"""Every small change of one Python file that this tool knows, as text put in place of other text.

Comparisons (boundary and negation), signs and operators, `and`/`or`, `not`, conditions turned round, small integers
plus one, 0 and 1 as floats, bounds of slices, `range` and its last element, the first two arguments exchanged, min for
max, any for all, left for right, and statements left out. Left alone: annotations, decorators, assertions, f-strings,
docstrings, floats that are tolerances, integers over 255, which are sizes and times, and what only asks for memory
ahead (`prefetch`): it changes how long a kernel takes, and nothing else.

Invariant: a change keeps the number of lines, so that every other line stays where tests by line and compiled code
by line look for it.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

COMPARED = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
    "in": ("not in",),
    "not in": ("in",),
    "is": ("is not",),
    "is not": ("is",),
}
OPERATORS = {
    "+": "-",
    "-": "+",
    "*": "+",
    "/": "*",
    "//": "*",
    "%": "+",
    "**": "*",
    "<<": ">>",
    ">>": "<<",
    "&": "|",
    "|": "&",
    "^": "&",
    "@": "+",
}
NAMES = dict(
    pair
    for one, other in [
        ("min", "max"),
        ("any", "all"),
        ("minimum", "maximum"),
        ("argmin", "argmax"),
        ("floor", "ceil"),
        ("zeros", "ones"),
        ("cumsum", "cumprod"),
    ]
    for pair in [(one, other), (other, one)]
)
WORDS = {"left": "right", "right": "left"}
SYMMETRIC = {"isinstance", "min", "max", "minimum", "maximum", "array_equal", "gcd", "hypot", "print"}
AHEAD = {"prefetch"}
LARGEST = 255
_COMPARISON = re.compile(r"not\s+in\b|is\s+not\b|in\b|is\b|<=|>=|==|!=|<|>")
_OPERATOR = re.compile(r"\*\*|//|<<|>>|[-+*/%&|^@]")


class Mutant(NamedTuple):
    """One change: `new` in place of the bytes from `start` to `end` of `file`."""

    file: str
    line: int  # the first line of the change, from 1
    lines: tuple[int, int]  # of the statement, or of its head, whose tests are to notice
    start: int
    end: int
    new: str
    change: str  # "old -> new", as it is told and kept; a second one in a line ends with "#2"
    text: str  # the line as it stands, without the blanks around it
    key: str  # of the file's contents and the change


def mutants(file: str, source: str) -> list[Mutant]:
    """All changes of a file, by place; `applied` says which of them Python does not read, or reads as before."""
    raw = source.encode()
    starts = [0]
    for line in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    lines, digest = source.splitlines(), blake2b(raw, digest_size=8).hexdigest()
    found, seen, said = [], set(), Counter[tuple[int, str]]()
    for statement, start, end, new in _changes(ast.parse(source), raw, starts):
        old = raw[start:end].decode()
        if old.count("\n") != new.count("\n") or (start, end, new) in seen:
            continue
        seen.add((start, end, new))
        line = next(n for n, begin in enumerate(starts) if begin > start)
        change = f"{' '.join(old.split())} -> {' '.join(new.split()) or 'nothing'}"
        said[line, change] += 1
        change += f" #{said[line, change]}" if said[line, change] > 1 else ""
        key = f"{file}:{digest}:{start}:{end}:{new.strip()}"
        found.append(Mutant(file, line, own_lines(statement), start, end, new, change, lines[line - 1].strip(), key))
    return sorted(found, key=lambda each: (each.start, each.end, each.new))


def applied(source: str, mutant: Mutant) -> str:
    """The file with the change in it; "" where that is no Python, or the same."""
    raw = source.encode()
    changed = (raw[: mutant.start] + mutant.new.encode() + raw[mutant.end :]).decode()
    try:
        return changed if ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)) else ""
    except SyntaxError:
        return ""


def own_lines(statement: ast.stmt) -> tuple[int, int]:
    """The lines of a statement, without those of the statements inside it."""
    inside = [each.lineno for each in ast.walk(statement) if isinstance(each, ast.stmt) and each is not statement]
    last = statement.end_lineno or statement.lineno
    return statement.lineno, max(statement.lineno, min([last, *(line - 1 for line in inside)]))


def _changes(tree: ast.Module, raw: bytes, starts: list[int]) -> Iterator[tuple[ast.stmt, int, int, str]]:
    """(statement, first byte, last byte, what takes their place)."""

    def at(line: int, column: int) -> int:
        return starts[line - 1] + column

    def span(node: ast.expr | ast.stmt) -> tuple[int, int]:
        return at(node.lineno, node.col_offset), at(node.end_lineno or 0, node.end_col_offset or 0)

    def text(node: ast.expr | ast.stmt) -> str:
        first, last = span(node)
        return raw[first:last].decode()

    def token(left: ast.expr, right: ast.expr, pattern: re.Pattern) -> tuple[int, int, str]:
        """The operator that stands between two operands."""
        first, last = span(left)[1], span(right)[0]
        found = pattern.search(raw[first:last].decode())
        assert found is not None
        return first + found.start(), first + found.end(), " ".join(found[0].split())

    def visit(node: ast.AST, statement: ast.stmt) -> Iterator[tuple[ast.stmt, int, int, str]]:
        for start, end, new in _of_node(node, span, text, token):
            yield statement, start, end, new
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _left_alone(child):
                    yield from visit(child, child if isinstance(child, ast.stmt) else statement)

    for each in tree.body:
        if not _left_alone(each):
            yield from visit(each, each)


def _left_alone(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        call = node.value
        ahead = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in AHEAD
        return ahead or isinstance(call, ast.Constant)
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom)


def _of_node(node: ast.AST, span, text, token) -> Iterator[tuple[int, int, str]]:
    """The changes of one node itself."""
    if isinstance(node, ast.Compare):
        for left, right in zip([node.left, *node.comparators], node.comparators, strict=False):
            start, end, operator = token(left, right, _COMPARISON)
            yield from ((start, end, new) for new in COMPARED[operator])
    elif isinstance(node, ast.BinOp):
        start, end, operator = token(node.left, node.right, _OPERATOR)
        yield start, end, OPERATORS[operator]
    elif isinstance(node, ast.BoolOp):
        word = re.compile(r"\band\b" if isinstance(node.op, ast.And) else r"\bor\b")
        for left, right in zip(node.values, node.values[1:], strict=False):
            start, end, operator = token(left, right, word)
            yield start, end, "or" if operator == "and" else "and"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield span(node)[0], span(node.operand)[0], "(" * text(node)[: -len(text(node.operand))].count("(")
    elif isinstance(node, ast.Constant):
        yield from ((*span(node), new) for new in _of_constant(node.value))
    elif isinstance(node, ast.Slice):
        yield from ((*span(each), "") for each in (node.lower, node.upper) if each is not None)
    elif isinstance(node, ast.Call):
        yield from _of_call(node, span, text)
    elif isinstance(node, ast.comprehension):
        yield from (turned for test in node.ifs for turned in _turned(test, span, text))
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield from _turned(node.test, span, text)
        if isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return) and not node.orelse:
            yield *span(node.test), "False"
    elif isinstance(node, ast.stmt):
        yield from _of_statement(node, span, text)


def _turned(test: ast.expr, span, text) -> Iterator[tuple[int, int, str]]:
    if not isinstance(test, ast.Compare | ast.Constant | ast.UnaryOp):
        yield *span(test), f"(not ({text(test)}))"


def _of_constant(value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield str(not value)
    elif (isinstance(value, int) and value <= LARGEST) or (value in (0.0, 1.0, 0.5) and isinstance(value, float)):
        yield str(value + 1)
    elif isinstance(value, str) and value in WORDS:
        yield f'"{WORDS[value]}"'


def _of_call(node: ast.Call, span, text) -> Iterator[tuple[int, int, str]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in NAMES:
        end = span(node.func)[1]
        yield end - len(name.encode()), end, NAMES[name]
    if name == "range" and node.args:
        last = node.args[min(len(node.args), 2) - 1]
        yield *span(last), f"({text(last)}) - 1"
    if len(node.args) > 1 and name not in SYMMETRIC and not any(isinstance(a, ast.Starred) for a in node.args[:2]):
        (start, middle), (begin, end) = span(node.args[0]), span(node.args[1])
        whole, offset = text(node), span(node)[0]
        between = whole.encode()[middle - offset : begin - offset].decode()
        yield start, end, text(node.args[1]) + between + text(node.args[0])


def _of_statement(node: ast.stmt, span, text) -> Iterator[tuple[int, int, str]]:
    if isinstance(node, ast.AugAssign):
        start, whole = span(node)[0] + len(text(node.target).encode()), text(node)[len(text(node.target)) :]
        found = _OPERATOR.search(whole)
        assert found is not None
        yield start + found.start(), start + found.end(), OPERATORS[found[0]]
    stored = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    done = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await)
    ends = isinstance(node, ast.Return) and node.value is None
    if stored or done or ends or isinstance(node, ast.AugAssign | ast.Raise | ast.Continue | ast.Break | ast.Delete):
        yield *span(node), "pass" + "\n" * text(node).count("\n")
