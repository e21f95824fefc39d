"""Values that no setting can have, wherever they stand: text with a NUL, numbers that are none or too large.

TOML allows them; files, C libraries and 64-bit integers do not.
"""

import math
from collections.abc import Mapping
from typing import Any

from stream_engine.service.settings.problems import BadSettings
from stream_engine.service.settings.texts import shard

LARGEST = 2**63 - 1


def check_values(value: Any, where: str, path: tuple[str, ...] = ()) -> None:
    """Raise `BadSettings` for the first such value, at any depth. `where` is the file."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            _check_text(str(key), where, (*path, str(key)), "a name")
            check_values(each, where, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for place, each in enumerate(value):
            check_values(each, where, (*path, str(place)))
    elif isinstance(value, str):
        _check_text(value, where, path, "text")
    elif isinstance(value, float) and not math.isfinite(value):
        raise BadSettings(f"{where}: {'.'.join(path)}: got {value}, expected a finite number")
    elif isinstance(value, int) and abs(value) > LARGEST:
        raise BadSettings(f"{where}: {'.'.join(path)}: got {value}, expected a number of at most 64 bits")


def _check_text(text: str, where: str, path: tuple[str, ...], what: str) -> None:
    if "\0" in text:
        raise BadSettings(f"{where}: {'.'.join(path)!r}: {what} holds a NUL character; take it out")


def check_places(addresses: Mapping[str, str | None], share: str | None) -> None:
    """Raise `BadSettings` for an address (by the name of its setting) that is none, and for a share that is none.

    >>> check_places({"listen": "127.0.0.1:9100", "http.admin_listen": "[::1]:0"}, "0/4"), check_places({}, None)
    (None, None)
    """
    shard(share)
    for name, address in addresses.items():
        if address is None:
            continue
        host, colon, port = address.rpartition(":")
        if not (host and colon and port.isascii() and port.isdecimal() and int(port) < 65_536):
            raise BadSettings(f"{name}: got {address!r}, expected HOST:PORT with a port from 0 to 65535")
