"""Secrets: a value `{ env = "NAME" }` or `{ file = "PATH" }` in the sections [kafka] and [http], and the key of
[signing].

It is read when the settings are loaded and printed as `***`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stream_engine.service.settings.problems import BadSettings

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
        return {key: revealed(each, where, environment) for key, each in value.items()}
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
