"""What can be wrong with settings, each said in one line: where, what, got, expected."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, get_args, get_origin

import msgspec
from msgspec import Struct


class BadSettings(ValueError):
    """The configuration cannot be used; the message is one line: where, what, got, expected."""


def check_keys(tree: Mapping[str, Any], struct: type[Struct], where: str, path: tuple[str, ...] = ()) -> None:
    """Raise `BadSettings` for a key that `struct` does not have, at any depth. `where` is the file or variable."""
    fields = {f.encode_name: f.type for f in msgspec.structs.fields(struct)}
    for key, value in tree.items():
        if key not in fields:
            dotted = ".".join((*path, key))
            raise BadSettings(f"{where}: unknown key {dotted}{nearest(key, fields)}")
        kind = fields[key]
        if isinstance(kind, type) and issubclass(kind, Struct) and isinstance(value, Mapping):
            check_keys(value, kind, where, (*path, key))
        named = next((each for each in get_args(kind) if isinstance(each, type) and issubclass(each, Struct)), None)
        if get_origin(kind) is dict and named and isinstance(value, Mapping):  # tables by names of one's own
            for name, table in value.items():
                if isinstance(table, Mapping):
                    check_keys(table, named, where, (*path, key, name))


def nearest(key: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: which known one may be meant, or all of them."""
    names = list(known)
    near = [name for name in names if name.startswith(key)] or difflib.get_close_matches(key, names, 1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(names)}"


def in_one_line(error: msgspec.ValidationError, at: str = "") -> str:
    """msgspec's sentence with our way of naming a place; `at` is where the checked value stands."""
    what, _, path = str(error).partition(" - at `$")
    place = ".".join(filter(None, (at, path.strip("`").lstrip("."))))
    return f"{place or 'settings'}: {what[0].lower() + what[1:]}"
