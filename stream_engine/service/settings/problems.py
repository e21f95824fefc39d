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
    fields = keys_of(struct)
    for key, value in tree.items():
        if key not in fields:
            dotted = ".".join((*path, key))
            raise BadSettings(f"{where}: unknown key {dotted}{_in_a_table(key, fields, value) or nearest(key, fields)}")
        kind = fields[key]
        if is_table(kind) and isinstance(value, Mapping):
            check_keys(value, kind, where, (*path, key))
        named = next((each for each in get_args(kind) if is_table(each)), None)
        if get_origin(kind) is dict and named and isinstance(value, Mapping):  # tables by names of one's own
            for name, table in value.items():
                if isinstance(table, Mapping):
                    check_keys(table, named, where, (*path, key, name))


def _in_a_table(key: str, fields: Mapping[str, Any], value: object) -> str:
    """The end of the sentence where the key stands one table deeper, or ""; and what is wrong with its `value`."""
    tables = [name for name, kind in fields.items() if is_table(kind) and key in keys_of(kind)]
    if len(tables) != 1:
        return ""
    return f"; did you mean {tables[0]}.{key} ({key} below [{tables[0]}])?{_joined(value) if key == 'columns' else ''}"


def _joined(value: object) -> str:
    """How a list of columns is written, where one is given as a list.

    >>> _joined({"anchor": "probe", "shown": ["left", "right"]})
    ' A list of columns is one text: shown = "left|right"'
    """
    named = value.items() if isinstance(value, Mapping) else ()
    lists = {name: each for name, each in named if isinstance(each, list) and all(isinstance(c, str) for c in each)}
    return (
        f' A list of columns is one text: {name} = "{"|".join(lists[name])}"' if (name := next(iter(lists), "")) else ""
    )


def is_table(kind: Any) -> bool:
    """Whether a type of a setting is a table of keys."""
    return isinstance(kind, type) and issubclass(kind, Struct)


def keys_of(struct: type[Struct]) -> dict[str, Any]:
    """Key of a table -> its type."""
    return {field.encode_name: field.type for field in msgspec.structs.fields(struct)}


def nearest(key: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: which known one may be meant, or all of them."""
    names = list(known)
    near = [name for name in names if name.startswith(key)] or difflib.get_close_matches(key, names, 1)
    return f"; did you mean {near[0]}?" if near else f"; known are {', '.join(names)}"
