"""The objects that an address of a store or web server names (s3://, gs://, https://), and local copies of them.

A key is an object, a prefix, or a glob whose `*` stays within a folder; options of pyarrow's store follow a `?`. No
message holds credentials: they are not taken from an address, and signed addresses are refused.
"""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from email.message import Message
from fnmatch import fnmatchcase
from http import HTTPStatus
from http.client import HTTPException
from typing import IO, Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import parse_qsl
from urllib.request import Request
from zlib import crc32

from connectors import UnusableSource
from connectors.files.streams import PIECE
from connectors.web import Deadline, RedirectRefused, open_address

TIMEOUT_SECONDS = 60.0  # that a web server may be silent, and until it has begun to answer
MIN_BYTES_PER_SECOND = 1000  # bytes a second, on average after `TIMEOUT_SECONDS`
_MAGIC = re.compile(r"[*\[]")
_SIGNED = re.compile(r"sig|token|secret|key|password|credential|auth", re.IGNORECASE)
_MEANINGS = (
    (r"NO_SUCH_BUCKET|NoSuchBucket|Bucket '[^']*' not found", "the bucket does not exist"),
    (
        r"ACCESS_DENIED|SIGNATURE_DOES_NOT_MATCH|INVALID_ACCESS_KEY|INVALID_CLIENT_TOKEN|HTTP status 40[13]|"
        r"PERMISSION_DENIED|UNAUTHENTICATED|forbidden",
        "access was denied; check the credentials (of S3: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY or AWS_PROFILE; of "
        "Google: GOOGLE_APPLICATION_CREDENTIALS) and the permissions",
    ),
    (r"NETWORK_CONNECTION|curlCode|Could not connect", "the store cannot be reached"),
)


class StoreFailed(OSError):
    """What a store or a web server answers; one line without credentials. `final`: it will answer the same again.
    `code`: of HTTP, 0 if there was none."""

    def __init__(self, text: str, final: bool = False, code: int = 0):
        super().__init__(text)
        self.final, self.code = final, code


class Object(NamedTuple):
    """An object with the name of its partition, its size, and a check value of its version (0: not known)."""

    name: str
    size: int
    version: int
    write: Callable[[IO[bytes]], None]  # all of it into a file; raises `StoreFailed`

    def copy(self) -> IO[bytes]:
        """A copy in a file without a name, which is gone when the process is. Raises `StoreFailed`."""
        if (descriptor := _COPIES.pop((self.name, self.version), None)) is not None:
            return os.fdopen(descriptor, "rb")
        file = tempfile.TemporaryFile()  # noqa: SIM115 -- returned open
        try:
            self.write(file)
            file.flush()
        except OSError as error:
            file.close()
            if isinstance(error, StoreFailed):
                raise
            raise StoreFailed(
                f"{self.name}: copying it to {tempfile.gettempdir()}: {error.strerror or error}; set TMPDIR to a "
                "folder with more space"
            ) from None
        return file

    def keep(self, file: IO[bytes]) -> None:
        """Keep this copy, of which only the beginning was looked at, for the next who asks for it; only the last."""
        for number in _COPIES.values():
            os.close(number)
        _COPIES.clear()
        if self.version:
            _COPIES[self.name, self.version] = os.dup(file.fileno())


_COPIES: dict[tuple[str, int], int] = {}  # name and version of an object -> descriptor of its copy


def address_of(name: str, uri: str) -> str:
    """The address of one object of those that `uri` names, with the options of `uri`."""
    query = uri.partition("?")[2]
    return uri if uri.startswith("http") else name + (f"?{query}" if query else "")


def objects_at(scheme: str, location: str) -> list[Object]:
    """What an address names now, sorted by name. Raises `StoreFailed`, `UnusableSource`."""
    return [_on_web(scheme, location)] if scheme.startswith("http") else _in_store(scheme, location)


def _version(*identity: object) -> int:
    """28 bits of a check value, never 0."""
    return crc32(repr(identity).encode()) >> 4 or 1


# ---- object stores


def _in_store(scheme: str, location: str) -> list[Object]:
    from pyarrow import fs

    place, _, query = location.partition("?")
    bucket, _, key = place.partition("/")
    shown = f"{scheme}://{place.rpartition('@')[2]}"
    if not bucket or ("@" in bucket and bucket.partition("@")[0] != "anonymous"):
        raise UnusableSource(
            f"{shown}: expected {scheme}://BUCKET/KEY without credentials, which come from the environment"
        )
    store = _translated(
        shown, lambda: fs.FileSystem.from_uri(f"{scheme}://{bucket}" + (f"?{query}" if query else ""))[0]
    )
    bucket = bucket.rpartition("@")[2]
    infos = _translated(shown, lambda: _matching(fs, store, f"{bucket}/{key}"))
    return [_stored(scheme, store, info) for info in sorted(infos, key=lambda info: info.path)]


def _matching(fs: Any, store: Any, path: str) -> list[Any]:
    magic = _MAGIC.search(path)
    if not path.endswith("/"):
        info = store.get_file_info(path)
        if info.type == fs.FileType.File:
            return [info]
    base = path[: path.rindex("/", 0, magic.start())] if magic else path.rstrip("/")
    try:
        inside = store.get_file_info(fs.FileSelector(base, recursive=True))
    except FileNotFoundError:  # of a prefix; a bucket that is missing is another error
        return []
    files = [info for info in inside if info.type == fs.FileType.File]
    if magic:
        return [info for info in files if _matches(info.path.split("/"), path.split("/"))]
    return [info for info in files if not re.search(r"/[_.]", info.path[len(base) :])]  # such as _SUCCESS


def _matches(parts: list[str], pattern: list[str]) -> bool:
    """Whether a path is one that a glob names.

    >>> [_matches("b/2026/11/a.csv".split("/"), glob.split("/")) for glob in ("b/*/*/*.csv", "b/**/*.csv", "b/*.csv")]
    [True, True, False]
    """
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_matches(parts[skipped:], pattern[1:]) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _matches(parts[1:], pattern[1:])


def _stored(scheme: str, store: Any, info: Any) -> Object:
    name = f"{scheme}://{info.path}"

    def write(file: IO[bytes]) -> None:
        with _translated(name, lambda: store.open_input_stream(info.path)) as stream:
            while piece := _translated(name, lambda: stream.read(PIECE)):
                file.write(piece)
        if file.tell() != info.size:
            raise StoreFailed(f"{name}: got {file.tell():,} bytes, expected {info.size:,}; it was changed meanwhile")

    return Object(name, info.size, _version(info.size, info.mtime_ns), write)


def _translated(what: str, ask: Callable[[], Any]) -> Any:
    """The answer of a store. Raises `StoreFailed` for its errors."""
    try:
        return ask()
    except (OSError, ValueError, NotImplementedError) as error:  # Arrow's are among them
        text = str(error).partition("\n")[0]
        for words, meaning in _MEANINGS:
            if re.search(words, text):
                raise StoreFailed(f"{what}: {meaning}", final="reached" not in meaning) from None
        text = re.sub(r" \(Request ID: [^)]*\)", "", text)[:300]
        raise StoreFailed(f"{what}: {text}", final=isinstance(error, ValueError | NotImplementedError)) from None


# ---- web servers


def _on_web(scheme: str, location: str) -> Object:
    place, _, query = location.partition("?")
    host, _, path = place.partition("/")
    signed = any(_SIGNED.search(name) for name, _ in parse_qsl(query, keep_blank_values=True))
    name = f"{scheme}://{place.rpartition('@')[2]}"
    if not host or "@" in host:
        raise UnusableSource(f"{name}: expected {scheme}://HOST/PATH without credentials")
    if signed:
        raise UnusableSource(
            f"{name}: got a signed address, which would let everybody in who reads a log; expected one without "
            "credentials, or s3:// or gs:// with those of the environment"
        )
    name += f"?{query}" if query else ""
    address = f"{scheme}://{location}"
    try:
        headers = _answer(name, address, "HEAD").headers
    except StoreFailed as failure:
        if failure.code not in (HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED):
            raise
        headers = Message()  # a server that only gives whole files
    size, version = headers.get("Content-Length"), headers.get("ETag") or headers.get("Last-Modified")

    def write(file: IO[bytes]) -> None:
        with _answer(name, address, "GET") as answer:
            _copy_body(name, answer, file)

    return Object(name, int(size or 0), _version(size, version) if version else 0, write)


def _copy_body(name: str, answer: Any, file: IO[bytes]) -> None:
    """The body of an answer into a file, within bounds of size and time. Raises `StoreFailed`."""
    expected, began = answer.headers.get("Content-Length"), time.monotonic()
    room = shutil.disk_usage(tempfile.gettempdir()).free // 2
    size = int(expected) if expected and expected.isdecimal() else None
    if size is not None and size > room:
        raise StoreFailed(_no_room(name, f"{size:,} bytes", room), final=True)
    copied = 0
    try:
        while piece := answer.read1(PIECE):
            file.write(piece)
            copied += len(piece)
            seconds = time.monotonic() - began
            if copied > room:
                raise StoreFailed(_no_room(name, "an answer that says no size, of more", room), final=True)
            if seconds > TIMEOUT_SECONDS and copied < MIN_BYTES_PER_SECOND * seconds:
                raise StoreFailed(f"{name}: the server sent {copied:,} bytes in {seconds:.0f} s, which is too slow")
    except (OSError, HTTPException) as error:
        if isinstance(error, StoreFailed):
            raise
        raise StoreFailed(f"{name}: {getattr(error, 'strerror', None) or error or type(error).__name__}") from None
    if size is not None and copied != size:
        raise StoreFailed(f"{name}: got {copied:,} bytes, expected {size:,}")


def _no_room(name: str, what: str, room: int) -> str:
    return (
        f"{name}: got {what}, expected at most {room:,} bytes, half of what is free in {tempfile.gettempdir()}; set "
        "TMPDIR to a folder with more space"
    )


def _answer(name: str, address: str, method: str) -> Any:
    """The head of an answer, which has to come within `TIMEOUT_SECONDS`. Raises `StoreFailed`."""
    request = Request(address, method=method, headers={"Accept-Encoding": "identity"})
    try:
        with Deadline(TIMEOUT_SECONDS) as deadline:
            return open_address(request, deadline, TIMEOUT_SECONDS)
    except HTTPError as error:
        error.close()
        answer = f"{name}: the server answers {error.code} {error.reason}"
        raise StoreFailed(answer, 400 <= error.code < 500, error.code) from None
    except RedirectRefused as error:
        raise StoreFailed(f"{name}: {error}", final=True) from None
    except (OSError, ValueError) as error:
        raise StoreFailed(f"{name}: {getattr(error, 'reason', None) or error or type(error).__name__}") from None
