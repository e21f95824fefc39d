"""The page of estimators and public names: what `stream_engine` and `stream_engine.estimators` offer, from their
docstrings."""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from deploy.manual.markdown import MADE, WIDTH, item

ROOMS = ("stream_engine", "stream_engine.estimators")
INTRODUCTION = f"""# Python reference

{MADE}

[Python](../python.md) shows how to use these; this page lists every public name with its parameters.
"""
_PARAMETER = re.compile(r"^([a-z]\w*(?:, \w+)*)(?:: (.*)|$)")


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION]
    for room in map(import_module, ROOMS):
        lines += [f"## {room.__name__}", ""]
        for name in sorted(room.__all__):
            lines += _public(name, getattr(room, name))
    return "\n".join(lines)


def _public(name: str, what: Any) -> Iterator[str]:
    if not callable(what):
        return
    yield f"### {name}\n\n```text\n{name}{_signature(what)}\n```\n"
    yield documented(inspect.getdoc(what) or "") + "\n"
    if inspect.isclass(what):
        methods = [each for each in vars(what) if _is_told(each) and callable(getattr(what, each))]
        for each in methods:
            told = inspect.getdoc(getattr(what, each)) or ""
            yield item(f"`{each}{_signature(getattr(what, each))}`: {' '.join(told.split(chr(10) * 2)[0].split())}")
        yield ""


def _is_told(method: str) -> bool:
    return not method.startswith("_") and not re.fullmatch(r"set_\w+_request", method)  # those are scikit-learn's


def _signature(what: Any) -> str:
    try:
        signature = inspect.signature(what)
    except ValueError:  # of a class that is written in C
        return "(...)"
    bare = [
        each.replace(annotation=inspect.Parameter.empty)
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    whole = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return whole if len(whole) < WIDTH - 30 else "(\n    " + ",\n    ".join(str(each) for each in bare) + ",\n)"


def documented(text: str) -> str:
    """A docstring as Markdown: examples in blocks of code, parameters as items.

    >>> documented("k: how many")
    '- `k`: how many'
    """
    return "\n\n".join(_part(part) for part in text.split("\n\n"))


def _part(part: str) -> str:
    lines = part.splitlines()
    if part.startswith(">>>"):
        return f"```pycon\n{part}\n```"
    if len(lines) > 1 and set(lines[1]) == {"-"}:  # a heading of numpydoc
        return "\n\n".join([f"**{lines[0]}**", *([_part("\n".join(lines[2:]))] if lines[2:] else [])])
    if _PARAMETER.match(lines[0] if lines else "") and all(_PARAMETER.match(each) or each[0] == " " for each in lines):
        return "\n".join(_parameters(lines))
    return part


def _parameters(lines: list[str]) -> Iterator[str]:
    text = ""
    for line in lines:
        matched = _PARAMETER.match(line)
        if line[0] == " " or matched is None:
            text += " " + line.strip()
            continue
        if text:
            yield item(text)
        name, says = matched.groups()
        text = f"`{name}`: {says}" if says else f"`{name}`:"
    yield item(text)
