"""The manifest of a backup: which files of a state directory it holds, where, and what their bytes hash to.

    TARGET/manifest.json                                    written last: a backup without it is none
    TARGET/files/snapshots-000000000042.snapshot.9F86D081   a file of the state: its path, and how its digest begins

A name under `files` is made of what is in it, so a later backup never touches a file that the manifest before it
names: until the new manifest is there the old one is good, and a file that is there already is not copied again.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from connectors.targets import Target

NAME, FOLDER = "manifest.json", "files"
_PART = r"[^/.\x00][^/\x00]*"  # no hidden names, nothing that leads up


class BadBackup(RuntimeError):
    """What is in a target is no whole backup; one line: where, what, what to do."""


class File(Struct, frozen=True, forbid_unknown_fields=True):
    """A file of the state: its path below DIR, its bytes, and what they are called in the target."""

    path: Annotated[str, Meta(pattern=rf"^{_PART}(/{_PART}){{0,2}}\Z")]
    size: Annotated[int, Meta(ge=0)]
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]

    @property
    def stored(self) -> str:
        """Its name in the target."""
        return f"{FOLDER}/{self.path.replace('/', '-')}.{self.sha256[:16]}"


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """`snapshot` is the newest one, `digest` its digest; `files` stand in the order in which they are restored: the
    newest snapshot after all that it relies on."""

    format: Annotated[int, Meta(ge=1)]
    snapshot: Annotated[int, Meta(ge=0)]
    digest: str
    time: str
    files: list[File]


class Differs(OSError):
    """The bytes are not those that the digest is of."""


def checked(pieces: Iterable[bytes], file: File, where: str) -> Iterator[bytes]:
    """The same pieces; raises `Differs` after the last one where they are not what the manifest says."""
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
        yield piece
    if size != file.size or digest.hexdigest() != file.sha256:
        raise Differs(
            f"{where}: {size:,} bytes that hash to {digest.hexdigest()[:16]}, expected {file.size:,} that hash to "
            f"{file.sha256[:16]}"
        )


def digest_of(pieces: Iterable[bytes]) -> tuple[int, str]:
    """`(bytes, sha256)` of a file."""
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
    return size, digest.hexdigest()


def encode(manifest: Manifest) -> bytes:
    """The manifest as a file that people can read."""
    return json.dumps(msgspec.to_builtins(manifest), indent=1, ensure_ascii=False).encode() + b"\n"


def read_manifest(target: Target, where: str) -> Manifest | None:
    """The manifest in a target; None where there is none. Raises `BadBackup`, `OSError`."""
    try:
        text = b"".join(target.read(NAME))
    except FileNotFoundError:
        return None
    try:
        manifest = msgspec.json.decode(text, type=Manifest)
    except msgspec.DecodeError as error:  # also what validates wrongly
        raise BadBackup(
            f"{where}/{NAME}: {error}; expected the manifest of a backup, restore from another copy"
        ) from None
    if manifest.format != 1:
        raise BadBackup(f"{where}/{NAME}: format {manifest.format}, this engine reads 1; upgrade")
    return manifest
