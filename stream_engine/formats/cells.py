"""Cells of text that hold several values: lists of names, and values inside JSON.

`items_of` reads lists as programs write them: JSON, Python (pandas), NumPy, or names with a separator. `inside` gives
what names with dots, such as `annotations.value`, reach in the JSON of a cell.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

LIST_SEPARATOR = "|"
_ITEM = r"'[^']*'|\"[^\"]*\"|[^\s,'\"\[\]()]+"
_NUMPY = re.compile(rf"\[\s*(?:{_ITEM})(?:\s+(?:{_ITEM}))*\s*\]")
_SCALAR = re.compile(r"np\.\w+\(([^()]*)\)")
_POINT = re.compile(r"(-?[0-9]+)\.0*")


def is_bracketed(text: str) -> bool:
    """Whether a cell is a list as programs write it."""
    return text[:1] + text[-1:] in ("[]", "()") and len(text) > 2


def items_of(text: str, separator: str | None = None) -> list[Any]:
    """The items of a list in a cell. Without a `separator`, lists of programs and bars are known.

    >>> items_of('["a", "b c"]'), items_of("['a', 'b']"), items_of("['a' 'b']"), items_of("[ 3  7 10]")
    (['a', 'b c'], ['a', 'b'], ['a', 'b'], ['3', '7', '10'])
    >>> items_of("a|b c"), items_of("a; b", ";"), items_of("a,b")
    (['a', 'b c'], ['a', 'b'], ['a,b'])
    """
    if separator is None and is_bracketed(text) and (items := _bracketed(text)) is not None:
        return items
    return [item.strip() for item in text.split(separator or LIST_SEPARATOR)]


def _bracketed(text: str) -> list[Any] | None:
    """The items of a list in brackets; None where the text is none."""
    try:
        decoded = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        plain = _SCALAR.sub(r"\1", text)
        if _NUMPY.fullmatch(plain):
            items = [item.strip("'\"") for item in re.findall(_ITEM, plain)]
            return [_POINT.sub(r"\1", item) if _POINT.fullmatch(item) else item for item in items]
        try:
            decoded = ast.literal_eval(plain)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return [item.strip() for item in plain[1:-1].split(",")] if plain[0] == "[" and "," in plain else None
    plain_items = isinstance(decoded, (list, tuple)) and not any(
        isinstance(item, (list, tuple, dict)) for item in decoded
    )
    return list(decoded) if plain_items else None


def leaves(value: Any, under: str = "") -> Iterator[tuple[str, Any]]:
    """The values inside JSON, each with the name that reaches it: the number of a subject and places in lists of one
    are no part of it.

    >>> dict(leaves({"417": {"left": "a"}, "tasks": [{"task": "T0", "value": [1, 2]}]}))
    {'left': 'a', 'tasks.task': 'T0', 'tasks.value': [1, 2]}
    >>> dict(leaves({"odd": {"0": False, "1": True}}))
    {'odd.0': False, 'odd.1': True}
    """
    if isinstance(value, dict):
        for name, inner in value.items():
            beside = [other for other in value if str(other).isdecimal() and not isinstance(value[other], dict)]
            is_subject = str(name).isdecimal() and (isinstance(inner, dict) or len(beside) == 1)
            yield from leaves(inner, under if is_subject else f"{under}.{name}".lstrip("."))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for place, item in enumerate(value):
            yield from leaves(item, under if len(value) == 1 else f"{under}.{place}".lstrip("."))
    else:
        yield under, value


def inside(text: Any) -> dict[str, Any]:
    """The values inside a cell of JSON, by the names that reach them; {} where it is none, or holds a plain list.

    >>> inside('[{"choice": {"left": true}}]'), inside("lemon"), inside("[1, 2]")
    ({'choice.left': True}, {}, {})
    """
    if isinstance(text, str):
        if text[:1] not in ("{", "["):
            return {}
        try:
            text = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return {}
    if isinstance(text, list) and not any(isinstance(item, dict) for item in text):
        return {}
    return {name: value for name, value in leaves(text) if name} if isinstance(text, (dict, list)) else {}


def paths_of(sources: Iterable[str], names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """The sources that are no column but reach into one: source -> (column, the rest of its name).

    >>> paths_of(["answers.choice", "worker", "x.y"], ["answers", "worker"])
    {'answers.choice': ('answers', 'choice')}
    """
    paths = {}
    for source in sources:
        places = [place for place, letter in enumerate(source) if letter == "."] if source not in names else []
        column = next((source[:place] for place in reversed(places) if source[:place] in names), None)
        if column is not None:
            paths[source] = (column, source[len(column) + 1 :])
    return paths
