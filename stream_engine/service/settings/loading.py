"""Command line over environment (`STREAM_ENGINE__SECTION__KEY`) over file over default.

The only reader of the configuration file and of the environment.
"""

import os
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from stream_engine.kernel_learning.auxiliary_files import NO_FILE, SUFFIXES, KernelSpec
from stream_engine.refits import REFITS, refit_module
from stream_engine.service.settings.problems import BadSettings, check_values, converted, nearest
from stream_engine.service.settings.schema import Settings
from stream_engine.service.settings.secrets import HIDDEN, Secret, hidden, hidden_secret, revealed

ENVIRONMENT = "STREAM_ENGINE__"


def load(path: str | None, overrides: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from a file (or none), the environment and `overrides` ({"section.key": value}; None is not given).

    Raises `BadSettings`.
    """
    tree: dict[str, Any] = {}
    came_from = [path] if path else []
    if path:
        tree = _read(Path(path))
        for spec in _kernel_specs(tree):  # file names of kernels are relative to the file
            for key in ("file", "objects"):
                if isinstance(spec.get(key), str):
                    spec[key] = str(Path(path).parent / spec[key])
    for name, text in sorted(environment.items()):
        if name.startswith(ENVIRONMENT):
            put(tree, tuple(part.lower() for part in name.removeprefix(ENVIRONMENT).split("__")), toml_value(text))
            came_from.append(name)
    for dotted, value in overrides.items():
        if value is not None:
            put(tree, tuple(dotted.split(".")), value)
    where = ", ".join(came_from) or "settings"
    _rename_former(tree)
    check_values(tree, where)
    for section in ("kafka", "http", "signing"):
        if section in tree:
            tree[section] = revealed(tree[section], where, environment)
    signing = tree.get("signing")
    if isinstance(signing, dict) and not isinstance(signing.get("key"), Secret | None):
        raise BadSettings(f'{where}: signing.key: expected {{ env = "NAME" }} or {{ file = "PATH" }}')
    settings: Settings = converted(tree, Settings, where)
    shard(settings.input.shard)
    _check_address("listen", settings.listen)
    check_kernel_files(settings.kernels, "kernels")
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


def shown(settings: Settings) -> dict[str, Any]:
    """The settings in force as plain values; secrets are hidden."""
    key = None if settings.signing.key is None else HIDDEN
    signing = msgspec.structs.replace(settings.signing, key=key)
    plain = msgspec.structs.replace(settings, kafka=hidden(settings.kafka), signing=signing)
    return hidden(msgspec.to_builtins(plain, enc_hook=hidden_secret))


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
    """Where a kernel is described: in [kernels], and in `kernels` and `features` of a refit."""
    of_refits = _tables(_table(_table(tree, "refits"), "params"))
    for table in (tree, *of_refits):
        yield from _tables(_table(table, "kernels"))
    yield from (_table(each, "features") for each in of_refits)


def _table(tree: dict[str, Any], key: str) -> dict[str, Any]:
    return each if isinstance(each := tree.get(key), dict) else {}


def _tables(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in table.values() if isinstance(each, dict)]


def _check_address(name: str, address: str | None) -> None:
    if address is not None:
        host, colon, port = address.rpartition(":")
        if not (host and colon and port.isascii() and port.isdecimal() and int(port) < 65_536):
            raise BadSettings(f"{name}: got {address!r}, expected HOST:PORT with a port from 0 to 65535")


# ---- parameters of refits, checked against the refit's own `Params`


def params_of(settings: Settings, kind: str) -> dict[str, Any]:
    """What the settings say of a refit, as plain values: its own table, and [kernels] where it takes auxiliary kernels
    and names neither kernels nor features of its own."""
    given = dict(settings.refits.params.get(kind, {}))
    fields = {f.encode_name for f in msgspec.structs.fields(refit_module(kind).Params)}
    if settings.kernels and "kernels" in fields and not {"kernels", "features"} & given.keys():
        given["kernels"] = msgspec.to_builtins(settings.kernels)
    return given


def refit_params(kind: str, given: Mapping[str, Any]) -> Struct:
    """The checked `Params` of a refit. Raises `BadSettings`."""
    if kind not in REFITS:
        raise BadSettings(f"refits.params.{kind}: unknown refit{nearest(kind, REFITS)}")
    checked: Struct = converted(given, refit_module(kind).Params, "", f"refits.params.{kind}")
    check_kernel_files(getattr(checked, "kernels", {}), f"refits.params.{kind}.kernels")
    return checked


def check_kernel_files(kernels: Mapping[str, KernelSpec], where: str) -> None:
    """What can be said of [kernels] before their files are read: that they are there, and of a kind we know."""
    for name, spec in kernels.items():
        for key, file in (("file", spec.file), ("objects", spec.objects)):
            if file is not None and not Path(file).is_file():
                raise BadSettings(f"{where}.{name}.{key}: got {file!r}, {NO_FILE}")
        if not spec.file.endswith(SUFFIXES):
            raise BadSettings(
                f"{where}.{name}.file: got {spec.file!r}, expected a name ending in {', '.join(SUFFIXES)}"
            )
