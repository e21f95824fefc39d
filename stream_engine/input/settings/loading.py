"""Settings from the command line, over the environment (`STREAM_ENGINE__SECTION__KEY`), over a file, over defaults. The
only reader of the configuration file and of the environment."""

import json
import os
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from stream_engine.alignment.feature_files import SUFFIXES as FEATURE_SUFFIXES
from stream_engine.data.signatures import Signing, signing_of_environment, signing_with
from stream_engine.input.settings import BadSettings, Settings
from stream_engine.input.settings.conversion import check_values, convert
from stream_engine.input.settings.refit_params import check_kernel_files, refit_params
from stream_engine.input.settings.secret_values import HIDDEN, Secret, encode_secret, hide_secrets, resolve_references

ENVIRONMENT = "STREAM_ENGINE__"


def load(path: str | None, overrides: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from a file (or none), the environment and `overrides` ({"section.key": value}; None is not given).

    Raises `BadSettings`.
    """
    tree: dict[str, Any] = {}
    origins = [path] if path else []
    if path:
        tree = _read(Path(path))
        for spec in _kernel_specs(tree):  # file names of kernels are relative to the file
            for key in ("file", "objects"):
                if isinstance(spec.get(key), str):
                    spec[key] = str(Path(path).parent / spec[key])
    for name, text in sorted(environment.items()):
        if name.startswith(ENVIRONMENT):
            set_value(
                tree, tuple(part.lower() for part in name.removeprefix(ENVIRONMENT).split("__")), toml_value(text)
            )
            origins.append(name)
    _rename_former(tree)
    for key_path, value in overrides.items():
        if value is not None:
            set_value(tree, tuple(key_path.split(".")), value)
    where = ", ".join(origins) or "settings"
    if "input" in tree:
        tree["input"] = msgspec.to_builtins(tree["input"])  # a time of TOML as text
    check_values(tree, where)
    for section in ("kafka", "http", "schema_registry", "signing"):
        if section in tree:
            tree[section] = resolve_references(tree[section], f"{where}: {section}", environment)
    signing = tree.get("signing")
    if isinstance(signing, dict) and not isinstance(signing.get("key"), Secret | None):
        raise BadSettings(f'{where}: signing.key: expected {{ env = "NAME" }} or {{ file = "PATH" }}')
    settings: Settings = convert(tree, Settings, where)
    shard(settings.input.shard)
    _check_address("listen", settings.listen)
    check_kernel_files(settings.kernels, "kernels")
    check_kernel_files(settings.features, "features", FEATURE_SUFFIXES)
    for kind, params in settings.refits.params.items():
        refit_params(kind, params)
    return settings


def _rename_former(tree: dict[str, Any]) -> None:
    """Accept the settings of version 0.1.0 that have another form now, for one release."""
    guard = tree.get("guard")
    if isinstance(guard, dict) and guard.get("policy") in ("first", "off") and len(guard) == 1:
        tree["guard"] = guard["policy"] == "first"
        value = str(tree["guard"]).lower()
        warnings.warn(f"the table [guard] is deprecated; write guard = {value}", FutureWarning, stacklevel=3)


def plain_settings(settings: Settings) -> dict[str, Any]:
    """The settings in force as plain values; secrets are hidden."""
    key = None if settings.signing.key is None else HIDDEN
    signing = msgspec.structs.replace(settings.signing, key=key)
    plain = msgspec.structs.replace(settings, kafka=hide_secrets(settings.kafka), signing=signing)
    return hide_secrets(msgspec.to_builtins(plain, enc_hook=encode_secret))


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
    pairs = [part.partition("=") for part in _parts(text, separator) if part]
    for key, equals, value in pairs:
        if not (key and equals and value):
            raise BadSettings(f"{option}: got {key + equals + value!r}, expected NAME=VALUE")
    return {key.strip(): value.strip() for key, _, value in pairs}


def _parts(text: str, separator: str) -> list[str]:
    """The parts of a text between separators that stand in no brackets, and of which none is followed by a space and no
    equals sign: those belong to the name of a column.

    >>> _parts("chosen=choice (1=right, 2=left),participant=Who, if known", ",")
    ['chosen=choice (1=right, 2=left)', 'participant=Who, if known']
    """
    parts: list[str] = []
    for part in text.split(separator):
        before = parts[-1] if parts else ""
        is_open = any(before.count(begin) > before.count(end) for begin, end in ("()", "[]"))
        if before and ((is_open and any(end in part for end in ")]")) or (part[:1] == " " and "=" not in part)):
            parts[-1] += separator + part
        else:
            parts.append(part)
    return parts


def toml_value(text: str) -> Any:
    """A value from the environment or an assignment: a TOML value if it is one, else the text itself.

    >>> toml_value('3'), toml_value('[1, 2]'), toml_value('admm')
    (3, [1, 2], 'admm')
    """
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except (ValueError, RecursionError):  # also for a number of thousands of digits
        return text


def set_value(tree: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    """Set tree[a][b]... for keys (a, b, ...); creates sections as needed."""
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise BadSettings(f"{'.'.join(keys)}: {key} is a value, not a section")
    if isinstance(tree.get(keys[-1]), dict) and not isinstance(value, dict):
        raise BadSettings(f"{'.'.join(keys)}: got a table, expected a value such as {keys[-1]} = {json.dumps(value)}")
    tree[keys[-1]] = value


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(
            f"{path}: cannot be read: {error.strerror if isinstance(error, OSError) else error}"
        ) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a ValueError of its own kind
        raise BadSettings(f"{path}: not TOML: {error}") from None


def _kernel_specs(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The tables that describe files: in [kernels] and [features], and in `kernels` and `features` of a refit."""
    of_refits = _tables(_table(_table(tree, "refits"), "params"))
    for table in (tree, *of_refits):
        yield from _tables(_table(table, "kernels"))
        yield from _tables(_table(table, "features"))
    yield from (_table(refit_table, "features") for refit_table in of_refits)


def _table(tree: dict[str, Any], key: str) -> dict[str, Any]:
    return entry if isinstance(entry := tree.get(key), dict) else {}


def _tables(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in table.values() if isinstance(entry, dict)]


def _check_address(name: str, address: str | None) -> None:
    if address is not None:
        host, colon, port = address.rpartition(":")
        if not (host and colon and port.isascii() and port.isdecimal() and int(port) < 65_536):
            raise BadSettings(f"{name}: got {address!r}, expected HOST:PORT with a port from 0 to 65535")


def signing_of(settings: Settings) -> Signing:
    """Signing with the key of the settings, or else of the environment. Raises `BadKey`."""
    accept = settings.signing.accept_unsigned
    if settings.signing.key is not None:
        return signing_with(settings.signing.key, accept, "signing.key")
    signing = signing_of_environment()
    return signing._replace(accept_unsigned=accept or signing.accept_unsigned)
