"""Authenticity of files: an HMAC-SHA256 of the SHA-256 of their content, with a key that only the engine's own
processes have."""

import hmac
import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

KEY, KEY_FILE = "STREAM_ENGINE_STATE_KEY", "STREAM_ENGINE_STATE_KEY_FILE"
ACCEPT_UNSIGNED = "STREAM_ENGINE_STATE_ACCEPT_UNSIGNED"
SIGNATURE_BYTES = 32  # bytes of a signature
MIN_KEY_CHARACTERS = 16  # characters of a key
_PURPOSE = b"stream-engine state\n"


class BadKey(ValueError):
    """An invalid key; one line."""


# A checksum detects damage; a signature detects files that this engine did not write. Without a key, nothing is signed
# or verified. The key comes from the settings, or for commands that read no settings from the environment (KEY, or
# KEY_FILE with the path of a file that contains it). With ACCEPT_UNSIGNED=1, unsigned files are accepted, for the
# transition to signatures.
class Signing(NamedTuple):
    """The key that files are signed and verified with, None: none; `accept_unsigned`: accept files without a
    signature."""

    key: bytes | None = None
    accept_unsigned: bool = False

    def __repr__(self) -> str:
        return f"Signing(key={'None' if self.key is None else '***'}, accept_unsigned={self.accept_unsigned})"


UNSIGNED = Signing()


def signing_with(text: str, accept_unsigned: bool = False, where: str = "key") -> Signing:
    """Signing with a text as the key. Raises `BadKey`."""
    key = text.strip()
    if len(key) < MIN_KEY_CHARACTERS:
        raise BadKey(
            f"{where}: got {len(key)} characters, expected at least {MIN_KEY_CHARACTERS} random ones, for example from "
            "`openssl rand -hex 32`"
        )
    return Signing(key.encode(), accept_unsigned)


def signing_of_environment(environment: Mapping[str, str] = os.environ) -> Signing:
    """Signing with the key of the environment. Raises `BadKey`."""
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
    """The variables by which a child process has the same key; a secret is never on a command line."""
    if signing.key is None:
        return {}
    return {KEY: signing.key.decode(), KEY_FILE: "", ACCEPT_UNSIGNED: "1" if signing.accept_unsigned else "0"}


def signature(key: bytes, digest: bytes) -> bytes:
    """The signature of a content with this SHA-256."""
    return hmac.digest(key, _PURPOSE + digest, "sha256")


def wrongly_signed(signing: Signing, digest: bytes, stored: bytes) -> str:
    """The problem with a stored signature (b"": none) of a digest; "" if it is valid."""
    if signing.key is None:
        return f"signed, but no key is given; set {KEY}, or signing.key in the settings" if stored else ""
    if not stored:
        return (
            ""
            if signing.accept_unsigned
            else (
                "not signed, but a key is given; to accept it, set signing.accept_unsigned = true (or "
                f"{ACCEPT_UNSIGNED}=1) until the next snapshot"
            )
        )
    if hmac.compare_digest(signature(signing.key, digest), stored):
        return ""
    return "signed with another key; use that key, or resume from a copy signed with this one"
