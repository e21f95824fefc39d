"""The byte layout of all published files: a JSON header, plain little-endian arrays, a SHA-256 (DESIGN.md, "Snapshot
byte format"). Equal contents give equal bytes, and any other encoding is rejected on reading, even with a correct
checksum."""

import hashlib
import json
import math
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stream_engine.data.signatures import SIGNATURE_BYTES, UNSIGNED, Signing, signature, wrongly_signed

MAGIC = b"cmpstrm\n"
VERSION = 1  # of files without a signature; with one it is SIGNED_VERSION
SIGNED_VERSION = 2
ALIGN = 64
MAX_AXES, MAX_DEPTH = 4, 32  # axes of an array; lists and objects inside each other in the header
_PREFIX_BYTES = 24  # magic, version, reserved, header length
_DIGEST_BYTES = 32
_DTYPES = frozenset(["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"])
_ENTRY = {"name", "dtype", "shape", "at", "bytes"}

DecodedEvents = tuple[str, dict[str, Any], dict[str, np.ndarray], str]


class Corrupt(ValueError):
    """The bytes are not a complete, unchanged container of a version that this engine reads. One line says why."""


class NotForThisProcess(Corrupt):
    """The file may be intact, but this process must not read it, nor replace it with an older one."""


class NewerVersion(NotForThisProcess):
    """The file was written by a newer engine; it is intact and must not be changed."""


class NotTrusted(NotForThisProcess):
    """The file is signed with a different key than this process has, or is not signed and should be; `digest`: the
    SHA-256 (hex) of its content, which is undamaged."""

    def __init__(self, problem: str, digest: str = ""):
        super().__init__(problem)
        self.digest = digest


def encode(
    kind: str, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray], signing: Signing = UNSIGNED
) -> tuple[list[memoryview], str]:
    """`(chunks, digest)`: what to write, in order, and the SHA-256 (hex) of the content, which does not depend on a key
    (without a key, it equals the last 32 bytes).

    >>> chunks, digest = encode("demo", {"n": 2}, {"x": np.arange(2)})
    >>> kind, meta, arrays, again = decode(b"".join(chunks))
    >>> kind, meta, arrays["x"].tolist(), digest == again
    ('demo', {'n': 2}, [0, 1], True)
    """
    table: list[dict[str, Any]] = []
    data: list[memoryview] = []
    begin = 0
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name]).reshape(np.shape(arrays[name]))  # keeps 0-d
        if array.dtype.str not in _DTYPES:
            raise TypeError(f"array {name!r} has dtype {array.dtype}; a container holds {', '.join(sorted(_DTYPES))}")
        table.append(
            {"name": name, "dtype": array.dtype.str, "shape": list(array.shape), "at": begin, "bytes": array.nbytes}
        )
        padding = -array.nbytes % ALIGN
        data += [array.reshape(-1).view(np.uint8).data, memoryview(bytes(padding))]
        begin += array.nbytes + padding
    header = _as_written({"kind": kind, "meta": meta, "arrays": table})
    after_version = bytes(4) + len(header).to_bytes(8, "little") + header
    after_version += bytes(-(len(after_version) + 12) % ALIGN)
    digest = hashlib.sha256(MAGIC + VERSION.to_bytes(4, "little") + after_version)
    for chunk in data:
        digest.update(chunk)
    version = VERSION if signing.key is None else SIGNED_VERSION
    trailer = digest.digest() + (b"" if signing.key is None else signature(signing.key, digest.digest()))
    chunks = [memoryview(MAGIC + version.to_bytes(4, "little") + after_version), *data, memoryview(trailer)]
    return chunks, digest.hexdigest()


def _as_written(header: Any) -> bytes:
    """A header in the one form that it has."""
    return json.dumps(header, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def decode(buffer: bytes | memoryview | mmap.mmap, signing: Signing = UNSIGNED) -> DecodedEvents:
    """`(kind, meta, arrays, digest)`; arrays are read-only views of `buffer`. Raises `Corrupt`, and its subclasses
    `NewerVersion` and `NotTrusted`."""
    view = memoryview(buffer)
    if len(view) < _PREFIX_BYTES + _DIGEST_BYTES or view[:8] != MAGIC:
        raise Corrupt(f"not a stream-engine file: {len(view)} bytes, starts with {bytes(view[:8])!r}")
    version = int.from_bytes(view[8:12], "little")
    if version > SIGNED_VERSION:
        raise NewerVersion(f"format version {version}, this engine reads {SIGNED_VERSION}")
    if version < VERSION:
        raise Corrupt(f"format version {version}, expected {VERSION} or {SIGNED_VERSION}")
    end = len(view) - (_DIGEST_BYTES if version == VERSION else _DIGEST_BYTES + SIGNATURE_BYTES)
    if end < _PREFIX_BYTES:
        raise Corrupt(f"truncated: {len(view)} bytes")
    digest = hashlib.sha256(MAGIC + VERSION.to_bytes(4, "little"))
    digest.update(view[12:end])
    if digest.digest() != view[end : end + _DIGEST_BYTES]:
        raise Corrupt(f"wrong checksum over {len(view)} bytes: damaged or truncated")
    if problem := wrongly_signed(signing, digest.digest(), bytes(view[end + _DIGEST_BYTES :])):
        raise NotTrusted(problem, digest.hexdigest())
    size = int.from_bytes(view[16:24], "little")
    begin = _PREFIX_BYTES + size + (-(_PREFIX_BYTES + size) % ALIGN)
    if any(view[12:16]) or begin > end or any(view[_PREFIX_BYTES + size : begin]):
        raise Corrupt(f"header of {size} bytes in a file of {len(view)}, or nonzero padding around it")
    header = _header(bytes(view[_PREFIX_BYTES : _PREFIX_BYTES + size]))
    return header["kind"], header["meta"], _arrays(header["arrays"], view[begin:end].toreadonly()), digest.hexdigest()


def _header(text: bytes) -> dict[str, Any]:
    """The header, which is written as it would be written again: so no key twice, no NaN, no number out of range."""
    try:
        header = json.loads(text)
        is_canonical = _as_written(header) == text
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"header: not JSON as an engine writes it: {type(error).__name__}: {error}"[:300]) from None
    if not is_canonical:
        raise Corrupt("header: not written as an engine writes it: other spaces, an order of keys, or a key twice")
    if not isinstance(header, dict) or header.keys() != {"kind", "meta", "arrays"}:
        raise Corrupt("header: expected an object of kind, meta and arrays")
    for key, kind in (("kind", str), ("meta", dict), ("arrays", list)):
        if not isinstance(header[key], kind):
            raise Corrupt(f"header: {key} is a {type(header[key]).__name__}, expected a {kind.__name__}")
    _check_depth(header)
    return header


def _check_depth(header: dict[str, Any]) -> None:
    """Copying and writing again go down by recursion; a header of this engine is a handful of levels deep."""
    level: list[Any] = [header]
    for _ in range(MAX_DEPTH):
        level = [entry for value in level for entry in (value.values() if isinstance(value, dict) else value)]
        level = [entry for entry in level if isinstance(entry, (dict, list))]
        if not level:
            return
    raise Corrupt(f"header: more than {MAX_DEPTH} nested lists and objects")


def _arrays(table: list[Any], body: memoryview) -> dict[str, np.ndarray]:
    """The arrays of a table that is laid out as `encode` lays it out: sorted, one after the other, nothing left."""
    arrays: dict[str, np.ndarray] = {}
    begin, last = 0, None
    for entry in table:
        name, dtype, shape = _entry(entry)
        if last is not None and name <= last:
            raise Corrupt(f"array {name!r} follows {last!r}, expected names in ascending order")
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if (entry["at"], entry["bytes"]) != (begin, size) or begin + size > len(body):
            raise Corrupt(
                f"array {name!r} of {shape} {dtype} is at {entry['at']} with {entry['bytes']} bytes, expected "
                f"{size} bytes at {begin} of {len(body)}"
            )
        raw, last = body[begin : begin + size], name
        arrays[name] = np.frombuffer(raw, dtype).reshape(shape)
        if dtype == "|b1" and size and np.frombuffer(raw, np.uint8).max() > 1:
            raise Corrupt(f"array {name!r} has bytes that are neither true nor false")
        begin += size + -size % ALIGN
        if any(body[begin - (-size % ALIGN) : begin]):
            raise Corrupt(f"nonzero padding after array {name!r}")
    if begin != len(body):
        raise Corrupt(f"{len(body)} bytes of arrays, expected {begin}")
    return arrays


def _entry(entry: Any) -> tuple[str, str, list[int]]:
    """Name, type and shape of an entry of the table."""
    if not isinstance(entry, dict) or entry.keys() != _ENTRY or not isinstance(entry["name"], str):
        raise Corrupt(f"header: an entry of arrays is {str(entry)[:80]}, expected {', '.join(sorted(_ENTRY))}")
    name, dtype, shape = entry["name"], entry["dtype"], entry["shape"]
    if not isinstance(dtype, str) or dtype not in _DTYPES:
        raise Corrupt(f"array {name!r} has dtype {dtype!r}"[:200])
    if not isinstance(shape, list) or len(shape) > MAX_AXES or not all(_is_size(size) for size in shape):
        raise Corrupt(f"array {name!r} has shape {str(shape)[:80]}, expected up to {MAX_AXES} sizes")
    if not (_is_size(entry["at"]) and _is_size(entry["bytes"])):
        raise Corrupt(
            f"array {name!r}: at and bytes are not sizes: {str(entry['at'])[:40]}, {str(entry['bytes'])[:40]}"
        )
    return name, dtype, shape


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 48


def load(path: str | Path, signing: Signing = UNSIGNED) -> DecodedEvents:
    """`decode` of a file whose arrays stay mapped: processes that read the same snapshot share its pages."""
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        try:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:
            raise Corrupt("the file is empty") from None
    if (on_disk := 512 * status.st_blocks) < status.st_size:  # holes, or a file system that compresses
        _check_stated_size(memoryview(mapping), on_disk)
    return decode(mapping, signing)


def _check_stated_size(view: memoryview, on_disk: int) -> None:
    """Raise `Corrupt` for a file that is longer than its header says: to hash terabytes of nothing would take hours."""
    size = int.from_bytes(view[16:24], "little")
    if view[:8] != MAGIC or size > max(on_disk, 1 << 20):
        raise Corrupt(f"not a stream-engine file: {len(view):,} bytes, of which {on_disk:,} are on the disk")
    table = _header(bytes(view[_PREFIX_BYTES : _PREFIX_BYTES + size]))["arrays"]
    entries = [_entry(entry) for entry in table]
    begin = _PREFIX_BYTES + size + (-(_PREFIX_BYTES + size) % ALIGN)
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for _, dtype, shape in entries]
    largest = begin + sum(size + -size % ALIGN for size in sizes) + _DIGEST_BYTES + SIGNATURE_BYTES
    if len(view) > largest:
        raise Corrupt(f"{len(view):,} bytes, expected at most {largest:,} by its header")
