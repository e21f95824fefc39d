"""Plain values as structs of settings; every error is one line: where, and what is wrong."""

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from stream_engine.input.settings import BadSettings
from stream_engine.input.settings.secret_values import Secret, hide_secrets


def convert(value: Mapping[str, Any], struct: type[Struct], where: str, at: str = "") -> Any:
    """`value` as a `struct`. Raises `BadSettings`: msgspec's message after the key that it is about; `at` is the
    place of `value`."""
    try:
        return msgspec.convert(value, struct, strict=False)
    except msgspec.ValidationError as error:
        problem = f"{in_one_line(error, struct, at)}{_value_shown(error, value)}"
        raise BadSettings(": ".join(filter(None, (where, problem)))) from None


def _value_shown(error: msgspec.ValidationError, value: Any) -> str:
    """The number or the word that was given, where the message has its type or bound alone; never a secret."""
    problem, _, path = str(error).partition(" - at `$")
    keys = re.findall(r"[^.\[\]`]+|\.\.\.", path)
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    is_shown = isinstance(value, (str, int, float)) and problem.startswith("Expected") and ", got `" not in problem
    return f", got {hide_secrets(value, keys[-1])!r}" if is_shown and not isinstance(value, Secret) else ""


def in_one_line(error: msgspec.ValidationError, struct: type[Struct], at: str = "") -> str:
    """The problem of a value that is no `struct`, in one line; no value is repeated except a word that is not one of a
    few.

    >>> from stream_engine.input.settings import BadSettings, Settings
    >>> def told(given):
    ...     try:
    ...         msgspec.convert(given, Settings, strict=False)
    ...     except msgspec.ValidationError as error:
    ...         return in_one_line(error, Settings)
    >>> told({"snapshot": {"every": -1}}), told({"snapshot": {"evry": 1}})
    ('snapshot.every: expected `int` >= 0', 'snapshot.evry: unknown key; did you mean every?')
    """
    problem, _, path = str(error).partition(" - at `$")
    key, kind = at + path.removesuffix("`"), struct
    for name in re.findall(r"[^.\[\]`]+|\.\.\.", path):
        kind = _type_below(kind, name)
    if unknown := re.match(r"Object contains unknown field `(.*)`", problem):
        keys = [f.encode_name for member in _members(kind) if _is_table(member) for f in msgspec.structs.fields(member)]
        return f"{key}.{unknown[1]}: unknown key{nearest(unknown[1], keys)}".lstrip(".")
    expectation = (problem[0].lower() + problem[1:]).replace("`object", "`table").replace("`array", "`list")
    if choices := [word for member in _members(kind) if get_origin(member) is Literal for word in get_args(member)]:
        expectation += f", expected one of {', '.join(map(str, choices))}"
    return f"{key.lstrip('.') or 'settings'}: {expectation}"


def _type_below(kind: Any, name: str) -> Any:
    """The type of an entry of a table, a mapping or a list."""
    for member in _members(kind):
        if _is_table(member):
            return {field.encode_name: field.type for field in msgspec.structs.fields(member)}.get(name)
        if get_origin(member) in (dict, list, tuple):
            return get_args(member)[1 if get_origin(member) is dict else 0]
    return None


def _members(kind: Any) -> tuple[Any, ...]:
    """The types of a value: T | None has two."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def nearest(key: str, names: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the similar known one, or all known ones."""
    all_names = list(names)
    near = [name for name in all_names if name.startswith(key)] or difflib.get_close_matches(key, all_names, 1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(all_names)}"


MAX_INTEGER = 2**63 - 1  # a 64-bit integer


def check_values(value: Any, where: str, path: tuple[str, ...] = ()) -> None:
    """Raise `BadSettings` for text with a NUL and for numbers that are none or too large, which TOML allows: files, C
    libraries and 64-bit integers do not. At any depth; `where` is the file."""
    place = f"{where}: {'.'.join(path)!r}"
    if isinstance(value, Mapping):
        for key, entry in value.items():
            check_values(str(key), where, (*path, str(key)))
            check_values(entry, where, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for number, entry in enumerate(value):
            check_values(entry, where, (*path, str(number)))
    elif isinstance(value, str) and "\0" in value:
        raise BadSettings(f"{place}: text holds a NUL character; take it out")
    elif isinstance(value, float) and not math.isfinite(value):
        raise BadSettings(f"{place}: got {value}, expected a finite number")
    elif isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise BadSettings(f"{place}: got {value}, expected a number of at most 64 bits")
