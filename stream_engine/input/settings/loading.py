"""Command line over environment (`STREAM_ENGINE__SECTION__KEY`) over file over default.

The only reader of the configuration file and of the environment.

Every error is one line: where, and what is wrong. A secret is a value `{ env = "NAME" }` or `{ file = "PATH" }` in the
sections [kafka] and [http], or the key of [signing]: it is read when the settings are loaded, and printed as `***`.
"""

import difflib
import json
import math
import os
import re
import tomllib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from stream_engine.alignment.feature_files import SUFFIXES as FEATURE_SUFFIXES
from stream_engine.alignment.feature_files import FeatureSpec
from stream_engine.evaluation import FEATURE_MODEL
from stream_engine.input.settings import BadSettings, Settings
from stream_engine.kernel_learning.auxiliary_files import NO_FILE, SUFFIXES, KernelSpec
from stream_engine.refits import REFITS, former, refit_module

MAX_INTEGER = 2**63 - 1


def converted(given: Mapping[str, Any], struct: type[Struct], where: str, at: str = "") -> Any:
    """`given` as a `struct`. Raises `BadSettings`: msgspec's message behind the key that it is about; `at` is where
    `given` stands."""
    try:
        return msgspec.convert(given, struct, strict=False)
    except msgspec.ValidationError as error:
        problem = f"{in_one_line(error, struct, at)}{_got(error, given)}"
        raise BadSettings(": ".join(filter(None, (where, problem)))) from None


def _got(error: msgspec.ValidationError, given: Any) -> str:
    """The number or the word that was given, where the message has its type or bound alone; never a secret."""
    what, _, path = str(error).partition(" - at `$")
    keys = re.findall(r"[^.\[\]`]+|\.\.\.", path)
    for key in keys:
        given = given.get(key) if isinstance(given, Mapping) else None
    is_shown = isinstance(given, (str, int, float)) and what.startswith("Expected") and ", got `" not in what
    return f", got {hidden(given, keys[-1])!r}" if is_shown and not isinstance(given, Secret) else ""


def in_one_line(error: msgspec.ValidationError, struct: type[Struct], at: str = "") -> str:
    """What is wrong with something that is no `struct`; no value is repeated but a word that was to be one of a few.

    >>> from stream_engine.input.settings import BadSettings, Settings
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
        keys = [f.encode_name for each in _members(kind) if _is_table(each) for f in msgspec.structs.fields(each)]
        return f"{key}.{unknown[1]}: unknown key{nearest(unknown[1], keys)}".lstrip(".")
    expected = (what[0].lower() + what[1:]).replace("`object", "`table").replace("`array", "`list")
    if choices := [word for each in _members(kind) if get_origin(each) is Literal for word in get_args(each)]:
        expected += f", expected one of {', '.join(map(str, choices))}"
    return f"{key.lstrip('.') or 'settings'}: {expected}"


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
    elif isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise BadSettings(f"{place}: got {value}, expected a number of at most 64 bits")


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
    _rename_former(tree)
    for dotted, value in overrides.items():
        if value is not None:
            put(tree, tuple(dotted.split(".")), value)
    where = ", ".join(came_from) or "settings"
    if "input" in tree:
        tree["input"] = msgspec.to_builtins(tree["input"])  # a time of TOML as text
    check_values(tree, where)
    for section in ("kafka", "http", "schema_registry", "signing"):
        if section in tree:
            tree[section] = revealed(tree[section], f"{where}: {section}", environment)
    signing = tree.get("signing")
    if isinstance(signing, dict) and not isinstance(signing.get("key"), Secret | None):
        raise BadSettings(f'{where}: signing.key: expected {{ env = "NAME" }} or {{ file = "PATH" }}')
    settings: Settings = converted(tree, Settings, where)
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
    """Where files are described: in [kernels] and [features], and in `kernels` and `features` of a refit."""
    of_refits = _tables(_table(_table(tree, "refits"), "params"))
    for table in (tree, *of_refits):
        yield from _tables(_table(table, "kernels"))
        yield from _tables(_table(table, "features"))
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


def params_of(settings: Settings, kind: str, own: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What the settings say of a refit, as plain values: its `own` table, by default that of the settings, and
    [kernels] where it takes auxiliary kernels and names neither kernels nor features of its own nor a form without
    them, or [features] where it is about feature sets."""
    params = dict(settings.refits.params.get(kind, {}) if own is None else own)
    fields = {f.encode_name for f in msgspec.structs.fields(refit_module(kind).Params)}
    takes = "kernels" in fields and params.get("form") != "order"
    if settings.kernels and takes and not {"kernels", "features"} & params.keys():
        params["kernels"] = msgspec.to_builtins(settings.kernels)
    if settings.features and kind == FEATURE_MODEL and "features" not in params:
        params["features"] = msgspec.to_builtins(settings.features)
    return params


def refit_params(kind: str, given: Mapping[str, Any]) -> Struct:
    """The checked `Params` of a refit. Raises `BadSettings`."""
    if kind not in REFITS:
        raise BadSettings(f"refits.params.{kind}: unknown refit{nearest(kind, REFITS)}")
    for name in sorted(former(kind).keys() & given.keys()):
        raise BadSettings(f"refits.params.{kind}.{name}: no longer a parameter: {former(kind)[name]}")
    checked: Struct = converted(given, refit_module(kind).Params, "", f"refits.params.{kind}")
    check_kernel_files(getattr(checked, "kernels", {}), f"refits.params.{kind}.kernels")
    if kind == FEATURE_MODEL:
        check_kernel_files(getattr(checked, "features", {}), f"refits.params.{kind}.features", FEATURE_SUFFIXES)
    return checked


def check_kernel_files(
    kernels: Mapping[str, KernelSpec | FeatureSpec], where: str, suffixes: tuple[str, ...] = SUFFIXES
) -> None:
    """What can be said of [kernels] before their files are read: that they are there, and of a kind we know."""
    for name, spec in kernels.items():
        for key, file in (("file", spec.file), ("objects", spec.objects)):
            if file is not None and not Path(file).is_file():
                raise BadSettings(f"{where}.{name}.{key}: got {file!r}, {NO_FILE}")
        if not spec.file.endswith(suffixes):
            raise BadSettings(
                f"{where}.{name}.file: got {spec.file!r}, expected a name ending in {', '.join(suffixes)}"
            )


HIDDEN = "***"


class Secret(str):
    """Text that came from the environment or a file by reference and is not shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN


def revealed(value: Any, where: str, environment: Mapping[str, str]) -> Any:
    """`value` with its references read, at any depth. Raises `BadSettings` for what is not there."""
    if _is_reference(value):
        ((how, name),) = value.items()
        if not isinstance(name, str) or not name:
            raise BadSettings(f"{where}: a secret is to come from {how} = {name!r}, expected a name") from None
        try:
            return Secret(environment[name] if how == "env" else Path(name).read_text().strip())
        except KeyError:
            raise BadSettings(f"{where}: a secret is to come from the environment variable {name}, not set") from None
        except UnicodeDecodeError:
            raise BadSettings(f"{where}: a secret is to come from {name}: not UTF-8") from None
        except OSError as error:
            raise BadSettings(f"{where}: a secret is to come from {name}: {error.strerror}") from None
    if isinstance(value, dict):
        return {key: revealed(each, f"{where}.{key}", environment) for key, each in value.items()}
    return value


def hidden_secret(value: Any) -> str:
    """`***` for a secret, which msgspec leaves to us."""
    if isinstance(value, Secret):
        return HIDDEN
    raise NotImplementedError(f"{type(value).__name__} is no plain value")


def hidden(value: Any, key: str = "") -> Any:
    """`value` with `***` in place of secrets, and of whatever stands under a key that sounds like one."""
    if isinstance(value, dict):
        return {name: hidden(each, name) for name, each in value.items()}
    if isinstance(value, str) and (isinstance(value, Secret) or _sounds_secret(key)):
        return HIDDEN
    return value


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("env", "file")


def _sounds_secret(key: str) -> bool:
    return any(word in key.lower() for word in ("password", "secret", "token"))
