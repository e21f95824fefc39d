"""Command line over environment (`STREAM_ENGINE__SECTION__KEY`) over file over default.

The only reader of the configuration file and of the environment.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from stream_engine.service.settings.problems import BadSettings, check_keys
from stream_engine.service.settings.refit_params import check_kernel_files, check_kernels, refit_params
from stream_engine.service.settings.relative_paths import rewrite_relative_paths
from stream_engine.service.settings.schema import Settings
from stream_engine.service.settings.secrets import HIDDEN, Secret, hidden, hidden_secret, revealed
from stream_engine.service.settings.sentences import in_one_line
from stream_engine.service.settings.texts import put, toml_value
from stream_engine.service.settings.values import check_places, check_values

ENVIRONMENT = "STREAM_ENGINE__"

_Keys = tuple[str, ...]
OLD_KEYS: dict[_Keys, _Keys] = {
    ("drift", "quiet"): ("drift", "cooldown")
}  # a key's former name, still read -> its name


def load(path: str | None, overrides: Mapping[str, Any], environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from a file (or none), the environment and `overrides` ({"section.key": value}; None is not given).

    Raises `BadSettings`.
    """
    tree: dict[str, Any] = {}
    if path:
        tree = _read(Path(path))
        _rename_old_keys(tree, path)
        _take_state_apart(tree, path)
        check_keys(tree, Settings, path)
        rewrite_relative_paths(tree, Path(path).parent)
    for keys, value in _from_environment(environment).items():
        put(tree, keys, value)
    for dotted, value in overrides.items():
        if value is not None:
            keys = tuple(dotted.split("."))
            put(tree, OLD_KEYS.get(keys, keys), value)
    check_values(tree, path or "settings")
    try:
        for section in ("kafka", "http"):
            if section in tree:
                tree[section] = revealed(tree[section], path or "environment", environment)
        _reveal_key(tree, path or "environment", environment)
        check_kernels(tree.get("kernels"), path or "settings")
        settings = msgspec.convert(tree, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise BadSettings(f"{path or 'settings'}: {in_one_line(error, tree, Settings)}") from None
    check_places({"listen": settings.listen, "http.admin_listen": settings.http.admin_listen}, settings.input.shard)
    check_kernel_files(settings.kernels, "kernels")
    for kind, params in settings.refits.params.items():
        refit_params(kind, params)
    return settings


def shown(settings: Settings) -> dict[str, Any]:
    """The settings in force as plain values; secrets are hidden."""
    key = None if settings.signing.key is None else HIDDEN
    signing = msgspec.structs.replace(settings.signing, key=key)
    plain = msgspec.structs.replace(settings, kafka=hidden(settings.kafka), signing=signing)
    return hidden(msgspec.to_builtins(plain, enc_hook=hidden_secret))


def _take_state_apart(tree: dict[str, Any], where: str) -> None:
    """A table [state] holds the `directory` that `state` otherwise is, and what else belongs to it: [signing]."""
    state = tree.get("state")
    if not isinstance(state, dict):
        return
    if "signing" in tree:
        raise BadSettings(f"{where}: got both [state] and [signing], expected one of them")
    del tree["state"]
    tree |= {"state": state.pop("directory")} if "directory" in state else {}
    tree["signing"] = state


def _reveal_key(tree: dict[str, Any], where: str, environment: Mapping[str, str]) -> None:
    """The key of [signing], which never stands in the settings itself. Raises `BadSettings`."""
    signing = tree.get("signing")
    if not isinstance(signing, dict) or signing.get("key") is None:
        return
    key = revealed(signing["key"], f"{where}: signing.key", environment)
    if not isinstance(key, Secret):
        raise BadSettings(f'{where}: signing.key: expected {{ env = "NAME" }} or {{ file = "PATH" }}')
    tree["signing"] = {**signing, "key": str(key)}


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(
            f"{path}: cannot be read: {error.strerror if isinstance(error, OSError) else error}"
        ) from None
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is a ValueError of its own kind
        raise BadSettings(f"{path}: not TOML: {error}") from None


def _from_environment(environment: Mapping[str, str]) -> dict[_Keys, Any]:
    """What the variables of the environment set, by the keys that their names spell."""
    values: dict[_Keys, Any] = {}
    names: dict[_Keys, str] = {}
    for name, text in sorted(environment.items()):
        if not name.startswith(ENVIRONMENT):
            continue
        spelled = tuple(part.lower() for part in name.removeprefix(ENVIRONMENT).split("__"))
        keys = OLD_KEYS.get(spelled, spelled)
        tree: dict[str, Any] = {}
        put(tree, keys, toml_value(text))
        _rename_old_keys(tree, name)  # a whole section may stand in one variable
        check_keys(tree, Settings, name)
        if keys in names and OLD_KEYS.keys() & {spelled}:
            raise BadSettings(_both(f"environment: {names[keys]} and {name}", spelled))
        names[keys] = name
        for key in keys:
            tree = tree[key]
        values[keys] = tree
    return values


def _rename_old_keys(tree: dict[str, Any], where: str) -> None:
    """Give keys that are written under their former names the present ones, in place."""
    for old, new in OLD_KEYS.items():
        section = tree.get(old[0])
        if isinstance(section, dict) and old[1] in section:
            if new[1] in section:
                raise BadSettings(_both(where, old))
            section[new[1]] = section.pop(old[1])


def _both(where: str, old: _Keys) -> str:
    new = OLD_KEYS[old]
    return f"{where}: got both {'.'.join(new)} and {'.'.join(old)}, its former name; expected one of them"
