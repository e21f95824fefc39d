"""Everything public has a numpydoc docstring: a summary, every parameter with its type, and what is returned."""

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

from deploy.manual.estimators import ROOMS, methods
from stream_engine.refits import REFITS
from tests.house.public_names import PUBLIC

SECTIONS = re.compile(r"^(\w+)\n-+$\n", re.M)
MODULES = [*PUBLIC, *ROOMS, *(f"stream_engine.refits.{kind}" for kind in REFITS)]


def public() -> dict[str, Any]:
    """The public classes and functions by their dotted names, each once."""
    found: dict[int, tuple[str, Any]] = {}
    for module in dict.fromkeys(MODULES):
        room = import_module(module)
        for name in dict.fromkeys([*getattr(room, "__all__", ()), *PUBLIC.get(module, ()), "Params", "refit"]):
            value = getattr(room, name, None)
            if inspect.isfunction(value) or inspect.isclass(value):
                found.setdefault(id(value), (f"{module}.{name}", value))
    return dict(found.values())


def faults(what: Any) -> list[str]:
    """What the docstring of a class or function lacks."""
    text = inspect.getdoc(what) or ""
    summary, *parts = SECTIONS.split(text)
    sections = dict(zip(parts[::2], parts[1::2]))
    wrong = [] if summary.strip() and summary.strip()[0].isupper() else ["no summary"]
    entries = sections.get("Parameters", "") + sections.get("Attributes", "")
    named = {name for line in re.findall(r"^(\S.*?) : .+\n +\S", entries, re.M) for name in line.split(", ")}
    wrong += [f"parameter {name}" for name in parameters(what) if name not in named]
    if is_function(what) and returns(what) and not {"Returns", "Yields"} & set(sections):
        wrong.append("what it returns")
    return wrong


def is_function(what: Any) -> bool:
    return not inspect.isclass(what)


def parameters(what: Any) -> Iterator[str]:
    """The names of the parameters, as they are written in a docstring; none of exceptions and protocols."""
    if inspect.isclass(what) and (issubclass(what, Exception) or getattr(what, "_is_protocol", False)):
        return
    for each in inspect.signature(what).parameters.values():
        if each.name not in ("self", "cls"):
            stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
            yield stars.get(each.kind, "") + each.name


def returns(function: Callable[..., Any]) -> bool:
    """Whether a function is said to return something, or says nothing of it."""
    return inspect.signature(function).return_annotation not in (None, "None")


@pytest.mark.parametrize("name, what", public().items(), ids=public())
def test_a_public_name_is_documented(name, what):
    wrong = {name: faults(what)}
    if inspect.isclass(what):
        wrong |= {f"{name}.{method}": faults(getattr(each, "fget", each)) for method, each in methods(what)}
    assert {name: lacks for name, lacks in wrong.items() if lacks} == {}
