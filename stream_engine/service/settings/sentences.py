"""What msgspec refuses of the settings, in our words: where, what was got, what is expected. In one line."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec import Struct

from stream_engine.service.settings.problems import is_table, keys_of

WORDS = {"object": "a table", "array": "a list", "str": "text", "int": "a whole number", "float": "a number"}
WORDS |= {"bool": "true or false"}
OF_TYPE = {dict: "object", list: "array", tuple: "array", str: "str", bool: "bool", int: "int", float: "float"}
SECRET = ("http", "kafka", "signing")  # tables of which no value is shown
LONGEST = 60  # of a value that is shown


def in_one_line(error: msgspec.ValidationError, given: Any, struct: type[Struct], at: str = "") -> str:
    """What is wrong with `given`, which is no `struct`; `at` is where it stands.

    >>> from stream_engine.service.settings.schema import Settings
    >>> def told(given):
    ...     try:
    ...         msgspec.convert(given, Settings, strict=False)
    ...     except msgspec.ValidationError as error:
    ...         return in_one_line(error, given, Settings)
    >>> told({"guard": "off"})
    'guard: got "off", expected a table; say guard.policy = "off"'
    >>> told({"snapshot": {"every": -1}})
    'snapshot.every: got -1, expected a whole number >= 0'
    """
    what, _, path = str(error).partition(" - at `$")
    got = re.search(r", got `(\w+)`$", what)
    keys, value, kind = _followed(path.strip("`"), given, struct, got[1] if got else None)
    place = ".".join(filter(None, (at, *keys))) or "settings"
    if not (expected := _expected(what, place, value, kind)):
        return f"{place}: {what[0].lower() + what[1:]}"
    return f"{place}: got {_shown(value, place.partition('.')[0])}, expected {expected}"


def _followed(path: str, given: Any, struct: Any, got: str | None) -> tuple[list[str], Any, Any]:
    """The keys of a place such as `.input.columns[...]`, the value and the type there. msgspec does not say which key
    of a table of names it means: the first whose value is of the type that it got."""
    keys: list[str] = []
    for name, index in re.findall(r"\.([^.\[]+)|\[([^\]]*)\]", path):
        if index == "...":
            name = next((key for key, each in given.items() if got in (None, OF_TYPE.get(type(each)))), "")
        struct = _below(struct, name)
        given = given[int(index)] if index.isdigit() else given.get(name)
        keys.append(name or index)
    return keys, given, struct


def _below(kind: Any, key: str) -> Any:
    """The type of what stands at a key, or at an index, of a value of this type."""
    for each in (kind, *get_args(kind)):  # one of several: T | None
        if is_table(each):
            return keys_of(each).get(key)
        if get_origin(each) in (dict, tuple, list):
            return get_args(each)[0 if get_origin(each) is not dict else 1]
    return None


def _expected(what: str, place: str, value: Any, kind: Any) -> str:
    """What is expected there, or "" where the sentence says it itself."""
    if what.startswith("Invalid enum value"):
        return f"one of {', '.join(str(word) for word in _choices(kind))}"
    wanted = re.match(r"Expected `([^`]*)`(.*?)(?:, got `\w+`)?$", what)
    if not wanted:
        return ""
    said = " or ".join(WORDS.get(word, word) for word in wanted[1].split(" | ") if word != "null") + wanted[2]
    if is_table(kind):
        hint = _meant(place, value, kind)
        return f"{said}; say {hint}" if hint else f"{said} with {', '.join(keys_of(kind))}"
    if wanted[1] == "array" and isinstance(value, str):
        return f"{said}; say {place} = {json.dumps([value], ensure_ascii=False)}"
    if place.startswith("input.columns.") and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return f'{said}; several columns are joined by |: "{"|".join(value)}"'
    return said


def _meant(place: str, value: Any, table: type[Struct]) -> str:
    """The key of a table that takes just such words, as an assignment, or ""."""
    if value in (False, "off", "no", "none", "false") and "enabled" in keys_of(table):
        return f"{place}.enabled = false"
    words = value if isinstance(value, list) else [value]
    for key, kind in keys_of(table).items():
        known = _choices(kind)
        if known and words and all(isinstance(word, str) and word in known for word in words):
            of_several = any(get_origin(each) is tuple for each in (kind, *get_args(kind)))
            return f"{place}.{key} = {json.dumps(words if of_several else words[0])}"
    return ""


def _choices(kind: Any) -> tuple[Any, ...]:
    """The words that a type allows, in a list of them too; () where it is no closed set."""
    return tuple(_literals(kind))


def _literals(kind: Any) -> Iterator[Any]:
    for each in (kind, *get_args(kind)):
        if get_origin(each) is Literal:
            yield from get_args(each)
        elif each is not kind and get_origin(each) is tuple:
            yield from _literals(each)


def _shown(value: Any, table: str) -> str:
    if table in SECRET:
        return WORDS.get(OF_TYPE.get(type(value), ""), "something else")
    text = json.dumps(value, ensure_ascii=False, default=str) if not isinstance(value, Mapping) else "a table"
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
