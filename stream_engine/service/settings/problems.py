"""What can be wrong with settings, each said in one line: where, and what."""

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

LARGEST = 2**63 - 1


class BadSettings(ValueError):
    """The configuration cannot be used; the message is one line: where, what, got, expected."""


def converted(given: Mapping[str, Any], struct: type[Struct], where: str, at: str = "") -> Any:
    """`given` as a `struct`. Raises `BadSettings`: msgspec's message behind the key that it is about; `at` is where
    `given` stands."""
    try:
        return msgspec.convert(given, struct, strict=False)
    except msgspec.ValidationError as error:
        raise BadSettings(": ".join(filter(None, (where, in_one_line(error, struct, at))))) from None


def in_one_line(error: msgspec.ValidationError, struct: type[Struct], at: str = "") -> str:
    """What is wrong with something that is no `struct`; no value is repeated but a word that was to be one of a few.

    >>> from stream_engine.service.settings.schema import Settings
    >>> def told(given):
    ...     try:
    ...         msgspec.convert(given, Settings, strict=False)
    ...     except msgspec.ValidationError as error:
    ...         return in_one_line(error, Settings)
    >>> told({"snapshot": {"every": -1}}), told({"snapshot": {"evry": 1}})
    ('snapshot.every: expected `int` >= 0', 'snapshot.evry: unknown key; did you mean every?')
    """
    what, _, path = str(error).partition(" - at `$")
    key, kind = at + path.removesuffix("`"), struct
    for name in re.findall(r"[^.\[\]`]+|\.\.\.", path):
        kind = _type_below(kind, name)
    if unknown := re.match(r"Object contains unknown field `(.*)`", what):
        known = [f.encode_name for each in _members(kind) if _is_table(each) for f in msgspec.structs.fields(each)]
        return f"{key}.{unknown[1]}: unknown key{nearest(unknown[1], known)}".lstrip(".")
    said = (what[0].lower() + what[1:]).replace("`object", "`table").replace("`array", "`list")
    if choices := [word for each in _members(kind) if get_origin(each) is Literal for word in get_args(each)]:
        said += f", expected one of {', '.join(map(str, choices))}"
    return f"{key.lstrip('.') or 'settings'}: {said}"


def _type_below(kind: Any, name: str) -> Any:
    """The type of an entry of a table, a mapping or a list."""
    for each in _members(kind):
        if _is_table(each):
            return {field.encode_name: field.type for field in msgspec.structs.fields(each)}.get(name)
        if get_origin(each) in (dict, list, tuple):
            return get_args(each)[1 if get_origin(each) is dict else 0]
    return None


def _members(kind: Any) -> tuple[Any, ...]:
    """The types that a value may have: T | None has two."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def nearest(key: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: which known one may be meant, or all of them."""
    names = list(known)
    near = [name for name in names if name.startswith(key)] or difflib.get_close_matches(key, names, 1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(names)}"


def check_values(value: Any, where: str, path: tuple[str, ...] = ()) -> None:
    """Raise `BadSettings` for text with a NUL and for numbers that are none or too large, which TOML allows: files, C
    libraries and 64-bit integers do not. At any depth; `where` is the file."""
    place = f"{where}: {'.'.join(path)!r}"
    if isinstance(value, Mapping):
        for key, each in value.items():
            check_values(str(key), where, (*path, str(key)))
            check_values(each, where, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for number, each in enumerate(value):
            check_values(each, where, (*path, str(number)))
    elif isinstance(value, str) and "\0" in value:
        raise BadSettings(f"{place}: text holds a NUL character; take it out")
    elif isinstance(value, float) and not math.isfinite(value):
        raise BadSettings(f"{place}: got {value}, expected a finite number")
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise BadSettings(f"{place}: got {value}, expected a number of at most 64 bits")
