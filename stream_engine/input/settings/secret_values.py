"""Secrets in settings: given by reference, `{ env = "NAME" }` or `{ file = "PATH" }`, and printed as `***`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stream_engine.input.settings import BadSettings

HIDDEN = "***"


class Secret(str):
    """Text that came from the environment or a file by reference and is not shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return HIDDEN


def resolve_references(value: Any, where: str, environment: Mapping[str, str]) -> Any:
    """`value` with its references resolved, at any depth. Raises `BadSettings` for a missing variable or file."""
    if _is_reference(value):
        ((origin, name),) = value.items()
        if not isinstance(name, str) or not name:
            raise BadSettings(f"{where}: a secret is to come from {origin} = {name!r}, expected a name") from None
        try:
            return Secret(environment[name] if origin == "env" else Path(name).read_text().strip())
        except KeyError:
            raise BadSettings(f"{where}: a secret is to come from the environment variable {name}, not set") from None
        except UnicodeDecodeError:
            raise BadSettings(f"{where}: a secret is to come from {name}: not UTF-8") from None
        except OSError as error:
            raise BadSettings(f"{where}: a secret is to come from {name}: {error.strerror}") from None
    if isinstance(value, dict):
        return {key: resolve_references(entry, f"{where}.{key}", environment) for key, entry in value.items()}
    return value


def encode_secret(value: Any) -> str:
    """`***` for a secret: an `enc_hook` of msgspec."""
    if isinstance(value, Secret):
        return HIDDEN
    raise NotImplementedError(f"{type(value).__name__} is no plain value")


def hide_secrets(value: Any, key: str = "") -> Any:
    """`value` with `***` in place of secrets, and of texts under a key that sounds like a secret."""
    if isinstance(value, dict):
        return {name: hide_secrets(entry, name) for name, entry in value.items()}
    if isinstance(value, str) and (isinstance(value, Secret) or _sounds_secret(key)):
        return HIDDEN
    return value


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in ("env", "file")


def _sounds_secret(key: str) -> bool:
    return any(word in key.lower() for word in ("password", "secret", "token"))
