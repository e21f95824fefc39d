"""Values of settings out of text: from a command line, an environment variable or an assignment."""

import tomllib
from typing import Any

from stream_engine.service.settings.problems import BadSettings


def shard(text: str | None) -> tuple[int, int] | None:
    """`"i/n"` as (i, n).

    >>> shard("2/4")
    (2, 4)
    """
    if text is None:
        return None
    i, _, n = text.partition("/")
    if not (i.isdigit() and n.isdigit() and int(i) < int(n)):
        raise BadSettings(f"input.shard: got {text!r}, expected i/n with 0 <= i < n, such as 0/4")
    return int(i), int(n)


def mapping(text: str, option: str, separator: str = ",") -> dict[str, str]:
    """`"anchor=probe,near=chosen"` as a dict.

    >>> mapping("objects=left|right|middle,central=central", "--columns")
    {'objects': 'left|right|middle', 'central': 'central'}
    """
    pairs = [part.partition("=") for part in text.split(separator) if part]
    for key, equals, value in pairs:
        if not (key and equals and value):
            raise BadSettings(f"{option}: got {key + equals + value!r}, expected NAME=VALUE")
    return {key.strip(): value.strip() for key, _, value in pairs}


def toml_value(text: str) -> Any:
    """A value from the environment or an assignment: TOML where it is TOML, else the text itself.

    >>> toml_value('3'), toml_value('[1, 2]'), toml_value('admm')
    (3, [1, 2], 'admm')
    """
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except (ValueError, RecursionError):  # also for a number of thousands of digits
        return text


def put(tree: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    """Set tree[a][b]... for keys (a, b, ...), sections made as needed."""
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise BadSettings(f"{'.'.join(keys)}: {key} is a value, not a section")
    tree[keys[-1]] = value
