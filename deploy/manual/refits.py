"""The page of refits: what each does, what it takes, with defaults."""

import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import msgspec

from deploy.manual.markdown import MADE, item, prose
from deploy.manual.settings import default_of, type_of
from stream_engine.refits import REFITS, refit_module

INTRODUCTION = f"""# Refits

{MADE}

A refit fits a model (clusters, an embedding, a classifier, a kernel) to a published snapshot and stores it as an
artifact. A run starts its refits automatically; `stream-engine refit --state DIR KIND --set PARAMETER=VALUE` runs one.
In a configuration, set parameters in `[refits.params.KIND]`. The same snapshot, parameters, seed and versions give the
same artifact. [Exports](../exports.md) lists what each refit exports.
"""
_NAMES = re.compile(r"^(\w+(?:, \w+)*) : ")


def page() -> str:
    """The whole page."""
    lines = [INTRODUCTION]
    for kind in REFITS:
        lines += [f"## {kind}", "", *_refit(refit_module(kind)), ""]
    return "\n".join(lines)


def _refit(module: ModuleType) -> Iterator[str]:
    yield prose(inspect.getdoc(module) or "")
    yield ""
    told = parameters(module.Params)
    for field in msgspec.structs.fields(module.Params):
        yield item(f"`{field.encode_name}` ({type_of(field)}; default {default_of(field)}): {told[field.name]}.")


def parameters(of: type) -> dict[str, str]:
    """Parameter -> what its docstring (and those of the structs above it) says of it.

    >>> parameters(refit_module("hierarchy").Params)["min_links"]
    'An object with a nonzero similarity to fewer others is excluded'
    """
    told: dict[str, str] = {}
    for each in reversed(of.__mro__):
        for entry in re.split(r"^(?=\S)", inspect.cleandoc(each.__dict__.get("__doc__") or ""), flags=re.M):
            if begins := _NAMES.match(entry):
                told |= dict.fromkeys(begins[1].split(", "), " ".join(entry.partition("\n")[2].split()).rstrip("."))
    return told
