"""Who may have written a file: an HMAC-SHA256 with a key that only the engine's own processes have.

A checksum tells damage from what was written; a signature tells what this engine wrote from what somebody else put
there. It covers the SHA-256 of the content, and so the content. Without a key nothing is signed, and nothing is asked.

The key comes from the settings, or for verbs that read none from the environment: STREAM_ENGINE_STATE_KEY, or
STREAM_ENGINE_STATE_KEY_FILE with the path of a file that holds it. STREAM_ENGINE_STATE_ACCEPT_UNSIGNED=1 lets files
without a signature pass, for the time in which a state takes its first one.
"""

import hmac
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

KEY, KEY_FILE = "STREAM_ENGINE_STATE_KEY", "STREAM_ENGINE_STATE_KEY_FILE"
ACCEPT_UNSIGNED = "STREAM_ENGINE_STATE_ACCEPT_UNSIGNED"
SIGNED = 32  # bytes of a signature
SHORTEST = 16  # characters of a key
_PURPOSE = b"stream-engine state\n"


class BadKey(ValueError):
    """A key that cannot be used; one line."""


class Signing(NamedTuple):
    """The key that files are signed with and must be signed with, None: none; `accept_unsigned` lets those pass that
    have no signature at all."""

    key: bytes | None = None
    accept_unsigned: bool = False

    def __repr__(self) -> str:
        return f"Signing(key={'None' if self.key is None else '***'}, accept_unsigned={self.accept_unsigned})"


UNSIGNED = Signing()


def signing_with(text: str, accept_unsigned: bool = False, where: str = "key") -> Signing:
    """With the key that a text is. Raises `BadKey`."""
    key = text.strip()
    if len(key) < SHORTEST:
        raise BadKey(
            f"{where}: got {len(key)} characters, expected at least {SHORTEST} that nobody can guess, as of "
            "`openssl rand -hex 32`"
        )
    return Signing(key.encode(), accept_unsigned)


def signing_of_environment(environment: Mapping[str, str] = os.environ) -> Signing:
    """What the environment says. Raises `BadKey`."""
    text, path = environment.get(KEY) or None, environment.get(KEY_FILE) or None  # "" is none
    if text is not None and path is not None:
        raise BadKey(f"environment: got both {KEY} and {KEY_FILE}, expected one of them")
    accept = environment.get(ACCEPT_UNSIGNED, "0")
    if accept not in ("0", "1"):
        raise BadKey(f"{ACCEPT_UNSIGNED}: got {accept!r}, expected 0 or 1")
    if path is not None:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problem = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise BadKey(f"{KEY_FILE}: {path}: cannot be read: {problem}") from None
    if text is None:
        return UNSIGNED
    return signing_with(text, accept == "1", KEY if path is None else KEY_FILE)


def in_environment(signing: Signing) -> dict[str, str]:
    """The variables by which a child process has the same key; a secret never stands on a command line."""
    if signing.key is None:
        return {}
    return {KEY: signing.key.decode(), KEY_FILE: "", ACCEPT_UNSIGNED: "1" if signing.accept_unsigned else "0"}


def signature(key: bytes, digest: bytes) -> bytes:
    """Of a content with this SHA-256."""
    return hmac.digest(key, _PURPOSE + digest, "sha256")


def wrongly_signed(signing: Signing, digest: bytes, found: bytes) -> str:
    """What is wrong with a signature (empty: none), "" when nothing is."""
    if signing.key is None:
        return f"signed with a key, and none is given; set {KEY}, or signing.key of the settings" if found else ""
    if not found:
        return (
            ""
            if signing.accept_unsigned
            else (
                "not signed, and a key is given; to take it over as it is, set signing.accept_unsigned = true (or "
                f"{ACCEPT_UNSIGNED}=1) until the next snapshot"
            )
        )
    if hmac.compare_digest(signature(signing.key, digest), found):
        return ""
    return "signed with another key than the one given; give that one, or go on from a copy that this key has signed"
