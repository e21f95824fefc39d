"""What can be wrong with settings, each said in one line: where, what, got, expected."""

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

LARGEST = 2**63 - 1
SECRET = ("http", "kafka", "signing")  # tables of which no value is shown
LONGEST = 60  # characters of a value that is shown


class BadSettings(ValueError):
    """The configuration cannot be used; the message is one line: where, what, got, expected."""


def converted(given: Mapping[str, Any], struct: type[Struct], where: str, at: str = "") -> Any:
    """`given` as a `struct`. Raises `BadSettings`: msgspec's message behind the key that it is about."""
    try:
        return msgspec.convert(given, struct, strict=False)
    except msgspec.ValidationError as error:
        raise BadSettings(": ".join(filter(None, (where, in_one_line(error, given, struct, at))))) from None


def in_one_line(error: msgspec.ValidationError, given: Any, struct: type[Struct], at: str = "") -> str:
    """What is wrong with `given`, which is no `struct`; `at` is where it stands.

    >>> from stream_engine.service.settings.schema import Settings
    >>> def told(given):
    ...     try:
    ...         msgspec.convert(given, Settings, strict=False)
    ...     except msgspec.ValidationError as error:
    ...         return in_one_line(error, given, Settings)
    >>> told({"snapshot": {"every": -1}})
    'snapshot.every: got -1, expected `int` >= 0'
    >>> told({"snapshot": {"evry": 1}})
    'snapshot.evry: unknown key; did you mean every?'
    """
    what, _, path = str(error).partition(" - at `$")
    keys, value, kind = [at] if at else [], given, struct
    for name, index in re.findall(r"\.([^.\[`]+)|\[([^\]]*)\]", path):
        keys.append(_first_wrong(value, kind) if index == "..." else name or index)
        value, kind = _below(value, keys[-1]), _type_below(kind, keys[-1])
    if unknown := re.match(r"Object contains unknown field `(.*)`", what):
        return f"{'.'.join([*keys, unknown[1]])}: unknown key{_meant(unknown[1], keys_of(table_in(kind)))}"
    expected = re.sub(r", got `\w+`$", "", what).removeprefix("Expected ").replace(" | null", "")
    if expected == what:
        expected = what[0].lower() + what[1:]
        if choices := [word for each in _parts(kind) if get_origin(each) is Literal for word in get_args(each)]:
            expected = f"one of {', '.join(map(str, choices))}"
        elif not what.startswith("Invalid"):
            return f"{'.'.join(keys) or 'settings'}: {expected}"
    table = table_in(kind)
    keys_there = f" with {', '.join(keys_of(table))}" if table and expected == "`object`" else ""
    expected = expected.replace("`object`", f"a table{keys_there}").replace("`array`", "a list")
    return f"{'.'.join(keys) or 'settings'}: {_got(value, keys)}expected {expected}"


def _first_wrong(table: Mapping[str, Any], kind: Any) -> str:
    """Which entry of a table of names is wrong; msgspec does not say it."""
    for name, value in table.items():
        try:
            msgspec.convert(value, _type_below(kind, name), strict=False)
        except msgspec.ValidationError:
            return name
    return "*"


def _meant(key: str, known: Mapping[str, Any]) -> str:
    """As `nearest`; where the key stands in one of the tables, that."""
    tables = [name for name, kind in known.items() if key in keys_of(table_in(kind))]
    return f"; did you mean {tables[0]}.{key} ({key} below [{tables[0]}])?" if len(tables) == 1 else nearest(key, known)


def _got(value: Any, keys: list[str]) -> str:
    if value is None or (keys and keys[0].partition(".")[0] in SECRET):
        return ""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return f"got {text if len(text) <= LONGEST else f'{text[: LONGEST - 1]}…'}, "


def _below(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(key)
    return value[int(key)] if isinstance(value, list | tuple) and key.isdigit() else None


def _type_below(kind: Any, key: str) -> Any:
    for each in _members(kind):
        if is_table(each):
            return keys_of(each).get(key)
        if get_origin(each) in (dict, list, tuple):
            return get_args(each)[1 if get_origin(each) is dict else 0]
    return None


def _members(kind: Any) -> tuple[Any, ...]:
    """The types that a value may have: T | None has two."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _parts(kind: Any) -> Iterable[Any]:
    """A type and all that it is made of: T | None, tuple[T, ...]."""
    yield kind
    if get_origin(kind) is not Literal:
        for each in get_args(kind):
            yield from _parts(each)


def is_table(kind: Any) -> bool:
    """Whether a type of a setting is a table of keys."""
    return isinstance(kind, type) and issubclass(kind, Struct)


def table_in(kind: Any) -> type[Struct] | None:
    """The table that a type is, or that it is one of several: T | None."""
    return next((each for each in _members(kind) if is_table(each)), None)


def keys_of(struct: type[Struct] | None) -> dict[str, Any]:
    """Key of a table -> its type."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(struct)} if struct else {}


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
