"""The Python reference: all public names, from their docstrings."""

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from deploy.manual.markdown import MADE, WIDTH, item, paragraph

ROOMS = ("stream_engine", "stream_engine.estimators", "stream_engine.kernels", "stream_engine.testing")
INTRODUCTION = f"""# Python reference

{MADE}

[Python](../python.md) shows how to use these; this page lists every public name with its parameters.
"""
MATH = ".. math::"
PROSE = ("Examples", "Notes", "References")  # sections without entries


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
    yield f"### {name}\n\n{_usage(name, what)}"
    yield documented(inspect.getdoc(what) or "") + "\n"
    if inspect.isclass(what):
        for method, function in methods(what):
            yield f"#### {name}.{method}\n"
            if callable(function):
                yield _usage(f"{name}.{method}", function)
            yield documented(inspect.getdoc(function) or "") + "\n"


def methods(what: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of a class, those that it inherits from the engine's own classes included."""
    ours = [each for each in what.__mro__ if each.__module__.partition(".")[0] in ("connectors", "stream_engine")]
    names = dict.fromkeys(name for each in ours for name in vars(each) if _is_told(name))
    for name in names:
        found = getattr(what, name)
        if isinstance(found, property) or inspect.isroutine(found):
            yield name, found


def _usage(name: str, what: Any) -> str:
    return f"```text\n{name}{_signature(what)}\n```\n"


def _is_told(method: str) -> bool:
    return not method.startswith("_") and not re.fullmatch(r"set_\w+_request", method)  # those are scikit-learn's


def _signature(what: Any, widest: float = WIDTH - 30) -> str:
    """Names and defaults of its parameters, in several lines where one would be wider."""
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
    return whole if len(whole) < widest else "(\n    " + ",\n    ".join(_shown(each) for each in bare) + ",\n)"


def _shown(parameter: inspect.Parameter) -> str:
    """A parameter with its default, or only the default's type if that is long."""
    whole = str(parameter)
    return whole if len(whole) < WIDTH - 4 else f"{parameter.name}={type(parameter.default).__name__}(...)"


def documented(text: str) -> str:
    """A numpydoc docstring as Markdown: parameters as lists, formulas as mathematics, examples as code.

    >>> print(documented("Add.\\n\\n.. math:: a + b\\n\\nParameters\\n----------\\na : int\\n    First."))
    Add.
    <BLANKLINE>
    ```math
    a + b
    ```
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    - `a` (int): First.
    """
    parts = re.split(r"^(\w+)\n-+$\n", text, flags=re.M)
    told = [_prose(parts[0])]
    for heading, body in zip(parts[1::2], parts[2::2]):
        told += [f"**{heading}**", _prose(body) if heading in PROSE else "\n".join(_items(body))]
    return "\n\n".join(told)


def _prose(text: str) -> str:
    return "\n\n".join(_paragraph(part.strip("\n")) for part in text.strip("\n").split("\n\n"))


def _paragraph(part: str) -> str:
    if part.startswith(">>>"):
        return f"```pycon\n{part}\n```"
    if part.startswith(MATH):
        return f"```math\n{paragraph(' '.join(part.removeprefix(MATH).split()))}\n```"
    return part if part.startswith(("-", " ")) else paragraph(" ".join(part.split()))


def _items(body: str) -> Iterator[str]:
    """Each entry of a section, with its type, and the indented lines below it."""
    for entry in re.split(r"^(?=\S)", body, flags=re.M):
        head, _, text = entry.strip().partition("\n")
        name, _, kind = head.partition(" : ")
        says = " ".join(text.split())
        if head:
            yield item((f"`{name}` ({kind})" if kind else head) + (f": {says}" if says else ""))
